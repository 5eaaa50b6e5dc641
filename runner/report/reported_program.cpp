// SPDX-License-Identifier: MIT
#include "report/reported_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <limits>
#include <set>

#include "base/text/units.h"
#include "program/accepted_counts.h"
#include "report/report.h"

namespace stepgate {
namespace {

constexpr std::size_t most_columns = 4;
constexpr std::size_t most_places = 8;

using Processes = std::vector<const CountedProcess*>;

double count_in(const CountedProcess& process, CallCount count) {
  return process.mean[static_cast<std::size_t>(count)];
}

std::string number_in_table(CallCount count, double value) {
  constexpr double most_exact = 1LL << 53;
  if (count == CallCount::copy_bytes && value <= most_exact) return bytes_text(std::llround(value));
  if (count == CallCount::copy_bytes) return fmt::format("{:.6g} B", value);
  return fmt::format("{:.6g}", value);
}

// Rows that are shown even where nothing is counted: a reader looks for them.
bool is_always_shown(CallCount count) {
  constexpr std::array always{CallCount::waits, CallCount::pageable_copies,
                              CallCount::device_allocs, CallCount::launches};
  return std::ranges::find(always, count) != always.end();
}

std::string process_in_words(const CountedProcess& process) {
  const std::string name = process.rank.empty() && process.variant.empty()
                               ? fmt::format("{} (process {})", process.program, process.process)
                               : process.variant;
  if (process.rank.empty()) return name;
  return fmt::format("{}{}rank {}", name, name.empty() ? "" : " ", process.rank);
}

std::vector<std::string> places_in_words(const CountedProcess& process, CallCount count) {
  std::vector<std::string> all;
  std::size_t left = 0;
  for (const CountedPlace& place : process.places) {
    if (place.count != count) continue;
    if (all.size() == most_places) {
      ++left;
      continue;
    }
    std::string words = place_in_words(place);
    words += place.a_step > 0 ? fmt::format("  x {:.4g}", place.a_step)
                              : fmt::format("  {} in all", place.seen);
    all.push_back(std::move(words));
  }
  if (left > 0) all.push_back(fmt::format("and {} more lines", left));
  return all;
}

// The processes of each variant of a scenario, in the order of the variants.
std::vector<Processes> by_variant(const Processes& processes) {
  std::vector<Processes> variants;
  for (const CountedProcess* process : processes) {
    if (variants.empty() || variants.back().front()->variant != process->variant)
      variants.emplace_back();
    variants.back().push_back(process);
  }
  return variants;
}

// Whether the columns are variants, because their processes are too many for a column each.
bool has_columns_of_variants(const Processes& processes) {
  const std::size_t variants = by_variant(processes).size();
  return processes.size() > most_columns && variants > 1 && variants <= most_columns;
}

std::vector<std::string> cells_of(const Processes& processes, CallCount count) {
  std::vector<std::string> cells;
  const auto minmax_of = [&](const Processes& some) {
    return std::ranges::minmax(
        some, {}, [&](const CountedProcess* process) { return count_in(*process, count); });
  };
  const auto text_of = [&](const CountedProcess* process) {
    return number_in_table(count, count_in(*process, count));
  };
  if (has_columns_of_variants(processes)) {
    for (const Processes& variant : by_variant(processes)) {
      const auto [least, most] = minmax_of(variant);
      const std::string text = text_of(least);
      cells.push_back(text == text_of(most) ? text : text + " to " + text_of(most));
    }
  } else if (processes.size() > most_columns) {
    const auto [least, most] = minmax_of(processes);
    cells = {text_of(least), text_of(most)};
  } else {
    std::ranges::transform(processes, std::back_inserter(cells), text_of);
  }
  return cells;
}

std::vector<std::string> titles_of(const Processes& processes) {
  std::vector<std::string> titles{""};
  if (processes.size() == 1) {
    titles.emplace_back("a step");
  } else if (has_columns_of_variants(processes)) {
    for (const Processes& variant : by_variant(processes))
      titles.push_back(variant.front()->variant);
  } else if (processes.size() > most_columns) {
    titles.insert(titles.end(), {"least", "most"});
  } else {
    for (const CountedProcess* process : processes) titles.push_back(process_in_words(*process));
  }
  titles.emplace_back("lines");
  return titles;
}

TextTable table_of(const Processes& processes) {
  TextTable rows{titles_of(processes)};
  for (const CallCountRow& row : call_count_table()) {
    const auto worst = std::ranges::max_element(
        processes, {}, [&](const CountedProcess* each) { return count_in(*each, row.count); });
    if (count_in(**worst, row.count) == 0 && !is_always_shown(row.count)) continue;
    std::vector<std::string> cells{std::string(row.words)};
    for (std::string& cell : cells_of(processes, row.count)) cells.push_back(std::move(cell));
    const std::vector<std::string> places = places_in_words(**worst, row.count);
    cells.push_back(places.empty() ? "" : places.front());
    rows.push_back(cells);
    for (std::size_t further = 1; further < places.size(); ++further) {
      std::vector<std::string> more(cells.size());
      more.back() = places[further];
      rows.push_back(std::move(more));
    }
  }
  return rows;
}

}  // namespace

ReportedProgram reported_program(const std::vector<CountedProcess>& all) {
  ReportedProgram reported;
  if (all.empty()) return reported;
  Processes counted;
  for (const CountedProcess& process : all) {
    if (process.problem.empty()) counted.push_back(&process);
  }
  std::set<std::string> windows;
  for (const CountedProcess* process : counted) {
    windows.insert(fmt::format("steps: {}; {} counted, from step {} on", process->marks,
                               process->steps, process->first_step));
  }
  reported.lines.assign(windows.begin(), windows.end());
  for (const CountedProcess& process : all) {
    if (!process.problem.empty() &&
        (counted.empty() || process.hides_calls || process.launches_in_all > 0)) {
      reported.lines.push_back(
          fmt::format("not counted: {}: {}", process_in_words(process), process.problem));
    }
  }
  if (counted.empty()) return reported;
  std::string versions;
  for (const auto& [key, value] : counted.front()->versions)
    versions += fmt::format("{}{} {}", versions.empty() ? "" : ", ", key, value);
  reported.lines.push_back("with: " + versions);
  reported.counts = table_of(counted);
  const std::vector<Processes> variants = by_variant(counted);
  for (const Processes& variant : variants) {
    const std::string name = variants.size() > 1 ? variant.front()->variant + ": " : "";
    for (const CallCountRow& row : call_count_table()) {
      const std::string uneven = uneven_in_words(*variant.front(), row.count);
      if (!uneven.empty() && row.compared != CountIs::neither)
        reported.lines.push_back(
            fmt::format("not every step is alike: {}{} {}", name, row.name, uneven));
    }
  }
  return reported;
}

}  // namespace stepgate
