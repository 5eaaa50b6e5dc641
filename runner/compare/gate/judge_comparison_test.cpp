// SPDX-License-Identifier: MIT
#include "compare/gate/judge_comparison.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "base/random.h"
#include "base/stats/e_process.h"
#include "base/text/diagnostic.h"
#include "compare/gate/gate_timing.h"
#include "compare/testing/fake_worker.h"
#include "tests/sanitized.h"

namespace stepgate {
namespace {

Introduction both_of(std::vector<std::string> base, std::vector<std::string> head) {
  Introduction both;
  both.base = {
      .program = "p", .version = "1", .device = "d", .simulated = false, .workloads = base};
  both.head = {
      .program = "p", .version = "2", .device = "d", .simulated = false, .workloads = head};
  return both;
}

// Makes both programs take a millisecond per step, HEAD longer by `effect`, with normal noise of
// every launch and every segment. All are relative.
void make_noisy(ComparisonScript& script, double effect, double launch_noise, double segment_noise,
                std::uint64_t seed) {
  script.step_seconds = [=, random = Random(random_bits(seed, 1)),
                         of_launch = std::vector<double>()](ComparisonSide side, const std::string&,
                                                            std::int64_t launch) mutable {
    while (std::ssize(of_launch) <= launch)
      of_launch.push_back(std::exp(launch_noise * random.normal()));
    return 1e-3 * (side == ComparisonSide::head ? 1 + effect : 1) *
           of_launch[static_cast<std::size_t>(launch)] * std::exp(segment_noise * random.normal());
  };
}

ComparisonVerdict comparison(double effect, double launch_noise, double segment_noise,
                             std::uint64_t seed, std::size_t workloads = 1) {
  ComparisonScript script;
  for (script.workloads.clear(); script.workloads.size() < workloads;)
    script.workloads.push_back("workload " + std::to_string(script.workloads.size()));
  make_noisy(script, effect, launch_noise, segment_noise, seed);
  const ComparisonSettings settings{.margin = 0.005};
  ComparisonRequest request = request_of(script, seed, 30);
  request.undecided = undecided_workloads(script.workloads, settings);
  return judge_comparison(request.introduction, measure_comparison(request), settings);
}

struct Shares {
  double failed = 0;
  double passes = 0;
};
Shares shares_of(double effect, double launch_noise, int comparisons, std::uint64_t seed) {
  Shares shares;
  for (int number = 0; number < comparisons; ++number) {
    const Outcome outcome = comparison(effect, launch_noise, 0.002,
                                       random_bits(seed, static_cast<std::uint64_t>(number)))
                                .outcome;
    shares.failed += (outcome == Outcome::fails) / static_cast<double>(comparisons);
    shares.passes += (outcome == Outcome::passes) / static_cast<double>(comparisons);
  }
  return shares;
}

// Returns p plus three standard errors.
double at_most(double p, int comparisons) {
  return p + 3 * std::sqrt(p * (1 - p) / comparisons);
}

// Steps of 213 us with noise of launches and segments. A share of HEAD's steps stalls, or all of
// them from some step of a launch on.
struct PlantedEffect {
  double share = 0;
  double stall_seconds = 0;
  std::int64_t after_steps = std::numeric_limits<std::int64_t>::max();
  double slower_by = 0;
};

ComparisonVerdict watched_comparison(
    const PlantedEffect& planted, std::uint64_t seed,
    std::chrono::nanoseconds watch_time = std::chrono::seconds(24)) {
  constexpr double step = 213e-6;
  ComparisonScript script;
  script.loaded = {.wash_out_steps = 2};
  std::array<std::int64_t, 2> of_launch{};
  std::array<std::int64_t, 2> steps{};
  make_noisy(script, 0, 0.001, 0.002, seed);
  script.step_seconds = [&, noise = script.step_seconds, random = Random(random_bits(seed, 2))](
                            ComparisonSide side, const std::string& workload,
                            std::int64_t launch) mutable {
    double time = step * 1e3 * noise(side, workload, launch);
    const auto index = static_cast<std::size_t>(side);
    if (std::exchange(of_launch[index], launch) != launch) steps[index] = 0;
    const RunSteps& run = script.runs.back().second;
    steps[index] += run.wash_out_steps + run.steps;
    if (side == ComparisonSide::base) return time;
    if (steps[index] > planted.after_steps) time *= 1 + planted.slower_by;
    for (std::int64_t done = 0; done < run.steps; ++done) {
      if (random.uniform() < planted.share)
        time -=
            std::log(1 - random.uniform()) * planted.stall_seconds / static_cast<double>(run.steps);
    }
    return time;
  };
  const ComparisonSettings settings{.margin = 0.02};
  ComparisonRequest request = request_of(script, seed, 30);
  request.segment = std::chrono::milliseconds(5);
  request.warm_up = std::chrono::nanoseconds(0);
  request.first_superblocks = 1;
  request.watch_time = watch_time;
  request.undecided = undecided_workloads(script.workloads, settings);
  return judge_comparison(request.introduction, measure_comparison(request), settings);
}

class JudgeComparison : public testing::Test {
 protected:
  JudgeComparison() : trace_(__FILE__, __LINE__, "seed " + std::to_string(seed_)) {}
  const std::uint64_t seed_ = 20261121;

 private:
  testing::ScopedTrace trace_;
};

// Processes differ by more than the margin. A test that treated superblocks as independent would
// fail every sixth comparison of identical programs.
TEST_F(JudgeComparison, IsNotFooledByWhatALaunchKeepsForLife) {
  STEPGATE_RATES_AS_RELEASED();
  constexpr int comparisons = 1000;
  const Shares same = shares_of(0, 0.004, comparisons, seed_);
  EXPECT_LE(same.failed, at_most(0.001, comparisons));
  EXPECT_GE(same.passes, 0.9);
  const Shares at_the_margin = shares_of(0.005, 0.004, comparisons, seed_ + 1);
  EXPECT_LE(at_the_margin.failed, at_most(0.01, comparisons));
  EXPECT_LE(at_the_margin.passes, at_most(0.05, comparisons));
}

// A 95 % interval has half of its error rate above, so it may end beyond a limit although the
// one-sided bound at 5 % is below it.
TEST_F(JudgeComparison, PrintsOfWhatPassesTheBoundThatDecided) {
  int held = 0;
  int beyond = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const ComparisonVerdict verdict = comparison(0, 0.004, 0.002, seed);
    const WorkloadVerdict& workload = verdict.workloads.at(0);
    if (workload.outcome != Outcome::passes) continue;
    ++held;
    ASSERT_TRUE(workload.timed->shown.high);
    EXPECT_LE(*workload.timed->shown.high, 1 + verdict.settings.margin + 1e-9);
    EXPECT_NE(workload.reason.find(", at most +"), std::string::npos) << workload.reason;
    EXPECT_NE(workload.reason.find(" with 95 % confidence over "), std::string::npos)
        << workload.reason;
    EXPECT_EQ(workload.reason.find("interval"), std::string::npos) << workload.reason;
    const auto& interval = workload.timed->interval;
    beyond += interval && interval->high > 1 + verdict.settings.margin;
  }
  EXPECT_GT(held, 100);
  EXPECT_GT(beyond, 0) << "the test shows nothing";
}

TEST_F(JudgeComparison, WritesNumbersThatAPersonCanRead) {
  const std::string twice = comparison(1, 0.004, 0.002, seed_).workloads.at(0).reason;
  EXPECT_TRUE(twice.starts_with("step time +1") || twice.starts_with("step time +9")) << twice;
  EXPECT_NE(twice.find("the limit is +0.5 %"), std::string::npos) << twice;
  int out_of_reach = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const std::string reason = comparison(0.005, 0.004, 0.002, seed).workloads.at(0).reason;
    for (const std::string& text : {reason, twice})
      EXPECT_EQ(text.find("e+"), std::string::npos) << text;
    out_of_reach += reason.find("; out of reach: about ") != std::string::npos;
  }
  EXPECT_GT(out_of_reach, 0);
}

// This is the control for the test above: it applies the same rule to the superblocks of a single
// pair of launches, which is wrong.
TEST_F(JudgeComparison, WouldBeFooledIfSuperblocksWereTheUnitOfEvidence) {
  constexpr int comparisons = 200;
  int failed = 0;
  for (int number = 0; number < comparisons; ++number) {
    ComparisonScript script;
    const std::uint64_t seed = random_bits(seed_, static_cast<std::uint64_t>(number));
    make_noisy(script, 0, 0.004, 0.002, seed);
    script.launch_seconds = 0;
    EProcess slower(Direction::above, std::log(1.005));
    RobustScale scale;
    // Thirty superblocks use the same two processes, since the launch number never changes.
    ComparisonRequest request = request_of(script, seed, 10);
    request.launch = [&script](ComparisonSide side, std::int64_t) {
      return std::make_unique<FakeWorker>(script, side, static_cast<std::int64_t>(side));
    };
    for (const LaunchPair& pair : measure_comparison(request).pairs) {
      for (const Superblock& block : pair.workloads.at(0).superblocks) {
        slower.bet(contrast_of(block), scale.value());
        scale.add(contrast_of(block));
      }
    }
    failed += slower.value() >= 100;
  }
  EXPECT_GE(failed, comparisons / 20);
}

TEST_F(JudgeComparison, FindsOnePercentAmongLaunchesThatDifferByFourTenths) {
  STEPGATE_RATES_AS_RELEASED();
  EXPECT_GE(shares_of(0.01, 0.004, 500, seed_).failed, 0.75);
  EXPECT_GE(shares_of(0.015, 0.004, 500, seed_).failed, 0.97);
}

TEST_F(JudgeComparison, DecidesQuietProgramsAtTheFewestPairs) {
  const ComparisonVerdict slower = comparison(0.02, 0, 0.0005, seed_);
  EXPECT_EQ(slower.outcome, Outcome::fails);
  EXPECT_LE(slower.pairs, 9);
  const ComparisonVerdict same = comparison(0, 0, 0.0005, seed_);
  EXPECT_EQ(same.outcome, Outcome::passes);
  EXPECT_LE(same.pairs, 8);
}

TEST_F(JudgeComparison, DoesNotPassStallsThatATypicalLaunchDoesNotShow) {
  for (const PlantedEffect& planted : {PlantedEffect{0.001, 15e-3},
                                       {0.0005, 40e-3},
                                       {0.002, 7e-3},
                                       {0.004, 4e-3},
                                       {0.0007, 30e-3},
                                       {0.003, 3e-3}}) {
    int passed = 0;
    int disagree = 0;
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
      const ComparisonVerdict verdict = watched_comparison(planted, seed);
      const WorkloadVerdict& workload = verdict.workloads.at(0);
      passed += workload.outcome == Outcome::passes;
      disagree += workload.reason.find("they disagree") != std::string::npos;
    }
    EXPECT_LE(passed, 3) << planted.share;
    EXPECT_GT(disagree, 20) << planted.share;
  }
}

TEST_F(JudgeComparison, DoesNotPassWhatBeginsLateInALaunch) {
  for (const std::int64_t after : {100, 200, 500}) {
    for (const double slower_by : {0.05, 0.3, 1.0}) {
      for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        EXPECT_NE(watched_comparison({.after_steps = after, .slower_by = slower_by}, seed).outcome,
                  Outcome::passes)
            << after << ' ' << slower_by;
      }
    }
  }
}

TEST_F(JudgeComparison, PassesIdenticalProgramsInAsManyPairsWatchedOrNot) {
  std::int64_t pairs = 0;
  std::int64_t pairs_unwatched = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const ComparisonVerdict watched = watched_comparison({}, seed);
    EXPECT_EQ(watched.outcome, Outcome::passes);
    pairs += watched.pairs;
    pairs_unwatched += watched_comparison({}, seed, std::chrono::seconds(0)).pairs;
    EXPECT_NE(watched.notes.back().find("what slows fewer than 45 % of launches or 0.0"),
              std::string::npos)
        << watched.notes.back();
  }
  EXPECT_EQ(pairs, pairs_unwatched);
}

// HEAD is slower by the margin, which most gates of eight pairs leave undecided.
TEST_F(JudgeComparison, RunAgainUntilItPassesPassesNoMoreOftenThanOnceWithEarlierPairs) {
  STEPGATE_RATES_AS_RELEASED();
  constexpr int series = 60;
  int held = 0;
  int held_without = 0;
  for (int number = 0; number < series; ++number) {
    for (const bool keeps : {true, false}) {
      ComparisonSettings settings{.margin = 0.02};
      Outcome outcome = Outcome::undecided;
      for (std::uint64_t again = 0; again < 10 && outcome == Outcome::undecided; ++again) {
        ComparisonScript script;
        const std::uint64_t seed = random_bits(static_cast<std::uint64_t>(number), again);
        make_noisy(script, 0.02, 0.004, 0.002, seed);
        ComparisonRequest request = request_of(script, seed, 8);
        request.first_superblocks = 1;
        request.undecided = undecided_workloads(script.workloads, settings);
        const ComparisonMeasurement measured = measure_comparison(request);
        const ComparisonVerdict verdict =
            judge_comparison(request.introduction, measured, settings);
        outcome = verdict.outcome;
        if (keeps) append(settings.earlier, pairs_found_in(measured));
      }
      (keeps ? held : held_without) += outcome == Outcome::passes;
    }
  }
  EXPECT_LE(held, series * at_most(0.05, series));
  EXPECT_GT(held_without, held) << "the test shows nothing";
}

// Makes a gate of many workloads. The first `slower` of them take `effect` longer at HEAD, and
// every third workload is noisier than the others.
ComparisonVerdict comparison_of_many(std::size_t workloads, std::size_t slower, double effect,
                                     std::uint64_t seed, std::size_t ahead = 0) {
  ComparisonScript script;
  script.workloads.clear();
  while (script.workloads.size() < workloads)
    script.workloads.push_back("workload " + std::to_string(script.workloads.size()));
  Random random(seed);
  script.step_seconds = [&](ComparisonSide side, const std::string& workload, std::int64_t) {
    const std::size_t index = std::stoul(workload.substr(9));
    const double noise = index % 3 == 0 ? 0.006 : 0.002;
    return 1e-3 * (side == ComparisonSide::head && index < slower ? 1 + effect : 1) *
           std::exp(noise * random.normal());
  };
  const ComparisonSettings settings{.margin = 0.02, .workloads_ahead = ahead};
  ComparisonRequest request = request_of(script, seed, 30);
  request.first_superblocks = 1;
  request.undecided = undecided_workloads(script.workloads, settings);
  return judge_comparison(request.introduction, measure_comparison(request), settings);
}

TEST_F(JudgeComparison, BlocksASlowdownOfMostWorksAfterAFewPairs) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const ComparisonVerdict most = comparison_of_many(62, 40, 0.1, seed);
    EXPECT_EQ(most.outcome, Outcome::fails);
    EXPECT_TRUE(most.slower_together);
    EXPECT_LE(most.pairs, 8);
    const ComparisonVerdict all = comparison_of_many(62, 62, 0.1, seed, 16);
    EXPECT_TRUE(all.slower_together);
    EXPECT_LE(all.pairs, 8);
    EXPECT_EQ(std::ranges::count(all.workloads, 0, &WorkloadVerdict::pairs), 62 - 16)
        << "the others need not be timed";
  }
}

TEST_F(JudgeComparison, DecidesEveryWorkWhereFewOrNoneOfThemAreSlower) {
  for (const std::size_t ahead : {0, 8}) {
    for (const std::size_t slower : {0, 1, 5}) {
      for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        const ComparisonVerdict verdict = comparison_of_many(40, slower, 0.1, seed, ahead);
        EXPECT_FALSE(verdict.slower_together);
        for (std::size_t workload = 0; workload < 40; ++workload) {
          EXPECT_EQ(verdict.workloads[workload].outcome,
                    workload < slower ? Outcome::fails : Outcome::passes)
              << workload << ' ' << verdict.workloads[workload].reason;
        }
        EXPECT_LE(verdict.pairs, slower == 0 ? 12 : 14);
      }
    }
  }
}

// All workloads are exactly at the margin, where a wrong failure is most probable.
TEST_F(JudgeComparison, FailsNoWorkAndNotAllTogetherInMoreThanAlphaOfComparisons) {
  STEPGATE_RATES_AS_RELEASED();
  constexpr int comparisons = 100;
  int any = 0;
  for (std::uint64_t seed = 1; seed <= comparisons; ++seed)
    any += comparison_of_many(6, 6, 0.02, seed, seed % 2 == 0 ? 2 : 0).outcome == Outcome::fails;
  EXPECT_LE(any, comparisons * at_most(0.01, comparisons));
}

// Compares programs with wrong clocks: each takes `base` or `head` times the time that it reports.
ComparisonVerdict comparison_of_clocks(double base, double head, double margin, std::uint64_t seed,
                                       bool queues = false) {
  ComparisonScript script;
  script.queues = queues;
  script.simulated = false;
  script.loaded = {.wash_out_steps = 4};
  script.really = {base, head};
  make_noisy(script, 0, 0.001, 0.002, seed);
  if (queues) {
    script.step_seconds = [&really = script.really, all = script.step_seconds](
                              ComparisonSide side, const std::string& workload,
                              std::int64_t launch) {
      return all(side, workload, launch) / really[static_cast<std::size_t>(side)];
    };
  }
  const ComparisonSettings settings{.margin = margin};
  ComparisonRequest request = request_of(script, seed, 30);
  request.undecided = undecided_workloads(script.workloads, settings);
  return judge_comparison(request.introduction, measure_comparison(request), settings);
}

const std::string norm = "s/fix.kernel_us(layer_norm)";

// The kernel's time is a tenth of what passes. HEAD's kernel takes `effect` longer.
ComparisonVerdict comparison_of_kernels(double effect, std::uint64_t seed, bool of_kernels = true) {
  ComparisonScript script;
  script.workloads = {norm};
  script.simulated = false;
  script.really = {10, 10};
  make_noisy(script, effect, 0.002, 0.002, seed);
  const ComparisonSettings settings{.margin = 0.01};
  ComparisonRequest request = request_of(script, seed, 30);
  request.of_kernels = of_kernels;
  request.most_steps = 20;
  request.undecided = undecided_workloads(script.workloads, settings);
  return judge_comparison(request.introduction, measure_comparison(request), settings);
}

TEST_F(JudgeComparison, AKernelIsAPartOfWhatPassesAndIsComparedAllTheSame) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    EXPECT_EQ(comparison_of_kernels(0, seed).outcome, Outcome::passes) << seed;
    const ComparisonVerdict slower = comparison_of_kernels(0.02, seed);
    EXPECT_EQ(slower.outcome, Outcome::fails) << seed;
    EXPECT_TRUE(slower.workloads.at(0).reason.starts_with("layer_norm +")) << seed;
    EXPECT_TRUE(slower.notes.empty()) << slower.notes.front();
  }
  // So much must not be missing of the time of a step.
  EXPECT_EQ(comparison_of_kernels(0, seed_, false).outcome, Outcome::not_comparable);
}

TEST_F(JudgeComparison, KernelsAndStepsAreOneVerdictWhoseErrorRatesAddUp) {
  ComparisonVerdict steps = comparison(0, 0.001, 0.001, seed_);
  steps.workloads.at(0).name = "s/fix";
  steps.settings.alpha = 0.004;
  ComparisonVerdict kernels = comparison_of_kernels(0.05, seed_);
  kernels.settings.alpha = 0.006;
  tell_steps(kernels, steps);
  const std::int64_t pairs = steps.pairs + kernels.pairs;
  const ComparisonVerdict both = with_kernels(steps, kernels);
  EXPECT_EQ(both.outcome, Outcome::fails);
  EXPECT_EQ(both.pairs, pairs);
  EXPECT_DOUBLE_EQ(both.settings.alpha, 0.01);
  ASSERT_EQ(both.workloads.size(), 2u);
  EXPECT_NE(both.workloads[1].reason.find("; the limit is +1 %; the step "), std::string::npos)
      << both.workloads[1].reason;
}

TEST_F(JudgeComparison, AKernelHasTheMarginOfItsWorkload) {
  const ComparisonSettings settings{.margin = 0.01, .wider = {{"s/fix", 0.05}}};
  EXPECT_EQ(settings.margin_of(norm), 0.05);
  EXPECT_EQ(settings.margin_of("s/ours.kernel_us(layer_norm)"), 0.01);
}

TEST_F(JudgeComparison, BlocksByWhatItWaitedForWhatAClaimedTimeHides) {
  for (const double slower : {1.5, 3.0, 10.0}) {
    const ComparisonVerdict hides = comparison_of_clocks(1, slower, 0.02, seed_);
    EXPECT_EQ(hides.outcome, Outcome::fails) << slower;
    EXPECT_NE(hides.workloads.at(0).reason.find("; HEAD takes "), std::string::npos)
        << hides.workloads.at(0).reason;
    const ComparisonVerdict base_hides = comparison_of_clocks(slower, 1, 0.02, seed_);
    EXPECT_EQ(base_hides.outcome, Outcome::not_comparable) << slower;
    EXPECT_NE(base_hides.workloads.at(0).reason.find("; BASE takes "), std::string::npos)
        << base_hides.workloads.at(0).reason;
  }
  // The cost of requests is not step time of either side, and both sides may have it.
  for (const double slower : {1.0, 1.03, 1.08}) {
    EXPECT_EQ(comparison_of_clocks(1, slower, 0.02, seed_).outcome, Outcome::passes) << slower;
    EXPECT_EQ(comparison_of_clocks(slower, 1, 0.02, seed_).outcome, Outcome::passes) << slower;
    EXPECT_EQ(comparison_of_clocks(slower, slower, 0.02, seed_).outcome, Outcome::passes) << slower;
  }
}

// As in a gate, whose segments are so short that a fixed allowance would be a large share of them.
TEST_F(JudgeComparison, BelievesNoClockThatStopsALittleEarlyInEveryShortSegment) {
  const auto hiding = [&](double seconds_of_head, double seconds_of_base) {
    ComparisonScript script;
    script.simulated = false;
    script.request_seconds = {seconds_of_base, seconds_of_head};
    make_noisy(script, 0, 0.001, 0.002, seed_);
    const ComparisonSettings settings{.margin = 0.02};
    ComparisonRequest request = request_of(script, seed_, 30);
    time_as_a_gate(request, settings, std::chrono::seconds(60), {});
    request.most_pairs = 30;
    request.undecided = undecided_workloads(script.workloads, settings);
    return judge_comparison(request.introduction, measure_comparison(request), settings).outcome;
  };
  EXPECT_EQ(hiding(0.002, 0.0001), Outcome::fails) << "40 % of a segment of 5 ms";
  EXPECT_EQ(hiding(0.0002, 0.0001), Outcome::passes);
  EXPECT_EQ(hiding(0.002, 0.002), Outcome::passes) << "requests are slow here on either side";
  EXPECT_EQ(hiding(0.0001, 0.002), Outcome::not_comparable);
}

TEST_F(JudgeComparison, ComparesNothingWhereClocksStopBeforeTheWorkIsDone) {
  for (const double longer : {1.8, 2.5, 10.0, 100.0}) {
    const ComparisonVerdict verdict = comparison_of_clocks(longer, longer, 0.02, seed_);
    EXPECT_EQ(verdict.outcome, Outcome::not_comparable) << longer;
    EXPECT_LE(verdict.pairs, 2);
    EXPECT_NE(verdict.workloads.at(0).reason.find("the clock stops before the work is done"),
              std::string::npos)
        << verdict.workloads.at(0).reason;
  }
}

// Work that one side leaves queued runs during the other side's turn. Both sides take equally long.
TEST_F(JudgeComparison, ComparesNothingWhereOneSideAnswersWhenItsWorkIsQueued) {
  for (const double longer : {3.0, 10.0, 50.0}) {
    for (const auto& [base, head] : {std::pair{1.0, longer}, {longer, 1.0}, {longer, longer}}) {
      const ComparisonVerdict verdict = comparison_of_clocks(base, head, 0.02, seed_, true);
      EXPECT_EQ(verdict.outcome, Outcome::not_comparable)
          << base << ' ' << head << ' ' << verdict.workloads.at(0).reason;
    }
  }
}

// HEAD is slower than the margin, but an entry accepts that slowdown.
TEST_F(JudgeComparison, SaysWhetherItPassesAtWhatIsAcceptedByTheSameRates) {
  const auto comparisons = [&](double effect, double noise) {
    std::map<Outcome, int> outcomes;
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
      ComparisonScript script;
      make_noisy(script, effect, noise, 0.002, seed);
      const ComparisonSettings settings{.margin = 0.02, .accepted_growths = {{"workload", 0.05}}};
      ComparisonRequest request = request_of(script, seed, 60);
      request.undecided = undecided_workloads(script.workloads, settings);
      const WorkloadVerdict workload =
          judge_comparison(request.introduction, measure_comparison(request), settings)
              .workloads.at(0);
      ++outcomes[workload.at_accepted_growth];
    }
    return outcomes;
  };
  EXPECT_GE(comparisons(0.035, 0.002)[Outcome::passes], 59);
  EXPECT_LE(comparisons(0.06, 0.01)[Outcome::passes], 3);
  EXPECT_LE(comparisons(0.055, 0.02)[Outcome::passes], 6);
  EXPECT_EQ(comparisons(0.08, 0.002)[Outcome::passes], 0);
}

TEST_F(JudgeComparison, SaysMorePairsOnlyWhereTheyWouldDecide) {
  int out_of_reach = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const WorkloadVerdict workload = comparison(0.005, 0.004, 0.002, seed).workloads.at(0);
    const bool says = workload.reason.find("widen the margin") != std::string::npos;
    EXPECT_EQ(workload.out_of_reach, says) << workload.reason;
    out_of_reach += workload.out_of_reach;
  }
  EXPECT_GT(out_of_reach, 10);
}

TEST_F(JudgeComparison, DividesAlphaOverTheWorks) {
  STEPGATE_RATES_AS_RELEASED();
  constexpr int comparisons = 300;
  int any_failed = 0;
  for (int number = 0; number < comparisons; ++number) {
    any_failed +=
        comparison(0.005, 0.002, 0.002, random_bits(seed_, static_cast<std::uint64_t>(number)), 10)
            .outcome == Outcome::fails;
  }
  EXPECT_LE(any_failed, comparisons * at_most(0.01, comparisons));
}

TEST_F(JudgeComparison, CountsOneContrastAPairHoweverManySuperblocks) {
  const ComparisonVerdict verdict = comparison(0, 0.001, 0.002, seed_);
  const WorkloadVerdict& workload = verdict.workloads.at(0);
  EXPECT_EQ(std::ssize(workload.timed->contrasts), workload.pairs);
  EXPECT_EQ(workload.pairs, verdict.pairs);
  EXPECT_GT(workload.superblocks, workload.pairs);
}

TEST_F(JudgeComparison, LooksAtEveryPairOnceWhetherItStopsOrJudges) {
  ComparisonMeasurement measurement;
  measurement.workloads = {"workload"};
  const ComparisonSettings settings{.margin = 0.01};
  const auto undecided = undecided_workloads(measurement.workloads, settings);
  // HEAD takes twice as long.
  using namespace std::chrono_literals;
  const Superblock block{ComparisonSegment{ComparisonSide::base, 10, 10ms},
                         {ComparisonSide::head, 10, 20ms},
                         {ComparisonSide::head, 10, 20ms},
                         {ComparisonSide::base, 10, 10ms}};
  while (measurement.pairs.size() < 7) {
    EXPECT_EQ(undecided(measurement), std::vector{0}) << measurement.pairs.size();
    measurement.pairs.push_back({.first = ComparisonSide::base, .workloads = {{0, 1, {block}}}});
  }
  EXPECT_TRUE(undecided(measurement).empty());
  const ComparisonVerdict verdict =
      judge_comparison(both_of({"workload"}, {"workload"}), measurement, settings);
  EXPECT_EQ(verdict.outcome, Outcome::fails);
  EXPECT_NEAR(verdict.workloads.at(0).timed->ratio, 2, 0.05);
  EXPECT_DOUBLE_EQ(verdict.workloads.at(0).head_step_seconds.value(), 0.002);
}

// Steps of a millisecond, 20 per segment: work every 1500 steps is in few segments or none.
TEST_F(JudgeComparison, LeavesUndecidedWhatWorkThatIsRarerThanASegmentCouldTurn) {
  ComparisonScript script;
  make_noisy(script, 0, 0.001, 0.001, 7);
  const ComparisonSettings settings{.margin = 0.02};
  ComparisonRequest request = request_of(script, 7, 12);
  request.undecided = undecided_workloads(script.workloads, settings);
  ComparisonMeasurement measured = measure_comparison(request);
  const auto judged = [&](double base_seconds, double head_seconds, std::int64_t every) {
    for (LaunchPair& pair : measured.pairs) {
      pair.workloads.front().periodic = {
          {{{.name = "start", .every = every, .rough_seconds = base_seconds}},
           {{.name = "start", .every = every, .rough_seconds = head_seconds}}}};
    }
    return judge_comparison(request.introduction, measured, settings).workloads.front();
  };
  const WorkloadVerdict slower = judged(0.2, 0.6, 1500);  // 23 % slower in total
  EXPECT_EQ(slower.outcome, Outcome::undecided) << slower.reason;
  EXPECT_TRUE(slower.out_of_reach);
  EXPECT_NE(slower.reason.find("'start' happens every 1500 steps and a segment holds 20: what it "
                               "costs, by the plans 133.3 us a step of BASE and 400 us of HEAD"),
            std::string::npos)
      << slower.reason;
  EXPECT_EQ(judged(0.2, 0.6, 10).outcome, Outcome::passes) << "two whole periods";
  EXPECT_EQ(judged(0.6, 0.2, 1500).outcome, Outcome::passes) << "further from the limit";
  const WorkloadVerdict same = judged(0.2, 0.2, 1500);
  EXPECT_EQ(same.outcome, Outcome::passes) << same.reason;
  EXPECT_NE(same.reason.find("is not in what was measured"), std::string::npos) << same.reason;
  EXPECT_EQ(judged(0.002, 0.002, 1500).reason.find("start"), std::string::npos);
}

TEST_F(JudgeComparison, AllowsAWorkMoreWhereItHasAMarginOfItsOwn) {
  ComparisonScript script;
  script.workloads = {"strict", "noisy"};
  make_noisy(script, 0.03, 0.001, 0.001, 5);
  const auto outcomes = [&](const ComparisonSettings& settings) {
    ComparisonRequest request = request_of(script, 5, 30);
    request.undecided = undecided_workloads(script.workloads, settings);
    const ComparisonMeasurement measured = measure_comparison(request);
    const ComparisonVerdict verdict = judge_comparison(request.introduction, measured, settings);
    // Measuring stops at that limit too.
    EXPECT_LT(std::ssize(measured.pairs), 30);
    return std::pair{verdict.workloads.at(0), verdict.workloads.at(1)};
  };
  const auto [strict, noisy] = outcomes({.margin = 0.01, .wider = {{"noisy", 0.06}}});
  EXPECT_EQ(strict.outcome, Outcome::fails);
  EXPECT_EQ(noisy.outcome, Outcome::passes);
  EXPECT_EQ(noisy.margin, 0.06);
  EXPECT_EQ(outcomes({.margin = 0.06, .wider = {{"noisy", 0.01}}}).second.margin, 0.06);
}

// A gain is asked of HEAD, at the strict level of a late candidate.
ComparisonVerdict superiority(double effect, std::uint64_t seed, double gain = 0.005) {
  ComparisonScript script;
  make_noisy(script, effect, 0.003, 0.002, seed);
  const ComparisonSettings settings{.margin = -gain, .alpha = 0.05, .beta = 1e-5};
  ComparisonRequest request = request_of(script, seed, 200);
  request.undecided = undecided_workloads(script.workloads, settings);
  return judge_comparison(request.introduction, measure_comparison(request), settings);
}

TEST_F(JudgeComparison, PassesWhatIsFasterThanANegativeMarginAndFailsWhatIsNot) {
  int soon = 0;  // that end without as many pairs as it would take to pass
  for (std::uint64_t run = 0; run < 20; ++run) {
    const ComparisonVerdict faster = superiority(-0.01, random_bits(seed_, run));
    EXPECT_EQ(faster.outcome, Outcome::passes) << faster.workloads.front().reason;
    EXPECT_GE(faster.pairs, 18);  // as its level needs
    EXPECT_LT(faster.workloads.front().timed->interval->high, 0.995);
    const ComparisonVerdict same = superiority(0, random_bits(seed_, run));
    EXPECT_EQ(same.outcome, Outcome::fails) << same.workloads.front().reason;
    soon += same.pairs < 18;
  }
  EXPECT_GE(soon, 15) << "of 20";
}

// Identical programs are the hardest case where any gain would do.
TEST_F(JudgeComparison, PassesIdenticalProgramsNoMoreOftenThanItsLevelWhereAGainIsAsked) {
  constexpr int comparisons = 400;
  int passes = 0;
  for (int number = 0; number < comparisons; ++number) {
    ComparisonScript script;
    const std::uint64_t seed = random_bits(seed_ + 7, static_cast<std::uint64_t>(number));
    make_noisy(script, 0, 0.003, 0.002, seed);
    const ComparisonSettings settings{.margin = 0, .alpha = 0.05, .beta = 0.02};
    ComparisonRequest request = request_of(script, seed, 20);
    request.undecided = undecided_workloads(script.workloads, settings);
    passes +=
        judge_comparison(request.introduction, measure_comparison(request), settings).outcome ==
        Outcome::passes;
  }
  EXPECT_LE(passes, comparisons * at_most(0.02, comparisons));
  EXPECT_GE(passes, 1);  // the rate is not met because nothing can pass
}

TEST_F(JudgeComparison, SaysNothingOfRareWorkThatThereIsNotWhereAGainIsAsked) {
  const std::string reason = superiority(-0.01, seed_).workloads.front().reason;
  EXPECT_EQ(reason.find("happens every"), std::string::npos) << reason;
}

TEST(MostPairs, AreRefusedWhenTheyCanDecideNothing) {
  const ComparisonSettings settings;
  EXPECT_EQ(most_pairs(7, 1, settings), 7);
  EXPECT_THROW(most_pairs(6, 1, settings), RequestError);
  EXPECT_THROW(most_pairs(7, 2, settings), RequestError) << "alpha is divided by two";
  EXPECT_THROW(most_pairs(0, 1, settings), RequestError);
  EXPECT_THROW(most_pairs(-3, 1, settings), RequestError);
  EXPECT_EQ(most_pairs({}, 1, settings), most_pairs_of_a_gate);
  EXPECT_EQ(most_pairs(1, 0, settings), most_pairs_of_a_gate);
}

}  // namespace
}  // namespace stepgate
