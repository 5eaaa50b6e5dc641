// SPDX-License-Identifier: MIT
#include "base/process/masked_words.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace stepgate {
namespace {

constexpr std::string_view mask = "***";
constexpr std::size_t long_word = 32;

bool names_a_secret(std::string_view option) {
  std::string name(option);
  std::ranges::transform(name, name.begin(), [](unsigned char letter) {
    return static_cast<char>(std::tolower(letter));
  });
  constexpr std::array parts{"token",  "password", "passwd",  "secret",
                             "apikey", "api_key",  "api-key", "credential"};
  return std::ranges::any_of(
      parts, [&](const char* part) { return name.find(part) != std::string::npos; });
}

bool looks_like_a_secret(std::string_view word) {
  constexpr std::array<std::string_view, 10> beginnings{
      "hf_", "ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "sk-", "xox", "AKIA", "eyJ"};
  if (std::ranges::any_of(beginnings, [&](std::string_view beginning) {
        return word.starts_with(beginning) && word.size() > beginning.size() + 8;
      })) {
    return true;
  }
  const auto is_letter = [](unsigned char c) { return std::isalpha(c) != 0; };
  const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  return word.size() >= long_word && std::ranges::any_of(word, is_letter) &&
         std::ranges::any_of(word, is_digit) && std::ranges::all_of(word, [&](unsigned char c) {
           return is_letter(c) || is_digit(c) || c == '+' || c == '=' || c == '_' || c == '-';
         });
}

}  // namespace

Command masked(Command command) {
  bool is_value_of_secret = false;
  for (std::string& word : command) {
    const bool is_option = word.starts_with('-');
    const std::size_t equals = word.find('=');
    if (is_value_of_secret && !is_option) {
      word = mask;
      is_value_of_secret = false;
      continue;
    }
    is_value_of_secret = is_option && equals == std::string::npos && names_a_secret(word);
    if (equals != std::string::npos && equals + 1 < word.size() &&
        (names_a_secret(word.substr(0, equals)) || looks_like_a_secret(word.substr(equals + 1)))) {
      word = word.substr(0, equals + 1) + std::string(mask);
    } else if (looks_like_a_secret(word)) {
      word = mask;
    }
  }
  return command;
}

}  // namespace stepgate
