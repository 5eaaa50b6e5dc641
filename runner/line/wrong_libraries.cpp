// SPDX-License-Identifier: MIT
#include "line/wrong_libraries.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "base/process/command.h"
#include "plugin/kept_check.h"
#include "plugin/library_file.h"

namespace stepgate {
namespace {

std::optional<Diagnostic> fault_of(const KernelReplacement& replacement) {
  try {
    require_function(read_library(replacement.library), replacement.function);
  } catch (const KernelLibraryError& error) {
    return error.diagnostics().front();
  }
  return std::nullopt;
}

}  // namespace

std::vector<WrongLibrary> wrong_libraries(const Scenario& scenario) {
  std::vector<WrongLibrary> all;
  for (const Variant& variant : scenario.variants) {
    for (const auto& [name, replacement] : variant.knobs.kernels) {
      auto fault = fault_of(replacement);
      if (!fault) continue;
      fault->place = variant.place;
      fault->message =
          fmt::format("the '{}' of variant '{}': {}", name, variant.name, fault->message);
      std::error_code none;
      const bool is_there = std::filesystem::exists(replacement.library, none);
      all.push_back({*std::move(fault), !is_there});
    }
  }
  return all;
}

std::vector<std::string> notes_of_checks(const Scenario& scenario) {
  std::vector<std::string> notes;
  for (const Variant& variant : scenario.variants) {
    for (const auto& [name, replacement] : variant.knobs.kernels) {
      std::string note;
      try {
        const std::string identity = identity_of(read_library(replacement.library));
        const auto check = kept_check(replacement.library, identity, name, replacement.function);
        if (!check) {
          Command command{"stepgate", "kernel", "check", replacement.library, name};
          if (replacement.function != name)
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
      } catch (const KernelLibraryError&) {  // wrong_libraries() tells it
        continue;
      }
      if (std::ranges::find(notes, note) == notes.end()) notes.push_back(std::move(note));
    }
  }
  return notes;
}

}  // namespace stepgate
