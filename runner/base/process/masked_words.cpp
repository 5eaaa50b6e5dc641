// SPDX-License-Identifier: MIT
#include "base/process/masked_words.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace stepgate {
namespace {

constexpr std::string_view mask = "***";
constexpr std::size_t long_run = 32;
constexpr std::string_view white_space = " \t\r\n";
constexpr std::string_view quotes = "\"'`";
constexpr std::string_view blanks_and_quotes = " \t\r\n\"'`";
// Signs between the words of a script, and those that end a value there.
constexpr std::string_view between_words = " \t\r\n\"'`;&|()<>{}[],\\";
constexpr std::string_view behind_values = " \t\r\n;&|)<>";

bool is_one_of(char letter, std::string_view letters) {
  return letters.find(letter) != std::string_view::npos;
}
enum class Letter { other, lower, upper, digit };
Letter letter_of(char letter) {
  const auto c = static_cast<unsigned char>(letter);
  if (std::islower(c) != 0) return Letter::lower;
  if (std::isupper(c) != 0) return Letter::upper;
  return std::isdigit(c) != 0 ? Letter::digit : Letter::other;
}
bool is_alphabetic(char letter) {
  return letter_of(letter) == Letter::lower || letter_of(letter) == Letter::upper;
}
bool is_of_a_name(char letter) {
  return letter_of(letter) != Letter::other || is_one_of(letter, "_-.");
}

// "wandb", "api" and "key" of "--wandb_apiKey".
std::vector<std::string> parts_of(std::string_view name) {
  std::vector<std::string> parts;
  char before = '-';
  for (const char letter : name) {
    if (is_alphabetic(letter)) {
      if (!is_alphabetic(before) ||
          (letter_of(before) == Letter::lower && letter_of(letter) == Letter::upper)) {
        parts.emplace_back();
      }
      parts.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    }
    before = letter;
  }
  return parts;
}

bool is_a_secrets_name(std::string_view name) {
  std::string whole;
  for (const std::string& part : parts_of(name)) {
    whole += part;
    constexpr std::array parts{"pat", "pw", "sas", "bearer", "cookie", "keys"};
    constexpr std::array ends{"key", "pwd", "pass"};
    if (std::ranges::find(parts, part) != parts.end() ||
        std::ranges::any_of(ends, [&](const char* end) { return part.ends_with(end); })) {
      return true;
    }
    const bool is_author = part.starts_with("author") && !part.starts_with("authori");
    if (part.starts_with("auth") && !is_author) return true;
  }
  constexpr std::array anywhere{"password",   "passwd", "passphrase", "secret",
                                "credential", "apikey", "accesskey",  "oauth"};
  if (std::ranges::any_of(
          anywhere, [&](const char* part) { return whole.find(part) != std::string::npos; })) {
    return true;
  }
  const std::size_t token = whole.find("token");
  return token != std::string::npos && !std::string_view(whole).substr(token).starts_with("tokeni");
}

// Lower case, upper case and digits follow on one another at 62% of the letters of random base64,
// and rarely in words.
bool looks_random(std::string_view run) {
  constexpr double most_in_words = 0.3;
  double pairs = 0, changes = 0;
  for (std::size_t at = 1; at < run.size(); ++at) {
    const Letter one = letter_of(run[at - 1]), other = letter_of(run[at]);
    if (one == Letter::other || other == Letter::other) continue;
    ++pairs;
    if (one != other) ++changes;
  }
  return changes > most_in_words * pairs;
}

bool begins_as_a_secret(std::string_view run) {
  constexpr std::array<std::string_view, 15> beginnings{
      "hf_", "ghp_", "gho_", "ghs_", "ghu_", "github_pat_", "glpat-", "sk-",
      "xox", "AKIA", "ASIA", "eyJ",  "SG.",  "AIza",        "nvapi-"};
  return std::ranges::any_of(beginnings, [&](std::string_view beginning) {
    return run.starts_with(beginning) && run.size() > beginning.size() + 8;
  });
}

bool is_long_and_mixed(std::string_view run) {
  return run.size() >= long_run && std::ranges::any_of(run, is_alphabetic) &&
         std::ranges::any_of(run, [](char c) { return letter_of(c) == Letter::digit; });
}

// A text with "***" for its users of URLs: "https://***@host".
std::string without_users(std::string text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of(blanks_and_quotes, at), text.size());
    const std::string_view word = std::string_view(text).substr(at, end - at);
    const std::size_t scheme = word.find("://");
    const bool is_url = scheme != std::string_view::npos;
    std::size_t begin = is_url ? scheme + 3 : 0;
    const std::size_t colon = word.find(':', begin);
    if (!is_url && colon != std::string_view::npos) begin = word.rfind('=', colon) + 1;
    const std::size_t host_end = std::min(word.find_first_of("/?#", begin), word.size());
    // A password may have a slash, and a port has digits alone.
    const bool has_password =
        colon < host_end && !std::ranges::all_of(word.substr(colon + 1, host_end - colon - 1),
                                                 [](char c) { return std::isdigit(c) != 0; });
    std::size_t sign = has_password ? word.rfind('@') : word.substr(0, host_end).rfind('@');
    if (!is_url && (!has_password || sign < colon)) sign = std::string_view::npos;
    if (sign != std::string_view::npos && sign > begin) {
      text.replace(at + begin, sign - begin, mask);
      at += begin + mask.size();
    } else {
      at = end;
    }
    at = std::min(text.find_first_of(blanks_and_quotes, at), text.size());
    if (at < text.size()) ++at;
  }
  return text;
}

// A word without blanks, with the mask for its runs of letters that look like secrets by
// themselves.
std::string without_runs(std::string_view word) {
  std::string out;
  const auto is_of_a_run = [](char c) {
    return letter_of(c) != Letter::other || is_one_of(c, "+/_~-");
  };
  while (!word.empty()) {
    const std::size_t length =
        static_cast<std::size_t>(std::ranges::find_if_not(word, is_of_a_run) - word.begin());
    std::string_view run = word.substr(0, length);
    if (begins_as_a_secret(word)) {  // its further letters, as the dots of a JSON web token
      run = word.substr(0, std::min(word.find_first_of("/:?&=@"), word.size()));
      out += mask;
    } else if (run.find('/') == std::string_view::npos) {
      out += is_long_and_mixed(run) ? mask : run;
    } else if (is_long_and_mixed(run) && looks_random(run)) {
      out += mask;
    } else {
      run = run.substr(0, run.find('/'));
      out += is_long_and_mixed(run) && looks_random(run) ? mask : run;
      run = word.substr(0, run.size() + 1);
      out += '/';
    }
    word.remove_prefix(run.size());
    for (; !word.empty() && !is_of_a_run(word.front()); word.remove_prefix(1)) out += word.front();
  }
  return out;
}

// Masks the words of a command one after the other: the value of an option may be the next one.
class Masker {
 public:
  std::string masked(const std::string& word) {
    open_quote_ = '\0';
    is_name_ = false;
    if (next_ != Next::value_of_option || word.starts_with('-')) next_ = Next::word;
    if (next_ == Next::value_of_option) {
      next_ = Next::word;
      return std::string(mask);
    }
    text_ = without_users(word);
    is_script_ = text_.find_first_of(white_space) != std::string::npos;
    // A word "name=a b" is a whole value, unless it is what a shell runs.
    begins_with_value_ = !follows_c_;
    follows_c_ = word.starts_with('-') && word.ends_with('c');
    out_.clear();
    for (at_ = 0; at_ < text_.size();) {
      if (is_one_of(text_[at_], between_words)) {
        take_sign();
      } else {
        take_word();
      }
    }
    if (next_ != Next::value_of_option) next_ = Next::word;
    return out_;
  }

 private:
  enum class Next { word, value, value_of_option, header };

  void take_sign() {
    const char sign = text_[at_];
    const bool is_quote = is_one_of(sign, quotes);
    if (is_quote && next_ != Next::word && sign != open_quote_) return mask_value();
    if (is_quote)
      open_quote_ = open_quote_ == '\0' ? sign : sign == open_quote_ ? '\0' : open_quote_;
    if (!is_quote && !is_one_of(sign, white_space) && !is_one_of(sign, "\\]")) {
      next_ = Next::word;
      is_name_ = false;
    }
    out_ += sign;
    ++at_;
  }

  void take_word() {
    const std::size_t end = std::min(text_.find_first_of(between_words, at_), text_.size());
    const std::string_view word = std::string_view(text_).substr(at_, end - at_);
    if (next_ == Next::value_of_option && word.starts_with('-')) next_ = Next::word;
    if (next_ != Next::word) return mask_value();
    const bool follows_name = is_name_;
    is_name_ = false;
    for (std::size_t sign = word.find_first_of("=:"); sign != std::string_view::npos;
         sign = word.find_first_of("=:", sign + 1)) {
      if (word.substr(sign).starts_with("://")) continue;
      std::size_t begin = sign;
      while (begin > 0 && is_of_a_name(word[begin - 1])) --begin;
      const std::string_view name = word.substr(begin, sign - begin);
      if (!is_a_secrets_name(name) && !(follows_name && sign == 0)) continue;
      out_ += word.substr(0, sign + 1);
      at_ += sign + 1;
      const bool is_header = parts_of(name) == std::vector<std::string>{"authorization"} ||
                             parts_of(name) == std::vector<std::string>{"cookie"};
      if (begin == 0 && begins_with_value_ && out_.size() == sign + 1) is_script_ = false;
      next_ = word[sign] == ':' && is_header ? Next::header : Next::value;
      if (sign + 1 < word.size() && next_ == Next::value) mask_value();
      return;
    }
    std::size_t begin = word.size();
    while (begin > 0 && is_of_a_name(word[begin - 1])) --begin;
    is_name_ = is_a_secrets_name(word.substr(begin));
    if (is_name_ && begin == 0 && word.starts_with('-')) {
      next_ = Next::value_of_option;
    } else if (parts_of(word) == std::vector<std::string>{"bearer"}) {
      next_ = Next::value;
    }
    out_ += without_runs(word);
    at_ = end;
  }

  // A value ends with its word, in a script with the shell's word, and a header with its line.
  void mask_value() {
    std::size_t end = is_script_ ? at_ : text_.size();
    while (end < text_.size() && text_[end] != open_quote_) {
      if (next_ == Next::header ? is_one_of(text_[end], "\r\n")
                                : is_one_of(text_[end], behind_values))
        break;
      if (text_[end] == '\\') {
        end += 2;
      } else if (is_one_of(text_[end], quotes)) {
        end = std::min(text_.find(text_[end], end + 1), text_.size() - 1) + 1;
      } else {
        ++end;
      }
    }
    out_ += mask;
    at_ = std::min(std::max(end, at_ + 1), text_.size());
    next_ = Next::word;
  }

  std::string text_, out_;
  std::size_t at_ = 0;
  bool is_script_ = false;
  bool begins_with_value_ = true;
  bool follows_c_ = false;
  bool is_name_ = false;  // the last word is the name of a secret
  char open_quote_ = '\0';
  Next next_ = Next::word;
};

}  // namespace

Command masked(Command command) {
  Masker masker;
  for (std::string& word : command) word = masker.masked(word);
  return command;
}

}  // namespace stepgate
