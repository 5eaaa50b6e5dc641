// SPDX-License-Identifier: MIT
#include "compare/gate/compare_counts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

#include "base/text/number_words.h"
#include "compare/gate/compare_programs.h"
#include "scenario/assertions/metric_words.h"

namespace stepgate {
namespace {

constexpr std::size_t most_named_operations = 3;
constexpr double share_that_explains = 0.6;  // of a difference in time
constexpr std::size_t most_named_parts = 2;

bool same(double base, double head) {
  return std::abs(base - head) <= exact_enough * std::max(std::abs(base), std::abs(head));
}

MetricUnit unit_of(const std::string& metric) {
  const auto known = metric_named(metric);
  return known ? row_of(*known).unit : MetricUnit::count;
}

// Returns whether a count may change from `base` to `head`. Less arithmetic means another step, so
// it may not. Metrics that only describe a step may change.
bool may_become(const std::string& metric, double base, double head) {
  const std::optional<Metric> known = metric_named(metric);
  if (known && describes_the_step(*known)) return true;
  return head < base && known != Metric::flops_per_step;
}

std::string from_to(double base, double head, MetricUnit unit) {
  return fmt::format("{} -> {}", in_words(base, unit), in_words(head, unit));
}

// "sync: wait for the device 0 -> 1": the operations whose counts differ between the two plans.
std::string operations_that_differ(const StepCounts& base, const StepCounts& head) {
  std::vector<std::string> words;
  std::set<std::string> names;
  for (const auto& [name, times] : base.operations) names.insert(name);
  for (const auto& [name, times] : head.operations) names.insert(name);
  std::size_t more = 0;
  for (const std::string& name : names) {
    const auto times = [&](const StepCounts& counts) {
      const auto found = counts.operations.find(name);
      return found == counts.operations.end() ? 0.0 : found->second;
    };
    if (same(times(base), times(head))) continue;
    if (words.size() == most_named_operations) {
      ++more;
      continue;
    }
    words.push_back(
        fmt::format("'{}' {}", name, from_to(times(base), times(head), MetricUnit::count)));
  }
  if (more > 0) words.push_back(fmt::format("and {} more", more));
  return fmt::format("{}", fmt::join(words, ", "));
}

// Names the phases in which more calls block.
std::string waits_that_differ(const StepCounts& base, const StepCounts& head) {
  std::vector<std::string> words;
  for (const auto& [phase, waits] : head.waits) {
    const auto before = base.waits.find(phase);
    const double was = before == base.waits.end() ? 0 : before->second;
    if (waits > was * (1 + exact_enough))
      words.push_back(fmt::format("{} {}", phase, from_to(was, waits, MetricUnit::count)));
  }
  return words.empty() ? "" : fmt::format("calls that can block: {}", fmt::join(words, ", "));
}

struct Compared {
  const CountedPair& pair;
  std::vector<Finding>& findings;

  void add(const std::string& metric, double base, double head, bool by_trace) const {
    const MetricUnit unit = unit_of(metric);
    Finding finding{.kind = FindingKind::counts,
                    .severity = may_become(metric, base, head) ? Severity::note : Severity::blocks,
                    .workload = pair.workload,
                    .what = metric,
                    .base = base,
                    .head = head,
                    .unit = unit,
                    .words = fmt::format("{} {}", metric, from_to(base, head, unit))};
    if (by_trace) {
      finding.words += " in a trace, though both plans say the same";
      finding.mechanism = waits_that_differ(pair.base, pair.head);
    } else {
      finding.mechanism = operations_that_differ(pair.base, pair.head);
    }
    findings.push_back(std::move(finding));
  }

  void add_unknown(std::string what, std::string words) const {
    findings.push_back({.kind = FindingKind::counts,
                        .severity = Severity::not_gated,
                        .workload = pair.workload,
                        .what = std::move(what),
                        .words = std::move(words)});
  }

  void add_other_step(std::string words) const {
    findings.push_back({.kind = FindingKind::losses,
                        .severity = Severity::blocks,
                        .workload = pair.workload,
                        .what = "gradients",
                        .words = std::move(words)});
  }

  // Uses BASE's bound and reports the parameter that differs the most.
  void add_other_gradients() const {
    const double bound = pair.base.gradient_bound;
    GradientSketch whole;
    for (const auto& [parameter, sketch] : pair.base.gradients) add_finite(whole, sketch);
    std::string worst;
    double most = bound;
    for (const auto& [parameter, sketch] : pair.base.gradients) {
      const auto other = pair.head.gradients.find(parameter);
      if (other == pair.head.gradients.end()) {
        add_unknown("gradients", fmt::format("HEAD gives no gradient of '{}'", parameter));
        return;
      }
      const bool finite = std::isfinite(sketch.squares);
      if (!finite && !std::isfinite(other->second.squares)) continue;
      const double difference =
          relative_difference(sketch, other->second, negligible_norm(whole, sketch));
      if (difference <= most) continue;  // NaN counts as a larger difference
      worst = parameter;
      most = std::isfinite(difference) ? difference : std::numeric_limits<double>::infinity();
    }
    if (!worst.empty()) {
      add_other_step(
          fmt::format("the gradient of '{}' differs by {} %, and may by {} %: not the "
                      "same step",
                      worst, number_in_words(100 * most, 2), number_in_words(100 * bound, 2)));
    }
    for (const auto& [parameter, difference] : pair.head.begun_again) {
      if (difference <= bound) continue;
      add_other_step(
          fmt::format("begun again after some steps, the gradient of '{}' differs by {} % "
                      "from HEAD's own first: not the same step for long",
                      parameter, number_in_words(100 * difference, 2)));
      return;
    }
  }

  // Compares counts. A metric that only HEAD counts is no difference; one that HEAD no longer
  // counts cannot be compared.
  // If both plans count a metric, both traces need not.
  std::set<std::string> compare(const StepCounts::Numbers& base, const StepCounts::Numbers& head,
                                bool by_trace, const std::set<std::string>& without = {}) const {
    std::set<std::string> differ;
    for (const auto& [metric, value] : base) {
      const auto other = head.find(metric);
      if (other == head.end() && !by_trace)
        add_unknown(metric, fmt::format("HEAD does not count {}, and BASE does", metric));
      if (other == head.end() || without.contains(metric) || same(value, other->second)) continue;
      add(metric, value, other->second, by_trace);
      differ.insert(metric);
    }
    return differ;
  }
};

// "rank 1: math" is a part of one rank.
std::string words_of_part(std::string_view part) {
  struct Words {
    std::string_view part;
    std::string_view words;
  };
  static constexpr std::array all{Words{"math", "kernels limited by arithmetic"},
                                  Words{"memory", "kernels limited by memory"},
                                  Words{"latency", "kernels whose loads wait for each other"},
                                  Words{"copies", "copies with no kernel beside them"},
                                  Words{"communication", "collectives with no kernel beside them"},
                                  Words{"idle_after_wait", "idle after the host waited"},
                                  Words{"idle_for_data", "idle for data"},
                                  Words{"idle_for_host", "idle while the host issues workload"},
                                  Words{"idle_in_queue", "pauses of the device"}};
  constexpr std::string_view separator = ": ";
  const std::size_t rank = part.find(separator);
  if (rank != std::string_view::npos) {
    return std::string(part.substr(0, rank + separator.size())) +
           words_of_part(part.substr(rank + separator.size()));
  }
  const auto found = std::ranges::find(all, part, &Words::part);
  return std::string(found == all.end() ? part : found->words);
}

// Whether two losses are the same bits, or closer to each other than the bound. NaN is far from
// all.
bool are_alike(const std::string& base, const std::string& head, double bound) {
  if (base == head) return true;
  const auto number = [](const std::string& bits) {
    std::uint32_t value = 0;
    const auto read = std::from_chars(bits.data(), bits.data() + bits.size(), value, 16);
    return read.ec == std::errc{} ? double{std::bit_cast<float>(value)}
                                  : std::numeric_limits<double>::quiet_NaN();
  };
  const double one = number(base), other = number(head);
  return std::abs(one - other) < bound * std::max(std::abs(one), std::abs(other));
}

}  // namespace

std::vector<Finding> compare_counts(const CountedPair& pair) {
  if (is_of_program(pair)) return compare_program_counts(pair);
  std::vector<Finding> findings;
  const Compared compared{pair, findings};
  const std::set<std::string> by_plan =
      compared.compare(pair.base.planned, pair.head.planned, false);
  compared.compare(pair.base.traced, pair.head.traced, true, by_plan);
  const auto [of_base, of_head] =
      std::ranges::mismatch(pair.base.losses, pair.head.losses,
                            [bound = pair.base.loss_bound](const auto& base, const auto& head) {
                              return are_alike(base, head, bound);
                            });
  if (of_base != pair.base.losses.end() || of_head != pair.head.losses.end()) {
    const auto differing = of_base - pair.base.losses.begin();
    findings.push_back(
        {.kind = FindingKind::losses,
         .severity = Severity::blocks,
         .workload = pair.workload,
         .what = "losses",
         .words = fmt::format("the loss of step {} differs: not the same step", differing)});
  }
  compared.add_other_gradients();
  if (pair.base.traced.empty() != pair.head.traced.empty()) {
    compared.add_unknown("trace", fmt::format("only {} has a trace of it: {}{}",
                                              pair.head.traced.empty() ? "BASE" : "HEAD",
                                              pair.base.untraced, pair.head.untraced));
  }
  return findings;
}

std::string parts_that_grew(const StepCounts& base, const StepCounts& head) {
  struct Growth {
    std::string part;
    double from;
    double to;
  };
  std::vector<Growth> grown;
  double all = 0;
  for (const auto& [part, to] : head.time) {
    const auto before = base.time.find(part);
    if (part == "step" || before == base.time.end() || to <= before->second) continue;
    grown.push_back({part, before->second, to});
    all += to - before->second;
  }
  std::ranges::sort(grown, std::ranges::greater{},
                    [](const Growth& growth) { return growth.to - growth.from; });
  std::vector<std::string> words;
  double named = 0;
  for (const Growth& growth : grown) {
    if (words.size() == most_named_parts || named >= share_that_explains * all) break;
    named += growth.to - growth.from;
    words.push_back(fmt::format("{} {}", words_of_part(growth.part),
                                from_to(growth.from, growth.to, MetricUnit::seconds)));
  }
  return words.empty() ? "" : fmt::format("{} of a traced step", fmt::join(words, ", "));
}

}  // namespace stepgate
