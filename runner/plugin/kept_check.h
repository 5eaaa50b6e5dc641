// SPDX-License-Identifier: MIT
// Verdicts of `stepgate kernel check`, kept in a file beside the library, one JSON line each, so
// that a run can say whether the bytes that it launches were checked.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/record/fields.h"

namespace stepgate {

struct KeptCheck {
  std::string library;  // identity_of
  std::string kernel;
  std::string function;
  std::int64_t trials = 0;
  std::vector<std::string> faults;  // names of checks; empty: it is that kernel
  bool operator==(const KeptCheck&) const = default;
};
template <>
inline constexpr auto fields_of<KeptCheck> =
    fields<&KeptCheck::library, &KeptCheck::kernel, &KeptCheck::function, &KeptCheck::trials,
           &KeptCheck::faults>;

// "build/libmine.so.checks"
std::filesystem::path file_of_checks(const std::filesystem::path& library);

// Appends the verdict. Throws RequestError where the file cannot be written.
void keep_check(const std::filesystem::path& library, const KeptCheck&);

// The newest verdict on this function of these bytes as this kernel; nullopt where there is none.
// Lines that are no verdict are passed over.
std::optional<KeptCheck> kept_check(const std::filesystem::path& library,
                                    const std::string& identity, const std::string& kernel,
                                    const std::string& function);

}  // namespace stepgate
