// SPDX-License-Identifier: MIT
// Writes a file whole or not at all, so that a run that dies leaves the old one.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/open_file.h"

namespace stepgate {

// The output that is standard output.
constexpr std::string_view standard_output = "-";

// Makes missing folders. The text is written beside the file, brought to the disk and then renamed
// over it, and over the file that a link names; its mode is that of the file that was there, or
// what the umask says. What is no file (a device, a pipe, a stream of this process such as
// /dev/stdout, and `-`) gets the text as it is. Takes away what writers of this file left beside it
// that were killed before their rename. Throws RequestError placed at the file when the disk or its
// permissions refuse, Interrupted while it waits for the reader of a pipe.
void write_file(const std::filesystem::path&, std::string_view text);

// Writes a new file that the user will edit. Refuses a path that exists, even a dangling link.
// Makes missing folders; leaves no file if the disk refuses the text.
void write_new_file(const std::filesystem::path&, std::string_view text);

// Throws what write_file would throw, as far as that can be known before there is a text: for a
// long run, which should not end with nowhere to put its result. Makes missing folders and leaves
// an existing file as it is. The path keeps this meaning: a link, pipe or device that appears there
// later is replaced, neither followed nor waited for.
void check_writable(const std::filesystem::path&);

// Whether the path is a stream and not a regular file: its output cannot be replaced.
bool is_stream(const std::filesystem::path&);

// Whether it is the standard output of this process, by whatever of its names: `-`, /dev/stdout,
// /dev/fd/1.
bool is_standard_output(const std::filesystem::path&);

// The names of all files that this process has written, in order. After an interruption they tell
// what was left behind. Streams are not listed.
const std::vector<std::filesystem::path>& files_written();
void note_written(const std::filesystem::path&);

// Steps that writers of files share: make missing folders, open a stream, write a whole text, and
// throw the error.
void make_folder_of(const std::filesystem::path&);
OpenFile open_stream(const std::filesystem::path&);
bool write_all(int descriptor, std::string_view text);  // false: errno says why
[[noreturn]] void refuse_to_write(const std::filesystem::path&, const std::string& reason);

}  // namespace stepgate
