// SPDX-License-Identifier: MIT
// The command line of a child process: its form in one string, and the file that it names. child.h
// starts it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepgate {

// A program and its arguments, at least one word.
using Command = std::vector<std::string>;

// Splits at blanks. 'single' and "double" quotes keep blanks; a backslash takes the next character
// as it is, except within single quotes. Variables and pipes are not interpreted, since no shell
// runs the command. Throws RequestError for an open quote or if there is no word.
Command split_command_line(std::string_view text);

// Joins the words with blanks and quotes them where necessary. Both split_command_line and a shell
// read the same words from the result, and a shell runs nothing else.
std::string to_text(const Command&);

// Returns the path as a word that no program takes for an option.
std::string file_word(const std::filesystem::path&);

// The file that running the command would execute: the path as written if it contains a slash,
// otherwise the first match in the folders of PATH. nullopt if there is none.
std::optional<std::filesystem::path> program_file(const Command&);

// The file of a program that stepgate itself needs, such as git: the first match in those folders
// of PATH that are absolute. An empty or relative one means files that came with a checkout.
// nullopt if there is none.
std::optional<std::filesystem::path> own_tool(const std::string& name);

// Whether both commands run the same bytes. Files that cannot be read count as different.
bool run_same_bytes(const Command&, const Command&);

}  // namespace stepgate
