// SPDX-License-Identifier: MIT
// Tests plans of steps of several ranks: the data that is communicated, when, and the memory of a
// rank.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "plan/analyse/find_capture_errors.h"
#include "plan/analyse/find_races.h"
#include "plan/analyse/lifetimes.h"
#include "plan/derive/plan_of_rank.h"
#include "plan/testing/plan_by_hand.h"

namespace stepgate {
namespace {

// A model for which others have published measurements (163.1 million parameters).
Knobs gpt(std::int64_t ranks = 4) {
  Knobs knobs;
  knobs.model = {.kind = ModelKind::transformer, .layers = 12, .hidden = 768, .dtype = DType::bf16};
  knobs.model.heads = 12;
  knobs.model.seq = 1024;
  knobs.model.vocab = 50304;
  knobs.batch.size = 8;
  knobs.optim = {.kind = OptimKind::adamw, .master = true};
  knobs.ranks.count = ranks;
  return knobs;
}

Knobs sharded(Shard shard, std::int64_t ranks = 4) {
  Knobs knobs = gpt(ranks);
  knobs.ranks.shard = shard;
  if (shard >= Shard::gradients) knobs.alloc.with = Allocator::arena;
  return knobs;
}

template <class Change>
StepPlan changed(Change change) {
  Knobs knobs = gpt();
  change(knobs);
  return plan_of(knobs);
}

constexpr double least_to_compare = 1e-9;

TEST(Ranks, OneHasNoCollectives) {
  const StepPlan plan = plan_of(gpt(1));
  EXPECT_FALSE(counted(plan, Metric::collectives_per_step));
  EXPECT_TRUE(std::ranges::none_of(plan.operations, [](const Operation& operation) {
    return std::holds_alternative<Collective>(operation.action);
  }));
}

TEST(Ranks, ReduceTheirGradientsInBucketsOf25Mebibytes) {
  const StepPlan plan = plan_of(gpt());
  EXPECT_EQ(value(plan, Metric::all_reduces_per_step), 8);
  EXPECT_EQ(value(plan, Metric::collectives_per_step), 8);
  EXPECT_EQ(value(plan, Metric::payload_bytes_per_step), static_cast<double>(plan.param_bytes));
  EXPECT_EQ(value(plan, Metric::wire_bytes_per_step), 1.5 * static_cast<double>(plan.param_bytes));
  EXPECT_EQ(value(plan, Metric::unbucketed_per_step), 0);
  EXPECT_EQ(value(plan, Metric::late_collectives_per_step), 1);
  EXPECT_EQ(value(plan, Metric::early_comm_waits_per_step), 0);
  EXPECT_EQ(mean_batch_size(plan), 4 * 8);
}

// For each common mistake, there is a count that shows it.
TEST(Ranks, MistakesHaveCountsOfTheirOwn) {
  const StepPlan each = changed([](Knobs& knobs) { knobs.ranks.bucket_bytes = 0; });
  EXPECT_EQ(value(each, Metric::collectives_per_step), 149);
  EXPECT_EQ(value(each, Metric::unbucketed_per_step), 97);
  const StepPlan early =
      changed([](Knobs& knobs) { knobs.ranks.overlap = ReduceOverlap::early_wait; });
  EXPECT_EQ(value(early, Metric::early_comm_waits_per_step), 7);
  const StepPlan after = changed([](Knobs& knobs) { knobs.ranks.overlap = ReduceOverlap::none; });
  EXPECT_EQ(value(after, Metric::late_collectives_per_step), 8);
  const StepPlan forward =
      changed([](Knobs& knobs) { knobs.ranks.bucket_order = BucketOrder::forward; });
  // The first parameter, the token table, has its gradient one kernel before the end.
  EXPECT_EQ(value(forward, Metric::late_collectives_per_step), 7);
  EXPECT_EQ(value(forward, Metric::collectives_per_step), 8);
  const StepPlan parts = changed([](Knobs& knobs) {
    knobs.batch.accumulate = 4;
    knobs.ranks.sync_each_part = true;
  });
  EXPECT_EQ(value(parts, Metric::collectives_per_step), 4 * 8);
  const StepPlan last_part = changed([](Knobs& knobs) { knobs.batch.accumulate = 4; });
  EXPECT_EQ(value(last_part, Metric::collectives_per_step), 8);
  const StepPlan checked = changed([](Knobs& knobs) { knobs.ranks.check_each_bucket = true; });
  EXPECT_EQ(value(checked, Metric::host_waits_per_step), 8);
  EXPECT_EQ(value(checked, Metric::copies_per_step), value(gpt(), Metric::copies_per_step) + 8);
  EXPECT_EQ(value(checked, Metric::launches_per_step), value(gpt(), Metric::launches_per_step) + 8);
  EXPECT_EQ(value(checked, Metric::late_collectives_per_step), 1);
  const StepPlan wide =
      changed([](Knobs& knobs) { knobs.ranks.gradient_dtype = GradientDtype::fp32; });
  EXPECT_EQ(value(wide, Metric::wire_bytes_per_step), 3 * static_cast<double>(wide.param_bytes));
  EXPECT_EQ(value(wide, Metric::launches_per_step),
            value(gpt(), Metric::launches_per_step) + 2 * 8);
}

// Each parameter has bf16 weights and gradients, and master weights and two moments in fp32.
TEST(Ranks, KeepWhatTheyShareOnce) {
  for (const std::int64_t ranks : {2, 4, 8}) {
    const auto n = static_cast<double>(ranks);
    const auto a_parameter = [&](Shard shard) {
      const StepPlan plan = plan_of(sharded(shard, ranks));
      return value(plan, Metric::state_bytes) / (static_cast<double>(plan.param_bytes) / 2);
    };
    EXPECT_NEAR(a_parameter(Shard::none), 16, least_to_compare);
    EXPECT_NEAR(a_parameter(Shard::optimizer), 4 + 12 / n, least_to_compare);
    EXPECT_NEAR(a_parameter(Shard::gradients), 2 + 14 / n, least_to_compare);
    EXPECT_NEAR(a_parameter(Shard::parameters), 16 / n, least_to_compare);
  }
  const StepPlan alone = plan_of(sharded(Shard::none, 1));
  EXPECT_NEAR(value(alone, Metric::state_bytes) / (static_cast<double>(alone.param_bytes) / 2), 16,
              least_to_compare)
      << "a step without other ranks has a state too";
}

TEST(Ranks, ThatShareSendAsMuch) {
  const StepPlan all = plan_of(gpt());
  for (const Shard shard : {Shard::optimizer, Shard::gradients}) {
    const StepPlan plan = plan_of(sharded(shard));
    EXPECT_EQ(value(plan, Metric::reduce_scatters_per_step), 8);
    EXPECT_EQ(value(plan, Metric::all_gathers_per_step), 8);
    EXPECT_EQ(value(plan, Metric::all_reduces_per_step), 1);  // of the gradients' norm, a number
    const double norm = 1.5 * 4;
    EXPECT_EQ(value(plan, Metric::wire_bytes_per_step),
              value(all, Metric::wire_bytes_per_step) + norm);
    EXPECT_EQ(value(plan, Metric::unbucketed_per_step), 0);
  }
}

StepPlan without(StepPlan plan, const std::string& operation) {
  const auto removed =
      std::erase_if(plan.operations, [&](const Operation& one) { return one.name == operation; });
  EXPECT_GT(removed, 0) << operation;
  return plan;
}

Knobs in_parts(Shard shard, bool sync_each_part) {
  Knobs knobs = sharded(shard);
  knobs.batch.accumulate = 4;
  knobs.ranks.sync_each_part = sync_each_part;
  return knobs;
}

// Without a reduction of every part, a rank has all gradients of a batch until its last part.
TEST(Ranks, ReducePartsIntoWhatTheyKeepOrKeepAllGradientsForThem) {
  for (const Shard shard : {Shard::gradients, Shard::parameters}) {
    const StepPlan one = plan_of(sharded(shard));
    const StepPlan last = plan_of(in_parts(shard, false));
    const StepPlan each = plan_of(in_parts(shard, true));
    const double buckets = value(one, Metric::reduce_scatters_per_step);
    EXPECT_EQ(value(last, Metric::reduce_scatters_per_step), buckets);
    EXPECT_EQ(value(each, Metric::reduce_scatters_per_step), 4 * buckets);
    const std::int64_t added = launches_of(each, "add") - launches_of(last, "add");
    EXPECT_EQ(static_cast<double>(added), 3 * buckets);
    EXPECT_EQ(value(each, Metric::state_bytes), value(one, Metric::state_bytes));
    EXPECT_FALSE(find_race(last));
    EXPECT_FALSE(find_race(each)) << *find_race(each);
    EXPECT_TRUE(find_race(without(each, "wait until the gradients are reduced")));
    EXPECT_TRUE(find_race(without(each, "wait for bucket 3")));
  }
  const auto gathers = [](Shard shard, bool each) {
    return value(plan_of(in_parts(shard, each)), Metric::all_gathers_per_step);
  };
  EXPECT_EQ(gathers(Shard::parameters, false), 4 * (12 + 2 + 12));
  EXPECT_EQ(gathers(Shard::parameters, true), 4 * (12 + 2 + 12));
  EXPECT_EQ(gathers(Shard::gradients, true), 8);
  // With weights sharded, gradients that wait for the last part are what there is most of.
  const double gradients = static_cast<double>(plan_of(gpt()).param_bytes);
  const auto need = [](bool each) {
    return value(plan_of(in_parts(Shard::parameters, each)), Metric::need);
  };
  EXPECT_GT(need(false), need(true) + 0.4 * gradients);
}

// The forward pass gathers the embeddings, twelve blocks and the head. The backward pass gathers
// the blocks again, except the head, which is still there; it does not read the embeddings.
TEST(Ranks, GatherWeightsUnitByUnit) {
  const StepPlan plan = plan_of(sharded(Shard::parameters));
  EXPECT_EQ(value(plan, Metric::all_gathers_per_step), 12 + 2 + 12);
  EXPECT_EQ(value(plan, Metric::reduce_scatters_per_step), 12 + 2);
  EXPECT_EQ(value(plan, Metric::all_reduces_per_step), 1);
  const double parameters = static_cast<double>(plan.param_bytes);
  EXPECT_GT(value(plan, Metric::wire_bytes_per_step), 2 * 0.75 * parameters);
  EXPECT_LT(value(plan, Metric::wire_bytes_per_step), 3 * 0.75 * parameters);
  // If gathers alternate with reductions on one stream, a block's gather waits for the gradients of
  // the block before it.
  EXPECT_EQ(value(plan, Metric::early_comm_waits_per_step), 11);
  Knobs beside = sharded(Shard::parameters);
  beside.ranks.communicators = 2;
  EXPECT_EQ(value(beside, Metric::early_comm_waits_per_step), 0);
  EXPECT_EQ(value(beside, Metric::streams), 3);
}

// Weights that are gathered before the batch is read are among the operations that come before it.
TEST(Ranks, HandTheirBatchBackWhenItIsReadWhateverIsGatheredBefore) {
  Knobs knobs = sharded(Shard::parameters);
  knobs.transfer = {.stream = CopyStream::side, .buffers = 2};
  for (const std::int64_t ahead : {0, 1, 4}) {
    knobs.ranks.gather_ahead = ahead;
    const StepPlan plan = plan_of(knobs);
    EXPECT_FALSE(find_race(plan)) << *find_race(plan);
    const auto place_of = [&](const std::string& name) {
      return std::ranges::find(plan.operations, name, &Operation::name) - plan.operations.begin();
    };
    EXPECT_EQ(place_of("batch is consumed"), place_of("ingest the batch") + 1);
  }
}

Knobs communicating_forward() {
  Knobs knobs = gpt();
  knobs.ranks.broadcast_bytes = 1001;
  knobs.ranks.broadcast_calls = 3;
  knobs.ranks.forward_reduces = 24;
  return knobs;
}

TEST(Ranks, CommunicateInTheForwardPass) {
  const StepPlan plan = plan_of(communicating_forward());
  EXPECT_EQ(value(plan, Metric::broadcasts_per_step), 3);
  EXPECT_EQ(value(plan, Metric::all_reduces_per_step), 8 + 24);
  EXPECT_EQ(value(plan, Metric::collectives_per_step), 3 + 8 + 24);
  EXPECT_EQ(value(plan, Metric::payload_bytes_per_step),
            static_cast<double>(plan.param_bytes) + 1004 + 24 * 2 * 768 * 4);
  for (const Metric metric : {Metric::unbucketed_per_step, Metric::late_collectives_per_step,
                              Metric::early_comm_waits_per_step, Metric::state_bytes})
    EXPECT_EQ(value(plan, metric), value(plan_of(gpt()), metric)) << "of gradients alone";
  EXPECT_EQ(value(plan_of(gpt()), Metric::broadcasts_per_step), 0);
  EXPECT_FALSE(find_race(plan));
}

// Buffers are broadcast once a step, or before every part whose gradients are reduced.
TEST(Ranks, CommunicateInTheForwardPassOfEveryPart) {
  Knobs knobs = communicating_forward();
  knobs.batch.accumulate = 4;
  EXPECT_EQ(value(plan_of(knobs), Metric::broadcasts_per_step), 3);
  EXPECT_EQ(value(plan_of(knobs), Metric::all_reduces_per_step), 8 + 4 * 24);
  knobs.ranks.sync_each_part = true;
  EXPECT_EQ(value(plan_of(knobs), Metric::broadcasts_per_step), 4 * 3);
  EXPECT_EQ(value(plan_of(knobs), Metric::all_reduces_per_step), 4 * (8 + 24));
}

TEST(Ranks, WaitInTheForwardPassForWhatTheyCommunicateThere) {
  Knobs knobs = communicating_forward();
  knobs.launch.via = LaunchVia::graph;
  const StepPlan plan = plan_of(knobs);
  EXPECT_FALSE(find_capture_error(plan));
  EXPECT_EQ(value(plan, Metric::collectives_per_step), 3 + 8 + 24);
  const auto place_of = [&](const std::string& name) {
    return std::ranges::find(plan.operations, name, &Operation::name) - plan.operations.begin();
  };
  EXPECT_LT(place_of("wait until the buffers are broadcast"), place_of("ingest the batch"));
  EXPECT_GT(place_of("wait until statistics 0 are reduced"), place_of("ingest the batch"));
  EXPECT_LT(place_of("wait until statistics 23 are reduced"), place_of("loss"));
}

// Two units are gathered at a time, whatever the depth: apart from a rank's state, a model twice as
// deep needs only more memory for activations.
TEST(Ranks, HaveTwoGatheredBlocksAtATime) {
  const auto gathered_need = [](std::int64_t layers) {
    Knobs knobs = sharded(Shard::parameters);
    knobs.batch.size = 1;
    knobs.model.seq = 8;
    knobs.model.vocab = 64;
    knobs.model.layers = layers;
    const StepPlan plan = plan_of(knobs);
    return value(plan, Metric::need) - value(plan, Metric::state_bytes);
  };
  const double block = 12 * 768 * 768 * 2;  // bytes, without biases and norms
  EXPECT_LT(gathered_need(24) - gathered_need(12), 0.2 * block);
  EXPECT_GT(gathered_need(12), 2 * block);
}

Knobs gathering(std::int64_t ahead) {
  Knobs knobs = sharded(Shard::parameters);
  knobs.ranks.communicators = 2;
  knobs.ranks.gather_ahead = ahead;
  knobs.alloc.with = Allocator::fixed;  // an arena's plan has one buffer
  return knobs;
}

// Number of compute kernels between the earliest start of a gather and the first use of its
// weights.
std::int64_t kernels_beside_gather(const StepPlan& plan, int visit) {
  const std::string name = "weights of visit " + std::to_string(visit);
  const auto may_come = std::ranges::find(plan.operations, name + " may come", &Operation::name);
  const auto needed = std::ranges::find(plan.operations, "wait for " + name, &Operation::name);
  EXPECT_LT(may_come, needed);
  return std::count_if(may_come, needed, [](const Operation& operation) {
    return operation.stream == compute_stream &&
           std::holds_alternative<LaunchKernel>(operation.action);
  });
}

// The largest number of buffers of gathered weights that are live at the same operation.
std::int64_t most_gathered_at_once(const StepPlan& plan) {
  std::vector<std::int64_t> there(plan.operations.size(), 0);
  for (const Lifetime& lifetime : lifetimes_of(plan).device) {
    if (!buffer_at(plan, lifetime.buffer).name.starts_with("weights of visit")) continue;
    for (int at = lifetime.first; at <= lifetime.last; ++at) ++there[static_cast<std::size_t>(at)];
  }
  return std::ranges::max(there);
}

// A block's first kernel with weights comes before the last kernel of the block before it. So two
// units are in memory at a time even if none is gathered ahead.
TEST(Ranks, GatherAsFarAheadAsTheyAreTold) {
  const StepPlan usual = plan_of(gathering(1));
  const std::int64_t of_a_block = kernels_beside_gather(usual, 7) + 1;
  EXPECT_GT(of_a_block, 5);
  for (const std::int64_t ahead : {0, 1, 2, 3}) {
    const StepPlan plan = plan_of(gathering(ahead));
    EXPECT_FALSE(find_race(plan));
    EXPECT_EQ(value(plan, Metric::all_gathers_per_step),
              value(usual, Metric::all_gathers_per_step));
    EXPECT_EQ(value(plan, Metric::wire_bytes_per_step), value(usual, Metric::wire_bytes_per_step));
    EXPECT_EQ(kernels_beside_gather(plan, 7), std::max<std::int64_t>(ahead * of_a_block - 1, 0));
    EXPECT_EQ(most_gathered_at_once(plan), std::max<std::int64_t>(ahead + 1, 2));
  }
}

// GEMMs leave multiprocessors free from the first reduction to the end of the backward pass.
TEST(Ranks, LeaveMultiprocessorsToTheReductionsBesideTheirGemms) {
  Knobs knobs = gpt();
  knobs.ranks.spare_sms = 16;
  const StepPlan plan = plan_of(knobs);
  bool reduces = false;
  int sparing = 0;
  for (const Operation& operation : plan.operations) {
    reduces |= std::holds_alternative<Collective>(operation.action);
    const auto* launch = std::get_if<LaunchKernel>(&operation.action);
    if (launch == nullptr || !kernel(launch->kernel).library.spare_multiprocessors) continue;
    const int spared = kernel(launch->kernel).library.spare_multiprocessors(launch->attributes);
    EXPECT_EQ(spared, reduces && operation.phase == Phase::backward ? 16 : 0) << operation.name;
    sparing += spared > 0;
  }
  EXPECT_GT(sparing, 50);
  EXPECT_EQ(value(plan, Metric::launches_per_step),
            value(plan_of(gpt()), Metric::launches_per_step));
}

TEST(Ranks, DivideTheirGradientsBeforeTheyAreAddedUp) {
  const auto reductions = [](const StepPlan& plan) {
    std::vector<Reduction> all;
    for (const Operation& operation : plan.operations) {
      const auto* collective = std::get_if<Collective>(&operation.action);
      if (collective != nullptr && operation.phase == Phase::backward)
        all.push_back(collective->reduction);
    }
    return all;
  };
  const StepPlan usual = plan_of(gpt());
  EXPECT_EQ(reductions(usual), std::vector<Reduction>(8, Reduction::average));
  for (const GradientDtype dtype : {GradientDtype::model, GradientDtype::fp32}) {
    const auto averaging = [&](Averaging average) {
      Knobs knobs = gpt();
      knobs.ranks.gradient_dtype = dtype;
      knobs.ranks.average = average;
      return plan_of(knobs);
    };
    const StepPlan before = averaging(Averaging::before);
    EXPECT_FALSE(find_race(before));
    EXPECT_EQ(reductions(before), std::vector<Reduction>(8, Reduction::sum));
    EXPECT_EQ(launches_of(before, "strided_scale"), 8);
    EXPECT_EQ(value(before, Metric::launches_per_step),
              value(averaging(Averaging::collective), Metric::launches_per_step) + 8);
    EXPECT_EQ(value(before, Metric::wire_bytes_per_step),
              value(averaging(Averaging::collective), Metric::wire_bytes_per_step));
  }
}

TEST(Ranks, OfAnMlpReduceTheirGradientsToo) {
  Knobs knobs = small_mlp();
  knobs.ranks = {.count = 2, .bucket_bytes = 0};
  const StepPlan plan = plan_of(knobs);
  EXPECT_EQ(value(plan, Metric::all_reduces_per_step), 2 * 3);  // a weight and a bias per layer
  EXPECT_EQ(value(plan, Metric::payload_bytes_per_step), static_cast<double>(plan.param_bytes));
}

TEST(RanksRace, WithoutAWait) {
  const StepPlan gathers = plan_of(sharded(Shard::parameters));
  EXPECT_FALSE(find_race(gathers));
  EXPECT_TRUE(find_race(without(gathers, "wait for weights of visit 5")));
  for (const Shard shard : {Shard::none, Shard::optimizer, Shard::gradients}) {
    const StepPlan plan = plan_of(sharded(shard));
    EXPECT_FALSE(find_race(plan));
    EXPECT_TRUE(find_race(without(plan, "wait until the gradients are reduced")));
    EXPECT_TRUE(find_race(without(plan, "wait for bucket 3")));
    if (shard == Shard::none) continue;
    EXPECT_TRUE(find_race(without(plan, "wait until the weights are gathered")));
    EXPECT_TRUE(find_race(without(plan, "wait for weights of bucket 2")));
    EXPECT_TRUE(find_race(without(plan, "wait until the square sum is reduced")));
  }
}

TEST(RanksRace, WithoutAWaitInTheForwardPass) {
  for (const std::int64_t parts : {1, 4}) {
    Knobs knobs = communicating_forward();
    knobs.batch.accumulate = parts;
    knobs.ranks.sync_each_part = parts > 1;
    const StepPlan plan = plan_of(knobs);
    EXPECT_FALSE(find_race(plan)) << *find_race(plan);
    for (const char* wait :
         {"wait until the buffers are broadcast", "wait until statistics 0 are reduced",
          "wait until statistics 23 are reduced", "wait for the forward pass"})
      EXPECT_TRUE(find_race(without(plan, wait))) << wait << ", " << parts << " parts";
  }
}

StepPlan in_a_graph(Shard shard) {
  Knobs knobs = sharded(shard);
  if (shard == Shard::parameters) knobs.ranks.communicators = 2;
  knobs.launch.via = LaunchVia::graph;
  return plan_of(knobs);
}

TEST(RanksInAGraph, HaveTheSameCollectivesInOneLaunch) {
  for (const Shard shard : {Shard::none, Shard::optimizer, Shard::gradients, Shard::parameters}) {
    const StepPlan plan = in_a_graph(shard);
    EXPECT_FALSE(find_capture_error(plan)) << *find_capture_error(plan);
    EXPECT_FALSE(find_race(plan)) << *find_race(plan);
    EXPECT_EQ(value(plan, Metric::launches_per_step), 1);
    Knobs one_by_one = sharded(shard);
    if (shard == Shard::parameters) one_by_one.ranks.communicators = 2;
    for (const Metric metric :
         {Metric::collectives_per_step, Metric::payload_bytes_per_step, Metric::wire_bytes_per_step,
          Metric::late_collectives_per_step, Metric::early_comm_waits_per_step})
      EXPECT_EQ(value(plan, metric), value(one_by_one, metric)) << row_of(metric).name;
    for (const Operation& operation : plan.operations)
      EXPECT_TRUE(operation.captured || !std::holds_alternative<Collective>(operation.action));
  }
}

// The norm of a bucket waits for that bucket alone, so that the last reductions are hidden.
TEST(Ranks, WaitForEachBucketBeforeItsNorm) {
  for (const Shard shard : {Shard::none, Shard::optimizer, Shard::gradients}) {
    const StepPlan plan = plan_of(sharded(shard));
    std::vector<std::size_t> waits;
    for (std::size_t index = 0; index < plan.operations.size(); ++index) {
      if (plan.operations[index].name != "wait until the gradients are reduced") continue;
      waits.push_back(index);
      EXPECT_EQ(plan.operations[index + 1].name, "gradient norm in parts");
      StepPlan unordered = plan;
      unordered.operations.erase(unordered.operations.begin() + static_cast<std::ptrdiff_t>(index));
      EXPECT_TRUE(find_race(unordered)) << index;
    }
    EXPECT_EQ(waits.size(), 8u);
    EXPECT_FALSE(find_race(plan)) << *find_race(plan);
  }
}

// Pieces of the norm are neighbouring buckets of 16 MiB together, and everything at once where
// nothing is reduced beside it.
TEST(Ranks, HaveAsFewLaunchesOfTheNormAsHide) {
  const StepPlan each = changed([](Knobs& knobs) { knobs.ranks.bucket_bytes = 0; });
  EXPECT_LE(launches_of(each, "square_sums"), each.param_bytes / (16 << 20) + 1);
  EXPECT_GE(launches_of(each, "square_sums"), 10);
  EXPECT_FALSE(find_race(each)) << *find_race(each);
  for (const ReduceOverlap overlap : {ReduceOverlap::none, ReduceOverlap::early_wait}) {
    const StepPlan all = changed([&](Knobs& knobs) { knobs.ranks.overlap = overlap; });
    EXPECT_EQ(launches_of(all, "square_sums"), 1);
    EXPECT_EQ(std::ranges::count(all.operations, "wait until the gradients are reduced",
                                 &Operation::name),
              1);
  }
}

TEST(RanksInAGraph, AreRefusedWhereABranchDoesNotComeBack) {
  const StepPlan plan = in_a_graph(Shard::none);
  EXPECT_EQ(find_capture_error(without(plan, "wait until the gradients are reduced")),
            "'reduce bucket 0' cannot be part of a graph: the compute stream never waits for it "
            "within the graph");
  EXPECT_EQ(find_capture_error(without(plan, "wait for bucket 0")),
            "'reduce bucket 0' cannot be part of a graph: its stream has waited for nothing that "
            "the graph records");
}

// The slow rank's host launches its graph late; the delay itself is not part of the graph.
TEST(RanksInAGraph, MayHaveOneThatIsSlow) {
  Knobs knobs = gpt();
  knobs.launch.via = LaunchVia::graph;
  knobs.ranks.slow_us = 200;
  EXPECT_FALSE(find_capture_error(plan_of(knobs)));
}

TEST(PlanOfRank, HasTheRanksPartsAndItsBatches) {
  const StepPlan plan = plan_of(sharded(Shard::optimizer));
  const StepPlan third = plan_of_rank(plan, 2);
  EXPECT_EQ(third.ranks.rank, 2);
  int parts = 0;
  ASSERT_EQ(third.operations.size(), plan.operations.size());
  for (std::size_t index = 0; index < plan.operations.size(); ++index) {
    const auto* built = std::get_if<Collective>(&plan.operations[index].action);
    if (built == nullptr || built->kind != CollectiveKind::reduce_scatter) continue;
    const auto& own = std::get<Collective>(third.operations[index].action);
    EXPECT_EQ(own.to.offset_bytes, built->from.offset_bytes + 2 * built->to.bytes);
    EXPECT_EQ(own.to.rank_stride_bytes, 0);
    EXPECT_EQ(own.from.offset_bytes, built->from.offset_bytes);
    ++parts;
  }
  EXPECT_EQ(parts, 8);
  bool has_batches = false;
  for (const Buffer& buffer : third.buffers) {
    if (buffer.content != Content::payload) continue;
    EXPECT_EQ(buffer.first_number, 2 * buffer.bytes / 4);
    has_batches = true;
  }
  EXPECT_TRUE(has_batches);
}

TEST(PlanOfRank, HasTheHostWorkOfTheSlowRankAlone) {
  Knobs knobs = gpt();
  knobs.ranks.slow_us = 200;
  knobs.ranks.slow_rank = 2;
  const StepPlan plan = plan_of(knobs);
  const auto work_of = [&](int rank) {
    std::int64_t nanoseconds = 0;
    for (const Operation& operation : plan_of_rank(plan, rank).operations) {
      if (const auto* work = std::get_if<HostWork>(&operation.action))
        nanoseconds += work->nanoseconds;
    }
    return nanoseconds;
  };
  EXPECT_EQ(work_of(0), 0);
  EXPECT_EQ(work_of(2), 200'000);
}

TEST(RingWireBytes, AreThoseOfTheRingsOfNccl) {
  EXPECT_EQ(ring_wire_bytes(CollectiveKind::all_reduce, 1024, 4), 1536);
  EXPECT_EQ(ring_wire_bytes(CollectiveKind::all_reduce, 1024, 1), 0);
  EXPECT_EQ(ring_wire_bytes(CollectiveKind::reduce_scatter, 1024, 4), 768);
  EXPECT_EQ(ring_wire_bytes(CollectiveKind::all_gather, 1024, 4), 768);
}

}  // namespace
}  // namespace stepgate
