// SPDX-License-Identifier: MIT
// Writes a file whole or not at all, so that a run that dies leaves the old one.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/open_file.h"

namespace stepgate {

// The path that means standard output.
constexpr std::string_view standard_output = "-";

// Makes missing folders. Writes the text beside the file, flushes it to the disk and renames it
// over the file, or over the target of a link. The mode is that of the replaced file, otherwise
// what the umask says. A device, a pipe or a stream of this process (/dev/stdout, `-`) gets the
// text as it is. Removes temporary files of killed writers of this file. Throws RequestError placed
// at the file when the disk or its permissions refuse, Interrupted while it waits for the reader of
// a pipe.
void write_file(const std::filesystem::path&, std::string_view text);

// Writes a new file that the user will edit. Refuses a path that exists, even a dangling link.
// Makes missing folders; leaves no file if the disk refuses the text.
void write_new_file(const std::filesystem::path&, std::string_view text);

// Appends to a file that others append to as well, with mode 0666 less the umask where it is made.
// `text_behind` gets the number of bytes that are there. Cuts off what was added where not all of
// it could be. Refuses a pipe, a socket and a folder, without a wait for a reader. Throws
// RequestError placed at the file.
void append_to_file(const std::filesystem::path&,
                    const std::function<std::string(std::size_t)>& text_behind);

// Throws what write_file would throw, as far as that can be known without the text. A long run
// calls it first, so that it does not end without a place for its result. Makes missing folders and
// leaves an existing file as it is. The path keeps its meaning: a link, pipe or device that appears
// there later is replaced, neither followed nor waited for.
void check_writable(const std::filesystem::path&);

// Whether the path names a stream, whose output cannot be replaced, and not a regular file.
bool is_stream(const std::filesystem::path&);

// Whether the path names the standard output of this process: `-`, /dev/stdout or /dev/fd/1.
bool is_standard_output(const std::filesystem::path&);

// The names of all files that this process has written, in order, to be listed after an
// interruption. Streams are left out.
const std::vector<std::filesystem::path>& files_written();
void note_written(const std::filesystem::path&);

// Steps that writers of files share: make missing folders, open a stream, write a whole text, and
// throw the error.
void make_folder_of(const std::filesystem::path&);
OpenFile open_stream(const std::filesystem::path&);
bool write_all(int descriptor, std::string_view text);  // on false errno says why
[[noreturn]] void refuse_to_write(const std::filesystem::path&, const std::string& reason);

}  // namespace stepgate
