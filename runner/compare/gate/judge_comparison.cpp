// SPDX-License-Identifier: MIT
#include "compare/gate/judge_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <memory>
#include <numeric>

#include "base/seconds.h"
#include "base/stats/e_process.h"
#include "base/stats/quantile.h"
#include "base/text/diagnostic.h"
#include "base/text/number_words.h"
#include "compare/worker/kernel_workload.h"
#include "judge/assertions/timed_assertion.h"
#include "judge/judge_suite.h"
#include "judge/verdict/words.h"
#include "measure/schedule.h"

namespace stepgate {
namespace {

// After this number of pairs, the first workloads are no longer timed alone, whatever their
// results.
constexpr std::int64_t most_pairs_alone = 14;
// Share of alpha for the workloads that are timed first. With it, they make all workloads together
// fail after eight pairs, and any other workload needs at most one pair more.
constexpr double weight_of_works_ahead = 0.6;
// Where typical and total time disagree, this multiple of the fewest pairs is made.
constexpr std::int64_t pairs_held_back = 2;

TimedAssertion test_of(double margin, double weight, const ComparisonSettings& settings) {
  const std::array no_slower{Bound{Direction::below, std::log1p(margin)}};
  return TimedAssertion(no_slower, settings.alpha * weight, settings.beta);
}

std::size_t workloads_ahead_among(std::size_t workloads, const ComparisonSettings& settings) {
  return settings.workloads_ahead < workloads ? settings.workloads_ahead : 0;
}

struct Total {
  double seconds = 0;
  double steps = 0;

  void add(const ComparisonSegment& segment) {
    seconds += std::chrono::duration<double>(segment.elapsed).count();
    steps += static_cast<double>(segment.steps);
  }
  Total& operator+=(const Total& other) {
    seconds += other.seconds;
    steps += other.steps;
    return *this;
  }
  std::optional<double> step_seconds() const {
    return steps > 0 ? std::optional(seconds / steps) : std::nullopt;
  }
};

// A worker may hide this share of its time, relative to the other worker: requests have a cost.
const double log_hidden_share = std::log1p(0.1);
// If neither side reports this share of a workload's time, a clock stops too early.
constexpr double unexplained_share = 0.25;
// A clock also stops too early where a side hides this share of its reported time: the next request
// waits for work that was still queued.
constexpr double queued_share = 0.5;
constexpr double seconds_to_unload = 0.1;  // both sides

// The reported times of a pair, and the times that stepgate waited.
struct Waited {
  double claimed = 0;  // log(head's step time / base's)
  double waited = 0;   // the same, including the time that each side hides

  // Returns the credible contrast: the reported one, moved to the waited one as far as the cost of
  // requests does not explain their difference. It equals the reported one where nothing is hidden.
  double believed() const {
    if (waited > std::max(0.0, claimed) + log_hidden_share) return waited - log_hidden_share;
    if (waited < std::min(0.0, claimed) - log_hidden_share) return waited + log_hidden_share;
    return claimed;
  }
};

std::vector<double> hidden_by(ComparisonSide side, const WorkInPair& workload) {
  std::vector<double> all;
  for (const Superblock& block : workload.superblocks) {
    for (const ComparisonSegment& segment : block) {
      if (segment.side == side) all.push_back(seconds(segment.hidden));
    }
  }
  return all;
}

// The allowed cost of a request in this pair, in seconds: a few times what it costs the side that
// answers sooner. A fixed allowance would be 40 % of a segment of 5 ms, which a side could hide.
double allowed_cost(const WorkInPair& workload) {
  constexpr double least = 1e-4;
  constexpr double times_the_quicker_side = 3;
  const double quicker = std::min(quantile(hidden_by(ComparisonSide::base, workload), 0.5),
                                  quantile(hidden_by(ComparisonSide::head, workload), 0.5));
  return std::min(seconds(most_cost_of_a_request), least + times_the_quicker_side * quicker);
}

Waited waited_in(const WorkInPair& workload) {
  const double cost = allowed_cost(workload);
  Waited sum;
  for (const Superblock& block : workload.superblocks) {
    sum.claimed += contrast_of(block);
    Superblock with_hidden = block;
    const double scored = static_cast<double>(block.front().steps) /
                          static_cast<double>(block.front().steps + workload.wash_out_steps);
    for (ComparisonSegment& segment : with_hidden)
      segment.elapsed += std::chrono::duration_cast<std::chrono::nanoseconds>(
          std::chrono::duration<double>(std::max(0.0, seconds(segment.hidden) - cost) * scored));
    sum.waited += contrast_of(with_hidden);
  }
  const auto blocks = static_cast<double>(workload.superblocks.size());
  return {sum.claimed / blocks, sum.waited / blocks};
}

bool hides_in(const WorkInPair& workload, ComparisonSide side) {
  double hidden = 0;
  double claimed = 0;
  for (const auto* blocks : {&workload.superblocks, &workload.watched}) {
    for (const Superblock& block : *blocks) {
      for (const ComparisonSegment& segment : block) {
        if (segment.side != side) continue;
        hidden += std::max(0.0, seconds(segment.hidden) - seconds(most_cost_of_a_request));
        claimed += seconds(segment.elapsed);
      }
    }
  }
  return hidden > queued_share * claimed;
}

double believed_in(const ComparisonMeasurement& all, const WorkInPair& workload) {
  const Waited waited = waited_in(workload);
  return all.unchecked ? waited.claimed : waited.believed();
}

std::array<Total, 2> totals_of(const WorkInPair& workload) {
  std::array<Total, 2> totals;
  for (const auto* blocks : {&workload.superblocks, &workload.watched}) {
    for (const Superblock& block : *blocks) {
      for (const ComparisonSegment& segment : block)
        totals[static_cast<std::size_t>(segment.side)].add(segment);
    }
  }
  return totals;
}

// Accumulates the evidence about one workload, one pair of launches at a time. The stopping rule
// and the verdict both read it, so they agree.
class WorkTest {
 public:
  WorkTest(const std::string& workload, double weight, const ComparisonSettings& settings)
      : margin_(settings.margin_of(workload)),
        fewest_pairs_(fewest_pairs_to_decide(settings)),
        assertion_(test_of(margin_, weight, settings)) {
    const auto accepted = settings.accepted_growths.find(workload);
    if (accepted != settings.accepted_growths.end() && accepted->second > margin_) {
      accepted_growth_ = accepted->second;
      accepted_.emplace(test_of(accepted->second, weight, settings));
    }
    go_on_from(workload, settings.earlier);
  }

  void add(const ComparisonMeasurement& all, const WorkInPair& workload) {
    const std::int64_t before = steps();
    const std::array<Total, 2> totals = totals_of(workload);
    for (std::size_t side = 0; side < totals.size(); ++side) totals_[side] += totals[side];
    const double believed = believed_in(all, workload);
    hidden_.add(believed - waited_in(workload).claimed);
    const bool queues = std::ranges::any_of(
        both_sides, [&](ComparisonSide side) { return hides_in(workload, side); });
    stops_early_ += !all.unchecked && (queues || (seconds(workload.passed) - seconds_to_unload) *
                                                         (1 - unexplained_share) >
                                                     seconds(workload.claimed));
    bet(believed, hidden());
    longest_launch_ = std::max(longest_launch_, steps() - before);
    segment_steps_ = workload.superblocks.front().front().steps;
    periodic_ = workload.periodic;
    ++pairs_;
    superblocks_ += std::ssize(workload.superblocks);
  }

  double margin() const { return margin_; }
  std::int64_t earlier_pairs() const { return earlier_pairs_; }
  std::int64_t pairs() const { return pairs_; }
  std::int64_t superblocks() const { return superblocks_; }
  std::int64_t longest_launch() const { return longest_launch_; }  // steps of one side
  // Number of steps that each side has run.
  std::int64_t steps() const { return static_cast<std::int64_t>(totals_[0].steps); }
  std::optional<double> step_seconds(ComparisonSide side) const {
    return totals_[static_cast<std::size_t>(side)].step_seconds();
  }
  std::int64_t segment_steps() const { return segment_steps_; }
  std::span<const PeriodicWork> periodic(ComparisonSide side) const {
    return periodic_[static_cast<std::size_t>(side)];
  }
  const TimedAssertion& assertion() const { return assertion_; }
  std::optional<double> accepted_growth() const { return accepted_growth_; }
  Outcome at_accepted_growth() const {
    return accepted_ ? outcome_of(*accepted_, *accepted_growth_) : Outcome::undecided;
  }

  // log of the ratio of time that HEAD hides in a typical pair; negative where BASE hides more.
  double hidden() const { return hidden_.centre(); }
  bool clock_stops_early() const { return 2 * stops_early_ > pairs_ && pairs_ > 1; }

  // A workload that is slower by the waited time fails; other disagreement of the clocks leaves it
  // undecided.
  Outcome outcome() const {
    const Outcome outcome = outcome_of(assertion_, margin_);
    if (hidden() > 0 && outcome == Outcome::fails) return outcome;
    if (clock_stops_early() || (hidden() < 0 && outcome != Outcome::undecided))
      return Outcome::not_comparable;
    return outcome;
  }

  // The e-value that HEAD is slower, for closed testing. It is 0 where total time or the clocks
  // contradict it. Where a slowdown is accepted, it is the e-value against that one.
  double evidence_against() const {
    const TimedAssertion& asked = accepted_ ? *accepted_ : assertion_;
    if (pairs_ == 0) return 1;
    if (outcome() == Outcome::not_comparable ||
        in_total_ <= std::log1p(accepted_growth_.value_or(margin_)))
      return 0;
    return asked.evidence_against_it();
  }
  bool looks_slower() const {
    return pairs_ > 0 && in_total_ > std::log1p(accepted_growth_.value_or(margin_));
  }

  bool is_open() const {
    if (clock_stops_early() && hidden() <= 0) return false;
    if (pairs_ < fewest_pairs_) return true;
    if (!is_over(assertion_, margin_)) return !is_late() || at_accepted_growth() != Outcome::passes;
    return outcome_of(assertion_, margin_) != Outcome::passes && accepted_ &&
           !is_over(*accepted_, *accepted_growth_);
  }
  // Returns whether typical launches decide it, but total time is on the other side of the limit.
  bool is_held_back() const { return is_held_back(assertion_, margin_); }

 private:
  void go_on_from(const std::string& workload, const EarlierRounds& earlier) {
    const auto contrasts = earlier.contrasts.find(workload);
    const auto times = earlier.times.find(workload);
    if (contrasts == earlier.contrasts.end() || times == earlier.times.end()) return;
    for (std::size_t pair = 0; pair < contrasts->second.size(); ++pair) {
      if (times->second.size() < 3 * (pair + 1)) return;
      const double* numbers = &times->second[3 * pair];
      totals_[0] += {.seconds = numbers[1], .steps = numbers[0]};
      totals_[1] += {.seconds = numbers[2], .steps = numbers[0]};
      bet(contrasts->second[pair], 0);
      ++earlier_pairs_;
    }
  }

  // Adds a unit of evidence: the mean over the superblocks of one pair of launches.
  void bet(double contrast, double hidden) {
    in_total_ =
        std::log(*step_seconds(ComparisonSide::head) / *step_seconds(ComparisonSide::base)) +
        hidden;
    assertion_.add(contrast, in_total_);
    if (accepted_) accepted_->add(contrast, in_total_);
  }

  bool is_late() const { return pairs_ >= pairs_held_back * fewest_pairs_; }
  // A decision by typical launches is valid only while total time is on the same side.
  Outcome outcome_of(const TimedAssertion& assertion, double margin) const {
    const bool within = in_total_ <= std::log1p(margin);
    if (assertion.outcome() == Outcome::passes && !within) return Outcome::undecided;
    if (assertion.outcome() == Outcome::fails && within) return Outcome::undecided;
    return assertion.outcome();
  }
  bool is_held_back(const TimedAssertion& assertion, double margin) const {
    return assertion.is_held_back() || outcome_of(assertion, margin) != assertion.outcome();
  }
  // More pairs do not help where typical and total time disagree.
  bool is_over(const TimedAssertion& assertion, double margin) const {
    return outcome_of(assertion, margin) != Outcome::undecided ||
           (is_held_back(assertion, margin) && is_late());
  }

  double margin_;
  std::int64_t fewest_pairs_;
  TimedAssertion assertion_;
  std::optional<double> accepted_growth_;
  std::optional<TimedAssertion> accepted_;
  std::array<Total, 2> totals_;
  double in_total_ = 0;  // log(head's step time / base's) over all pairs
  RobustScale hidden_;
  std::int64_t stops_early_ = 0;
  std::int64_t segment_steps_ = 0;  // of the last pair
  decltype(WorkInPair::periodic) periodic_;
  std::int64_t earlier_pairs_ = 0;
  std::int64_t pairs_ = 0;
  std::int64_t superblocks_ = 0;
  std::int64_t longest_launch_ = 0;
};

// "+0.97 %": three digits, and more where needed to distinguish it from the limit.
std::string change_in_words(double ratio, double margin) {
  return told_from(100 * (ratio - 1), 100 * margin, [](double percent, int more_digits) {
    return fmt::format("{}{} %", percent < 0 ? "" : "+", number_in_words(percent, 3 + more_digits));
  });
}

std::string pairs_in_words(double pairs) {
  const std::string count = number_in_words(std::round(pairs), 3);
  return fmt::format("{} pair{} of launches", count, count == "1" ? "" : "s");
}

std::string missing_in_words(const WorkloadVerdict& workload, std::int64_t fewest) {
  if (workload.pairs < fewest) {
    return fmt::format("; {} cannot decide it, {} are the fewest that can",
                       pairs_in_words(static_cast<double>(workload.pairs)), fewest);
  }
  std::string words;
  if (workload.timed->smallest_seen) {
    words += fmt::format("; a change of {} would have shown",
                         share_in_words(*workload.timed->smallest_seen));
  }
  const std::optional<double>& missing = workload.timed->rounds_missing;
  if (!missing)
    return words + "; it lies too close to the limit for more pairs to decide it: widen the margin";
  const bool out_of_reach = *missing > most_within_reach;
  return words + fmt::format("; {}about {} more would decide it{}",
                             out_of_reach ? "out of reach: " : "", pairs_in_words(*missing),
                             out_of_reach ? "; widen the margin" : "");
}

std::string reason_of(const WorkloadVerdict& workload, const ComparisonSettings& settings) {
  const TimedEvidence& timed = *workload.timed;
  const auto change = [&](double ratio) { return change_in_words(ratio, workload.margin); };
  const auto kernel = kernel_workload_named(workload.name);
  std::string words =
      fmt::format("{} {}", kernel ? kernel->kernel : "step time", change(timed.ratio));
  if (workload.outcome == Outcome::passes && timed.shown.high) {
    // A two-sided interval may end beyond the limit although the one-sided bound is below it.
    words += fmt::format(", at most {} with {} confidence", change(*timed.shown.high),
                         share_in_words(1 - settings.beta));
  } else if (timed.interval) {
    words += fmt::format(", {} interval [{}, {}]", share_in_words(settings.confidence),
                         change(timed.interval->low), change(timed.interval->high));
  }
  words += fmt::format(
      " over {}{}; the limit is {}", pairs_in_words(static_cast<double>(workload.pairs)),
      workload.earlier_pairs > 0 ? fmt::format(" and {} before", workload.earlier_pairs) : "",
      change(1 + workload.margin));
  if (timed.held_back_by_total) {
    words += fmt::format(
        "; a typical launch says {}, total time over {} steps a side {}: they "
        "disagree",
        change(timed.ratio), workload.steps, change(*timed.total_ratio));
  } else if (workload.outcome == Outcome::undecided) {
    words += missing_in_words(workload, fewest_pairs_to_decide(settings));
  }
  return words;
}

std::vector<WorkTest> tests_of(std::span<const std::string> workloads,
                               const ComparisonSettings& settings) {
  std::vector<WorkTest> tests;
  for (std::size_t workload = 0; workload < workloads.size(); ++workload)
    tests.emplace_back(workloads[workload], settings.weight_of(workload, workloads.size()),
                       settings);
  return tests;
}

void add_pair(const ComparisonMeasurement& all, const LaunchPair& pair, std::span<WorkTest> tests) {
  for (const WorkInPair& workload : pair.workloads)
    tests[static_cast<std::size_t>(workload.workload)].add(all, workload);
}

std::vector<double> evidence_against(std::span<const WorkTest> tests) {
  std::vector<double> evidence;
  for (const WorkTest& test : tests) evidence.push_back(test.evidence_against());
  return evidence;
}

std::vector<double> weights_of(std::size_t workloads, const ComparisonSettings& settings) {
  std::vector<double> weights;
  for (std::size_t workload = 0; workload < workloads; ++workload)
    weights.push_back(settings.weight_of(workload, workloads));
  return weights;
}

double evidence_against_all(std::span<const WorkTest> tests, const ComparisonSettings& settings) {
  const std::vector<double> evidence = evidence_against(tests);
  const std::vector<double> weights = weights_of(tests.size(), settings);
  return std::transform_reduce(evidence.begin(), evidence.end(), weights.begin(), 0.0);
}

bool are_slower_together(std::span<const WorkTest> tests, const ComparisonSettings& settings) {
  return tests.size() > 1 && evidence_against_all(tests, settings) >= 1 / settings.alpha;
}

std::size_t open_workloads(std::span<const WorkTest> tests) {
  return static_cast<std::size_t>(std::ranges::count_if(tests, &WorkTest::is_open));
}

// Describes disagreeing clocks; empty where they agree.
std::string clocks_in_words(const WorkTest& test) {
  if (test.hidden() != 0) {
    return fmt::format("; {} takes {} longer than it says, by our clock: what it took counts",
                       test.hidden() > 0 ? "HEAD" : "BASE",
                       share_in_words(std::expm1(std::abs(test.hidden()) + log_hidden_share)));
  }
  return test.clock_stops_early()
             ? "; not comparable: the clock stops before the work is done, which takes much longer "
               "than the programs say"
             : "";
}

// Periodic work that is too rare for the segments of both sides, with its reported cost.
class RareWork {
 public:
  RareWork(const WorkTest& test, const WorkloadVerdict& workload)
      : steps_(test.segment_steps()),
        base_(uncovered_work(test.periodic(ComparisonSide::base), steps_)),
        head_(uncovered_work(test.periodic(ComparisonSide::head), steps_)),
        base_step_(workload.base_step_seconds.value_or(1)),
        head_step_(workload.head_step_seconds.value_or(1)) {}

  // Returns whether this work would bring the ratio nearer to its limit by more than a fifth of the
  // distance.
  bool matters(double ratio, double margin) const {
    const double change = std::log1p(head_.seconds_a_step / head_step_) -
                          std::log1p(base_.seconds_a_step / base_step_);
    const double way = std::log1p(margin) - std::log(ratio);
    return change * way > 0 && std::abs(change) > negligible_share * std::abs(way);
  }

  // Empty where its cost is small or equal on both sides.
  std::string in_words(double margin) const {
    const UncoveredWork& rarer = head_.rarest ? head_ : base_;
    const double share =
        std::max(head_.seconds_a_step / head_step_, base_.seconds_a_step / base_step_);
    if (share <= negligible_share * std::abs(std::log1p(margin))) return "";
    const auto price = [](const UncoveredWork& workload) {
      return stepgate::in_words(workload.seconds_a_step, MetricUnit::seconds);
    };
    return fmt::format(
        "; '{}' happens every {} steps and a segment holds {}: what it costs, by the plans {} a "
        "step of BASE and {} of HEAD, is not in what was measured",
        rarer.rarest->name, rarer.rarest->every, steps_, price(base_), price(head_));
  }

 private:
  std::int64_t steps_;
  UncoveredWork base_;
  UncoveredWork head_;
  double base_step_;
  double head_step_;
};

WorkloadVerdict judge_workload(const std::string& name, const WorkTest& test,
                               bool failed_among_others, const ComparisonSettings& settings) {
  WorkloadVerdict workload;
  workload.name = name;
  workload.margin = test.margin();
  workload.pairs = test.pairs();
  workload.earlier_pairs = test.earlier_pairs();
  workload.superblocks = test.superblocks();
  workload.steps = test.steps();
  workload.longest_launch = test.longest_launch();
  workload.base_step_seconds = test.step_seconds(ComparisonSide::base);
  workload.head_step_seconds = test.step_seconds(ComparisonSide::head);
  workload.accepted_growth = test.accepted_growth();
  workload.at_accepted_growth = test.at_accepted_growth();
  if (workload.pairs == 0) {
    workload.reason = "no pair of launches was measured";
    return workload;
  }
  workload.outcome =
      failed_among_others && test.outcome() == Outcome::undecided ? Outcome::fails : test.outcome();
  workload.timed = test.assertion().evidence(settings.confidence);
  workload.timed->earlier_rounds = workload.earlier_pairs;
  workload.timed->held_back_by_total =
      workload.outcome == Outcome::undecided && test.is_held_back();
  workload.out_of_reach =
      workload.outcome == Outcome::undecided &&
      workload.pairs >= fewest_pairs_to_decide(settings) &&
      (workload.timed->held_back_by_total ||
       workload.timed->rounds_missing.value_or(2 * most_within_reach) > most_within_reach);
  const RareWork rare(test, workload);
  const bool in_doubt = rare.matters(workload.timed->ratio, workload.margin);
  if (in_doubt && (workload.outcome == Outcome::passes || workload.outcome == Outcome::fails)) {
    workload.outcome = Outcome::undecided;
    workload.out_of_reach = true;
  }
  workload.reason =
      reason_of(workload, settings) + clocks_in_words(test) + rare.in_words(workload.margin);
  return workload;
}

// Describes which rare effects the passing workload with the fewest steps may have missed.
std::string unseen_in_words(const ComparisonVerdict& verdict) {
  const WorkloadVerdict* least = nullptr;
  for (const WorkloadVerdict& workload : verdict.workloads) {
    if (workload.outcome == Outcome::passes && !kernel_workload_named(workload.name) &&
        (least == nullptr || workload.steps < least->steps))
      least = &workload;
  }
  if (least == nullptr) return "";
  const auto share = [&](std::int64_t seen) {
    return share_in_words(share_that_may_not_show(seen, verdict.settings.beta));
  };
  return fmt::format(
      "what slows fewer than {} of launches or {} of steps of {}, or begins after {} steps of a "
      "launch, may not have shown{}",
      share(least->pairs), share(least->steps), least->name, least->longest_launch,
      verdict.workloads.size() == 1 ? "" : "; no other workload had fewer steps");
}

Outcome worst_of(const std::vector<WorkloadVerdict>& workloads) {
  for (const Outcome outcome : {Outcome::fails, Outcome::not_comparable, Outcome::undecided}) {
    for (const WorkloadVerdict& workload : workloads) {
      if (workload.outcome == outcome) return outcome;
    }
  }
  return workloads.empty() ? Outcome::undecided : Outcome::passes;
}

}  // namespace

double ComparisonSettings::margin_of(const std::string& workload) const {
  const auto own = wider.find(workload_in(workload));
  return own == wider.end() ? margin : std::max(own->second, margin);
}

double ComparisonSettings::weight_of(std::size_t workload, std::size_t workloads) const {
  const std::size_t ahead = workloads_ahead_among(workloads, *this);
  if (ahead == 0) return 1 / static_cast<double>(workloads);
  return workload < ahead ? weight_of_works_ahead / static_cast<double>(ahead)
                          : (1 - weight_of_works_ahead) / static_cast<double>(workloads - ahead);
}

EarlierRounds pairs_found_in(const ComparisonMeasurement& measurement) {
  EarlierRounds found;
  for (const LaunchPair& pair : measurement.pairs) {
    for (const WorkInPair& workload : pair.workloads) {
      const std::string& name = measurement.workloads[static_cast<std::size_t>(workload.workload)];
      const auto [base, head] = totals_of(workload);
      found.contrasts[name].push_back(believed_in(measurement, workload));
      for (const double number : {base.steps, base.seconds, head.seconds})
        found.times[name].push_back(number);
    }
  }
  return found;
}

std::int64_t fewest_pairs_to_refute(std::size_t workloads, const ComparisonSettings& settings) {
  return fewest_rounds(settings.alpha * settings.weight_of(workloads - 1, workloads));
}

std::int64_t fewest_pairs_to_hold(const ComparisonSettings& settings) {
  return fewest_rounds(settings.beta);
}

std::int64_t fewest_pairs_to_decide(const ComparisonSettings& settings) {
  return std::min(fewest_rounds(settings.alpha), fewest_pairs_to_hold(settings));
}

std::int64_t most_pairs(std::optional<std::int64_t> asked, std::size_t workloads,
                        const ComparisonSettings& settings) {
  if (!asked || workloads == 0) return most_pairs_of_a_gate;
  const std::int64_t fewest =
      std::max(fewest_pairs_to_refute(workloads, settings), fewest_pairs_to_hold(settings));
  if (*asked >= fewest) return *asked;
  throw RequestError(
      fmt::format(
          "{} can never decide {} workload{}: {} are needed before one can pass, {} before one "
          "can fail",
          pairs_in_words(static_cast<double>(*asked)), workloads, workloads == 1 ? "" : "s",
          fewest_pairs_to_hold(settings), fewest_pairs_to_refute(workloads, settings)),
      fmt::format("give --pairs {} or more", fewest));
}

std::function<std::vector<int>(const ComparisonMeasurement&)> undecided_workloads(
    std::span<const std::string> workloads, const ComparisonSettings& settings) {
  // A std::function must be copyable; its copies share the tests.
  const auto tests = std::make_shared<std::vector<WorkTest>>(tests_of(workloads, settings));
  return [tests, settings,
          seen = std::size_t{0}](const ComparisonMeasurement& measurement) mutable {
    for (; seen < measurement.pairs.size(); ++seen)
      add_pair(measurement, measurement.pairs[seen], *tests);
    std::vector<int> open;
    const std::size_t ahead = workloads_ahead_among(tests->size(), settings);
    const auto slower = static_cast<std::size_t>(
        std::count_if(tests->begin(), tests->begin() + static_cast<std::ptrdiff_t>(ahead),
                      [](const WorkTest& test) { return test.looks_slower(); }));
    const std::int64_t pairs = std::ssize(measurement.pairs);
    const bool alone = pairs < pairs_ahead || (pairs < most_pairs_alone && 3 * slower > 2 * ahead);
    for (std::size_t index = 0; index < (ahead > 0 && alone ? ahead : tests->size()); ++index) {
      // The first workloads continue after each is decided, since they represent all workloads.
      if ((ahead > 0 && alone) || (*tests)[index].is_open())
        open.push_back(static_cast<int>(index));
    }
    // If most workloads are open and together slower, more launches change nothing. A few open ones
    // are still worth deciding by name.
    if (2 * open_workloads(*tests) > tests->size() && are_slower_together(*tests, settings))
      open.clear();
    return open;
  };
}

ComparisonVerdict judge_comparison(const Introduction& both,
                                   const ComparisonMeasurement& measurement,
                                   const ComparisonSettings& settings) {
  ComparisonVerdict verdict{.introduction = both,
                            .settings = settings,
                            .workloads = {},
                            .outcome = Outcome::undecided,
                            .notes = {},
                            .pairs = std::ssize(measurement.pairs),
                            .wall_time = measurement.wall_time};
  std::vector<WorkTest> tests = tests_of(measurement.workloads, settings);
  for (const LaunchPair& pair : measurement.pairs) add_pair(measurement, pair, tests);
  const std::vector<bool> failed =
      failed_together(evidence_against(tests), settings.alpha, weights_of(tests.size(), settings));
  for (std::size_t workload = 0; workload < tests.size(); ++workload)
    verdict.workloads.push_back(judge_workload(measurement.workloads[workload], tests[workload],
                                               failed[workload], settings));
  verdict.evidence_against = evidence_against_all(tests, settings);
  verdict.slower_together =
      are_slower_together(tests, settings) &&
      std::ranges::count(verdict.workloads, Outcome::undecided, &WorkloadVerdict::outcome) > 0;
  verdict.outcome = verdict.slower_together ? Outcome::fails : worst_of(verdict.workloads);
  if (const std::string unseen = unseen_in_words(verdict); !unseen.empty())
    verdict.notes.push_back(unseen);
  if (measurement.budget_spent && verdict.outcome == Outcome::undecided)
    verdict.notes.push_back("the budget is spent");
  return verdict;
}

void tell_steps(ComparisonVerdict& of_kernels, const ComparisonVerdict& of_steps) {
  for (WorkloadVerdict& kernel : of_kernels.workloads) {
    const auto step =
        std::ranges::find(of_steps.workloads, workload_in(kernel.name), &WorkloadVerdict::name);
    if (step == of_steps.workloads.end() || !step->timed) continue;
    kernel.reason +=
        fmt::format("; the step {}", change_in_words(step->timed->ratio, step->margin));
  }
}

ComparisonVerdict with_kernels(ComparisonVerdict whole, ComparisonVerdict of_kernels) {
  std::ranges::move(of_kernels.workloads, std::back_inserter(whole.workloads));
  std::ranges::move(of_kernels.notes, std::back_inserter(whole.notes));
  whole.settings.alpha += of_kernels.settings.alpha;
  whole.pairs += of_kernels.pairs;
  whole.wall_time += of_kernels.wall_time;
  whole.slower_together = whole.slower_together || of_kernels.slower_together;
  whole.outcome = whole.slower_together ? Outcome::fails : worst_of(whole.workloads);
  return whole;
}

}  // namespace stepgate
