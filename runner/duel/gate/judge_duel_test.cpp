// SPDX-License-Identifier: MIT
#include "duel/gate/judge_duel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "duel/testing/fake_worker.h"
#include "stats/e_process.h"
#include "support/random.h"
#include "support/text/diagnostic.h"
#include "tests/sanitized.h"

namespace stepgate {
namespace {

Introduction both_of(std::vector<std::string> base, std::vector<std::string> head) {
  Introduction both;
  both.base = {.program = "p", .version = "1", .device = "d", .simulated = false, .works = base};
  both.head = {.program = "p", .version = "2", .device = "d", .simulated = false, .works = head};
  return both;
}

// Times of programs that take a millisecond a step, longer by `effect` at head, with normal noise
// of every launch and of every segment, both relative.
void make_noisy(DuelScript& script, double effect, double launch_noise, double segment_noise,
                std::uint64_t seed) {
  script.step_seconds = [=, random = Random(random_bits(seed, 1)),
                         of_launch = std::vector<double>()](DuelSide side, const std::string&,
                                                            std::int64_t launch) mutable {
    while (std::ssize(of_launch) <= launch)
      of_launch.push_back(std::exp(launch_noise * random.normal()));
    return 1e-3 * (side == DuelSide::head ? 1 + effect : 1) *
           of_launch[static_cast<std::size_t>(launch)] * std::exp(segment_noise * random.normal());
  };
}

DuelVerdict duel(double effect, double launch_noise, double segment_noise, std::uint64_t seed,
                 std::size_t works = 1) {
  DuelScript script;
  for (script.works.clear(); script.works.size() < works;)
    script.works.push_back("work " + std::to_string(script.works.size()));
  make_noisy(script, effect, launch_noise, segment_noise, seed);
  const DuelSettings settings{.margin = 0.005};
  DuelRequest request = request_of(script, seed, 30);
  request.undecided = undecided_works(script.works, settings);
  return judge_duel(request.introduction, measure_duel(request), settings);
}

struct Shares {
  double refuted = 0;
  double holds = 0;
};
Shares shares_of(double effect, double launch_noise, int duels, std::uint64_t seed) {
  Shares shares;
  for (int number = 0; number < duels; ++number) {
    const Outcome outcome =
        duel(effect, launch_noise, 0.002, random_bits(seed, static_cast<std::uint64_t>(number)))
            .outcome;
    shares.refuted += (outcome == Outcome::refuted) / static_cast<double>(duels);
    shares.holds += (outcome == Outcome::holds) / static_cast<double>(duels);
  }
  return shares;
}

// p and three standard errors of it.
double at_most(double p, int duels) {
  return p + 3 * std::sqrt(p * (1 - p) / duels);
}

// Steps of 213 us with the noise of launches and segments, some of which stall at HEAD; or all of
// them, from a step of the launch on.
struct Planted {
  double share = 0;
  double stall_seconds = 0;
  std::int64_t after_steps = std::numeric_limits<std::int64_t>::max();
  double slower_by = 0;
};

DuelVerdict watched_duel(const Planted& planted, std::uint64_t seed,
                         std::chrono::nanoseconds watch_time = std::chrono::seconds(24)) {
  constexpr double step = 213e-6;
  DuelScript script;
  script.loaded = {.wash_out_steps = 2};
  std::array<std::int64_t, 2> of_launch{};
  std::array<std::int64_t, 2> steps{};
  make_noisy(script, 0, 0.001, 0.002, seed);
  script.step_seconds = [&, noise = script.step_seconds, random = Random(random_bits(seed, 2))](
                            DuelSide side, const std::string& work, std::int64_t launch) mutable {
    double time = step * 1e3 * noise(side, work, launch);
    const auto index = static_cast<std::size_t>(side);
    if (std::exchange(of_launch[index], launch) != launch) steps[index] = 0;
    const RunSteps& run = script.runs.back().second;
    steps[index] += run.wash_out_steps + run.steps;
    if (side == DuelSide::base) return time;
    if (steps[index] > planted.after_steps) time *= 1 + planted.slower_by;
    for (std::int64_t done = 0; done < run.steps; ++done) {
      if (random.uniform() < planted.share)
        time -=
            std::log(1 - random.uniform()) * planted.stall_seconds / static_cast<double>(run.steps);
    }
    return time;
  };
  const DuelSettings settings{.margin = 0.02};
  DuelRequest request = request_of(script, seed, 30);
  request.segment = std::chrono::milliseconds(5);
  request.warm_up = std::chrono::nanoseconds(0);
  request.first_superblocks = 1;
  request.watch_time = watch_time;
  request.undecided = undecided_works(script.works, settings);
  return judge_duel(request.introduction, measure_duel(request), settings);
}

class JudgeDuel : public testing::Test {
 protected:
  JudgeDuel() : trace_(__FILE__, __LINE__, "seed " + std::to_string(seed_)) {}
  const std::uint64_t seed_ = 20261121;

 private:
  testing::ScopedTrace trace_;
};

// Processes differ by more than the margin: whoever counts superblocks as evidence is refuted in
// every sixth duel of identical programs.
TEST_F(JudgeDuel, IsNotFooledByWhatALaunchKeepsForLife) {
  STEPGATE_RATES_AS_RELEASED();
  constexpr int duels = 1000;
  const Shares same = shares_of(0, 0.004, duels, seed_);
  EXPECT_LE(same.refuted, at_most(0.001, duels));
  EXPECT_GE(same.holds, 0.9);
  const Shares at_the_margin = shares_of(0.005, 0.004, duels, seed_ + 1);
  EXPECT_LE(at_the_margin.refuted, at_most(0.01, duels));
  EXPECT_LE(at_the_margin.holds, at_most(0.05, duels));
}

// An interval of 95 % spends half of its rate above: it may end beyond a limit that the evidence at
// 5 % is below.
TEST_F(JudgeDuel, PrintsOfWhatHoldsTheBoundThatDecided) {
  int held = 0;
  int beyond = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const DuelVerdict verdict = duel(0, 0.004, 0.002, seed);
    const WorkVerdict& work = verdict.works.at(0);
    if (work.outcome != Outcome::holds) continue;
    ++held;
    ASSERT_TRUE(work.timed->shown.high);
    EXPECT_LE(*work.timed->shown.high, 1 + verdict.settings.margin + 1e-9);
    EXPECT_NE(work.reason.find(", at most +"), std::string::npos) << work.reason;
    EXPECT_NE(work.reason.find(" with 95 % confidence over "), std::string::npos) << work.reason;
    EXPECT_EQ(work.reason.find("interval"), std::string::npos) << work.reason;
    beyond += work.timed->interval->high > 1 + verdict.settings.margin;
  }
  EXPECT_GT(held, 100);
  EXPECT_GT(beyond, 0) << "the test shows nothing";
}

TEST_F(JudgeDuel, WritesNumbersThatAPersonCanRead) {
  const std::string twice = duel(1, 0.004, 0.002, seed_).works.at(0).reason;
  EXPECT_TRUE(twice.starts_with("step time +1") || twice.starts_with("step time +9")) << twice;
  EXPECT_NE(twice.find("the limit is +0.5 %"), std::string::npos) << twice;
  int out_of_reach = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const std::string reason = duel(0.005, 0.004, 0.002, seed).works.at(0).reason;
    for (const std::string& text : {reason, twice})
      EXPECT_EQ(text.find("e+"), std::string::npos) << text;
    out_of_reach += reason.find("; out of reach: about ") != std::string::npos;
  }
  EXPECT_GT(out_of_reach, 0);
}

// The control: the same rule over the superblocks of a single pair of launches, which is what the
// test above must not do.
TEST_F(JudgeDuel, WouldBeFooledIfSuperblocksWereTheUnitOfEvidence) {
  constexpr int duels = 200;
  int refuted = 0;
  for (int number = 0; number < duels; ++number) {
    DuelScript script;
    const std::uint64_t seed = random_bits(seed_, static_cast<std::uint64_t>(number));
    make_noisy(script, 0, 0.004, 0.002, seed);
    script.launch_seconds = 0;
    EProcess slower(Direction::above, std::log(1.005));
    RobustScale scale;
    // Thirty superblocks of the same two processes: the launch's number never changes.
    DuelRequest request = request_of(script, seed, 10);
    request.launch = [&script](DuelSide side, std::int64_t) {
      return std::make_unique<FakeWorker>(script, side, static_cast<std::int64_t>(side));
    };
    for (const LaunchPair& pair : measure_duel(request).pairs) {
      for (const Superblock& block : pair.works.at(0).superblocks) {
        slower.bet(contrast_of(block), scale.value());
        scale.add(contrast_of(block));
      }
    }
    refuted += slower.value() >= 100;
  }
  EXPECT_GE(refuted, duels / 20);
}

TEST_F(JudgeDuel, FindsOnePercentAmongLaunchesThatDifferByFourTenths) {
  STEPGATE_RATES_AS_RELEASED();
  EXPECT_GE(shares_of(0.01, 0.004, 500, seed_).refuted, 0.75);
  EXPECT_GE(shares_of(0.015, 0.004, 500, seed_).refuted, 0.97);
}

TEST_F(JudgeDuel, DecidesQuietProgramsAtTheFewestPairs) {
  const DuelVerdict slower = duel(0.02, 0, 0.0005, seed_);
  EXPECT_EQ(slower.outcome, Outcome::refuted);
  EXPECT_LE(slower.pairs, 9);
  const DuelVerdict same = duel(0, 0, 0.0005, seed_);
  EXPECT_EQ(same.outcome, Outcome::holds);
  EXPECT_LE(same.pairs, 8);
}

TEST_F(JudgeDuel, DoesNotPassStallsThatATypicalLaunchDoesNotShow) {
  for (const Planted& planted : {Planted{0.001, 15e-3},
                                 {0.0005, 40e-3},
                                 {0.002, 7e-3},
                                 {0.004, 4e-3},
                                 {0.0007, 30e-3},
                                 {0.003, 3e-3}}) {
    int passed = 0;
    int disagree = 0;
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
      const DuelVerdict verdict = watched_duel(planted, seed);
      const WorkVerdict& work = verdict.works.at(0);
      passed += work.outcome == Outcome::holds;
      disagree += work.reason.find("they disagree") != std::string::npos;
    }
    EXPECT_LE(passed, 3) << planted.share;
    EXPECT_GT(disagree, 20) << planted.share;
  }
}

TEST_F(JudgeDuel, DoesNotPassWhatBeginsLateInALaunch) {
  for (const std::int64_t after : {100, 200, 500}) {
    for (const double slower_by : {0.05, 0.3, 1.0}) {
      for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        EXPECT_NE(watched_duel({.after_steps = after, .slower_by = slower_by}, seed).outcome,
                  Outcome::holds)
            << after << ' ' << slower_by;
      }
    }
  }
}

TEST_F(JudgeDuel, PassesIdenticalProgramsInAsManyPairsWatchedOrNot) {
  std::int64_t pairs = 0;
  std::int64_t pairs_unwatched = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const DuelVerdict watched = watched_duel({}, seed);
    EXPECT_EQ(watched.outcome, Outcome::holds);
    pairs += watched.pairs;
    pairs_unwatched += watched_duel({}, seed, std::chrono::seconds(0)).pairs;
    EXPECT_NE(watched.notes.back().find("what slows fewer than 45 % of launches or 0.0"),
              std::string::npos)
        << watched.notes.back();
  }
  EXPECT_EQ(pairs, pairs_unwatched);
}

// HEAD is slower by the margin, which a gate of eight pairs leaves undecided more often than not.
TEST_F(JudgeDuel, RunAgainUntilItHoldsHoldsNoMoreOftenThanOnceWithEarlierPairs) {
  STEPGATE_RATES_AS_RELEASED();
  constexpr int series = 60;
  int held = 0;
  int held_without = 0;
  for (int number = 0; number < series; ++number) {
    for (const bool keeps : {true, false}) {
      DuelSettings settings{.margin = 0.02};
      Outcome outcome = Outcome::undecided;
      for (std::uint64_t again = 0; again < 10 && outcome == Outcome::undecided; ++again) {
        DuelScript script;
        const std::uint64_t seed = random_bits(static_cast<std::uint64_t>(number), again);
        make_noisy(script, 0.02, 0.004, 0.002, seed);
        DuelRequest request = request_of(script, seed, 8);
        request.first_superblocks = 1;
        request.undecided = undecided_works(script.works, settings);
        const DuelMeasurement measured = measure_duel(request);
        const DuelVerdict verdict = judge_duel(request.introduction, measured, settings);
        outcome = verdict.outcome;
        if (keeps) append(settings.earlier, pairs_found_in(measured));
      }
      (keeps ? held : held_without) += outcome == Outcome::holds;
    }
  }
  EXPECT_LE(held, series * at_most(0.05, series));
  EXPECT_GT(held_without, held) << "the test shows nothing";
}

// A gate of many works, of which the first `slower` take `effect` longer at HEAD; every third work
// is noisier than the others.
DuelVerdict duel_of_many(std::size_t works, std::size_t slower, double effect, std::uint64_t seed,
                         std::size_t ahead = 0) {
  DuelScript script;
  script.works.clear();
  while (script.works.size() < works)
    script.works.push_back("work " + std::to_string(script.works.size()));
  Random random(seed);
  script.step_seconds = [&](DuelSide side, const std::string& work, std::int64_t) {
    const std::size_t index = std::stoul(work.substr(5));
    const double noise = index % 3 == 0 ? 0.006 : 0.002;
    return 1e-3 * (side == DuelSide::head && index < slower ? 1 + effect : 1) *
           std::exp(noise * random.normal());
  };
  const DuelSettings settings{.margin = 0.02, .works_ahead = ahead};
  DuelRequest request = request_of(script, seed, 30);
  request.first_superblocks = 1;
  request.undecided = undecided_works(script.works, settings);
  return judge_duel(request.introduction, measure_duel(request), settings);
}

TEST_F(JudgeDuel, BlocksASlowdownOfMostWorksAfterAFewPairs) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const DuelVerdict most = duel_of_many(62, 40, 0.1, seed);
    EXPECT_EQ(most.outcome, Outcome::refuted);
    EXPECT_TRUE(most.slower_together);
    EXPECT_LE(most.pairs, 8);
    const DuelVerdict all = duel_of_many(62, 62, 0.1, seed, 16);
    EXPECT_TRUE(all.slower_together);
    EXPECT_LE(all.pairs, 8);
    EXPECT_EQ(std::ranges::count(all.works, 0, &WorkVerdict::pairs), 62 - 16)
        << "the others need not be timed";
  }
}

TEST_F(JudgeDuel, DecidesEveryWorkWhereFewOrNoneOfThemAreSlower) {
  for (const std::size_t ahead : {0, 8}) {
    for (const std::size_t slower : {0, 1, 5}) {
      for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        const DuelVerdict verdict = duel_of_many(40, slower, 0.1, seed, ahead);
        EXPECT_FALSE(verdict.slower_together);
        for (std::size_t work = 0; work < 40; ++work) {
          EXPECT_EQ(verdict.works[work].outcome, work < slower ? Outcome::refuted : Outcome::holds)
              << work << ' ' << verdict.works[work].reason;
        }
        EXPECT_LE(verdict.pairs, slower == 0 ? 12 : 14);
      }
    }
  }
}

// All works exactly at the margin, which is where a sentence is most easily refuted.
TEST_F(JudgeDuel, RefutesNoWorkAndNotAllTogetherInMoreThanAlphaOfDuels) {
  STEPGATE_RATES_AS_RELEASED();
  constexpr int duels = 100;
  int any = 0;
  for (std::uint64_t seed = 1; seed <= duels; ++seed)
    any += duel_of_many(6, 6, 0.02, seed, seed % 2 == 0 ? 2 : 0).outcome == Outcome::refuted;
  EXPECT_LE(any, duels * at_most(0.01, duels));
}

// Programs whose clocks are their own affair: as fast as they say, or so many times slower.
DuelVerdict duel_of_clocks(double base, double head, double margin, std::uint64_t seed,
                           bool queues = false) {
  DuelScript script;
  script.queues = queues;
  script.simulated = false;
  script.loaded = {.wash_out_steps = 4};
  script.really = {base, head};
  make_noisy(script, 0, 0.001, 0.002, seed);
  if (queues) {
    script.step_seconds = [&really = script.really, all = script.step_seconds](
                              DuelSide side, const std::string& work, std::int64_t launch) {
      return all(side, work, launch) / really[static_cast<std::size_t>(side)];
    };
  }
  const DuelSettings settings{.margin = margin};
  DuelRequest request = request_of(script, seed, 30);
  request.undecided = undecided_works(script.works, settings);
  return judge_duel(request.introduction, measure_duel(request), settings);
}

TEST_F(JudgeDuel, BlocksByWhatItWaitedForWhatAClaimedTimeHides) {
  for (const double slower : {1.5, 3.0, 10.0}) {
    const DuelVerdict hides = duel_of_clocks(1, slower, 0.02, seed_);
    EXPECT_EQ(hides.outcome, Outcome::refuted) << slower;
    EXPECT_NE(hides.works.at(0).reason.find("; HEAD takes "), std::string::npos)
        << hides.works.at(0).reason;
    const DuelVerdict base_hides = duel_of_clocks(slower, 1, 0.02, seed_);
    EXPECT_EQ(base_hides.outcome, Outcome::not_comparable) << slower;
    EXPECT_NE(base_hides.works.at(0).reason.find("; BASE takes "), std::string::npos)
        << base_hides.works.at(0).reason;
  }
  // The cost of requests is part of nobody's step, and it may be as high on both sides.
  for (const double slower : {1.0, 1.03, 1.08}) {
    EXPECT_EQ(duel_of_clocks(1, slower, 0.02, seed_).outcome, Outcome::holds) << slower;
    EXPECT_EQ(duel_of_clocks(slower, 1, 0.02, seed_).outcome, Outcome::holds) << slower;
    EXPECT_EQ(duel_of_clocks(slower, slower, 0.02, seed_).outcome, Outcome::holds) << slower;
  }
}

TEST_F(JudgeDuel, ComparesNothingWhereClocksStopBeforeTheWorkIsDone) {
  for (const double longer : {1.8, 2.5, 10.0, 100.0}) {
    const DuelVerdict verdict = duel_of_clocks(longer, longer, 0.02, seed_);
    EXPECT_EQ(verdict.outcome, Outcome::not_comparable) << longer;
    EXPECT_LE(verdict.pairs, 2);
    EXPECT_NE(verdict.works.at(0).reason.find("the clock stops before the work is done"),
              std::string::npos)
        << verdict.works.at(0).reason;
  }
}

// Work that is queued on one side is done while the other side has its turn. Both take as long.
TEST_F(JudgeDuel, ComparesNothingWhereOneSideAnswersWhenItsWorkIsQueued) {
  for (const double longer : {3.0, 10.0, 50.0}) {
    for (const auto& [base, head] : {std::pair{1.0, longer}, {longer, 1.0}, {longer, longer}}) {
      const DuelVerdict verdict = duel_of_clocks(base, head, 0.02, seed_, true);
      EXPECT_EQ(verdict.outcome, Outcome::not_comparable)
          << base << ' ' << head << ' ' << verdict.works.at(0).reason;
    }
  }
}

// HEAD is slower than the margin; somebody accepts so much.
TEST_F(JudgeDuel, SaysWhetherItHoldsAtWhatIsAcceptedByTheSameRates) {
  const auto duels = [&](double effect, double noise) {
    std::map<Outcome, int> outcomes;
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
      DuelScript script;
      make_noisy(script, effect, noise, 0.002, seed);
      const DuelSettings settings{.margin = 0.02, .accepted_growths = {{"work", 0.05}}};
      DuelRequest request = request_of(script, seed, 60);
      request.undecided = undecided_works(script.works, settings);
      const WorkVerdict work =
          judge_duel(request.introduction, measure_duel(request), settings).works.at(0);
      ++outcomes[work.at_accepted_growth];
    }
    return outcomes;
  };
  EXPECT_GE(duels(0.035, 0.002)[Outcome::holds], 59);
  EXPECT_LE(duels(0.06, 0.01)[Outcome::holds], 3);
  EXPECT_LE(duels(0.055, 0.02)[Outcome::holds], 6);
  EXPECT_EQ(duels(0.08, 0.002)[Outcome::holds], 0);
}

TEST_F(JudgeDuel, SaysMorePairsOnlyWhereTheyWouldDecide) {
  int out_of_reach = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const WorkVerdict work = duel(0.005, 0.004, 0.002, seed).works.at(0);
    const bool says = work.reason.find("widen the margin") != std::string::npos;
    EXPECT_EQ(work.out_of_reach, says) << work.reason;
    out_of_reach += work.out_of_reach;
  }
  EXPECT_GT(out_of_reach, 10);
}

TEST_F(JudgeDuel, DividesAlphaOverTheWorks) {
  STEPGATE_RATES_AS_RELEASED();
  constexpr int duels = 300;
  int any_refuted = 0;
  for (int number = 0; number < duels; ++number) {
    any_refuted +=
        duel(0.005, 0.002, 0.002, random_bits(seed_, static_cast<std::uint64_t>(number)), 10)
            .outcome == Outcome::refuted;
  }
  EXPECT_LE(any_refuted, duels * at_most(0.01, duels));
}

TEST_F(JudgeDuel, CountsOneContrastAPairHoweverManySuperblocks) {
  const DuelVerdict verdict = duel(0, 0.001, 0.002, seed_);
  const WorkVerdict& work = verdict.works.at(0);
  EXPECT_EQ(std::ssize(work.timed->contrasts), work.pairs);
  EXPECT_EQ(work.pairs, verdict.pairs);
  EXPECT_GT(work.superblocks, work.pairs);
}

TEST_F(JudgeDuel, LooksAtEveryPairOnceWhetherItStopsOrJudges) {
  DuelMeasurement measurement;
  measurement.works = {"work"};
  const DuelSettings settings{.margin = 0.01};
  const auto undecided = undecided_works(measurement.works, settings);
  // Head takes twice as long.
  using namespace std::chrono_literals;
  const Superblock block{DuelSegment{DuelSide::base, 10, 10ms},
                         {DuelSide::head, 10, 20ms},
                         {DuelSide::head, 10, 20ms},
                         {DuelSide::base, 10, 10ms}};
  while (measurement.pairs.size() < 7) {
    EXPECT_EQ(undecided(measurement), std::vector{0}) << measurement.pairs.size();
    measurement.pairs.push_back({.first = DuelSide::base, .works = {{0, 1, {block}}}});
  }
  EXPECT_TRUE(undecided(measurement).empty());
  const DuelVerdict verdict = judge_duel(both_of({"work"}, {"work"}), measurement, settings);
  EXPECT_EQ(verdict.outcome, Outcome::refuted);
  EXPECT_NEAR(verdict.works.at(0).timed->ratio, 2, 0.05);
  EXPECT_DOUBLE_EQ(verdict.works.at(0).head_step_seconds.value(), 0.002);
}

// Steps of a millisecond, 20 in a segment: what happens every 1500 of them is in few or none.
TEST_F(JudgeDuel, LeavesUndecidedWhatWorkThatIsRarerThanASegmentCouldTurn) {
  DuelScript script;
  make_noisy(script, 0, 0.001, 0.001, 7);
  const DuelSettings settings{.margin = 0.02};
  DuelRequest request = request_of(script, 7, 12);
  request.undecided = undecided_works(script.works, settings);
  DuelMeasurement measured = measure_duel(request);
  const auto judged = [&](double base_seconds, double head_seconds, std::int64_t every) {
    for (LaunchPair& pair : measured.pairs) {
      pair.works.front().periodic = {
          {{{.name = "start", .every = every, .rough_seconds = base_seconds}},
           {{.name = "start", .every = every, .rough_seconds = head_seconds}}}};
    }
    return judge_duel(request.introduction, measured, settings).works.front();
  };
  const WorkVerdict slower = judged(0.2, 0.6, 1500);  // by 23 % in truth
  EXPECT_EQ(slower.outcome, Outcome::undecided) << slower.reason;
  EXPECT_TRUE(slower.out_of_reach);
  EXPECT_NE(slower.reason.find("'start' happens every 1500 steps and a segment holds 20: what it "
                               "costs, by the plans 133.3 us a step of BASE and 400 us of HEAD"),
            std::string::npos)
      << slower.reason;
  EXPECT_EQ(judged(0.2, 0.6, 10).outcome, Outcome::holds) << "two whole periods";
  EXPECT_EQ(judged(0.6, 0.2, 1500).outcome, Outcome::holds) << "further from the limit";
  const WorkVerdict same = judged(0.2, 0.2, 1500);
  EXPECT_EQ(same.outcome, Outcome::holds) << same.reason;
  EXPECT_NE(same.reason.find("is not in what was measured"), std::string::npos) << same.reason;
  EXPECT_EQ(judged(0.002, 0.002, 1500).reason.find("start"), std::string::npos);
}

TEST_F(JudgeDuel, AllowsAWorkMoreWhereItHasAMarginOfItsOwn) {
  DuelScript script;
  script.works = {"strict", "noisy"};
  make_noisy(script, 0.03, 0.001, 0.001, 5);
  const auto outcomes = [&](const DuelSettings& settings) {
    DuelRequest request = request_of(script, 5, 30);
    request.undecided = undecided_works(script.works, settings);
    const DuelMeasurement measured = measure_duel(request);
    const DuelVerdict verdict = judge_duel(request.introduction, measured, settings);
    // The same limit says when to stop.
    EXPECT_LT(std::ssize(measured.pairs), 30);
    return std::pair{verdict.works.at(0), verdict.works.at(1)};
  };
  const auto [strict, noisy] = outcomes({.margin = 0.01, .wider = {{"noisy", 0.06}}});
  EXPECT_EQ(strict.outcome, Outcome::refuted);
  EXPECT_EQ(noisy.outcome, Outcome::holds);
  EXPECT_EQ(noisy.margin, 0.06);
  EXPECT_EQ(outcomes({.margin = 0.06, .wider = {{"noisy", 0.01}}}).second.margin, 0.06);
}

TEST(MostPairs, AreRefusedWhenTheyCanDecideNothing) {
  const DuelSettings settings;
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
