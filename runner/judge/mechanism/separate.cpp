// SPDX-License-Identifier: MIT
#include "judge/mechanism/separate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "judge/mechanism/variant_pair.h"
#include "judge/verdict/words.h"
#include "plan/compose/step_names.h"
#include "stats/moments.h"

namespace stepgate {
namespace {

const CountWords& words_of(Metric metric) {
  return *std::find_if(count_words().begin(), count_words().end(),
                       [&](const CountWords& words) { return words.metric == metric; });
}

std::string phase_in_words(std::optional<Phase> phase) {
  return phase ? fmt::format(" ({})", name_of(*phase)) : "";
}

// One of the two counts that differ, with as many digits as show the difference.
std::string count_in_words(const CountDifference& count, double value) {
  const double other = value == count.first ? count.other : count.first;
  return told_from(value, other, [&](double number, int more_digits) {
    return in_words(number, row_of(count.metric).unit, more_digits);
  });
}

// Idle time is told as a share of the step, which is what one sees in a timeline; work as time,
// since its share changes with all the rest.
bool is_idle(TimePart part) {
  return part >= TimePart::idle_after_wait;
}

std::string part_in_words(const VariantPair& pair, std::size_t variant, TimePart part) {
  const double seconds = pair.mean(variant, part);
  if (!is_idle(part)) return in_words(seconds, MetricUnit::seconds);
  const double step = pair.mean_step(variant);
  return share_in_words(step > 0 ? seconds / step : 0);
}

// "leaves it idle 23 % of the time after waits" of a variant that was just said to do something
// with "it".
std::string part_clause(TimePart part, std::string_view device, const std::string& amount) {
  switch (part) {
    case TimePart::math:
      return fmt::format("spends {} a step in kernels that arithmetic limits", amount);
    case TimePart::memory:
      return fmt::format("spends {} a step in kernels and fills that device memory limits", amount);
    case TimePart::latency:
      return fmt::format("spends {} a step in kernels whose loads wait for each other", amount);
    case TimePart::copies:
      return fmt::format("spends {} a step in copies with no kernel beside them", amount);
    case TimePart::communication:
      return fmt::format("spends {} a step in collectives with no kernel beside them", amount);
    case TimePart::idle_after_wait:
      return fmt::format("leaves {} idle {} of the time after waits", device, amount);
    case TimePart::idle_for_data:
      return fmt::format("leaves {} idle {} of the time for lack of data", device, amount);
    case TimePart::idle_for_host:
      return fmt::format("leaves {} idle {} of the time for lack of issued work", device, amount);
    case TimePart::idle_in_queue:
      return fmt::format("has {} pause between pieces of work {} of the time", device, amount);
  }
  return {};
}

// The count to tell first: one that can move the part, or the first of all.
std::optional<std::size_t> leading_count(const Separation& separation) {
  if (separation.counts.empty()) return std::nullopt;
  for (std::size_t index = 0; index < separation.counts.size() && separation.part; ++index) {
    if (words_of(separation.counts[index].metric).moves == *separation.part) return index;
  }
  return separation.part ? std::nullopt : std::optional<std::size_t>(0);
}

// ", besides launches_per_step 50 and 1": at most three, the report has all of them for programs.
std::string other_counts(const Separation& separation, std::optional<std::size_t> told,
                         bool swapped) {
  constexpr std::size_t most = 3;
  std::string words;
  std::size_t listed = 0;
  for (std::size_t index = 0; index < separation.counts.size(); ++index) {
    if (told == index) continue;
    if (++listed > most) continue;
    const CountDifference& count = separation.counts[index];
    words += fmt::format("{} {} {} and {}", listed == 1 ? "; also" : ",", row_of(count.metric).name,
                         count_in_words(count, swapped ? count.other : count.first),
                         count_in_words(count, swapped ? count.first : count.other));
  }
  if (listed > most) words += fmt::format(" and {} more", listed - most);
  return words;
}

// "; by the clock baseline takes 1.43x the time of fix: what differs is rarer than the 20 traced
// steps, as 'evaluate' of baseline, every 500 steps".
std::string by_the_clock(const PairToExplain& pair, const VariantPair& traced,
                         const Separation& separation, std::int64_t steps) {
  if (!pair.timed_ratio) return "";
  const bool first_is_slower = *pair.timed_ratio > 1;
  const double ratio = first_is_slower ? *pair.timed_ratio : 1 / *pair.timed_ratio;
  std::string words = fmt::format("by the clock {} takes {} the time of {}: what differs is ",
                                  first_is_slower ? separation.first : separation.other,
                                  told_from(ratio, 1,
                                            [](double factor, int more_digits) {
                                              return factor_in_words(factor, more_digits);
                                            }),
                                  first_is_slower ? separation.other : separation.first);
  const std::vector<RareWork> rare = traced.rare_work();
  if (rare.empty())
    return words +
           fmt::format("rarer than the {} traced steps, or less than scatters there", steps);
  std::vector<std::string> works;
  for (const RareWork& one : rare)
    works.push_back(
        fmt::format("'{}' of {}, every {} steps", one.work.name, one.variant, one.work.every));
  return words +
         fmt::format("rarer than the {} traced steps, as {}", steps, fmt::join(works, " or "));
}

std::string sentence_of(const Separation& separation, const VariantPair& pair,
                        const std::string& clock) {
  const std::string& first = separation.first;
  const std::string& other = separation.other;
  if (separation.counts.empty() && !separation.part && !clock.empty())
    return fmt::format("no traced step separates {} and {}; {}", first, other, clock);
  if (separation.counts.empty() && !separation.part) {
    return fmt::format(
        "nothing separates {} and {}: the same counts, and no part of the time differs by more "
        "than the traced rounds scatter",
        first, other);
  }
  const auto lead = leading_count(separation);
  const CountDifference* count = lead ? &separation.counts[*lead] : nullptr;
  // Whoever does more is the subject: "item copies 1x a step; baseline 0x".
  const bool swapped =
      count ? count->first < count->other
            : pair.mean(pair.first(), *separation.part) < pair.mean(pair.other(), *separation.part);
  const std::size_t subject = swapped ? pair.other() : pair.first();
  const std::size_t object = swapped ? pair.first() : pair.other();
  std::vector<std::string> of_subject;
  std::vector<std::string> of_object;
  bool says_device = false;
  if (count) {
    const auto amount_of = [&](std::size_t variant) {
      return count_in_words(*count, variant == pair.first() ? count->first : count->other);
    };
    const std::string says =
        fmt::format(fmt::runtime(words_of(count->metric).says), amount_of(subject));
    says_device = says.find("the device") != std::string::npos;
    of_subject.push_back(says + phase_in_words(count->phase));
    const bool times = words_of(count->metric).says.find("{}x") != std::string_view::npos;
    of_object.push_back(amount_of(object) + (times ? "x" : ""));
  }
  if (separation.part) {
    const std::optional<Phase> told = count ? count->phase : std::nullopt;
    const std::string phase = separation.phase == told ? "" : phase_in_words(separation.phase);
    of_subject.push_back(part_clause(*separation.part, says_device ? "it" : "the device",
                                     part_in_words(pair, subject, *separation.part)) +
                         phase);
    of_object.push_back(part_in_words(pair, object, *separation.part));
  }
  std::string words =
      fmt::format("{} {}; {} {}", swapped ? other : first, fmt::join(of_subject, " and "),
                  swapped ? first : other, fmt::join(of_object, " and "));
  words += other_counts(separation, lead, swapped);
  if (separation.counts.empty()) words += "; no count differs";
  if (!separation.part) words += "; where the time goes does not differ by more than its scatter";
  if (!separation.part && !clock.empty()) words += "; " + clock;
  return words;
}

}  // namespace

std::optional<double> timed_ratio(const Measurement& measurement, std::size_t first,
                                  std::size_t other) {
  constexpr std::ptrdiff_t fewest_rounds = 4;
  constexpr double standard_errors = 3;
  std::vector<double> ratios;  // logarithms
  for (const Round& round : measurement.rounds) {
    const auto log_time = [&](std::size_t variant) {
      return std::log(
          round_value(round, static_cast<int>(variant), 1, Metric::step_ms_mean).value_or(1));
    };
    ratios.push_back(log_time(first) - log_time(other));
  }
  if (std::ssize(ratios) < fewest_rounds) return std::nullopt;
  const auto [count, mean, variance] = moments_of(ratios);
  const double error = std::sqrt(variance / static_cast<double>(count - 1));
  if (std::abs(mean) <= standard_errors * error) return std::nullopt;
  return std::exp(mean);
}

Separation separation_of(std::span<const PlannedStep> variants, const PairToExplain& explained,
                         const Traced& traced) {
  const VariantPair pair(variants, explained.first, explained.other, traced);
  Separation separation{.first = variants[explained.first]->variant,
                        .other = variants[explained.other]->variant,
                        .counts = pair.counts(),
                        .part = pair.part(),
                        .phase = {},
                        .sentence = {}};
  if (separation.part) separation.phase = pair.phase_of(*separation.part);
  separation.sentence =
      sentence_of(separation, pair, by_the_clock(explained, pair, separation, traced.steps));
  return separation;
}

}  // namespace stepgate
