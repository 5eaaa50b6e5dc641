// SPDX-License-Identifier: MIT
#include "line/wrong_libraries.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

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

}  // namespace stepgate
