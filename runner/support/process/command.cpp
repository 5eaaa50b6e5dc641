// SPDX-License-Identifier: MIT
#include "support/process/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

#include "support/text/diagnostic.h"

namespace stepgate {
namespace {

constexpr std::string_view blanks = " \t\n\r";

bool is_blank(char letter) {
  return blanks.find(letter) != std::string_view::npos;
}

// In single quotes a shell finds nothing to run or to replace; one within ends them, stands behind
// a backslash and begins them again.
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
  const auto runs = [](const std::filesystem::path& file) {
    std::error_code unknown;
    return std::filesystem::is_regular_file(file, unknown) && ::access(file.c_str(), X_OK) == 0;
  };
  if (name.find('/') != std::string::npos)
    return runs(name) ? std::optional<std::filesystem::path>(name) : std::nullopt;
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const auto file = std::filesystem::path(folder.empty() ? "." : folder) / name;
    if (runs(file)) return file;
  }
  return std::nullopt;
}

bool run_same_bytes(const Command& one, const Command& other) {
  const auto first = program_file(one);
  const auto second = program_file(other);
  if (!first || !second) return false;
  std::error_code unknown;
  if (std::filesystem::equivalent(*first, *second, unknown)) return true;
  if (std::filesystem::file_size(*first, unknown) != std::filesystem::file_size(*second, unknown))
    return false;
  std::ifstream left(*first, std::ios::binary);
  std::ifstream right(*second, std::ios::binary);
  using Bytes = std::istreambuf_iterator<char>;
  return left && right && std::equal(Bytes(left), Bytes(), Bytes(right), Bytes());
}

}  // namespace stepgate
