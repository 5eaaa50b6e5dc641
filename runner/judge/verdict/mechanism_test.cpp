// SPDX-License-Identifier: MIT
// Tests diagnosis, separation and notes with handwritten traces.
#include <gtest/gtest.h>

#include <cmath>

#include "judge/judge.h"
#include "judge/mechanism/diagnose.h"
#include "judge/testing/fake_scenario.h"

namespace stepgate {
namespace {

std::string diagnosis(const PartsByHand& parts, std::map<Metric, double> values = {}) {
  const TracedStep step = traced_step(parts, std::move(values));
  return diagnosis_of(step.time, step.values);
}

TEST(Diagnose, NamesWhatBoundsAStepOfAKnownClass) {
  EXPECT_EQ(diagnosis({.math = 88, .memory = 10, .idle_in_queue = 2}),
            "compute-bound: kernels that arithmetic limits run 88 % of the time");
  EXPECT_EQ(diagnosis({.math = 20, .memory = 75, .idle_in_queue = 5}),
            "memory-bound: kernels and fills that device memory limits run 75 % of the time");
  EXPECT_EQ(
      diagnosis({.math = 60, .copies = 36, .idle_after_wait = 4},
                {{Metric::copy_bytes_per_step, 12 << 20}, {Metric::pageable_copies_per_step, 1}}),
      "copy-bound: copies run with no kernel beside them 36 % of the time; it copies 12 MiB a "
      "step, 1 of the copies from or to pageable memory");
  EXPECT_EQ(diagnosis({.math = 50, .memory = 20, .idle_after_wait = 23, .idle_for_host = 7},
                      {{Metric::host_waits_per_step, 1}}),
            "sync-bound: waits for the device 1x a step and leaves it idle 23 % of the time");
  EXPECT_EQ(diagnosis({.math = 64, .idle_for_data = 36}),
            "data-bound: the device is idle 36 % of the time while the host waits for a batch");
  EXPECT_EQ(diagnosis({.math = 59, .idle_for_host = 41}, {{Metric::launches_per_step, 50}}),
            "launch-bound: the device is idle 41 % of the time while the host issues its work, 50 "
            "launches a step");
  EXPECT_EQ(
      diagnosis({.math = 65, .communication = 35}, {{Metric::payload_bytes_per_step, 12 << 20}}),
      "communication-bound: collectives run with no kernel beside them 35 % of the time; "
      "they reduce or gather 12 MiB a step");
}

TEST(Diagnose, PlansNoMemoryOfASubjectWithoutAPlan) {
  std::vector<Subject> subjects = counted_by_script();
  const Traced traced =
      traced_rounds(std::vector<TracedStep>(subjects.size(), traced_step({.math = 100})));
  subjects.front().planned_memory = MemoryUse{.pinned_bytes = 7};
  const auto variants = mechanism_of(subjects, traced, {}, {}).variants;
  ASSERT_TRUE(variants.front().planned);
  EXPECT_EQ(variants.front().planned->pinned_bytes, 7);
  EXPECT_FALSE(variants.back().planned);
}

TEST(Diagnose, DoesNotCallAStepMemoryBoundThatWaitsForOneLoadAfterTheOther) {
  EXPECT_EQ(diagnosis({.math = 1, .memory = 2, .latency = 97}),
            "latency-bound: kernels whose loads wait for each other run 97 % of the time");
}

TEST(Diagnose, NamesTheRankThatComesLastInEveryTracedRound) {
  const std::vector<Subject> subjects = counted_by_script();
  const auto diagnosis_with = [&](const std::vector<double>& ranks) {
    TracedStep step = traced_step({.math = 100}, {{Metric::skew_us, 200e-6}});
    Traced traced = traced_rounds(std::vector<TracedStep>(subjects.size(), step));
    if (!ranks.empty()) set_values(traced, 0, Metric::last_rank, ranks);
    return mechanism_of(subjects, traced, {}, {}).variants.front().diagnosis;
  };
  EXPECT_NE(diagnosis_with({2}).find("; rank 2 comes last to its collectives, up to 200 us after "
                                     "the first"),
            std::string::npos)
      << diagnosis_with({2});
  EXPECT_EQ(diagnosis_with({2, 1}).find("rank"), std::string::npos);
  EXPECT_EQ(diagnosis_with({}).find("rank"), std::string::npos);
}

TEST(Diagnose, CallsAGraphOfTinyKernelsLaunchBoundByItsPauses) {
  EXPECT_EQ(diagnosis({.math = 20, .memory = 10, .idle_in_queue = 70}),
            "launch-bound: the device pauses between pieces of work 70 % of the time");
}

TEST(Diagnose, BlamesLittleLossesOnNobody) {
  EXPECT_EQ(bound_of(traced_step({.math = 80, .idle_after_wait = 14, .idle_for_host = 6}).time),
            TimePart::math);
}

TEST(Diagnose, SaysWhenNoSingleCauseBinds) {
  EXPECT_EQ(diagnosis({.math = 42, .copies = 30, .idle_after_wait = 28}),
            "no single bound: 30 % copies, 28 % idle after waits");
  EXPECT_EQ(diagnosis({.math = 51, .memory = 49}), "no single bound: 51 % compute, 49 % memory");
  EXPECT_EQ(diagnosis({}), "nothing was traced");
}

TEST(Diagnose, DoesNotSpeakOfWaitsThatNobodyCounted) {
  EXPECT_EQ(diagnosis({.math = 70, .idle_after_wait = 30}, {{Metric::polls_per_step, 1}}),
            "sync-bound: the device is idle 30 % of the time because the host waited for it, "
            "polling 1x a step");
}

std::string separation(const Traced& traced) {
  const std::vector<Subject> subjects = counted_by_script();
  return separation_of(subjects, {}, traced).summary;
}

TEST(Separate, NamesTheCountAndThePartOfTheTimeThatDiffer) {
  Traced traced = traced_by_script();
  for (TracedRound& round : traced.rounds) {
    round.variants[0].phases[static_cast<std::size_t>(Phase::sync)].host_blocked = 4e-4;
  }
  EXPECT_EQ(separation(traced),
            "baseline waits for the device 1x a step and leaves it idle 20 % of the time after "
            "waits (sync); fix 0x and 0 %");
}

TEST(Separate, SaysThatNothingDiffers) {
  const TracedStep same = traced_step({.math = 100}, {{Metric::host_waits_per_step, 1}});
  EXPECT_EQ(separation(traced_rounds({same, same})),
            "nothing separates baseline and fix: the same counts, and no part of the time differs "
            "by more than the traced rounds scatter");
}

TEST(Separate, DoesNotCallScatterADifference) {
  const TracedStep slow = traced_step({.math = 110});
  const TracedStep fast = traced_step({.math = 100});
  Traced traced = traced_rounds({slow, fast});
  EXPECT_EQ(separation(traced),
            "baseline spends 110 us a step in kernels that arithmetic limits; fix 100 us; no count "
            "differs");
  std::swap(traced.rounds[3].variants[0], traced.rounds[3].variants[1]);
  EXPECT_EQ(separation(traced).find("nothing separates"), 0U) << separation(traced);
}

// Describes the pair by its timed ratio and by work that is rarer than the traced steps.
std::string separation_by_clock(const Traced& traced, std::optional<double> ratio,
                                std::int64_t every) {
  const Metric starts = Metric::loader_starts_per_step;
  std::vector<Subject> subjects = subjects_named({"baseline", "fix"});
  for (Subject& subject : subjects) {
    subject.counts = {{Metric::host_waits_per_step, 0}, {starts, 0}};
    subject.periodic = {{.name = "pause", .every = every, .rough_seconds = 1e-3}};
  }
  subjects[0].counts[starts] = 1.0 / static_cast<double>(every);
  subjects[0].periodic.push_back(
      {.name = "start of the loader's workers", .every = every, .counts = {starts}});
  return separation_of(subjects, {.timed_ratio = ratio}, traced).summary;
}

TEST(Separate, DoesNotSayThatNothingDiffersWhereTheClockTellsThemApart) {
  const TracedStep same = traced_step({.math = 100}, {{Metric::host_waits_per_step, 1}});
  const Traced traced = traced_rounds({same, same});
  const std::vector<Subject> subjects = counted_by_script();
  EXPECT_EQ(separation_of(subjects, {.timed_ratio = 1.5}, traced).summary,
            "no traced step separates baseline and fix; by the clock baseline takes 1.50x the time "
            "of fix: what differs is rarer than the 20 traced steps, or less than scatters there");
  EXPECT_EQ(
      separation_of(subjects, {.timed_ratio = 0.8}, traced)
          .summary.find("no traced step separates baseline and fix; by the clock fix takes 1.25x"),
      0U);
}

TEST(Separate, NamesTheCountAndTheWorkThatAreRarerThanTheTracedSteps) {
  const TracedStep same = traced_step({.math = 100}, {{Metric::host_waits_per_step, 1}});
  EXPECT_EQ(separation_by_clock(traced_rounds({same, same}), 1.5, 500),
            "baseline starts threads of its loader 0.002x a step; fix 0x; where the time goes does "
            "not differ by more than its scatter; by the clock baseline takes 1.50x the time of "
            "fix: what differs is rarer than the 20 traced steps, as 'pause' of baseline, every "
            "500 steps or 'start of the loader's workers' of baseline, every 500 steps or 'pause' "
            "of fix, every 500 steps");
  EXPECT_EQ(separation_by_clock(traced_rounds({same, same}), {}, 500).find("clock"),
            std::string::npos);
  EXPECT_EQ(separation_by_clock(traced_rounds({same, same}), 1.5, 20).find("'pause'"),
            std::string::npos)
      << "twenty steps hold it";
}

// The variant waits once in 300 steps, so the trace does not show how often it waits.
TEST(Separate, TakesCountsOfWhatIsRarerThanTheTraceFromTheSubject) {
  constexpr Metric waits = Metric::host_waits_per_step;
  std::vector<Subject> subjects = subjects_named({"baseline", "fix"});
  subjects[0].periodic = {{.name = "read", .every = 250, .counts = {waits}}};
  subjects[0].phases[static_cast<std::size_t>(Phase::log)].host_waits = 1.0 / 250;
  subjects[0].counts[waits] = 1.0 / 250;
  const TracedStep baseline = traced_step({.math = 100});
  const TracedStep fix = traced_step({.math = 100}, {{Metric::host_waits_per_step, 0}});
  EXPECT_EQ(separation_of(subjects, {}, traced_rounds({baseline, fix})).summary,
            "baseline waits for the device 0.004x a step (log); fix 0x; where the time goes does "
            "not differ by more than its scatter");
}

TEST(Separate, DoesNotTieACountToTimeThatItCannotMove) {
  const TracedStep starved =
      traced_step({.math = 64, .idle_for_data = 36}, {{Metric::memset_bytes_per_step, 4 << 20}});
  const TracedStep fed = traced_step({.math = 64}, {{Metric::memset_bytes_per_step, 0}});
  EXPECT_EQ(separation(traced_rounds({starved, fed})),
            "baseline leaves the device idle 36 % of the time for lack of data (data wait); fix 0 "
            "%; also memset_bytes_per_step 4 MiB and 0 B");
}

// Beside an optimizer with many kernels, a hidden copy takes longer too: by more than the kernels,
// but at no cost.
TEST(Separate, LooksForKernelsWhereKernelsAreAndForCopiesWhereCopiesAre) {
  const auto of = [](const PartsByHand& parts, double optimizer, double h2d) {
    TracedStep step = traced_step(parts);
    step.phases[static_cast<std::size_t>(Phase::optimizer)] = {.device_busy = optimizer};
    step.phases[static_cast<std::size_t>(Phase::h2d)] = {.device_busy = h2d, .copying = h2d};
    return step;
  };
  const std::string kernels =
      separation(traced_rounds({of({.memory = 200}, 2e-4, 9e-4), of({.memory = 100}, 1e-4, 1e-4)}));
  EXPECT_NE(kernels.find("device memory limits (optimizer)"), std::string::npos) << kernels;
  const std::string copies =
      separation(traced_rounds({of({.copies = 200}, 9e-4, 2e-4), of({.copies = 100}, 1e-4, 1e-4)}));
  EXPECT_NE(copies.find("no kernel beside them (h2d)"), std::string::npos) << copies;
}

TEST(Separate, WritesCountsThatDifferDifferently) {
  const TracedStep more = traced_step(
      {.math = 100}, {{Metric::copies_per_step, 2}, {Metric::copy_bytes_per_step, 131'178}});
  const TracedStep less = traced_step(
      {.math = 100}, {{Metric::copies_per_step, 1}, {Metric::copy_bytes_per_step, 131'174}});
  const std::string words = separation(traced_rounds({more, less}));
  EXPECT_NE(words.find("copy_bytes_per_step 128.104 KiB and 128.1 KiB"), std::string::npos)
      << words;
}

TEST(Separate, SaysWhenACountDiffersAndTheTimeDoesNot) {
  const TracedStep many = traced_step({.math = 100}, {{Metric::copies_per_step, 500}});
  const TracedStep one = traced_step({.math = 100}, {{Metric::copies_per_step, 1}});
  EXPECT_EQ(separation(traced_rounds({many, one})),
            "baseline copies 500x a step; fix 1x; where the time goes does not differ by more "
            "than its scatter");
}

// The record as NCCL reports it.
LibraryRecord record_of_nccl() {
  return {.library = "NCCL 2.28.9",
          .algorithms = {{CollectiveKind::all_reduce, 64, "tree", "LL", 1},
                         {CollectiveKind::all_reduce, 1 << 20, "ring", "simple", 16},
                         {CollectiveKind::all_reduce, 25 << 20, "ring", "simple", 16},
                         {CollectiveKind::all_gather, 1 << 20, "ring", "simple", 16}}};
}

Traced traced_with(const LibraryRecord& library) {
  Traced traced = traced_by_script();
  for (TracedRound& round : traced.rounds) {
    for (TracedStep& step : round.variants) step.library = library;
  }
  return traced;
}

TEST(TraceNotes, TellHowALibraryCarriesOutCollectives) {
  EXPECT_TRUE(library_record_notes(traced_by_script()).empty());
  Traced traced = traced_with(record_of_nccl());
  EXPECT_EQ(library_record_notes(traced),
            std::vector<std::string>{
                "NCCL 2.28.9 itself says how it carries out collectives: all-reduce of 64 B: "
                "tree, LL, 1 channel; all-reduce of 1 MiB to 25 MiB: ring, simple, 16 channels; "
                "all-gather of 1 MiB: ring, simple, 16 channels"});
  traced.rounds[0].variants[1].library->captured = true;
  ASSERT_EQ(library_record_notes(traced).size(), 2u);
  EXPECT_EQ(library_record_notes(traced)[1],
            "of collectives in a graph NCCL 2.28.9 speaks when they are captured and not when they "
            "run; that each launch has them is counted by plan and trace alone");
}

TEST(TraceNotes, SayOnceThatALibraryOfCollectivesSaysNothing) {
  EXPECT_EQ(
      library_record_notes(traced_with({.library = "NCCL 2.27.3", .unavailable = "it is too old"})),
      std::vector<std::string>{"collectives of rank 0 are counted by plan and trace alone, "
                               "without NCCL 2.27.3's own record: it is too old"});
}

TEST(TraceNotes, SayOnceWhatTheSimulatedMachineGuesses) {
  const std::string guessed = "collectives of 2 ranks take what a ring makes of those of 4";
  EXPECT_EQ(
      library_record_notes(traced_with({.library = "the simulated machine", .guessed = guessed})),
      std::vector<std::string>{guessed});
}

TEST(Mechanism, BreaksARunWhoseTraceIsNotWhatWasPlanned) {
  Script script;
  script.step_time = noisy(1 / 1.3, 1);
  Traced traced = traced_by_script();
  traced.not_as_planned = "the trace of 'fix' is not its plan: it waits";
  const Verdict verdict =
      measure_and_judge(
          scenario_of({fix_against_baseline(Metric::samples_per_s, Relation::at_least, 1.05)}),
          script, 1, traced)
          .verdict;
  ASSERT_TRUE(verdict.broken);
  EXPECT_EQ(*verdict.broken, "the trace of 'fix' is not its plan: it waits");
}

TEST(TraceNotes, TellWhatIsNoPartOfASteadyStep) {
  Traced traced = traced_by_script();
  traced.rounds[0].variants[0].unsteady[UnsteadyKind::module_loading] = 1;
  traced.rounds[1].variants[0].unsteady[UnsteadyKind::module_loading] = 2;
  traced.rounds[0].variants[1].unsteady[UnsteadyKind::command_buffer_full] = 1;
  const std::vector<std::string> notes = unsteady_notes(counted_by_script(), traced);
  ASSERT_EQ(notes.size(), 2U);
  EXPECT_EQ(notes[0].find("in the traced steps of 'baseline' 3 kernel modules were loaded"), 0U)
      << notes[0];
  EXPECT_EQ(notes[1].find("in the traced steps of 'fix' the queue of launches was full once"), 0U)
      << notes[1];
}

TEST(Mechanism, IsPartOfTheVerdict) {
  Script script;
  script.step_time = [](const std::string& variant, std::int64_t) {
    return std::chrono::microseconds(variant == "fix" ? 1600 : 1900);
  };
  const Verdict verdict =
      measure_and_judge(
          scenario_of({fix_against_baseline(Metric::samples_per_s, Relation::at_least, 1.05)}),
          script, 1)
          .verdict;
  ASSERT_TRUE(verdict.mechanism);
  ASSERT_EQ(verdict.mechanism->variants.size(), 2U);
  EXPECT_EQ(verdict.mechanism->variants[0].bound_by, TimePart::idle_after_wait);
  EXPECT_EQ(verdict.mechanism->variants[1].bound_by, TimePart::math);
  EXPECT_NEAR(verdict.mechanism->variants[0].slowdown.value(), 2000.0 / 1900, 1e-9);
  ASSERT_EQ(verdict.mechanism->separations.size(), 1U);
  EXPECT_EQ(verdict.mechanism->rounds, 7);
  EXPECT_FALSE(measure_and_judge(scenario_of({}), script, 1, std::nullopt).verdict.mechanism);
}

TEST(Mechanism, ExplainsThePairsThatAssertionsNameFailedLinesFirst) {
  Scenario scenario = scenario_of({});
  scenario.variants.clear();
  for (const char* name : {"small", "small_graph", "large", "large_graph"}) {
    scenario.variants.emplace_back();
    scenario.variants.back().name = name;
  }
  const auto line = [](const std::string& left, Relation relation, const std::string& right) {
    return assertion(left, {{of(left, Metric::samples_per_s)}}, relation,
                     {{1.1, of(right, Metric::samples_per_s)}});
  };
  scenario.expect = {line("small_graph", Relation::at_least, "small"),
                     line("large_graph", Relation::at_least, "large"),
                     line("small", Relation::at_most, "small_graph")};
  const std::vector<Subject> subjects =
      subjects_named({"small", "small_graph", "large", "large_graph"});
  Measurement measurement;
  for (const Subject& subject : subjects) measurement.variants.push_back({.name = subject.name});
  const double times[] = {2, 1, 5, 5.1};
  Random random(1);
  for (int round = 0; round < 20; ++round) {
    measurement.rounds.emplace_back();
    for (int variant = 0; variant < 4; ++variant) {
      const double noise = 1 + 0.001 * random.normal();
      measurement.rounds.back().segments.push_back(
          {.variant = variant,
           .slot = variant,
           .steps = 1,
           .elapsed = std::chrono::nanoseconds(std::llround(1e6 * times[variant] * noise))});
    }
  }
  measurement.traced = traced_rounds(std::vector<TracedStep>(4, traced_step({.math = 100})));
  measurement.traced->timelines.resize(4);
  const auto separations_of = [&] {
    const Verdict verdict = judge(scenario, subjects, measurement, {});
    std::vector<std::string> named;
    for (const Separation& one : verdict.mechanism->separations)
      named.push_back(one.first + " " + one.other);
    return named;
  };
  EXPECT_EQ(separations_of(), (std::vector<std::string>{"large large_graph", "small small_graph"}));
  const Verdict verdict = judge(scenario, subjects, measurement, {});
  EXPECT_NE(verdict.mechanism->separations[1].summary.find(
                "by the clock small takes 2.00x the time of small_graph"),
            std::string::npos)
      << verdict.mechanism->separations[1].summary;
  scenario.expect.clear();
  EXPECT_EQ(separations_of(),
            (std::vector<std::string>{"small small_graph", "small large", "small large_graph"}));
}

TEST(Mechanism, RemarksATracedStepThatIsShorterThanATimedOne) {
  Script script;
  script.step_time = [](const std::string& variant, std::int64_t) {
    return std::chrono::microseconds(variant == "fix" ? 1600 : 2500);
  };
  const Verdict verdict =
      measure_and_judge(
          scenario_of({fix_against_baseline(Metric::samples_per_s, Relation::at_least, 1.05)}),
          script, 1)
          .verdict;
  const auto notes = std::ranges::count_if(verdict.notes, [](const std::string& note) {
    return note.starts_with("a traced step of 'baseline' takes 0.80x the time of a timed one");
  });
  EXPECT_EQ(notes, 1) << testing::PrintToString(verdict.notes);
  EXPECT_EQ(verdict.notes.size(), 1U);
}

BoundClass class_of(const PartsByHand& parts) {
  return class_of(traced_step(parts).time);
}

TEST(ClassOf, IsWhatKeepsKernelsWaitingForAFifthOfTheStep) {
  EXPECT_EQ(class_of({.math = 80, .idle_for_data = 20}), BoundClass::data);
  EXPECT_EQ(class_of({.math = 80.1, .idle_for_data = 19.9}), BoundClass::compute);
  EXPECT_EQ(class_of({.math = 45, .copies = 30, .idle_for_data = 25}), BoundClass::copy);
  EXPECT_EQ(class_of({.math = 45, .communication = 30, .idle_for_data = 25}),
            BoundClass::communication);
  EXPECT_EQ(class_of({.math = 81, .communication = 19}), BoundClass::compute);
  EXPECT_EQ(class_of({.memory = 100}), BoundClass::compute);
  EXPECT_EQ(class_of({.math = 30, .idle_in_queue = 70}), BoundClass::compute);
}

TEST(ClassOf, CountsWaitsAndLaunchesTogetherAsTheHosts) {
  EXPECT_EQ(class_of({.math = 70, .idle_after_wait = 15, .idle_for_host = 15}), BoundClass::host);
  EXPECT_EQ(class_of({.math = 41, .copies = 29, .idle_after_wait = 15, .idle_for_host = 15}),
            BoundClass::host);
}

// Judges "fix.bound == copy" with this number of rounds of a copying step and of a waiting step.
AssertionVerdict verdict_on_copy(std::size_t copying, std::size_t waiting,
                                 const JudgeSettings& settings = {}) {
  const Expectation is_copy =
      assertion("class", {{of("fix", Metric::bound)}}, Relation::equal, {{BoundClass::copy}});
  const TracedStep copies = traced_step({.math = 60, .copies = 40});
  const TracedStep waits = traced_step({.math = 60, .idle_after_wait = 40});
  Measurement measurement;
  measurement.traced = traced_rounds({copies, copies}, copying);
  for (const TracedRound& round : traced_rounds({copies, waits}, waiting).rounds)
    measurement.traced->rounds.push_back(round);
  measurement.traced->timelines.resize(2);
  return judge(scenario_of({is_copy}), counted_by_script(), measurement, settings)
      .assertions.front();
}

TEST(ClassAssertion, PassesWhereEveryRoundShowsThatClass) {
  const AssertionVerdict verdict = verdict_on_copy(7, 0);
  EXPECT_EQ(verdict.outcome, Outcome::passes);
  EXPECT_EQ(verdict.reason, "copy in 7 traced rounds; it must be copy");
  EXPECT_FALSE(verdict.estimate);
}

TEST(ClassAssertion, FailsWhereNoRoundShowsIt) {
  const AssertionVerdict verdict = verdict_on_copy(0, 7);
  EXPECT_EQ(verdict.outcome, Outcome::fails);
  EXPECT_EQ(verdict.reason, "host in 7 traced rounds; it must be copy");
}

TEST(ClassAssertion, IsUndecidedWhereRoundsDiffer) {
  const AssertionVerdict verdict = verdict_on_copy(6, 1);
  EXPECT_EQ(verdict.outcome, Outcome::undecided);
  EXPECT_EQ(
      verdict.reason,
      "copy in 6 traced rounds, host in 1 traced round; it must be copy; its rounds do not agree");
}

TEST(ClassAssertion, GoesOnFromRoundsOfEarlierRuns) {
  JudgeSettings settings;
  settings.earlier.expect.contrasts["class"] = {0, 0, 0, 0};
  EXPECT_EQ(verdict_on_copy(2, 0, settings).reason, "copy in 6 traced rounds; it must be copy");
  EXPECT_EQ(verdict_on_copy(0, 2, settings).outcome, Outcome::undecided);
}

TEST(ClassAssertion, IsUndecidedByTooFewRounds) {
  const AssertionVerdict verdict = verdict_on_copy(2, 0);
  EXPECT_EQ(verdict.outcome, Outcome::undecided);
  EXPECT_EQ(verdict.reason,
            "copy in 2 traced rounds; it must be copy; 2 traced rounds cannot decide it, 5 are the "
            "fewest that can");
}

}  // namespace
}  // namespace stepgate
