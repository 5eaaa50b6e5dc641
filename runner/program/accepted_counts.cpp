// SPDX-License-Identifier: MIT
#include "program/accepted_counts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <variant>

#include "base/files/read_file.h"
#include "base/toml/toml.h"
#include "base/toml/toml_keys.h"
#include "base/toml/toml_text.h"

namespace stepgate {
namespace {

constexpr std::int64_t format = 1;
constexpr std::string_view way_out = "write it anew with stepgate attach --accept";

bool is_same(double one, double other) {
  return std::abs(one - other) <= 1e-9 * std::max(std::abs(one), std::abs(other));
}

std::optional<CallCount> count_named(std::string_view name) {
  for (const CallCountRow& row : call_count_table()) {
    if (row.name == name) return row.count;
  }
  return std::nullopt;
}

// A place as files keep it: TOML strings there have printable ASCII alone.
std::string kept_line(const SourceLine& line) {
  std::string text = line_in_words(line);
  for (char& letter : text) {
    if (letter < ' ' || letter > '~') letter = '?';
  }
  return text;
}

}  // namespace

std::string difference_in_words(const std::map<std::string, std::string>& accepted,
                                const std::map<std::string, std::string>& now) {
  std::string words;
  std::set<std::string> keys;
  for (const auto& [key, value] : accepted) keys.insert(key);
  for (const auto& [key, value] : now) keys.insert(key);
  for (const std::string& key : keys) {
    const auto value = [&](const auto& versions) {
      const auto found = versions.find(key);
      return found == versions.end() ? std::string("unknown") : found->second;
    };
    if (value(accepted) != value(now)) {
      words +=
          fmt::format("{}{} {} -> {}", words.empty() ? "" : ", ", key, value(accepted), value(now));
    }
  }
  return words;
}

std::string source_text(const SourceLine& line) {
  const TextOrProblem text = read_file(line.file, "a source file");
  const auto* all = std::get_if<std::string>(&text);
  if (all == nullptr) return "";
  std::size_t at = 0;
  for (std::int64_t number = 1; number < line.line; ++number) {
    at = all->find('\n', at);
    if (at == std::string::npos) return "";
    ++at;
  }
  const std::size_t begin = all->find_first_not_of(" \t", at);
  const std::size_t end = std::min(all->find('\n', at), all->size());
  if (begin == std::string::npos || begin >= end) return "";
  return all->substr(begin, all->find_last_not_of(" \t\r", end - 1) + 1 - begin);
}

std::string line_in_words(const SourceLine& line) {
  const std::string name = std::filesystem::path(line.file).filename().string();
  const std::string text = source_text(line);
  return fmt::format("{} {}: {}", name, line.function, text.empty() ? "?" : text);
}

std::string place_in_words(const CountedPlace& place) {
  const SourceLine& own = place.place.own;
  if (own.line == 0) {
    return place.range.empty() ? place.call
                               : fmt::format("{} in the range '{}'", place.call, place.range);
  }
  const auto name = [](const SourceLine& line) {
    return fmt::format("{}:{}", std::filesystem::path(line.file).filename().string(), line.line);
  };
  constexpr std::size_t longest_source = 60;
  std::string source = source_text(own);
  if (source.size() > longest_source) source = source.substr(0, longest_source) + "...";
  std::string words = name(own) + " " + (source.empty() ? own.function : source);
  const SourceLine& library = place.place.library;
  if (library.line > 0) words += fmt::format(" (in {} {})", name(library), library.function);
  return words;
}

AcceptedCounts accepted_of(const CountedProcess& process, const std::string& command) {
  AcceptedCounts accepted{.command = command,
                          .steps = fmt::format("{} from step {} on, of {}", process.steps,
                                               process.first_step, process.marks),
                          .counts = process.mean,
                          .versions = process.versions};
  for (const CountedPlace& place : process.places) {
    if (place.place.own.line > 0)
      accepted.places.push_back({place.count, kept_line(place.place.own), place.a_step});
  }
  return accepted;
}

std::string to_text(const AcceptedCounts& accepted) {
  std::string text = fmt::format(
      "# Counts of a step that `stepgate attach --against` allows. Review a change of this file as "
      "code.\nformat = {}\ncommand = {}\nsteps = {}\n\n[counts]  # a step, on average\n",
      format, toml_string(accepted.command), toml_string(accepted.steps));
  for (const CallCountRow& row : call_count_table()) {
    if (row.compared == CountIs::neither) continue;
    text +=
        fmt::format("{} = {}{}\n", row.name, accepted.counts[static_cast<std::size_t>(row.count)],
                    row.compared == CountIs::version ? "  # with the versions below" : "");
  }
  text += "\n[versions]\n";
  for (const auto& [key, value] : accepted.versions)
    text += fmt::format("{} = {}\n", key, toml_string(value));
  for (const AcceptedPlace& place : accepted.places) {
    text +=
        fmt::format("\n[[place]]\ncount = {}\nline = {}\na_step = {}\n",
                    toml_string(row_of(place.count).name), toml_string(place.line), place.a_step);
  }
  return text;
}

AcceptedCounts read_accepted_counts(const std::filesystem::path& file) {
  const std::string what = "a file of accepted counts";
  constexpr double most = std::numeric_limits<double>::max();
  const TomlTable table = read_toml(file, what);
  TomlKeys::Faults faults;
  TomlKeys keys(table, {file.string(), 0, 0}, what, faults, way_out);
  AcceptedCounts accepted;
  if (keys.is_format(format, what, way_out)) {
    keys.text("command", accepted.command);
    keys.text("steps", accepted.steps);
    const TomlEntry* counts = keys.required("counts");
    const TomlTable* values = counts ? std::get_if<TomlTable>(&counts->value.content) : nullptr;
    if (counts != nullptr && values == nullptr) keys.wrong_type(*counts, "a table");
    if (values != nullptr) {
      TomlKeys each(*values, counts->place, "a table of counts", faults, way_out);
      for (const CallCountRow& row : call_count_table()) {
        if (row.compared == CountIs::neither) continue;
        const auto index = static_cast<std::size_t>(row.count);
        each.number(row.name, 0, most, accepted.counts[index]);
        if (const TomlEntry* entry = find(*values, row.name)) accepted.lines[index] = entry->place;
      }
      each.refuse_the_rest();
    }
    if (const TomlEntry* versions = keys.required("versions")) {
      const auto* texts = std::get_if<TomlTable>(&versions->value.content);
      if (texts == nullptr) keys.wrong_type(*versions, "a table");
      for (const TomlEntry& entry : texts ? *texts : TomlTable()) {
        const auto* text = std::get_if<std::string>(&entry.value.content);
        if (text == nullptr) {
          keys.wrong_type(entry, "a string");
        } else {
          accepted.versions.emplace(entry.key, *text);
        }
      }
    }
    if (const TomlEntry* places = keys.optional("place")) {
      for (const TomlKeys::Table& place : keys.tables(*places)) {
        TomlKeys each(*place.content, place.place, "a place", faults, way_out);
        std::string count;
        AcceptedPlace read;
        each.text("count", count);
        each.text("line", read.line);
        each.number("a_step", 0, most, read.a_step);
        each.refuse_the_rest();
        const auto known = count_named(count);
        if (!known && !count.empty()) each.fault(place.place, "there is no count '" + count + "'");
        read.count = known.value_or(CallCount::waits);
        accepted.places.push_back(std::move(read));
      }
    }
    keys.refuse_the_rest();
  }
  if (!faults.empty()) throw RequestError(std::move(faults));
  return accepted;
}

std::vector<ComparedCount> compare_counts(const AcceptedCounts& accepted,
                                          const CountedProcess& process) {
  const std::string difference = difference_in_words(accepted.versions, process.versions);
  std::map<std::pair<CallCount, std::string>, double> known;
  for (const AcceptedPlace& place : accepted.places)
    known[{place.count, place.line}] += place.a_step;
  std::vector<ComparedCount> compared;
  for (const CallCountRow& row : call_count_table()) {
    if (row.compared == CountIs::neither) continue;
    const auto index = static_cast<std::size_t>(row.count);
    ComparedCount one{.row = &row, .accepted = accepted.counts[index], .now = process.mean[index]};
    if (!is_same(one.accepted, one.now))
      one.change = one.now > one.accepted ? CountChange::more : CountChange::fewer;
    if (one.change != CountChange::same && row.compared == CountIs::version &&
        !difference.empty()) {
      one.change = CountChange::other_versions;
      one.difference = difference;
    }
    compared.push_back(std::move(one));
  }
  std::map<std::pair<CallCount, std::string>, double> now;
  for (const CountedPlace& place : process.places) {
    if (place.place.own.line == 0) continue;
    const std::pair key(place.count, kept_line(place.place.own));
    double& so_far = now[key];
    so_far += place.a_step;
    const auto before = known.find(key);
    const bool is_fresh =
        before == known.end() || (so_far > before->second && !is_same(so_far, before->second));
    const auto row = std::ranges::find(compared, place.count,
                                       [](const ComparedCount& one) { return one.row->count; });
    if (is_fresh && row != compared.end()) row->fresh.push_back(&place);
  }
  return compared;
}

}  // namespace stepgate
