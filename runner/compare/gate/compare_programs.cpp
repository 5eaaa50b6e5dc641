// SPDX-License-Identifier: MIT
#include "compare/gate/compare_programs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "program/accepted_counts.h"
#include "program/count_steps.h"
#include "scenario/assertions/metric_words.h"

namespace stepgate {
namespace {

constexpr std::size_t most_named_lines = 3;

bool is_same(double one, double other) {
  return std::abs(one - other) <= exact_enough * std::max(std::abs(one), std::abs(other));
}

// A count that is compared, under the name that it has on the wire and in findings.
struct ComparedName {
  std::string_view name;
  MetricUnit unit = MetricUnit::count;
  bool belongs_to_versions = false;
  // The count that contains this one, so that one call more is one finding; empty: none.
  std::string_view within = {};
  std::vector<std::string_view> rows = {};  // whose lines explain it
};

std::string_view name_of_metric(Metric metric) {
  return row_of(metric).name;
}

// Counts that contain others come first.
std::vector<ComparedName> compared_names() {
  const std::string_view waits = name_of_metric(Metric::host_waits_per_step);
  const std::string_view copies = name_of_metric(Metric::copies_per_step);
  const std::string_view launches = name_of_metric(Metric::launches_per_step);
  std::vector<ComparedName> names{
      {.name = waits, .rows = {"waits", "blocking_copies", "blocking_frees", "pageable_copies"}}};
  std::vector<ComparedName> parts;
  for (const CallCountRow& row : call_count_table()) {
    if (row.compared == CountIs::neither) continue;
    ComparedName name{.name = row.name,
                      .belongs_to_versions = row.compared == CountIs::version,
                      .rows = {row.name}};
    if (row.metric) {
      name.name = name_of_metric(*row.metric);
      name.unit = row_of(*row.metric).unit;
    }
    switch (row.count) {
      case CallCount::waits:
      case CallCount::device_waits:
      case CallCount::blocking_copies:
      case CallCount::blocking_frees:
        name.within = waits;
        break;
      case CallCount::copies_to_device:
      case CallCount::copies_to_host:
        name.within = copies;
        break;
      case CallCount::graph_launches:
        name.within = launches;
        break;
      default:
        break;
    }
    (name.within.empty() ? names : parts).push_back(std::move(name));
  }
  std::ranges::move(parts, std::back_inserter(names));
  return names;
}

std::optional<double> count_of(const StepCounts& counts, std::string_view name) {
  const auto found = counts.planned.find(std::string(name));
  return found == counts.planned.end() ? std::nullopt : std::optional(found->second);
}

std::string number_words(double value, MetricUnit unit) {
  return in_words(value, unit);
}

// "train.py:88 loss.item() is new", of lines that HEAD has more often; and where the first of them
// is.
std::pair<std::string, Place> fresh_lines(const CountedPair& pair, const ComparedName& name) {
  std::map<std::pair<std::string_view, std::string_view>, double> before;
  for (const CountedLine& line : pair.base.lines) {
    double& most = before[{line.count, line.words}];
    most = std::max(most, line.a_step);
  }
  std::vector<std::string> words;
  Place place;
  for (const CountedLine& line : pair.head.lines) {
    if (std::ranges::find(name.rows, line.count) == name.rows.end()) continue;
    const auto found = before.find({line.count, line.words});
    const double was = found == before.end() ? 0 : found->second;
    if (line.a_step <= was || is_same(was, line.a_step)) continue;
    if (words.size() == most_named_lines) break;
    if (words.empty()) place = {line.file, static_cast<int>(line.line), 1};
    const std::string file = std::filesystem::path(line.file).filename().string();
    const std::size_t text = line.words.find(": ");
    std::string one = fmt::format(
        "{}:{} {} {}", file, line.line,
        text == std::string::npos ? line.words : line.words.substr(text + 2),
        was == 0 ? std::string("is new") : fmt::format("{:g} -> {:g}", was, line.a_step));
    if (std::ranges::find(words, one) == words.end()) words.push_back(std::move(one));
  }
  return {fmt::format("{}", fmt::join(words, ", ")), place};
}

struct OfProgram {
  const CountedPair& pair;
  std::vector<Finding>& findings;

  Finding& add(Severity severity, std::string what, std::string words) const {
    findings.push_back({.kind = FindingKind::counts,
                        .severity = severity,
                        .workload = pair.workload,
                        .what = std::move(what),
                        .words = std::move(words)});
    return findings.back();
  }

  // Whether the sides can be compared at all.
  bool have_counts() const {
    for (const auto& [side, counts] : {std::pair{"BASE", &pair.base}, {"HEAD", &pair.head}}) {
      if (counts->counted.empty())
        add(Severity::not_gated, "counts",
            fmt::format("{} is not counted: {}", side, counts->untraced));
    }
    if (!findings.empty()) return false;
    if (pair.base.counted != pair.head.counted)
      add(Severity::not_gated, "counts",
          fmt::format("not the same steps: of BASE {} are counted, of HEAD {}", pair.base.counted,
                      pair.head.counted));
    return findings.empty();
  }

  void compare(const ComparedName& name, const std::string& versions) const {
    const auto base = count_of(pair.base, name.name);
    const auto head = count_of(pair.head, name.name);
    if (!base) return;
    if (!head) {
      add(Severity::not_gated, std::string(name.name),
          fmt::format("HEAD has copies of unknown ends, so its {} are unknown; BASE has {}",
                      name.name, number_words(*base, name.unit)));
      return;
    }
    if (is_same(*base, *head)) return;
    const bool is_more = *head > *base;
    const bool is_explained = std::ranges::any_of(findings, [&](const Finding& finding) {
      return finding.what == name.within && (finding.head > finding.base) == is_more;
    });
    if (is_explained) return;
    const bool is_of_others = name.belongs_to_versions && !versions.empty();
    std::string words = fmt::format("{} {} -> {}", name.name, number_words(*base, name.unit),
                                    number_words(*head, name.unit));
    if (is_of_others) words += ", not compared: " + versions;
    Finding& finding = add(is_more && !is_of_others ? Severity::blocks : Severity::note,
                           std::string(name.name), std::move(words));
    finding.base = base;
    finding.head = head;
    finding.unit = name.unit;
    if (is_more) std::tie(finding.mechanism, finding.place) = fresh_lines(pair, name);
  }
};

struct Launches {
  std::vector<double> base;
  std::vector<double> head;
};

Launches launches_of(const Finding& finding, std::span<const CountedPair> all) {
  Launches launches;
  for (const CountedPair& pair : all) {
    if (pair.workload != finding.workload) continue;
    const auto base = count_of(pair.base, finding.what);
    const auto head = count_of(pair.head, finding.what);
    if (base && head) {
      launches.base.push_back(*base);
      launches.head.push_back(*head);
    }
  }
  return launches;
}

double spread_of(const std::vector<double>& values) {
  return std::ranges::max(values) - std::ranges::min(values);
}

// A count that does not change from launch to launch comes again exactly. Of one that does, what
// chance makes of it is less than what it makes within a side.
bool comes_again(const Launches& launches) {
  const double gap = std::ranges::min(launches.head) - std::ranges::max(launches.base);
  return gap > std::max(spread_of(launches.base), spread_of(launches.head)) &&
         !is_same(std::ranges::min(launches.head), std::ranges::max(launches.base));
}

}  // namespace

bool is_of_program(const CountedPair& pair) {
  const auto is = [](const StepCounts& counts) {
    return !counts.counted.empty() ||
           (counts.planned.empty() && counts.traced.empty() && !counts.untraced.empty());
  };
  return is(pair.base) && is(pair.head);
}

std::vector<Finding> compare_program_counts(const CountedPair& pair) {
  std::vector<Finding> findings;
  const OfProgram compared{pair, findings};
  if (!compared.have_counts()) return findings;
  const std::string versions = difference_in_words(pair.base.versions, pair.head.versions);
  for (const ComparedName& name : compared_names()) compared.compare(name, versions);
  return findings;
}

void keep_what_comes_again(std::vector<Finding>& findings, std::span<const CountedPair> first,
                           std::span<const CountedPair> again) {
  for (Finding& finding : findings) {
    if (finding.kind != FindingKind::counts || finding.severity != Severity::blocks) continue;
    Launches launches = launches_of(finding, first);
    const std::size_t before = launches.base.size();
    const Launches more = launches_of(finding, again);
    std::ranges::copy(more.base, std::back_inserter(launches.base));
    std::ranges::copy(more.head, std::back_inserter(launches.head));
    const std::size_t all = launches.base.size();
    if (before == 0) continue;
    if (all > before && comes_again(launches)) continue;
    finding.severity = Severity::undecided;
    const auto in_order = [&](const std::vector<double>& values) {
      std::vector<std::string> words;
      for (const double value : values) words.push_back(number_words(value, finding.unit));
      return fmt::format("{}", fmt::join(words, ", "));
    };
    finding.words += fmt::format("; it does not come again: BASE {} and HEAD {} in {} launches",
                                 in_order(launches.base), in_order(launches.head), all);
  }
}

}  // namespace stepgate
