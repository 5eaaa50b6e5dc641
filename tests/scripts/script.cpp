// SPDX-License-Identifier: MIT
#include "tests/scripts/script.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <sstream>
#include <stdexcept>

#include "base/files/read_file.h"
#include "base/files/write_file.h"
#include "base/text/diagnostic.h"

namespace stepgate {
namespace {

const std::string end_of_input = "----\n";

std::string content_of(const std::filesystem::path& file) {
  const TextOrProblem text = read_file(file, "a script");
  if (const auto* problem = std::get_if<Diagnostic>(&text)) throw RequestError(*problem);
  return std::get<std::string>(text);
}

// Returns the lines with their line ends.
std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size(); at += lines.back().size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1);
    lines.push_back(text.substr(at, end + 1 - at));
  }
  return lines;
}

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  std::istringstream all(line);
  for (std::string word; all >> word;) words.push_back(word);
  return words;
}

// Applies a patch to a text, line by line. Its members throw std::invalid_argument for a line that
// is not in the rest of the text.
class Patch {
 public:
  explicit Patch(const std::string& text) : lines_(lines_of(text)), at_(lines_.begin()) {}

  std::string apply(const std::string& changes) {
    for (const std::string& change : lines_of(changes)) apply_line(change);
    return patched_ + joined(lines_.end());
  }

 private:
  std::string joined(std::vector<std::string>::iterator end) const {
    return std::accumulate(at_, end, std::string());
  }

  // Keeps the text before the next line that contains (or, if `whole`, equals) the words, and
  // returns that line.
  std::string next_with(const std::string& words, bool whole) {
    const auto found = std::find_if(at_, lines_.end(), [&](const std::string& line) {
      return whole ? line == words : line.find(words) != std::string::npos;
    });
    if (found == lines_.end()) throw std::invalid_argument("the base has no '" + words + "'");
    patched_ += joined(found);
    at_ = found + 1;
    return *found;
  }

  void apply_line(const std::string& change) {
    const std::string rest = change.substr(1);
    if (change == "-...\n") {
      at_ = lines_.end();
    } else if (change[0] == '+') {
      patched_ += rest;
    } else if (change[0] == ' ') {
      patched_ += next_with(rest, true);
    } else if (change[0] == '-') {
      next_with(rest, true);
    } else if (const std::size_t arrow = rest.find(" -> ");
               change[0] == '~' && arrow != std::string::npos) {
      const std::string old = rest.substr(0, arrow);
      std::string line = next_with(old, false);
      patched_ +=
          line.replace(line.find(old), old.size(), rest.substr(arrow + 4, rest.size() - arrow - 5));
    } else {
      throw std::invalid_argument("no change is '" + change + "'");
    }
  }

  std::vector<std::string> lines_;
  std::vector<std::string>::iterator at_;
  std::string patched_;
};

std::string put_into(const std::string& base, const std::string& input) {
  const std::string hole = "...\n";
  std::string result;
  bool found = false;
  for (const std::string& line : lines_of(base)) {
    result += line == hole ? input : line;
    found = found || line == hole;
  }
  return found ? result : Patch(base).apply(input);
}

// Throws std::invalid_argument for a backslash that begins no escape.
std::string unescaped(const std::string& text) {
  std::string bytes;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\\') {
      bytes += text[at];
      continue;
    }
    const char kind = ++at < text.size() ? text[at] : ' ';
    if (kind == '\\') {
      bytes += kind;
    } else if (kind == 'x') {
      bytes += static_cast<char>(std::stoi(text.substr(at + 1, 2), nullptr, 16));
      at += 2;
    } else if (kind != '\n') {
      throw std::invalid_argument(std::string("there is no escape '\\") + kind + "'");
    }
  }
  return bytes;
}

bool begins_step(const std::string& line, const std::set<std::string>& commands) {
  return commands.contains(line.substr(0, line.find_first_of(" \n")));
}

class Reader {
 public:
  Reader(const std::filesystem::path& file, const std::set<std::string>& commands)
      : file_(file), commands_(commands), lines_(lines_of(content_of(file))) {}

  std::vector<Step> steps() {
    std::vector<Step> steps;
    for (; at_ < lines_.size();) {
      if (line() == "\n" || line()[0] == '#') {
        pass();
      } else {
        steps.push_back(step());
      }
    }
    if (steps.empty()) refuse(1, "no step in the script");
    return steps;
  }

 private:
  const std::string& line() const { return lines_[at_]; }
  bool is_at(const std::string& text, std::size_t ahead = 0) const {
    return at_ + ahead < lines_.size() && lines_[at_ + ahead] == text;
  }
  void pass() { offset_ += lines_[at_++].size(); }

  [[noreturn]] void refuse(int line, const std::string& message) const {
    throw RequestError(Diagnostic{Place{file_.filename().string(), line, 1}, message,
                                  "see tests/scripts/script.h"});
  }

  // Returns the lines up to the one that ends them; throws if a new step begins before.
  template <typename Ends>
  std::string until(const Step& step, const std::string& end, Ends ends) {
    std::string text;
    for (; at_ < lines_.size() && !ends(); pass()) {
      if (begins_step(line(), commands_)) break;
      text += line();
    }
    if (!ends()) refuse(step.line, "no " + end + " behind '" + step.name + "'");
    return text;
  }

  std::string output(const Step& step) {
    if (!is_at(end_of_input)) {
      return until(step, "empty line", [&] { return at_ == lines_.size() || line() == "\n"; });
    }
    pass();
    std::string text;
    const auto ends = [&] {
      return is_at(end_of_input) && is_at(end_of_input, 1) &&
             (at_ + 2 == lines_.size() || is_at("\n", 2));
    };
    for (; at_ < lines_.size() && !ends(); pass()) text += line();
    if (!ends()) refuse(step.line, "no second pair of '----' behind '" + step.name + "'");
    pass();
    pass();
    return text;
  }

  Step step() {
    const std::vector<std::string> words = words_of(line());
    Step step;
    step.line = static_cast<int>(at_) + 1;
    step.command = words[0];
    if (!begins_step(line(), commands_)) refuse(step.line, "no command '" + step.command + "'");
    if (words.size() < 2) refuse(step.line, "no name behind '" + step.command + "'");
    const bool is_whole_line = step.command == "$";
    step.name = is_whole_line ? line().substr(2, line().size() - 3) : words[1];
    if (!is_whole_line && !names_.insert({step.command, step.name}).second) {
      refuse(step.line, "a second '" + step.command + " " + step.name + "'");
    }
    pass();
    step.input = until(step, "line '----'", [&] { return is_at(end_of_input); });
    if (is_whole_line && !step.input.empty()) refuse(step.line + 1, "input below a '$'");
    pass();
    for (std::size_t i = 2; i < words.size() && !is_whole_line; ++i) apply(words[i], step);
    step.output_begin = offset_;
    step.expected = output(step);
    step.output_end = offset_;
    return step;
  }

  void apply(const std::string& option, Step& step) const {
    const std::string base = "base=";
    try {
      if (option == "escaped") {
        step.input = unescaped(step.input);
      } else if (option.starts_with(base)) {
        step.base = file_.parent_path() / option.substr(base.size());
        step.input = put_into(content_of(step.base), step.input);
      } else {
        refuse(step.line, "no option '" + option + "'");
      }
    } catch (const std::invalid_argument& fault) {
      refuse(step.line, fault.what());
    }
  }

  std::filesystem::path file_;
  std::set<std::string> commands_;
  std::vector<std::string> lines_;
  std::size_t at_ = 0;
  std::size_t offset_ = 0;
  std::set<std::pair<std::string, std::string>> names_;
};

// Returns an output as it is written in a script.
std::string written(const std::string& output, const std::set<std::string>& commands) {
  const std::vector<std::string> lines = lines_of(output);
  const bool is_plain = std::none_of(lines.begin(), lines.end(), [&](const std::string& line) {
    return line == "\n" || line == end_of_input || begins_step(line, commands);
  });
  const std::string pair = end_of_input + end_of_input;
  return is_plain ? output : end_of_input + output + pair;
}

// Returns nullopt if the command throws, which fails the test.
std::optional<std::string> output_of(const Step& step, const Commands& commands) {
  try {
    std::string output = commands.at(step.command)(step);
    if (!output.empty() && output.back() != '\n') output += "\n\\ no newline at the end\n";
    return output;
  } catch (const std::exception& fault) {
    ADD_FAILURE() << fault.what();
    return std::nullopt;
  }
}

}  // namespace

std::vector<Step> read_script(const std::filesystem::path& script,
                              const std::set<std::string>& commands) {
  return Reader(script, commands).steps();
}

std::vector<std::filesystem::path> scripts_of(const std::string& folder) {
  const std::filesystem::path path =
      std::filesystem::path(STEPGATE_SOURCE_DIR) / "tests/scripts" / folder;
  std::vector<std::filesystem::path> scripts;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    if (entry.path().extension() == ".txt") scripts.push_back(entry.path());
  }
  if (scripts.empty()) throw std::logic_error(path.string() + " has no scripts");
  std::sort(scripts.begin(), scripts.end());
  return scripts;
}

void expect_script(const std::filesystem::path& script, const Commands& commands, bool update) {
  std::set<std::string> names;
  for (const auto& [name, command] : commands) names.insert(name);
  const std::string text = content_of(script);
  std::string updated;
  std::size_t copied = 0;
  for (const Step& step : read_script(script, names)) {
    SCOPED_TRACE(script.string() + ":" + std::to_string(step.line) + ": " + step.name);
    const std::string output = output_of(step, commands).value_or(step.expected);
    if (!update) {
      EXPECT_EQ(step.expected, output)
          << "if the new output is right, run the test with STEPGATE_UPDATE_GOLDEN=1";
    }
    updated += text.substr(copied, step.output_begin - copied);
    updated += output == step.expected
                   ? text.substr(step.output_begin, step.output_end - step.output_begin)
                   : written(output, names);
    copied = step.output_end;
  }
  updated += text.substr(copied);
  if (update && updated != text) write_file(script, updated);
}

}  // namespace stepgate
