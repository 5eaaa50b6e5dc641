// SPDX-License-Identifier: MIT
// Writes a file whole or not at all, so that a run that dies leaves the old one.
#pragma once

#include <filesystem>
#include <string_view>

namespace stepgate {

// Makes missing folders. The text is written beside the file, brought to the disk and then renamed
// over it. Throws RequestError placed at the file when the disk or its permissions refuse.
void write_file(const std::filesystem::path&, std::string_view text);

}  // namespace stepgate
