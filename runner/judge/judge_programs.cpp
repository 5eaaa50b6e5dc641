// SPDX-License-Identifier: MIT
#include "judge/judge_programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/process/masked_words.h"
#include "program/accepted_counts.h"

namespace stepgate {
namespace {

constexpr std::string_view no_cuda =
    "no process used CUDA with the library loaded: did it start in a container or by ssh, without "
    "the variables of its parent, or under another tool, as nsys?";

Subject subject_of(const std::string& variant, const CountedProcess* process,
                   const ProgramRun& run) {
  Subject subject;
  subject.name = variant;
  subject.counts = run.memory;
  subject.is_counted = true;
  for (const MetricRow& row : metric_table()) {
    const auto value = process != nullptr ? value_of(process->mean, row.metric) : std::nullopt;
    if (value) subject.counts.emplace(row.metric, *value);
  }
  return subject;
}

// Whether calls that are shown under that count add to the metric.
bool adds_to(CallCount count, Metric metric) {
  if (metric != Metric::host_waits_per_step) return row_of(count).metric == metric;
  return count == CallCount::waits || count == CallCount::blocking_copies ||
         count == CallCount::blocking_frees || count == CallCount::pageable_copies;
}

class ProgramJudge {
 public:
  ProgramJudge(const Scenario& scenario, std::span<const ProgramRun> runs,
               const Measurement& measurement, const JudgeSettings& settings)
      : scenario_(scenario), runs_(runs), measurement_(measurement), settings_(settings) {
    for (const ProgramRun& run : runs) counted_.push_back(counted_of(run.counted));
  }

  // Judges process by process, and keeps the worst verdict of each assertion.
  Verdict verdict() const {
    std::size_t most = 1;
    for (const auto& counted : counted_) most = std::max(most, counted.size());
    Verdict whole;
    for (std::size_t index = 0; index < most; ++index) {
      Verdict one = judge(scenario_, subjects(index), measurement_, settings_);
      explain(index, scenario_.regime, one.regime);
      explain(index, scenario_.expect, one.assertions);
      if (index == 0) {
        whole = std::move(one);
        continue;
      }
      keep_worse(std::move(one.regime), whole.regime);
      keep_worse(std::move(one.assertions), whole.assertions);
    }
    limit_to_regime(scenario_, whole.regime, whole.assertions);
    whole.outcome = worst(whole.assertions);
    whole.program.emplace();
    for (const ProgramRun& run : runs_)
      whole.program->insert(whole.program->end(), run.counted.processes.begin(),
                            run.counted.processes.end());
    whole.last_scored_step = last_scored_step();
    return whole;
  }

 private:
  std::int64_t last_scored_step() const {
    std::map<int, std::int64_t> last;  // by variant
    for (const Round& round : measurement_.rounds) {
      for (const Segment& segment : round.segments)
        last[segment.variant] = std::max(last[segment.variant], segment.first_step + segment.steps);
    }
    const auto least =
        std::ranges::min_element(last, {}, &std::pair<const int, std::int64_t>::second);
    return least == last.end() ? 0 : least->second;
  }

  // A variant with fewer processes takes part with its last one.
  const CountedProcess* process_of(std::size_t variant, std::size_t index) const {
    const auto& counted = counted_[variant];
    return counted.empty() ? nullptr : counted[std::min(index, counted.size() - 1)];
  }

  std::vector<Subject> subjects(std::size_t index) const {
    std::vector<Subject> subjects;
    for (std::size_t variant = 0; variant < runs_.size(); ++variant)
      subjects.push_back(
          subject_of(scenario_.variants[variant].name, process_of(variant, index), runs_[variant]));
    return subjects;
  }

  std::size_t variant_of(const MetricOf& metric) const {
    const auto variant = std::ranges::find(scenario_.variants, metric.variant, &Variant::name);
    return static_cast<std::size_t>(variant - scenario_.variants.begin());
  }

  // A count that fails is worse the further it is from its limit, and one that passes the nearer.
  static bool is_worse(const AssertionVerdict& verdict, const AssertionVerdict& kept) {
    if (verdict.outcome != kept.outcome) return worst({kept, verdict}) != kept.outcome;
    const auto gap_of = [](const AssertionVerdict& each) {
      return std::abs(each.left.value_or(0) - each.right.value_or(0));
    };
    const double gap = gap_of(verdict), gap_of_kept = gap_of(kept);
    return verdict.outcome == Outcome::fails    ? gap > gap_of_kept
           : verdict.outcome == Outcome::passes ? gap < gap_of_kept
                                                : false;
  }

  static void keep_worse(std::vector<AssertionVerdict> others,
                         std::vector<AssertionVerdict>& kept) {
    for (std::size_t index = 0; index < kept.size(); ++index) {
      if (is_worse(others[index], kept[index])) kept[index] = std::move(others[index]);
    }
  }

  void explain(std::size_t index, const std::vector<Expectation>& expectations,
               std::vector<AssertionVerdict>& verdicts) const {
    for (std::size_t line = 0; line < verdicts.size(); ++line) {
      AssertionVerdict& verdict = verdicts[line];
      if (verdict.evidence >= Evidence::timed) continue;
      doubt(expectations[line], index, verdict);
      name_lines(expectations[line], index, verdict);
    }
  }

  // Leaves an assertion undecided whose counts are missing, or may be larger than they look.
  void doubt(const Expectation& expectation, std::size_t index, AssertionVerdict& verdict) const {
    for (const MetricOf& metric : metrics_in(expectation)) {
      const ProgramRun& of_variant = runs_[variant_of(metric)];
      const AttachedRun& run = of_variant.counted;
      if (of_variant.memory.contains(metric.metric)) continue;
      const std::string missing = of_variant.was_started
                                      ? reason_without_counts(run)
                                      : "it was not started, since another variant failed";
      if (!missing.empty()) {
        verdict.outcome = Outcome::undecided;
        verdict.reason = fmt::format("nothing was counted{}{}: {}",
                                     metric.variant.empty() ? "" : " of ", metric.variant, missing);
        return;
      }
      const CountedProcess& process = *process_of(variant_of(metric), index);
      const auto unknown = process.unknown.find(metric.metric);
      if (unknown != process.unknown.end()) {
        verdict.outcome = Outcome::undecided;
        verdict.reason = unknown->second;
        return;
      }
      const std::string doubtful = reason_for_doubt(run);
      if (doubtful.empty() || verdict.outcome != Outcome::passes) continue;
      verdict.outcome = Outcome::undecided;
      verdict.reason += "; " + doubtful;
    }
  }

  // Names the line that adds most to what an assertion refuses, and places the assertion there.
  void name_lines(const Expectation& expectation, std::size_t index,
                  AssertionVerdict& verdict) const {
    for (const MetricOf& metric : metrics_in(expectation)) {
      const CountedProcess* process = process_of(variant_of(metric), index);
      if (process == nullptr) continue;
      const std::string rank = " (rank " + process->rank + ")";
      if (!process->rank.empty() && verdict.outcome != Outcome::undecided &&
          !verdict.reason.ends_with(rank))
        verdict.reason += rank;
      if (verdict.outcome != Outcome::fails) continue;
      const auto place = std::ranges::find_if(process->places, [&](const CountedPlace& each) {
        return adds_to(each.count, metric.metric);
      });
      if (place == process->places.end()) continue;
      verdict.reason += ": " + place_in_words(*place);
      const SourceLine& line = place->place.own;
      if (line.line > 0) verdict.place = {line.file, static_cast<int>(line.line), 1};
      return;
    }
  }

  const Scenario& scenario_;
  std::span<const ProgramRun> runs_;
  const Measurement& measurement_;
  const JudgeSettings& settings_;
  std::vector<std::vector<const CountedProcess*>> counted_;  // by variant
};

}  // namespace

std::vector<const CountedProcess*> counted_of(const AttachedRun& run) {
  std::vector<const CountedProcess*> counted;
  for (const CountedProcess& process : run.processes) {
    if (process.problem.empty()) counted.push_back(&process);
  }
  return counted;
}

std::string reason_without_counts(const AttachedRun& run) {
  if (run.processes.empty()) return std::string(no_cuda);
  if (!counted_of(run).empty()) return "";
  const auto most = std::ranges::max_element(run.processes, {}, &CountedProcess::launches_in_all);
  return fmt::format("{}: {}", most->program, most->problem);
}

std::string reason_for_doubt(const AttachedRun& run) {
  for (const CountedProcess& process : run.processes) {
    if (process.hides_calls)
      return fmt::format("process {} was not counted: {}", process.process, process.problem);
  }
  return "";
}

std::string failure_of(const AttachedRun& run, const Command& command) {
  const std::string words = to_text(masked(command));
  if (run.timed_out) return fmt::format("'{}' ran into its time limit", words);
  if (run.signal != 0) return fmt::format("'{}' was ended by signal {}", words, run.signal);
  if (run.code != 0) return fmt::format("'{}' ended with {}", words, run.code);
  return "";
}

Verdict judge_programs(const Scenario& scenario, std::span<const ProgramRun> runs,
                       const Measurement& measurement, const JudgeSettings& settings) {
  return ProgramJudge(scenario, runs, measurement, settings).verdict();
}

}  // namespace stepgate
