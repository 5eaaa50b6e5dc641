// SPDX-License-Identifier: MIT
#include "line/wrong_libraries.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/process/command.h"
#include "kernels/catalogue.h"
#include "plugin/kept_check.h"
#include "plugin/tables/kernel_file.h"

namespace stepgate {
namespace {

std::vector<Diagnostic> faults_of(const KernelReplacement& replacement, const std::string& name) {
  try {
    (void)read_kernel(replacement.library, replacement.function, kernel(name));
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

std::vector<WrongLibrary> wrong_libraries(const Scenario& scenario) {
  std::vector<WrongLibrary> all;
  for (const Variant& variant : scenario.variants) {
    for (const auto& [name, replacement] : variant.knobs.kernels) {
      for (Diagnostic& fault : faults_of(replacement, name)) {
        // Faults of a table have places in it, but where there is none.
        std::error_code none;
        if (fault.place.file.empty() || !std::filesystem::exists(replacement.library, none)) {
          const std::string file = std::exchange(fault.place, place_of_kernel(variant, name)).file;
          fault.message = fmt::format("the '{}' of variant '{}': {}{}{}", name, variant.name, file,
                                      file.empty() ? "" : ": ", fault.message);
        }
        all.push_back({std::move(fault), lacks_a_file(replacement)});
      }
    }
  }
  return all;
}

void refuse_wrong_libraries(const Scenario& scenario) {
  std::vector<Diagnostic> faults;
  for (WrongLibrary& wrong : wrong_libraries(scenario)) faults.push_back(std::move(wrong.fault));
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
