// SPDX-License-Identifier: MIT
// Reads a whole small text file, or reports in one diagnostic why that fails. Callers interpret the
// text.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/files/open_file.h"
#include "base/text/diagnostic.h"

namespace stepgate {

// Text files that people write are smaller than this limit. Larger files are refused unread.
constexpr std::int64_t largest_text_file_bytes = 1 << 20;

// The text, or what is wrong, placed at the file as a whole. `what` names the kind of file in the
// message: "a scenario".
using TextOrProblem = std::variant<std::string, Diagnostic>;
TextOrProblem read_file(const std::filesystem::path&, std::string_view what);
// Like read_file, but reads a file that is already open in non-blocking mode, whatever its path
// names by now.
TextOrProblem read_open_file(const OpenFile&, const Place&, std::string_view what);

// Whether the file begins as JSON does, or as what gzip compressed; false where it cannot be read.
bool is_json_or_compressed(const std::filesystem::path&);

// The entries of a folder, by name. Throws RequestError placed at it where it cannot be read.
std::vector<std::filesystem::path> read_folder(const std::filesystem::path&);

}  // namespace stepgate
