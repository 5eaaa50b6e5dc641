// SPDX-License-Identifier: MIT
#include "line/wrong_libraries.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "base/process/command.h"
#include "base/require.h"
#include "kernels/catalogue.h"
#include "plugin/kept_check.h"
#include "plugin/tables/kernel_file.h"

namespace stepgate {
namespace {

RequestError within(const Operation& operation, const std::string& file,
                    const RequestError& error) {
  Diagnostic fault = error.diagnostics().front();
  fault.message = fmt::format("'{}' by '{}': {}", operation.name, file, fault.message);
  return RequestError(std::move(fault));
}

// Throws RequestError for the first launch that the file's table has no sizes for. Shapes repeat
// from layer to layer.
void require_launchable(const KernelFile& file, const StepPlan& plan, const std::string& name) {
  std::vector<const LaunchKernel*> seen;
  for (const Operation& operation : plan.operations) {
    const auto* launch = std::get_if<LaunchKernel>(&operation.action);
    if (launch == nullptr || launch->kernel != name) continue;
    const auto is_same = [&](const LaunchKernel* other) {
      return other->shape == launch->shape && other->dtype == launch->dtype &&
             other->attributes == launch->attributes;
    };
    if (std::ranges::any_of(seen, is_same)) continue;
    seen.push_back(launch);
    const Kernel& row = kernel(launch->kernel);
    try {
      require_launchable(file, {.kernel = row,
                                .shape = launch->shape,
                                .dtype = launch->dtype,
                                .attributes = launch->attributes});
    } catch (const KernelUnsupported& unsupported) {
      if (row.replacement->otherwise == Otherwise::refuse)
        throw within(operation, row.replacement->library, unsupported);
    } catch (const KernelLibraryError& error) {
      throw within(operation, row.replacement->library, error);
    }
  }
}

std::vector<Diagnostic> faults_of(const KernelReplacement& replacement, const std::string& name,
                                  const StepPlan& plan) {
  try {
    require_launchable(read_kernel(replacement.library, replacement.function, kernel(name)), plan,
                       name);
  } catch (const RequestError& error) {
    return error.diagnostics();
  }
  return {};
}

// Whether the file, or one that a table names, is not there.
bool lacks_a_file(const KernelReplacement& replacement) {
  std::vector<std::filesystem::path> files{replacement.library};
  try {
    files = files_of_kernel(replacement.library);
  } catch (const RequestError&) {  // a table that is absent or faulty, which faults_of tells
  }
  std::error_code none;
  return !std::ranges::all_of(files, [&](const std::filesystem::path& file) {
    return std::filesystem::exists(file, none);
  });
}

}  // namespace

std::vector<WrongLibrary> wrong_libraries(const Planned& planned) {
  std::vector<WrongLibrary> all;
  std::set<std::string> told;
  for (const Variant& variant : planned.scenario.variants) {
    for (const auto& [name, replacement] : variant.knobs.kernels) {
      const auto plan = std::ranges::find_if(
          planned.plans, [&](const PlannedStep& step) { return step->variant == variant.name; });
      require(plan != planned.plans.end(), "a variant that launches kernels is planned");
      for (Diagnostic& fault : faults_of(replacement, name, *plan)) {
        // A fault of the base's library appears in every variant, but is told once.
        const Place& place = place_of_kernel(variant, name);
        if (!told.insert(fmt::format("{} {}", to_string({place, "", ""}), to_string(fault))).second)
          continue;
        // Faults of a table have places in it, but where there is none.
        std::error_code none;
        if (fault.place.file.empty() || !std::filesystem::exists(replacement.library, none)) {
          const std::string file = std::exchange(fault.place, place).file;
          fault.message = fmt::format("the '{}' of variant '{}': {}{}{}", name, variant.name, file,
                                      file.empty() ? "" : ": ", fault.message);
        }
        all.push_back({std::move(fault), lacks_a_file(replacement)});
      }
    }
  }
  return all;
}

void refuse_wrong_libraries(std::span<const Planned> all) {
  std::vector<Diagnostic> faults;
  for (const Planned& planned : all)
    for (WrongLibrary& wrong : wrong_libraries(planned)) faults.push_back(std::move(wrong.fault));
  if (!faults.empty()) throw RequestError(std::move(faults));
}

std::vector<std::string> notes_of_checks(const Scenario& scenario) {
  std::vector<std::string> notes;
  for (const Variant& variant : scenario.variants) {
    for (const auto& [name, replacement] : variant.knobs.kernels) {
      std::string note;
      try {
        const std::string identity =
            identity_of(read_kernel(replacement.library, replacement.function, kernel(name)));
        const auto check = kept_check(replacement.library, identity, name, replacement.function);
        if (!check) {
          Command command{"stepgate", "kernel", "check", replacement.library, name};
          if (replacement.function != name && !is_table(replacement.library))
            command.insert(command.end(), {"--function", replacement.function});
          note = fmt::format("nobody has checked that '{}' of '{}' is {}: {}", replacement.function,
                             replacement.library, name, to_text(command));
        } else if (check->faults.empty()) {
          note = fmt::format("`kernel check` says that '{}' of '{}' is {}, in {} trials",
                             replacement.function, replacement.library, name, check->trials);
        } else {
          note = fmt::format("`kernel check` says that '{}' of '{}' is not {}: {}",
                             replacement.function, replacement.library, name,
                             fmt::join(check->faults, ", "));
        }
      } catch (const RequestError&) {  // wrong_libraries() tells it
        continue;
      }
      if (std::ranges::find(notes, note) == notes.end()) notes.push_back(std::move(note));
    }
  }
  return notes;
}

}  // namespace stepgate
