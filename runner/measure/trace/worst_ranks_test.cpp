// SPDX-License-Identifier: MIT
// Tests which rank supplies the numbers of a step of several ranks. The traces are handwritten or
// come from a fake device with slow ranks.
#include "measure/trace/worst_ranks.h"

#include <gtest/gtest.h>

#include "measure/testing/fake_device.h"
#include "measure/testing/trace_by_hand.h"
#include "measure/trace/trace_rounds.h"

namespace stepgate {
namespace {

using Values = std::map<Metric, double>;

TracedStep said_by(int rank, Values values, double step_seconds = 1e-3) {
  TracedStep step;
  step.rank = rank;
  step.values = std::move(values);
  step.time.step = step_seconds;
  return step;
}

// Returns one variant with `rounds` rounds, in which every rank reports the same results.
Traced traced_of(const std::vector<TracedStep>& ranks, std::size_t rounds = 3) {
  Traced traced;
  traced.rounds.assign(rounds,
                       TracedRound{.variants = std::vector<TracedStep>(1), .ranks = {ranks}});
  return traced;
}

TEST(WorstRanks, AreThoseOfTheWorstMedianOfEachMetric) {
  Traced traced =
      traced_of({said_by(0, {{Metric::exposed_comm_us, 1e-4}, {Metric::comm_overlap, 0.9}}),
                 said_by(1, {{Metric::exposed_comm_us, 3e-4}, {Metric::comm_overlap, 0.8}}),
                 said_by(2, {{Metric::exposed_comm_us, 2e-4}, {Metric::comm_overlap, 0.5}})});
  take_worst_ranks(traced);
  ASSERT_EQ(traced.worst.size(), 1u);
  EXPECT_EQ(traced.worst[0].metrics,
            (std::map<Metric, int>{{Metric::exposed_comm_us, 1}, {Metric::comm_overlap, 2}}))
      << "less exposed is better, and more overlap";
  for (const TracedRound& round : traced.rounds) {
    EXPECT_EQ(round.variants[0].values.at(Metric::exposed_comm_us), 3e-4);
    EXPECT_EQ(round.variants[0].values.at(Metric::comm_overlap), 0.5);
  }
}

TEST(WorstRanks, AreTheSameInAllRounds) {
  Traced traced =
      traced_of({said_by(0, {{Metric::comm_us, 1e-4}}), said_by(1, {{Metric::comm_us, 2e-4}})});
  traced.rounds[1].ranks[0][0].values[Metric::comm_us] = 9e-4;  // once
  take_worst_ranks(traced);
  EXPECT_EQ(traced.worst[0].metrics.at(Metric::comm_us), 1);
  EXPECT_EQ(traced.rounds[1].variants[0].values.at(Metric::comm_us), 2e-4)
      << "its own, though the other one is worse in that round";
}

TEST(WorstRanks, MayChangeWithEveryRound) {
  Traced traced =
      traced_of({said_by(0, {{Metric::comm_us, 3e-4}}), said_by(1, {{Metric::comm_us, 2e-4}})}, 1);
  take_worst_ranks(traced);
  EXPECT_EQ(traced.worst[0].metrics.at(Metric::comm_us), 0);
  TracedRound next = traced.rounds[0];
  next.ranks[0][1].values[Metric::comm_us] = 9e-4;
  traced.rounds.push_back(next);
  traced.rounds.push_back(next);
  take_worst_ranks(traced);
  EXPECT_EQ(traced.worst[0].metrics.at(Metric::comm_us), 1);
  EXPECT_EQ(traced.rounds[0].variants[0].values.at(Metric::comm_us), 2e-4);
}

TEST(WorstRanks, HaveNoNameWhereAllAreAlike) {
  Traced traced =
      traced_of({said_by(0, {{Metric::comm_us, 1e-4}, {Metric::launches_per_step, 4}}),
                 said_by(1, {{Metric::comm_us, 1e-4}, {Metric::launches_per_step, 5}})});
  take_worst_ranks(traced);
  EXPECT_TRUE(traced.worst[0].metrics.empty()) << "and counts have no worst";
  EXPECT_EQ(traced.rounds[0].variants[0].values.at(Metric::comm_us), 1e-4);
}

TEST(WorstRanks, AreOfThoseThatTell) {
  Traced traced = traced_of({said_by(0, {}), said_by(1, {{Metric::comm_stretch, 1.2}})});
  take_worst_ranks(traced);
  EXPECT_EQ(traced.worst[0].metrics.at(Metric::comm_stretch), 1);
  EXPECT_EQ(traced.rounds[0].variants[0].values.at(Metric::comm_stretch), 1.2);
}

TEST(WorstRanks, OfAKernelAreThoseOfItsTime) {
  Traced traced = traced_of({said_by(0, {}), said_by(1, {})});
  for (TracedRound& round : traced.rounds) {
    round.ranks[0][0].work = {{"matmul", {4, 2e-4}}, {"relu", {1, 1e-5}}};
    round.ranks[0][1].work = {{"matmul", {4, 1e-4}}, {"relu", {1, 2e-5}}};
  }
  take_worst_ranks(traced);
  EXPECT_EQ(traced.worst[0].kernels, (std::map<std::string, int>{{"matmul", 0}, {"relu", 1}}));
  EXPECT_EQ(traced.rounds[2].variants[0].work.at("matmul").seconds, 2e-4);
  EXPECT_EQ(traced.rounds[2].variants[0].work.at("relu").seconds, 2e-5);
}

TEST(WorstRanks, AreShownByTheOneThatComesLastOrElseByTheSlowest) {
  Traced traced = traced_of({said_by(0, {}, 3e-3), said_by(1, {}, 4e-3), said_by(2, {}, 2e-3)});
  take_worst_ranks(traced);
  EXPECT_EQ(traced.worst[0].shown, 1);
  EXPECT_EQ(traced.rounds[0].variants[0].time.step, 4e-3);
  for (TracedRound& round : traced.rounds) {
    for (TracedStep& rank : round.ranks[0]) rank.values[Metric::last_rank] = 2;
  }
  take_worst_ranks(traced);
  EXPECT_EQ(traced.worst[0].shown, 2);
  EXPECT_EQ(traced.rounds[0].variants[0].time.step, 2e-3);
  EXPECT_EQ(traced.rounds[0].variants[0].rank, 2);
}

TEST(WorstRanks, OfOneRankAreThatOne) {
  Traced traced = traced_of({said_by(0, {{Metric::gpu_idle, 0.25}})});
  take_worst_ranks(traced);
  EXPECT_TRUE(traced.worst[0].metrics.empty());
  EXPECT_TRUE(traced.rounds[0].ranks[0].empty()) << "one place has what it says";
  EXPECT_EQ(traced.rounds[0].variants[0].values.at(Metric::gpu_idle), 0.25);
  ASSERT_EQ(ranks_of(traced.rounds[0], 0).size(), 1u);
  EXPECT_TRUE(ranks_of(traced.rounds[0], 1).empty());
}

// A device of three ranks, with a kernel of 100 us and an all-reduce after it or beside its end.
class DeviceOfRanks : public FakeDevice {
 public:
  using FakeDevice::FakeDevice;
  std::string reason_against_tracing() const override { return ""; }
  std::unique_ptr<LoadedStep> load(const StepPlan&, const LoadDraw&) override {
    return std::make_unique<Step>();
  }

 private:
  class Step : public LoadedStep {
   public:
    StepResult run(const Observe& observe) override {
      StepResult result;
      result.steps = observe.steps;
      result.elapsed = std::chrono::microseconds(200) * observe.steps;
      if (!observe.trace) return result;
      // Rank 1 waits longest without a kernel; on rank 2, the least of the all-reduce is hidden.
      give_traces({of_rank(0, 50, 110), of_rank(1, 0, 140), of_rank(2, 90, 120)}, result);
      return result;
    }

   private:
    static Trace of_rank(int rank, std::int64_t begin, std::int64_t end) {
      TraceByHand by_hand_trace(1);
      by_hand_trace.work(by_hand::math, 0, a_kernel, 0, 100)
          .work(
              by_hand::work, 0,
              {.kind = WorkKind::collective, .bytes = 4, .collective = CollectiveKind::all_reduce},
              begin, end)
          .work(by_hand::memory, 0, a_kernel, end, 200);
      by_hand_trace.trace().rank = rank;
      return by_hand_trace.trace();
    }
  };
};

TEST(WorstRanks, OfTracedRoundsAreThoseOfADevicesTraces) {
  StepPlan plan = plan_by_hand();
  plan.ranks.count = 3;
  plan.operations[by_hand::work].action = Collective{.from = {2, 0, 4}, .to = {2, 0, 4}};
  const std::vector<PlannedStep> plans{with_facts(std::move(plan))};
  Script script;
  DeviceOfRanks device(script);
  const Traced traced = trace_rounds(device, plans, {.rounds = 2});
  ASSERT_EQ(traced.rounds.size(), 2u);
  ASSERT_EQ(ranks_of(traced.rounds[0], 0).size(), 3u);
  const WorstRanks& worst = traced.worst.at(0);
  EXPECT_EQ(worst.metrics.at(Metric::exposed_comm_us), 1);
  EXPECT_EQ(worst.metrics.at(Metric::comm_overlap), 2);
  const Values& values = traced.rounds[0].variants[0].values;
  EXPECT_NEAR(values.at(Metric::exposed_comm_us), 40 * microsecond, close);
  EXPECT_NEAR(values.at(Metric::comm_overlap), 1. / 3, close);
  EXPECT_EQ(traced.timelines.at(0).size(), 3u);
}

}  // namespace
}  // namespace stepgate
