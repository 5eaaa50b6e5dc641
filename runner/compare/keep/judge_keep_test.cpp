// SPDX-License-Identifier: MIT
#include "compare/keep/judge_keep.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "base/process/child.h"
#include "base/random.h"
#include "compare/testing/fake_worker.h"
#include "device/open_device.h"

namespace stepgate {
namespace {

constexpr double gain = 0.005;

// Plays a candidate: steps of a millisecond, HEAD's longer by the effect of their workload, with
// noise of every segment.
class Played {
 public:
  explicit Played(std::vector<double> effects, std::int64_t pairs = 200, std::uint64_t seed = 1)
      : effects_(std::move(effects)), pairs_(pairs), seed_(seed) {
    script_.workloads.clear();
    for (std::size_t number = 0; number < effects_.size(); ++number)
      script_.workloads.push_back(std::to_string(number));
    script_.step_seconds = [this, random = Random(seed)](ComparisonSide side,
                                                         const std::string& workload,
                                                         std::int64_t) mutable {
      const double effect = side == ComparisonSide::head ? effects_[std::stoul(workload)] : 0;
      return 1e-3 * (1 + effect) * std::exp(0.003 * random.normal());
    };
  }

  KeepVerdict verdict(Candidate& candidate) {
    const ComparisonSettings settings = settings_of_keep(candidate, gain);
    ComparisonRequest request = request_of(script_, seed_, pairs_);
    request.fewest_pairs = 1;
    request.undecided = undecided_of_keep(script_.workloads, settings);
    const ComparisonMeasurement measured = measure_comparison(request);
    append(candidate.pairs, pairs_found_in(measured));
    return judge_keep(judge_comparison(request.introduction, measured, settings));
  }

  ComparisonScript& script() { return script_; }

 private:
  std::vector<double> effects_;
  std::int64_t pairs_;
  std::uint64_t seed_;
  ComparisonScript script_;
};

Candidate candidate_at(double level) {
  Candidate candidate;
  candidate.number = 1;
  candidate.level = level;
  return candidate;
}

TEST(JudgeKeep, KeepsAGainAndDiscardsItsAbsence) {
  Candidate one = candidate_at(0.02);
  const KeepVerdict faster = Played({-0.02}).verdict(one);
  EXPECT_EQ(faster.outcome, KeepOutcome::keep) << faster.why;
  EXPECT_EQ(faster.ground, KeepGround::time);
  EXPECT_NEAR(faster.ratio.value(), 0.98, 0.005);
  EXPECT_GE(faster.evidence, 1 / 0.02);
  Candidate other = candidate_at(0.02);
  const KeepVerdict same = Played({0}).verdict(other);
  EXPECT_EQ(same.outcome, KeepOutcome::discard) << same.why;
  EXPECT_EQ(same.work, "0");
  EXPECT_NE(same.why.find("the limit is -0.5 %"), std::string::npos) << same.why;
}

TEST(JudgeKeep, EveryWorkloadMustHaveTheGainAndTheFirstWithoutItEndsIt) {
  Candidate candidate = candidate_at(1e-5);
  Played played({-0.02, 0, -0.02});
  const KeepVerdict verdict = played.verdict(candidate);
  EXPECT_EQ(verdict.outcome, KeepOutcome::discard) << verdict.why;
  EXPECT_EQ(verdict.work, "1");
  // The others need 18 pairs at this level.
  EXPECT_LT(candidate.pairs.contrasts.at("0").size(), 18u);
  Candidate all = candidate_at(1e-5);
  EXPECT_EQ(Played({-0.02, -0.015, -0.02}).verdict(all).outcome, KeepOutcome::keep);
}

TEST(JudgeKeep, SaysHowLongAnUndecidedOneNeedsAndGoesOnFromItsPairs) {
  Candidate candidate = candidate_at(1e-5);
  Played first({-0.02}, 7);
  const KeepVerdict before = first.verdict(candidate);
  EXPECT_EQ(before.outcome, KeepOutcome::undecided);
  EXPECT_EQ(before.pairs, 7);
  EXPECT_NE(before.why.find("; needs about "), std::string::npos) << before.why;
  Played second({-0.02}, 200, 2);
  const KeepVerdict after = second.verdict(candidate);
  EXPECT_EQ(after.outcome, KeepOutcome::keep) << after.why;
  EXPECT_GE(after.pairs, 18);
  EXPECT_LT(after.pairs, 26);
}

TEST(JudgeKeep, DiscardsWhereATypicalLaunchHasNoGainThoughTotalTimeHas) {
  WorkloadVerdict workload{.name = "a/fix", .margin = -gain};
  workload.timed = TimedEvidence{.ratio = 1, .total_ratio = 0.99, .held_back_by_total = true};
  ComparisonVerdict comparison{.workloads = {workload}, .pairs = 10};
  EXPECT_EQ(judge_keep(comparison).outcome, KeepOutcome::undecided);
  comparison.workloads.front().timed->evidence_against = 1 / error_of_a_discard;
  EXPECT_EQ(judge_keep(comparison).outcome, KeepOutcome::discard);
}

TEST(JudgeKeep, DoesNotKeepWhatHidesItsTime) {
  Candidate candidate = candidate_at(0.02);
  Played played({-0.02}, 20);
  played.script().simulated = false;
  played.script().really = {1, 1.5};  // HEAD takes half longer than it says
  EXPECT_NE(played.verdict(candidate).outcome, KeepOutcome::keep);
}

CountedPair counted(double base, double head) {
  const std::string waits = "host_waits_per_step";
  CountedPair pair{.workload = "a/fix", .base = {}, .head = {}};
  pair.base.planned = {{waits, base}};
  pair.head.planned = {{waits, head}};
  return pair;
}

TEST(JudgeKeep, DiscardsWhatCountsMore) {
  const std::array more{counted(0, 1)};
  const auto verdict = refusal_in(findings_of_keep(more, 0));
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->outcome, KeepOutcome::discard);
  EXPECT_EQ(verdict->ground, KeepGround::counts);
  EXPECT_EQ(verdict->why, "host_waits_per_step 0 -> 1");
  const std::array twice{counted(0, 1), counted(0, 2)};
  EXPECT_EQ(refusal_in(findings_of_keep(twice, 0)).value().why,
            "host_waits_per_step 0 -> 1; and 1 more");
  const std::array less{counted(1, 0)};
  EXPECT_FALSE(refusal_in(findings_of_keep(less, 0)));
}

TEST(JudgeKeep, AllowsTheMemoryOfAWorkspaceAndNoOther) {
  CountedPair pair = counted(0, 0);
  pair.base.planned["peak_live"] = pair.base.traced["peak_live"] = 32 << 20;
  pair.head.planned["peak_live"] = pair.head.traced["peak_live"] = 36 << 20;
  pair.base.planned["copy_bytes_per_step"] = pair.head.planned["copy_bytes_per_step"] = 4096;
  const auto refused = [&](std::int64_t more_workspace) {
    return refusal_in(findings_of_keep(std::array{pair}, more_workspace)).has_value();
  };
  EXPECT_FALSE(refused(4 << 20));
  EXPECT_TRUE(refused(0)) << "no workspace explains it";
  pair.head.traced["peak_live"] = 40 << 20;
  EXPECT_TRUE(refused(4 << 20)) << "it allocates beside its workspace";
  pair.head.traced["peak_live"] = 36 << 20;
  pair.head.planned["host_waits_per_step"] = 1;
  EXPECT_TRUE(refused(4 << 20));
}

TEST(JudgeKeep, AllowsOtherBitsOfLossesWhereGradientsAreCompared) {
  CountedPair pair = counted(0, 0);
  pair.base.losses = {"00000000"};
  pair.head.losses = {"00000001"};
  EXPECT_TRUE(refusal_in(findings_of_keep(std::array{pair}, 0)));
  const GradientSketch sketch{.squares = 1};
  pair.base.gradients = {{"weight", sketch}};
  pair.head.gradients = pair.base.gradients;
  pair.base.gradient_bound = 0.03;
  EXPECT_FALSE(refusal_in(findings_of_keep(std::array{pair}, 0)));
  pair.head.begun_again = {{"weight", 0.5}};
  const auto other = refusal_in(findings_of_keep(std::array{pair}, 0));
  ASSERT_TRUE(other);
  EXPECT_NE(other->why.find("not the same step"), std::string::npos) << other->why;
}

TEST(JudgeKeep, AsksForTheCountsOfStepgatesOwnKernelsOnlyOfPrograms) {
  CountedPair pair = counted(0, 0);
  pair.base.planned["sectors_per_request"] = 4;
  EXPECT_FALSE(refusal_in(findings_of_keep(std::array{pair}, 0)));
  EXPECT_THROW((void)refusal_in(findings_of_keep(std::array{pair}, std::nullopt)), NotGatedError);
}

TEST(JudgeKeep, AFailureIsHeadsOrEndsTheCall) {
  Finding failed{.severity = Severity::failed,
                 .words = "HEAD, started as x, was ended by signal 6"};
  const auto verdict = refusal_in(std::array{failed});
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->ground, KeepGround::failure);
  failed.words = "BASE, started as x, was ended by signal 6";
  EXPECT_THROW((void)refusal_in(std::array{failed}), WorkerError);
}

TEST(JudgeKeep, NamesTheAssertionThatFails) {
  const Finding finding{.kind = FindingKind::assertion,
                        .workload = "a",
                        .what = "no_waits",
                        .words = "1; it must be 0"};
  EXPECT_EQ(refusal_in(std::array{finding}).value().why,
            "assertion no_waits fails: 1; it must be 0");
}

TEST(JudgeKeep, TellsAKernelThatIsFasterAlone) {
  const KeepVerdict verdict{.ratio = 1, .interval = RatioInterval{0.998, 1.002}};
  EXPECT_EQ(faster_alone("the kernel is", 1.4e-3, 1e-3, verdict),
            "the kernel is 1.4x as fast and the step is not: 1.000x [0.998, 1.002]");
  EXPECT_EQ(faster_alone("the kernel is", 1.02e-3, 1e-3, verdict), "");
  EXPECT_EQ(faster_alone("the kernel is", 1e-3, 0, verdict), "");
}

}  // namespace
}  // namespace stepgate
