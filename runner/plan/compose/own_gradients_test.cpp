// SPDX-License-Identifier: MIT
// Tests gradients set to none: when their memory is allocated and released, how much that saves,
// and which gradients stay. tests/numbers/own_gradient_numbers_test.cpp checks that devices compute
// the same numbers.
#include "plan/compose/own_gradients.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "plan/analyse/find_capture_errors.h"
#include "plan/analyse/find_races.h"
#include "plan/analyse/lifetimes.h"
#include "plan/analyse/stays.h"
#include "plan/testing/counted.h"
#include "plan/testing/plan_by_hand.h"

namespace stepgate {
namespace {

constexpr std::int64_t own_layers = 4;
constexpr std::int64_t own_width = 128;
// Bytes of a layer's gradients, in whole blocks of 512.
constexpr std::int64_t bytes_of_layer = own_width * (own_width + 1) * 4;

// An activation is as large as the gradients of eight layers, so that the backward pass releases
// more than it allocates.
Knobs set_to_none(Allocator with = Allocator::caching) {
  Knobs knobs = small_mlp();
  knobs.model.layers = own_layers;
  knobs.model.hidden = own_width;
  knobs.batch.size = 1024;
  knobs.alloc.with = with;
  knobs.alloc.when = AllocWhen::op;
  knobs.alloc.keep_bytes = std::nullopt;
  knobs.optim.impl = OptimImpl::per_tensor;
  return knobs;
}

Knobs zeroed(Knobs knobs) {
  knobs.memory.zero_grad = ZeroGrad::memset;
  return knobs;
}

bool is_own(const Buffer& buffer) {
  return buffer.purpose == Purpose::gradients && buffer.allocated_by != AllocatedBy::the_plan;
}

int own_gradients_of(const StepPlan& plan) {
  return static_cast<int>(std::ranges::count_if(plan.buffers, is_own));
}

std::string name_at(const StepPlan& plan, std::size_t index) {
  return plan.operations.at(index).name;
}

template <class Action>
std::vector<std::size_t> with_gradients(const StepPlan& plan) {
  std::vector<std::size_t> found;
  for (std::size_t index = 0; index < plan.operations.size(); ++index) {
    const auto* action = std::get_if<Action>(&plan.operations[index].action);
    if (action && is_own(buffer_at(plan, action->buffer))) found.push_back(index);
  }
  return found;
}

TEST(OwnGradients, ComeWithTheirBackwardPassAndGoWhenAllAreUpdated) {
  const StepPlan plan = plan_of(set_to_none());
  EXPECT_EQ(own_gradients_of(plan), 2 * own_layers);
  std::int64_t bytes = 0;
  for (const Buffer& buffer : plan.buffers)
    if (buffer.purpose == Purpose::gradients) bytes += buffer.bytes;
  EXPECT_EQ(bytes, plan.param_bytes) << "and no flat buffer besides";
  const auto allocated = with_gradients<Allocate>(plan);
  ASSERT_EQ(allocated.size(), 2U * own_layers);
  EXPECT_EQ(name_at(plan, allocated.front()), "allocate gradient of layer 3 bias");
  EXPECT_EQ(name_at(plan, allocated.front() + 1), "layer 3: bias gradient");
  EXPECT_EQ(name_at(plan, allocated.back()), "allocate gradient of layer 0 weight");
  EXPECT_EQ(name_at(plan, allocated.back() + 1), "layer 0: weight gradient");
  const auto released = with_gradients<Release>(plan);
  ASSERT_EQ(released.size(), 2U * own_layers);
  EXPECT_EQ(name_at(plan, released.front() - 1), "layer 3: update the bias");
  EXPECT_EQ(released.back() - released.front(), 2U * own_layers - 1) << "one after the other";
  EXPECT_TRUE(gives_back_everything(plan)) << "so that it may begin again in place";
  EXPECT_EQ(find_race(plan), std::nullopt);
}

// The peak is in the first layer of the backward pass, with that layer's gradients and all
// activations. With kept gradients it is in the loss, with labels and row losses. First fit is left
// out: it never splits blocks, and a gradient may take an activation's block.
TEST(OwnGradients, SaveWhatWouldLieBesideTheActivations) {
  for (const Allocator with :
       {Allocator::cuda, Allocator::cuda_async, Allocator::caching, Allocator::expandable}) {
    const Knobs none = set_to_none(with);
    const auto saved = [&](Metric memory) {
      return value(zeroed(none), memory) - value(none, memory);
    };
    constexpr std::int64_t of_other_layers = (own_layers - 1) * bytes_of_layer;
    EXPECT_EQ(saved(Metric::need), of_other_layers);
    EXPECT_EQ(saved(Metric::peak_live), of_other_layers + 2 * none.batch.size * 4);
    EXPECT_EQ(value(none, Metric::live_slope), 0);
    EXPECT_EQ(value(none, Metric::memset_bytes_per_step), 0);
  }
}

// Where activations are smaller than weights, the peak has all gradients.
TEST(OwnGradients, SaveNothingOfAPeakThatHasThemAll) {
  Knobs knobs = set_to_none(Allocator::cuda);
  knobs.batch.size = 1;
  const double saved = value(zeroed(knobs), Metric::peak_live) - value(knobs, Metric::peak_live);
  EXPECT_LT(saved, bytes_of_layer / 10);
}

// A gradient that is never released grows memory in every step.
TEST(OwnGradients, ThatAreNotReleasedAreALeak) {
  StepPlan plan = plan_of(set_to_none());
  EXPECT_EQ(growth_bytes_per_step(plan), 0);
  const std::size_t released = with_gradients<Release>(plan).back();
  const int buffer = std::get<Release>(plan.operations[released].action).buffer;
  plan.operations.erase(plan.operations.begin() + static_cast<std::ptrdiff_t>(released));
  EXPECT_EQ(growth_bytes_per_step(plan), static_cast<double>(buffer_at(plan, buffer).bytes));
  EXPECT_FALSE(gives_back_everything(plan));
}

TEST(OwnGradients, AddUpOverThePartsOfABatchAndGoAfterTheLast) {
  Knobs knobs = small_transformer();
  knobs.model.dtype = DType::fp32;
  knobs.batch.accumulate = 2;
  knobs.alloc = {.with = Allocator::caching, .when = AllocWhen::op};
  knobs.optim.impl = OptimImpl::per_tensor;
  const StepPlan plan = plan_of(knobs);
  const auto allocated = with_gradients<Allocate>(plan);
  EXPECT_GT(own_gradients_of(plan), 8 * knobs.model.layers / 2);
  EXPECT_EQ(std::ssize(allocated), own_gradients_of(plan)) << "once a step";
  EXPECT_TRUE(name_at(plan, allocated.back() + 1).starts_with("part 0: "));
  EXPECT_EQ(plan.operations[with_gradients<Release>(plan).front()].phase, Phase::optimizer);
}

// One kernel writes the gradients of a norm's weight and bias, so they lie side by side.
TEST(OwnGradients, OfOneKernelAreTogether) {
  Knobs knobs = small_transformer();
  knobs.model.dtype = DType::fp32;
  knobs.alloc = {.with = Allocator::caching, .when = AllocWhen::op};
  knobs.optim.impl = OptimImpl::per_tensor;
  const StepPlan plan = plan_of(knobs);
  std::int64_t bytes = 0, together = 0;
  for (const Buffer& buffer : plan.buffers) {
    if (!is_own(buffer)) continue;
    bytes += buffer.bytes;
    together += buffer.name.find(" to ") != std::string::npos;
  }
  EXPECT_EQ(together, 2 * knobs.model.layers + 1);
  std::int64_t of_parameters = 0;
  for (const Parameter& parameter : plan.parameters) of_parameters += parameter.elements * 4;
  EXPECT_EQ(bytes, of_parameters);
}

TEST(OwnGradients, AreThoseOfTheTurnWhereBatchesHaveSizes) {
  Knobs knobs = set_to_none();
  knobs.batch.sizes = {1024, 512, 768};
  const StepPlan plan = plan_of(knobs);
  EXPECT_EQ(own_gradients_of(plan), 3 * 2 * own_layers);
  std::map<std::int64_t, int> of_turn;
  for (const std::size_t index : with_gradients<Allocate>(plan)) {
    const Operation& allocate = plan.operations[index];
    EXPECT_EQ(allocate.every, 3);
    ++of_turn[allocate.turn];
    EXPECT_TRUE(allocate.name.ends_with("turn " + std::to_string((allocate.turn + 2) % 3 + 1)))
        << allocate.name;
  }
  EXPECT_EQ(of_turn, (std::map<std::int64_t, int>{{0, 8}, {1, 8}, {2, 8}}));
  Knobs largest = set_to_none();
  EXPECT_EQ(value(plan, Metric::need), value(largest, Metric::need));
  EXPECT_EQ(value(plan, Metric::live_slope), 0);
  EXPECT_EQ(find_race(plan), std::nullopt);
}

TEST(OwnGradients, ComeFromThePoolOfTheGraphThatCapturesThem) {
  const Knobs eager = set_to_none();
  Knobs knobs = eager;
  knobs.launch.via = LaunchVia::graph;
  const StepPlan plan = plan_of(knobs);
  for (const std::size_t index : with_gradients<Allocate>(plan))
    EXPECT_TRUE(plan.operations[index].captured);
  EXPECT_EQ(find_capture_error(plan), std::nullopt);
  EXPECT_EQ(value(knobs, Metric::peak_live), value(eager, Metric::peak_live));
  EXPECT_EQ(value(knobs, Metric::device_allocs_per_step), 0);
}

// In these cases the flat buffer of all gradients stays.
TEST(OwnGradients, AreNoneWhereSomebodyElseKeepsTheMemory) {
  const auto stays = [](const char* why, const Knobs& knobs) {
    const StepPlan plan = plan_of(knobs);
    EXPECT_EQ(own_gradients_of(plan), 0) << why;
    EXPECT_TRUE(with_gradients<Allocate>(plan).empty()) << why;
    const auto flat = std::ranges::find(plan.buffers, Purpose::gradients, &Buffer::purpose);
    ASSERT_NE(flat, plan.buffers.end()) << why;
    EXPECT_TRUE(flat->name.starts_with("gradient")) << why;
  };
  stays("filled with zeros", zeroed(set_to_none()));
  Knobs knobs = set_to_none();
  knobs.optim.impl = OptimImpl::fused;
  stays("one launch updates all", knobs);
  knobs = set_to_none();
  knobs.alloc.when = AllocWhen::step;
  stays("all memory is there for the whole step", knobs);
  knobs = set_to_none();
  knobs.alloc = {.with = Allocator::fixed, .when = AllocWhen::never};
  stays("static", knobs);
  knobs.alloc.with = Allocator::arena;
  stays("an arena", knobs);
  knobs = set_to_none();
  knobs.ranks.count = 2;
  knobs.ranks.bucket_bytes = 0;
  stays("views of what ranks reduce, each by itself", knobs);
  knobs = set_to_none();
  knobs.optim.kind = OptimKind::adamw;
  knobs.memory.offload = Offload::weights;
  stays("one layer's at a time", knobs);
  knobs = small_transformer();
  knobs.alloc = {.with = Allocator::caching, .when = AllocWhen::op};
  knobs.optim.impl = OptimImpl::per_tensor;
  knobs.optim.clip = 1;
  stays("one launch finds the norm of all", knobs);
}

}  // namespace
}  // namespace stepgate
