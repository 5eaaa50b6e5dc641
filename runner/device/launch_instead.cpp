// SPDX-License-Identifier: MIT
#include "device/launch_instead.h"

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <variant>

#include "device/device.h"

namespace stepgate {

LaunchInstead launch_instead(const LoadedKernel& loaded, const KernelRequest& asked,
                             const DeviceFacts& device, const std::function<Launch()>& own) {
  const KernelReplacement& with = *asked.kernel.replacement;
  PreparedKernel made;
  try {
    made = loaded.prepare(asked, device);
  } catch (const KernelUnsupported& error) {
    if (with.otherwise == Otherwise::refuse) throw;
    return {.launch = own(), .unsupported = error.what()};
  }
  if (made.launches != with.launches) {
    throw DeviceError(
        fmt::format("'{}' of '{}' enqueues {} kernels a call, as it says, and the plan counts {}; "
                    "write launches = {} beside its library in the scenario",
                    with.function, with.library, made.launches, with.launches, made.launches));
  }
  return {.launch = std::move(made.launch), .unsupported = {}};
}

std::vector<KernelChoice> choices_instead(const StepPlan& plan,
                                          const std::function<std::string(const Kernel&)>& identity,
                                          const std::map<int, std::string>& unsupported) {
  std::vector<KernelChoice> choices;
  for (const std::shared_ptr<const Kernel>& row : plan.library_kernels) {
    KernelChoice own{.kernel = std::string(row->name), .library = {}, .reason = {}};
    for (int index = 0; index < static_cast<int>(plan.operations.size()); ++index) {
      const auto* launch = std::get_if<LaunchKernel>(&operation_at(plan, index).action);
      if (launch == nullptr || launch->kernel != row->name) continue;
      ++own.launches;
      const auto found = unsupported.find(index);
      if (found == unsupported.end()) continue;
      if (own.own_launches == 0) own.reason = found->second;
      ++own.own_launches;
    }
    if (own.own_launches < own.launches)
      choices.push_back({.kernel = own.kernel, .library = identity(*row), .reason = {}});
    if (own.own_launches > 0) choices.push_back(std::move(own));
  }
  return choices;
}

}  // namespace stepgate
