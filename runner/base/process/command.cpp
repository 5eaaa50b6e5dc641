// SPDX-License-Identifier: MIT
#include "base/process/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "base/text/diagnostic.h"

namespace stepgate {
namespace {

constexpr std::string_view blanks = " \t\n\r";

bool is_blank(char letter) {
  return blanks.find(letter) != std::string_view::npos;
}

// Quotes a word for a shell. Within single quotes a shell interprets nothing. A single quote in the
// word ends the quotes, follows behind a backslash and opens them again.
std::string shell_word(const std::string& word) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,+@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string text = "'";
  for (const char letter : word) {
    if (letter == '\'') text += "'\\'";
    text += letter;
  }
  return text + "'";
}

bool same_bytes(const std::filesystem::path& one, const std::filesystem::path& other) {
  std::error_code unknown;
  if (std::filesystem::equivalent(one, other, unknown)) return true;
  if (std::filesystem::file_size(one, unknown) != std::filesystem::file_size(other, unknown))
    return false;
  std::ifstream left(one, std::ios::binary);
  std::ifstream right(other, std::ios::binary);
  using Bytes = std::istreambuf_iterator<char>;
  return left && right && std::equal(Bytes(left), Bytes(), Bytes(right), Bytes());
}

bool can_run(const std::filesystem::path& file) {
  std::error_code unknown;
  return std::filesystem::is_regular_file(file, unknown) && ::access(file.c_str(), X_OK) == 0;
}

// The folders in which execvp looks; an empty one is the folder of this process.
std::vector<std::filesystem::path> folders_of_path() {
  const char* path = std::getenv("PATH");
  std::vector<std::filesystem::path> folders;
  std::istringstream text(path == nullptr ? "/bin:/usr/bin" : path);
  for (std::string folder; std::getline(text, folder, ':');)
    folders.emplace_back(folder.empty() ? "." : folder);
  return folders;
}

}  // namespace

Command split_command_line(std::string_view text) {
  Command words;
  bool in_word = false;
  char quote = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char letter = text[at];
    if (quote == 0 && is_blank(letter)) {
      in_word = false;
      continue;
    }
    if (!in_word) words.emplace_back();
    in_word = true;
    if (letter == quote) {
      quote = 0;
    } else if (quote == 0 && (letter == '\'' || letter == '"')) {
      quote = letter;
    } else if (letter == '\\' && quote != '\'' && at + 1 < text.size()) {
      words.back() += text[++at];
    } else {
      words.back() += letter;
    }
  }
  if (quote != 0) {
    throw RequestError(fmt::format("the command line `{}` has an open quote", text),
                       fmt::format("close it with {}", quote));
  }
  if (words.empty() || words.front().empty())
    throw RequestError("a command line is empty", "name a program and its arguments");
  return words;
}

std::string to_text(const Command& command) {
  std::string text;
  for (const std::string& word : command) {
    if (!text.empty()) text += ' ';
    text += shell_word(word);
  }
  return text;
}

std::string file_word(const std::filesystem::path& file) {
  const std::string name = file.string();
  return name.starts_with('-') ? "./" + name : name;
}

std::optional<std::filesystem::path> program_file(const Command& command) {
  const std::string& name = command.front();
  if (name.find('/') != std::string::npos)
    return can_run(name) ? std::optional<std::filesystem::path>(name) : std::nullopt;
  for (const std::filesystem::path& folder : folders_of_path()) {
    if (can_run(folder / name)) return folder / name;
  }
  return std::nullopt;
}

std::optional<std::filesystem::path> own_tool(const std::string& name) {
  for (const std::filesystem::path& folder : folders_of_path()) {
    if (folder.is_absolute() && can_run(folder / name)) return folder / name;
  }
  return std::nullopt;
}

bool run_same_bytes(const Command& one, const Command& other) {
  const auto first = program_file(one);
  const auto second = program_file(other);
  if (!first || !second || !same_bytes(*first, *second)) return false;
  // Beside the program itself, compares the arguments that are files: an interpreter runs one of
  // them.
  const auto files_of = [](const Command& command) {
    std::vector<std::filesystem::path> files;
    std::error_code unknown;
    std::copy_if(
        command.begin() + 1, command.end(), std::back_inserter(files),
        [&](const std::string& word) { return std::filesystem::is_regular_file(word, unknown); });
    return files;
  };
  return std::ranges::equal(files_of(one), files_of(other), same_bytes);
}

}  // namespace stepgate
