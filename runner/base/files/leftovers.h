// SPDX-License-Identifier: MIT
// Temporary files and folders: their names, and the removal of those that killed processes left.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>

namespace stepgate {

// Sixteen random hexadecimal digits, with which the name of a temporary file or folder ends. No
// user names a file like that, so that nothing of a user is taken for ours.
std::string random_mark();

// Removes, from a folder, what is called `stem` followed by a mark, is of that kind (S_IFREG or
// S_IFDIR), belongs to this user, and is not locked (flock) by a process that lives.
void remove_leftovers(const std::filesystem::path& folder, std::string_view stem, mode_t kind);

}  // namespace stepgate
