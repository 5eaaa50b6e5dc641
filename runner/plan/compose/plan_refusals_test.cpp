// SPDX-License-Identifier: MIT
// Tests which scenarios are refused: races, graphs that cannot be captured, sizes that do not fit.
#include <gtest/gtest.h>

#include "plan/analyse/find_races.h"
#include "plan/testing/plan_by_hand.h"

namespace stepgate {
namespace {

TEST(PlanRefusals, RefusesOneBufferOnASideStreamAsARace) {
  Knobs knobs = small_mlp();
  knobs.transfer = {.host = HostMemory::pinned, .stream = CopyStream::side};
  EXPECT_EQ(refusal_of(knobs),
            "by_hand.toml:3:1: variant 'only' is a race: 'copy the batch' of step 1 on the side "
            "stream and 'ingest the "
            "batch' of step 0 on the compute stream both touch 'device batch', and nothing orders "
            "them; rotate over "
            "two device buffers ('transfer.buffers = 2'), which hands them off with events");
}

// Returns how many waits for other streams the step has, each of which it needs.
int waits_that_no_step_can_lack(const TransferKnobs& transfer) {
  Knobs knobs = small_mlp();
  knobs.transfer = transfer;
  const StepPlan good = plan_of(knobs);
  EXPECT_EQ(find_race(good), std::nullopt);
  int left_out = 0;
  for (std::size_t index = 0; index < good.operations.size(); ++index) {
    if (!std::holds_alternative<StreamWaitsEvent>(good.operations[index].action)) continue;
    StepPlan bad = good;
    bad.operations.erase(bad.operations.begin() + static_cast<std::ptrdiff_t>(index));
    EXPECT_NE(find_race(bad), std::nullopt) << "without '" << good.operations[index].name << "'";
    ++left_out;
  }
  return left_out;
}

TEST(PlanRefusals, IsARaceWithoutAnyOneOfItsHandOffs) {
  TransferKnobs transfer{.host = HostMemory::pinned, .stream = CopyStream::side, .buffers = 2};
  EXPECT_EQ(waits_that_no_step_can_lack(transfer), 2);
  transfer.buffers = 3;
  transfer.back = CopyBack::side;
  EXPECT_EQ(waits_that_no_step_can_lack(transfer), 3);
  transfer.stream = CopyStream::compute;
  EXPECT_EQ(waits_that_no_step_can_lack(transfer), 2);
}

TEST(PlanRefusals, RefusesThreeStreamsOverOneBufferAsARace) {
  Knobs knobs = small_mlp();
  knobs.transfer = {.host = HostMemory::pinned, .stream = CopyStream::side, .back = CopyBack::side};
  EXPECT_NE(refusal_of(knobs).find("is a race: 'copy the batch' of step 1 on the side stream"),
            std::string::npos)
      << refusal_of(knobs);
  knobs.transfer.stream = CopyStream::compute;
  EXPECT_NE(refusal_of(knobs).find("'copy the batch back' of step 0 on the side out stream both "
                                   "touch 'device batch'"),
            std::string::npos)
      << refusal_of(knobs);
}

TEST(PlanRefusals, IsARaceWhenTheHostWritesManagedMemoryWithoutWaitingForItsReader) {
  Knobs knobs = small_mlp();
  for (const HostMemory host : {HostMemory::managed, HostMemory::managed_prefetch}) {
    for (const std::int64_t buffers : {1, 2, 4}) {
      knobs.transfer = {.host = host, .buffers = buffers};
      StepPlan plan = plan_of(knobs);
      EXPECT_EQ(find_race(plan), std::nullopt);
      EXPECT_EQ(std::erase_if(plan.operations,
                              [](const Operation& operation) {
                                return std::holds_alternative<HostWaits>(operation.action);
                              }),
                1U);
      EXPECT_NE(find_race(plan), std::nullopt) << buffers << " buffers";
    }
  }
}

TEST(PlanRefusals, RefusesTurnsThatItCannotBuild) {
  Knobs knobs = small_mlp();
  knobs.batch.sizes = {4, 8};
  EXPECT_EQ(refusal_of(knobs), "accepted");
  knobs.launch.via = LaunchVia::graph;
  EXPECT_NE(refusal_of(knobs).find("cannot be part of a graph"), std::string::npos);
  knobs.launch.via = LaunchVia::stream;
  knobs.sync = {.where = SyncWhere::op, .how = SyncHow::device, .every = 2};
  EXPECT_NE(refusal_of(knobs).find("'sync.every' would count only some of them"),
            std::string::npos);
  knobs.sync.every = 1;
  EXPECT_EQ(refusal_of(knobs), "accepted");
  knobs.batch.tensors = 1000;
  EXPECT_NE(refusal_of(knobs).find("cannot be split"), std::string::npos)
      << "the smallest batch has 272 words";
}

TEST(PlanRefusals, NeedsNoHandOffWhereTheLegacyStreamOrders) {
  Knobs knobs = small_mlp();
  knobs.transfer = {.host = HostMemory::pinned, .stream = CopyStream::legacy};
  EXPECT_EQ(find_race(plan_of(knobs)), std::nullopt);
}

TEST(PlanRefusals, RefusesAGraphWithAWaitInside) {
  Knobs knobs = small_mlp();
  knobs.launch.via = LaunchVia::graph;
  knobs.sync = {.where = SyncWhere::op, .how = SyncHow::device, .every = 1};
  EXPECT_NE(refusal_of(knobs).find(
                "'wait for the device' cannot be part of a graph: the host waits there"),
            std::string::npos)
      << refusal_of(knobs);
  knobs.sync.where = SyncWhere::step;
  EXPECT_EQ(refusal_of(knobs), "accepted");
}

TEST(PlanRefusals, RefusesAGraphThatCallsCudaMalloc) {
  Knobs knobs = small_mlp();
  knobs.launch.via = LaunchVia::graph;
  knobs.alloc = {.with = Allocator::cuda, .when = AllocWhen::step, .keep_bytes = std::nullopt};
  EXPECT_NE(refusal_of(knobs).find("cudaMalloc cannot be captured"), std::string::npos)
      << refusal_of(knobs);
  knobs.alloc.with = Allocator::cuda_async;
  EXPECT_EQ(refusal_of(knobs), "accepted");
}

TEST(PlanRefusals, RefusesAGraphOverABatchThatMoves) {
  Knobs knobs = small_mlp();
  knobs.launch.via = LaunchVia::graph;
  knobs.alloc.with = Allocator::cuda_async;
  knobs.transfer = {.host = HostMemory::pinned, .device_buffer = DeviceBuffer::per_step};
  EXPECT_NE(refusal_of(knobs).find("the address of 'device batch' changes every step"),
            std::string::npos)
      << refusal_of(knobs);
}

TEST(PlanRefusals, RefusesSamplesThatTheModelCannotRead) {
  Knobs knobs = small_mlp();
  knobs.batch.sample_bytes = 16;
  EXPECT_NE(refusal_of(knobs).find("the model reads 68 bytes of a sample"), std::string::npos)
      << refusal_of(knobs);
}

TEST(PlanRefusals, RefusesEveryWrongVariantAtOnce) {
  Knobs knobs = small_mlp();
  knobs.batch.sample_bytes = 16;
  Scenario scenario = scenario_of(knobs);
  scenario.variants.push_back({"other", knobs, {"by_hand.toml", 9, 1}});
  try {
    (void)build_step_plans(scenario, 1);
    FAIL() << "accepted";
  } catch (const RequestError& error) {
    EXPECT_EQ(error.diagnostics().size(), 2u);
  }
}

// The message of a scenario whose one assertion names this kernel.
std::string refusal_of_kernel(const std::string& name) {
  Scenario scenario = scenario_of(small_mlp());
  Expectation assertion;
  assertion.place = {"by_hand.toml", 9, 8};
  assertion.left = {{MetricOf{.variant = "only", .metric = Metric::kernel_us, .kernel = name}}};
  assertion.relation = Relation::at_most;
  assertion.right = {{1e-3}};
  scenario.expect.push_back(assertion);
  try {
    (void)build_step_plans(scenario, 1);
  } catch (const RequestError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(PlanRefusals, RefusesTheTimeOfAKernelThatTheVariantDoesNotLaunch) {
  EXPECT_EQ(refusal_of_kernel("sgd"), "accepted");
  EXPECT_EQ(refusal_of_kernel("matmull"),
            "by_hand.toml:9:8: 'only' launches no kernel 'matmull'; did you mean 'matmul'?");
  const std::string attention = refusal_of_kernel("attention");
  EXPECT_NE(attention.find("'only' launches no kernel 'attention'; it launches ingest, "),
            std::string::npos)
      << attention;
}

}  // namespace
}  // namespace stepgate
