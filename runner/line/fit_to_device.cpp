// SPDX-License-Identifier: MIT
#include "line/fit_to_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/require.h"
#include "plan/compose/build_step_plan.h"
#include "plan/count/facts_of.h"
#include "scenario/knobs/fields.h"

namespace stepgate {
namespace {

// Lowest compute capability whose tensor cores support this type (CUDA C++ programming guide,
// arithmetic instructions); 0 for plain arithmetic.
double least_compute_capability(DType dtype) {
  switch (dtype) {
    case DType::fp32:
    case DType::fp64:
      return 0;
    case DType::fp16:
      return 7.0;
    case DType::tf32:
    case DType::bf16:
      return 8.0;
  }
  require(false, "every dtype has hardware");
  return 0;
}

// That of fp8, whose tensor cores came with the L4 and the H100.
constexpr double least_capability_of_fp8 = 8.9;

// The name of the type in scenario files: "bf16".
std::string_view word_of(DType dtype) {
  for (const Choice& choice : field_named("model.dtype")->values.choices) {
    if (choice.value == static_cast<std::int64_t>(dtype)) return choice.name;
  }
  require(false, "every dtype has a name");
  return {};
}

bool has_share_of_a_device(const auto& plans) {
  return std::any_of(plans.begin(), plans.end(),
                     [](const StepPlan& plan) { return plan.cap_of_device.has_value(); });
}

// Whether the scenario asks for a newer device than this, and so is skipped on it.
bool is_for_newer_devices(const Scenario& scenario, const DeviceIdentity& device) {
  const auto& needed = scenario.requirements.compute;
  return needed && device.compute_capability < *needed;
}

// Adds an error for each variant whose dtype or fp8 the device does not support. A compute
// capability of 0 means no GPU, or an unknown one.
void refuse_dtypes(const Planned& planned, const DeviceIdentity& device,
                   std::vector<Diagnostic>& wrong) {
  for (const Variant& variant : planned.scenario.variants) {
    const auto refuse = [&](std::string_view what, double needed, const char* way_out) {
      if (device.compute_capability == 0 || device.compute_capability >= needed) return;
      wrong.push_back(
          {variant.place,
           fmt::format("variant '{}': {} needs compute capability {:.1f}, and {} has {:.1f}",
                       variant.name, what, needed, in_words(device), device.compute_capability),
           way_out});
    };
    const ModelKnobs& model = variant.knobs.model;
    refuse(word_of(model.dtype), least_compute_capability(model.dtype),
           "write model.dtype = \"fp32\"");
    if (model.fp8 != ModelFp8::none)
      refuse("fp8", least_capability_of_fp8, "write model.fp8 = \"none\"");
  }
}

}  // namespace

std::vector<PlannedStep> plans_on(const DeviceIdentity& device, const Scenario& scenario,
                                  std::uint64_t seed) {
  std::vector<StepPlan> plans = build_step_plans(scenario, seed);
  if (!has_share_of_a_device(plans)) return with_facts(std::move(plans));
  if (device.memory_bytes > 0)
    return with_facts(build_step_plans(scenario, seed, device.memory_bytes));
  const Place place{scenario.file, 0, 0};
  const std::string message =
      "'alloc.cap' is a share of a device's memory, and " + in_words(device) + " has none";
  const std::string hint = "write it in bytes or as a share of need, or choose another --device";
  throw RequestError(std::vector<Diagnostic>{{place, message, hint}});
}

void fit_to_device(std::span<Planned> all, const DeviceIdentity& device, std::uint64_t seed) {
  std::vector<Diagnostic> wrong;
  for (Planned& planned : all) {
    if (!is_planned_only(planned.scenario) && !is_for_newer_devices(planned.scenario, device))
      refuse_dtypes(planned, device, wrong);
    if (!has_share_of_a_device(planned.plans)) continue;
    try {
      planned.plans = plans_on(device, planned.scenario, seed);
    } catch (const RequestError& error) {
      wrong.insert(wrong.end(), error.diagnostics().begin(), error.diagnostics().end());
    }
  }
  if (!wrong.empty()) throw RequestError(std::move(wrong));
}

void refuse_shares_of_a_device(const Planned& planned) {
  std::vector<Diagnostic> wrong;
  for (const StepPlan& plan : planned.plans) {
    if (!plan.cap_of_device) continue;
    const std::string message = fmt::format(
        "variant '{}' is capped at {:.10g}% of a device's memory, and a plan alone has "
        "no device",
        plan.variant, 100 * *plan.cap_of_device);
    const Place place{planned.scenario.file, 0, 0};
    const std::string hint = "say how much that is: --set alloc.cap=<bytes>";
    wrong.push_back({place, message, hint});
  }
  if (!wrong.empty()) throw RequestError(std::move(wrong));
}

}  // namespace stepgate
