// SPDX-License-Identifier: MIT
// Writes a file whole or not at all, so that a run that dies leaves the old one.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace stepgate {

// Makes missing folders. The text is written beside the file, brought to the disk and then renamed
// over it, and over the file that a link names; a device or a stream of this process, such as
// /dev/stdout, gets it as it is. Throws RequestError placed at the file when the disk or its
// permissions refuse, and for what is no file.
void write_file(const std::filesystem::path&, std::string_view text);

// Throws what write_file would throw, as far as that can be known before there is a text: for a
// long run, which should not end with nowhere to put its result. Makes missing folders and leaves
// an existing file as it is.
void check_writable(const std::filesystem::path&);

// What writers of files share: the missing folders of a file, all of a text, and the refusal.
void make_folder_of(const std::filesystem::path&);
bool write_all(int descriptor, std::string_view text);  // false: errno says why
[[noreturn]] void refuse_to_write(const std::filesystem::path&, const std::string& reason);

// Takes away what writers of the file left beside it that were killed before their rename. Only
// when no other writer is at work: under a lock.
void remove_leftovers(const std::filesystem::path&);

}  // namespace stepgate
