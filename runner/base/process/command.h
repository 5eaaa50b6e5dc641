// SPDX-License-Identifier: MIT
// The command line of a child process: how it is written in one string, and what file it names.
// child.h starts it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepgate {

// Program and arguments, at least one word.
using Command = std::vector<std::string>;

// Splits at blanks. 'single' and "double" quotes keep blanks; a backslash takes the next character
// as it is, but not within single quotes. No variables, no pipes: nothing runs a shell. Throws
// RequestError for an open quote or no word at all.
Command split_command_line(std::string_view text);

// The words with blanks between, quoted where split_command_line or a shell needs it: either reads
// these words and runs nothing else.
std::string to_text(const Command&);

// A file as a word that no program takes for an option.
std::string file_word(const std::filesystem::path&);

// The file that starting the command would run: as written with a slash in it, otherwise the first
// in the folders of PATH. Nothing when there is none.
std::optional<std::filesystem::path> program_file(const Command&);

// Whether both commands run the same bytes. Files that cannot be read are not the same.
bool run_same_bytes(const Command&, const Command&);

}  // namespace stepgate
