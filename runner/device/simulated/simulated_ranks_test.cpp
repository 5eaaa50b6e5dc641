// SPDX-License-Identifier: MIT
// Steps of several ranks on the simulated machine, against arithmetic done by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <map>

#include "device/simulated/collective_time.h"
#include "device/simulated/round_numbers.h"
#include "kernels/gemm/gemm.h"
#include "scenario/read/read_scenario.h"
#include "tests/sanitized.h"

namespace stepgate {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

constexpr double stretch = 1.38;

// An all-reduce of b bytes takes b nanoseconds on 4 ranks, and 10 us at least.
DeviceProfile linked_profile() {
  DeviceProfile profile = round_profile();
  const std::vector<std::int64_t> sizes{10'000, 1'000'000};
  profile.collectives = {{.ranks = 4,
                          .bytes = sizes,
                          .all_reduce_nanoseconds = sizes,
                          .reduce_scatter_nanoseconds = sizes,
                          .all_gather_nanoseconds = sizes}};
  return profile;
}

// A collective on a stream of its own, placed after an operation of a step of spins.
struct PlacedCollective {
  std::string_view after;  // "spin 1"
  std::int64_t bytes = 0;
  int communicator = 0;
};

// Adds the collectives to the plan; its last operation waits for all of them.
StepPlan with_collectives(StepPlan plan, const std::vector<PlacedCollective>& placed) {
  plan.ranks = {.count = 4, .communicators = 2};
  const auto insert_behind = [&](std::string_view name, std::vector<Operation> operations) {
    const auto place = std::ranges::find(plan.operations, name, &Operation::name);
    ASSERT_NE(place, plan.operations.end()) << name;
    plan.operations.insert(place + 1, operations.begin(), operations.end());
  };
  std::vector<Operation> waits;
  for (const PlacedCollective& one : placed) {
    const int stream = static_cast<int>(plan.streams.size());
    const int ready = static_cast<int>(plan.events.size());
    plan.streams.push_back({.name = "communication", .kind = StreamKind::non_blocking});
    plan.events.push_back({"ready"});
    plan.events.push_back({"reduced"});
    insert_behind(one.after,
                  {{.name = "ready", .action = RecordEvent{ready}},
                   {.name = "wait", .stream = stream, .action = StreamWaitsEvent{ready}},
                   {.name = "reduce",
                    .phase = Phase::backward,
                    .stream = stream,
                    .action = Collective{.from = {0, 0, one.bytes},
                                         .to = {0, 0, one.bytes},
                                         .communicator = one.communicator}},
                   {.name = "reduced", .stream = stream, .action = RecordEvent{ready + 1}}});
    waits.push_back({.name = "wait until reduced", .action = StreamWaitsEvent{ready + 1}});
  }
  plan.operations.insert(plan.operations.end() - 1, waits.begin(), waits.end());
  return plan;
}

StepPlan spins(std::int64_t kernels, std::int64_t kernel_us,
               const std::vector<PlacedCollective>& placed) {
  return with_collectives(plans_of(spinning(kernels, kernel_us)).front(), placed);
}

StepResult result_of(const StepPlan& plan, bool traced = false) {
  const auto device = make_simulated_device(linked_profile());
  return device->load(plan)->run({.wash_out_steps = 20, .steps = 100, .trace = traced});
}

nanoseconds time_of(const StepPlan& plan) {
  return *result_of(plan).elapsed / 100;
}

std::vector<DeviceWork> collectives_of(const Trace& trace) {
  std::vector<DeviceWork> found;
  for (const DeviceWork& work : trace.work) {
    if (work.kind == WorkKind::collective) found.push_back(work);
  }
  return found;
}

// The kernels ingest and report take the floor of 1 us each.
TEST(SimulatedRanks, AddToAStepWhatOfACollectiveNoKernelHides) {
  const nanoseconds alone = microseconds(4 * 50 + 2);
  EXPECT_EQ(time_of(spins(4, 50, {})), alone);
  EXPECT_EQ(time_of(spins(4, 50, {{"spin 3", 300'000}})), alone + microseconds(300));
}

TEST(SimulatedRanks, StretchKernelsForAsLongAsACollectiveRuns) {
  const nanoseconds alone = microseconds(4 * 50 + 2);
  // While a collective runs for `under` nanoseconds, the kernels do only 1/1.38 as much work.
  const auto lost = [](double under) {
    return nanoseconds(std::llround(under * (1 - 1 / stretch)));
  };
  const auto near = [](nanoseconds got, nanoseconds expected) {
    EXPECT_LE(std::chrono::abs(got - expected), nanoseconds(3))
        << got.count() << " instead of " << expected.count();
  };
  near(time_of(spins(4, 50, {{"spin 1", 40'000}})), alone + lost(40'000));
  near(time_of(spins(4, 50, {{"spin 0", 100'000}})),
       alone + lost(100'000));  // stretches two kernels
  // Two concurrent collectives slow a kernel down no more than one does.
  near(time_of(spins(4, 50, {{"spin 1", 40'000, 0}, {"spin 1", 40'000, 1}})), alone + lost(40'000));
}

// A collective with 5 of the 15 thread blocks that fill a link keeps its 10 us of latency; the rest
// takes three times as long.
TEST(SimulatedRanks, WithFewThreadBlocksMoveFewerBytesASecondAndStretchKernelsAsLong) {
  const auto limited = [](StepPlan plan, int max_ctas) {
    plan.ranks.collectives.max_ctas = max_ctas;
    return plan;
  };
  const StepPlan bare = spins(4, 50, {{"spin 3", 300'000}});
  EXPECT_EQ(time_of(limited(bare, 5)) - time_of(bare), microseconds(580));
  EXPECT_EQ(time_of(limited(bare, 15)), time_of(bare));
  EXPECT_EQ(time_of(limited(bare, 64)), time_of(bare)) << "it is a limit";
  const StepPlan smallest = spins(4, 50, {{"spin 3", 10'000}});
  EXPECT_EQ(time_of(limited(smallest, 1)), time_of(smallest)) << "latency alone";
  const StepPlan beside = spins(4, 50, {{"spin 1", 25'000}});
  const nanoseconds alone = microseconds(4 * 50 + 2);
  const double under = 10'000 + 3 * 15'000;
  const auto lost = nanoseconds(std::llround(under * (1 - 1 / stretch)));
  EXPECT_LE(std::chrono::abs(time_of(limited(beside, 5)) - alone - lost), nanoseconds(3));
}

// The GEMM needs no more multiprocessors than the collective leaves free.
TEST(SimulatedRanks, DoNotStretchAGemmThatLeavesThemRoom) {
  const auto sparing = [](int multiprocessors, int max_ctas) {
    StepPlan plan = spins(4, 50, {{"spin 1", 40'000}});
    plan.ranks.collectives.max_ctas = max_ctas;
    for (Operation& operation : plan.operations) {
      auto* launch = std::get_if<LaunchKernel>(&operation.action);
      if (launch == nullptr || !operation.name.starts_with("spin")) continue;
      launch->kernel = kernels::Matmul::name;
      launch->shape = kernels::Matmul::Shape{.rows = 4096, .columns = 4096, .depth = 4096};
      launch->operands.assign(3, launch->operands.front());
      launch->attributes = kernels::Matmul::Attributes{.spare_multiprocessors = multiprocessors};
    }
    return time_of(plan);
  };
  const nanoseconds lost(std::llround(40'000 * (1 - 1 / stretch)));
  EXPECT_LE(std::chrono::abs(sparing(15, 16) - sparing(16, 16) - lost), nanoseconds(3));
  EXPECT_EQ(sparing(16, 16), sparing(16, 15));
  EXPECT_GT(sparing(23, 64), sparing(24, 64)) << "NCCL takes 24 at most";
}

TEST(SimulatedRanks, OverPcieTakeTwoThreadBlocksAtMost) {
  StepPlan plan = spins(4, 50, {{"spin 3", 300'000}});
  const auto time_over_pcie = [&](std::optional<std::int64_t> max_ctas) {
    plan.ranks.collectives.max_ctas = max_ctas;
    return *make_simulated_device(round_profile())->load(plan)->run({20, 100}).elapsed;
  };
  EXPECT_EQ(time_over_pcie(2), time_over_pcie({}));
  EXPECT_GT(time_over_pcie(1), time_over_pcie({}));
}

TEST(SimulatedRanks, WithoutPeerAccessAreAsSlowAsPinnedCopies) {
  StepPlan plan = spins(4, 50, {{"spin 3", 300'000}});
  const auto device = make_simulated_device(linked_profile());
  plan.ranks.collectives.links = RankLinks::no_p2p;
  const auto found = *device->load(plan)->run({20, 100}).elapsed / 100;
  const std::int64_t over_pcie = collective_time_over_pcie(
      linked_profile(), CollectiveKind::all_reduce, plan.ranks.count, 300'000);
  EXPECT_EQ(found, microseconds(4 * 50 + 2) + nanoseconds(over_pcie));
}

TEST(SimulatedRanks, HaveAsManyKernelsBesideACollectiveAsStandBeforeTheFirstWaitForIt) {
  const DeviceProfile profile = linked_profile();
  const auto beside = [&](const std::vector<PlacedCollective>& placed) {
    const StepPlan plan = spins(4, 50, placed);
    const std::vector<std::int64_t> all = kernels_beside_collectives(plan, profile);
    std::vector<std::int64_t> of_collectives;
    for (std::size_t index = 0; index < all.size(); ++index) {
      const bool is_one = std::holds_alternative<Collective>(plan.operations[index].action);
      if (is_one) {
        of_collectives.push_back(all[index]);
      } else {
        EXPECT_EQ(all[index], 0);
      }
    }
    return of_collectives;
  };
  EXPECT_EQ(beside({{"spin 1", 40'000}}), std::vector<std::int64_t>{100'000});
  EXPECT_EQ(beside({{"spin 3", 40'000}}), std::vector<std::int64_t>{0});
  EXPECT_EQ(beside({{"spin 0", 40'000}, {"spin 2", 40'000}}),
            (std::vector<std::int64_t>{150'000, 50'000}));
}

TEST(SimulatedRanks, AreStretchedByTheKernelsBesideThem) {
  DeviceProfile profile = linked_profile();
  profile.collectives.front().collective_stretch = 2;
  const auto traced = [&](std::string_view after, std::int64_t bytes) {
    const StepPlan plan = spins(4, 50, {{after, bytes}});
    const auto device = make_simulated_device(profile);
    const StepResult result = device->load(plan)->run({.steps = 5, .trace = true});
    const DeviceWork work = collectives_of(*result.trace).front();
    return work.end - work.begin;
  };
  EXPECT_EQ(traced("spin 1", 40'000), microseconds(80));
  EXPECT_EQ(traced("spin 3", 40'000), microseconds(40)) << "which has none";
  // The 50 us of one kernel take 69 us beside the collective, which does 34.5 us of its work
  // meanwhile.
  EXPECT_EQ(traced("spin 2", 100'000), nanoseconds(69'000 + 100'000 - 34'500));
}

TEST(SimulatedRanks, TakeTurnsInACommunicator) {
  const std::vector<PlacedCollective> two{{"spin 3", 100'000, 0}, {"spin 3", 100'000, 1}};
  std::vector<PlacedCollective> in_one = two;
  in_one[1].communicator = 0;
  EXPECT_EQ(time_of(spins(4, 50, in_one)) - time_of(spins(4, 50, two)), microseconds(100));
}

TEST(SimulatedRanks, PayTheHostALaunchForEachCollective) {
  const StepPlan without = spins(4, 50, {});
  const StepPlan with = spins(4, 50, {{"spin 1", 10'000}, {"spin 2", 10'000}});
  EXPECT_EQ((*result_of(with).host_busy - *result_of(without).host_busy) / 100, microseconds(2));
}

StepPlan in_a_graph(StepPlan plan) {
  for (Operation& operation : plan.operations) operation.captured = true;
  return plan;
}

TEST(SimulatedRanks, PayTheHostNothingForACollectiveInAGraph) {
  const StepPlan without = in_a_graph(spins(4, 50, {}));
  const StepPlan with = in_a_graph(spins(4, 50, {{"spin 1", 10'000}, {"spin 3", 300'000}}));
  EXPECT_EQ(*result_of(with).host_busy, *result_of(without).host_busy);
  EXPECT_LT(*result_of(with).host_busy, *result_of(spins(4, 50, {})).host_busy);
  EXPECT_EQ(time_of(with) - time_of(in_a_graph(spins(4, 50, {{"spin 1", 10'000}}))),
            microseconds(300))
      << "and its time on the device is what it was";
}

TEST(SimulatedRanks, AreTracedAsCollectivesOfTheirGraphsLaunch) {
  const StepPlan plan = in_a_graph(spins(4, 50, {{"spin 1", 40'000}}));
  const Trace trace = *result_of(plan, true).trace;
  const std::vector<DeviceWork> collectives = collectives_of(trace);
  ASSERT_EQ(collectives.size(), 100u);
  for (const DeviceWork& work : collectives) {
    EXPECT_EQ(operation_at(plan, work.operation).name, "reduce");
    EXPECT_TRUE(work.from_graph);
    EXPECT_EQ(trace.calls.at(work.correlation - 1).name, "cudaGraphLaunch");
  }
  EXPECT_EQ(std::ranges::count(trace.calls, "cudaGraphLaunch", &HostCall::name), 100);
  EXPECT_EQ(std::ranges::count(trace.calls, "ncclAllReduce", &HostCall::name), 0);
}

TEST(SimulatedRanks, AreTracedAsCollectivesAndNoKernels) {
  const StepPlan plan = spins(4, 50, {{"spin 1", 40'000}});
  const Trace trace = *result_of(plan, true).trace;
  const std::vector<DeviceWork> collectives = collectives_of(trace);
  ASSERT_EQ(collectives.size(), 100u);
  for (const DeviceWork& work : collectives) {
    EXPECT_EQ(operation_at(plan, work.operation).name, "reduce");
    EXPECT_EQ(work.collective, CollectiveKind::all_reduce);
    EXPECT_EQ(work.bytes, 40'000);
    EXPECT_EQ(work.end - work.begin, microseconds(40));
    const HostCall& call = trace.calls.at(work.correlation - 1);
    EXPECT_EQ(call.name, "ncclAllReduce");
    EXPECT_EQ(trace.spans.at(static_cast<std::size_t>(call.span)).operation, work.operation);
  }
  EXPECT_EQ(trace.arrivals.size(), 100u) << "the ranks are alike";
}

// The host waits once per step, so that no host runs ahead and hides the slow rank's work. No
// kernel follows the collective, so all ranks leave it at the same time.
StepPlan with_slow_rank(int rank, std::int64_t slow_us) {
  Knobs knobs = spinning(4, 50);
  knobs.sync = {.where = SyncWhere::step, .how = SyncHow::device, .every = 1};
  StepPlan plan = with_collectives(plans_of(knobs).front(), {{"spin 3", 30'000}});
  plan.operations.insert(plan.operations.begin(),
                         {.name = "slow", .action = HostWork{slow_us * 1000, rank}});
  return plan;
}

TEST(SimulatedRanks, BeginACollectiveWhenTheLastOfThemHasCome) {
  const std::vector<Trace> traces = take_traces(result_of(with_slow_rank(2, 200), true));
  ASSERT_EQ(traces.size(), 2u);
  EXPECT_EQ(traces[0].rank, 0) << "which stands for all others";
  EXPECT_EQ(traces[0].alike, (std::vector<int>{1, 3}));
  EXPECT_EQ(traces[1].rank, 2);
  EXPECT_TRUE(traces[1].alike.empty());
  EXPECT_EQ(traces[0].arrivals.size(), traces[1].arrivals.size());
  EXPECT_EQ(collectives_of(traces[0]).front().end - collectives_of(traces[0]).front().begin,
            microseconds(230))
      << "which waits for the slow one";
  const Trace& trace = traces[1];
  std::map<std::int64_t, std::map<int, TraceTime>> came;  // arrivals by step and rank
  for (const RankArrival& arrival : trace.arrivals) came[arrival.step][arrival.rank] = arrival.at;
  ASSERT_EQ(came.size(), 100u);
  const std::vector<DeviceWork> collectives = collectives_of(trace);
  ASSERT_EQ(collectives.size(), 100u);
  for (const DeviceWork& work : collectives) {
    const auto& of_step = came.at(work.step);
    ASSERT_EQ(of_step.size(), 2u) << "one stands for all others";
    EXPECT_EQ(of_step.at(2) - of_step.begin()->second, microseconds(200));
    EXPECT_EQ(work.begin, of_step.at(2));
    EXPECT_EQ(work.end, of_step.at(2) + microseconds(30)) << "it was not ended by the fast ones";
  }
}

TEST(SimulatedRanks, AreAsSlowAsTheSlowestOfThem) {
  const nanoseconds alike = time_of(with_slow_rank(2, 0));
  EXPECT_EQ(time_of(with_slow_rank(2, 200)) - alike, microseconds(200));
  EXPECT_EQ(time_of(with_slow_rank(0, 200)), time_of(with_slow_rank(2, 200)));
}

TEST(SimulatedRanks, WaitForTheOneWhoseHostTookLongest) {
  const auto with_jitter = [](double variation) {
    StepPlan plan = with_slow_rank(0, 0);
    std::get<HostWork>(plan.operations.front().action) = {
        .nanoseconds = 200'000, .variation = variation, .seed = 1};
    return plan;
  };
  EXPECT_EQ(take_traces(result_of(with_jitter(0), true)).size(), 1U) << "all ranks do the same";
  EXPECT_EQ(take_traces(result_of(with_jitter(0.5), true)).size(), 4U);
  const nanoseconds steady = time_of(with_jitter(0));
  EXPECT_GT(time_of(with_jitter(0.25)), steady + microseconds(20));
  EXPECT_GT(time_of(with_jitter(0.5)), time_of(with_jitter(0.25)) + microseconds(20));
  EXPECT_EQ(time_of(with_jitter(0.5)), time_of(with_jitter(0.5)));
}

TEST(SimulatedRanks, NameNoneOfThemWhereAllComeAtOnce) {
  const Trace trace = *result_of(with_slow_rank(2, 0), true).trace;
  EXPECT_EQ(trace.rank, 0);
  for (std::size_t index = 0; index + 1 < trace.arrivals.size(); index += 2)
    EXPECT_EQ(trace.arrivals[index].at, trace.arrivals[index + 1].at);
}

TEST(SimulatedRanks, AreHeldUpByASlowOneNoLongerThanTheirQueueIsDeep) {
  // Without a wait the host is ahead of its device, which hides the slow rank's host work.
  StepPlan plan = spins(4, 50, {{"spin 2", 30'000}});
  const nanoseconds alike = time_of(plan);
  plan.operations.insert(plan.operations.begin(), {.name = "slow", .action = HostWork{100'000, 2}});
  EXPECT_EQ(time_of(plan), alike);
}

// The step of variant "two" of data_parallel.toml, on another number of ranks; one rank may be
// slow.
StepPlan gpt_of(std::int64_t ranks, double slow_us) {
  const std::filesystem::path source = STEPGATE_SOURCE_DIR;
  const Scenario scenario = read_scenario(source / "scenarios/ranks/data_parallel.toml");
  Knobs knobs = std::ranges::find(scenario.variants, "two", &Variant::name)->knobs;
  knobs.ranks.count = ranks;
  knobs.ranks.slow_us = slow_us;
  knobs.ranks.slow_rank = ranks / 2;
  return plans_of(knobs).front();
}

// The simulation is fast because ranks that do the same share one timeline.
TEST(SimulatedRanks, OfWhichThereAreSixtyFourTakeAProcessorLessThanTwoSeconds) {
  const std::filesystem::path source = STEPGATE_SOURCE_DIR;
  const DeviceProfile profile = read_profile(source / "baselines/nvidia-h200/device.toml");
  for (const double slow_us : {0.0, 300.0}) {
    const std::clock_t begin = std::clock();  // processor time of this process only
    const StepPlan plan = gpt_of(64, slow_us);
    const auto device = make_simulated_device(profile);
    const auto loaded = device->load(plan);
    const StepResult timed = loaded->run({.wash_out_steps = 10, .steps = 100});
    StepResult traced = loaded->run({.wash_out_steps = 10, .steps = 20, .trace = true});
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    EXPECT_LT(seconds, sanitized ? 60.0 : 2.0);
    EXPECT_GT(*timed.elapsed, std::chrono::milliseconds(100 * 10));
    const std::vector<Trace> traces = take_traces(std::move(traced));
    std::size_t ranks = 0;
    for (const Trace& trace : traces) ranks += 1 + trace.alike.size();
    EXPECT_EQ(ranks, 64U);
    EXPECT_EQ(traces.size(), slow_us == 0 ? 1U : 2U);
    EXPECT_EQ(std::ssize(collectives_of(traces.front())), 20 * 8);
  }
}

}  // namespace
}  // namespace stepgate
