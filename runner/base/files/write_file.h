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

// A file that is not there yet, for somebody to change: what is there, be it a link to nowhere,
// stays as it is and is refused. Makes missing folders; leaves nothing where the disk refuses the
// text.
void write_new_file(const std::filesystem::path&, std::string_view text);

// Throws what write_file would throw, as far as that can be known before there is a text: for a
// long run, which should not end with nowhere to put its result. Makes missing folders and leaves
// an existing file as it is. From then on the path means what it meant here: a link, a pipe or a
// device that somebody puts there is replaced, neither followed nor waited for.
void check_writable(const std::filesystem::path&);

// Whether it is no file, so that what was written there stays written: nothing can replace it.
bool is_stream(const std::filesystem::path&);

// Whether it is the standard output of this process, by whatever of its names: `-`, /dev/stdout,
// /dev/fd/1.
bool is_standard_output(const std::filesystem::path&);

// Every file that this process has put a text into, by its name and in order, for whoever is asked
// what an end in the middle has left. Not streams, which cannot be taken back either.
const std::vector<std::filesystem::path>& files_written();
void note_written(const std::filesystem::path&);

// Steps that writers of files share: the missing folders of a file, what is no file opened, all of
// a text, and the refusal.
void make_folder_of(const std::filesystem::path&);
OpenFile open_stream(const std::filesystem::path&);
bool write_all(int descriptor, std::string_view text);  // false: errno says why
[[noreturn]] void refuse_to_write(const std::filesystem::path&, const std::string& reason);

}  // namespace stepgate
