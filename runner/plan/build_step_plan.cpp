// SPDX-License-Identifier: MIT
#include "plan/build_step_plan.h"

#include <algorithm>

#include "plan/build_allocations.h"
#include "plan/build_evaluation.h"
#include "plan/build_input.h"
#include "plan/build_model.h"
#include "plan/build_waits.h"
#include "plan/find_capture_errors.h"
#include "plan/find_races.h"
#include "plan/plan_in_arena.h"
#include "plan/run_allocator.h"
#include "plan/step_builder.h"
#include "plan/step_memory.h"
#include "support/require.h"
#include "support/units.h"

namespace stepgate {
namespace {

constexpr double nanoseconds_per_microsecond = 1000;

std::int64_t smallest_size(const BatchKnobs& batch) {
  return batch.sizes.empty() ? batch.size
                             : *std::min_element(batch.sizes.begin(), batch.sizes.end());
}

std::int64_t sample_bytes_of(const Knobs& knobs) {
  return knobs.batch.sample_bytes.value_or(model_sample_bytes(knobs.model));
}

// What is wrong with the sizes, before anything is built from them.
std::optional<Diagnostic> wrong_sizes(const Variant& variant) {
  const Knobs& knobs = variant.knobs;
  const std::int64_t needed = model_sample_bytes(knobs.model);
  const std::int64_t given = sample_bytes_of(knobs);
  const std::string who = "variant '" + variant.name + "': ";
  if (given < needed || given % 4 != 0) {
    return Diagnostic{
        variant.place,
        who + "'batch.sample_bytes' is " + std::to_string(given) + ", but the model reads " +
            std::to_string(needed) + " bytes of a sample in words of 4",
        "give at least " + std::to_string(needed) + " B and a multiple of 4, or leave it out"};
  }
  if (knobs.batch.tensors > smallest_size(knobs.batch) * given / 4) {
    return Diagnostic{variant.place,
                      who + "a batch of " + std::to_string(smallest_size(knobs.batch) * given) +
                          " bytes cannot be split into " + std::to_string(knobs.batch.tensors) +
                          " tensors",
                      "lower 'batch.tensors'"};
  }
  if (knobs.h2d.device_buffer == DeviceBuffer::per_step && knobs.h2d.host != HostMemory::resident &&
      allocated_by(knobs.alloc.with) == AllocatedBy::the_plan) {
    return Diagnostic{
        variant.place,
        who + "'h2d.device_buffer = \"per_step\"' needs an allocator, but 'alloc.with' is static",
        "set 'alloc.with' to cuda, cuda_async or caching"};
  }
  const bool within_a_step =
      knobs.sync.where != SyncWhere::none && knobs.sync.where != SyncWhere::step;
  if (!knobs.batch.sizes.empty() && within_a_step && knobs.sync.every != 1) {
    return Diagnostic{variant.place,
                      who +
                          "'batch.sizes' takes turns, and 'sync.every' would count only some of "
                          "them within a step",
                      "leave out 'sync.every', or wait once a step"};
  }
  return std::nullopt;
}

void capture(StepPlan& plan, std::size_t first, std::size_t last) {
  for (std::size_t index = first; index < last; ++index) plan.operations[index].captured = true;
}

WaitStyle wait_style_of(SyncWait wait) {
  switch (wait) {
    case SyncWait::spin:
      return WaitStyle::spin;
    case SyncWait::yield:
      return WaitStyle::yield;
    case SyncWait::block:
      return WaitStyle::block;
  }
  require(false, "every way to wait is planned");
  return WaitStyle::spin;
}

// Where the batch has been read: right after its reader, or after the graph that contains the
// reader.
void hand_back(StepPlan& plan, const InputParts& input, std::size_t after, bool captured) {
  const std::size_t place = captured ? plan.operations.size() : after + 1;
  const Operation& reader = plan.operations[after];
  std::vector<Operation> back;
  if (input.consumed) {
    back.push_back({.name = "batch is consumed",
                    .phase = Phase::forward,
                    .action = RecordEvent{*input.consumed}});
  }
  if (input.release_batch) {
    back.push_back(
        {.name = "release the batch", .phase = Phase::forward, .action = Release{input.batch}});
  }
  for (Operation& operation : back) {
    operation.every = reader.every;
    operation.turn = reader.turn;
  }
  plan.operations.insert(plan.operations.begin() + static_cast<std::ptrdiff_t>(place), back.begin(),
                         back.end());
}

std::vector<std::int64_t> sizes_in_turns(const BatchKnobs& batch) {
  if (batch.sizes.empty()) return {batch.size};
  std::vector<std::int64_t> sizes = batch.sizes;
  if (batch.largest_first) {
    std::rotate(sizes.begin(), std::max_element(sizes.begin(), sizes.end()), sizes.end());
  }
  return sizes;
}

// Input and model once for every size that a batch may have. The buffer of the loss.
int build_turns(StepBuilder& builder, const Knobs& knobs) {
  StepPlan& plan = builder.plan();
  const std::int64_t sample_bytes = sample_bytes_of(knobs);
  const bool captured = knobs.launch.via == LaunchVia::graph;
  const auto turns = static_cast<std::int64_t>(plan.batch_sizes.size());
  int loss = 0;
  for (std::int64_t turn = 0; turn < turns; ++turn) {
    Knobs of_turn = knobs;
    of_turn.batch.size = plan.batch_sizes[static_cast<std::size_t>(turn)];
    builder.begin_turn(turn, turns, knobs.alloc.when != AllocWhen::never);
    InputParts input = build_input(builder, of_turn, sample_bytes);
    const std::size_t first = plan.operations.size();
    const ModelParts model = build_model(builder, of_turn, input.batch, sample_bytes);
    if (captured) capture(plan, first, plan.operations.size());
    const bool evaluates = knobs.eval.every > 0;
    const InputParts of_evaluation = input;
    if (evaluates) input.release_batch = false;
    hand_back(plan, input, static_cast<std::size_t>(model.first_reader), captured);
    if (evaluates) build_evaluation(builder, of_turn, model.weights, of_evaluation, sample_bytes);
    loss = model.loss;
  }
  builder.end_turns();
  return loss;
}

StepPlan build(const Scenario& scenario, const Variant& variant, std::uint64_t seed) {
  const Knobs& knobs = variant.knobs;
  StepPlan plan;
  plan.scenario = scenario.name;
  plan.variant = variant.name;
  plan.seed = seed;
  plan.batch_sizes = sizes_in_turns(knobs.batch);
  plan.dtype = knobs.model.dtype;
  plan.keep_bytes = knobs.alloc.keep_bytes;
  plan.launch_host_nanoseconds =
      static_cast<std::int64_t>(knobs.host.launch_us * nanoseconds_per_microsecond);
  plan.wait_style = wait_style_of(knobs.sync.wait);
  plan.loader = {.wait_nanoseconds =
                     static_cast<std::int64_t>(knobs.loader.wait_us * nanoseconds_per_microsecond),
                 .jitter = knobs.loader.jitter,
                 .depth = knobs.loader.depth,
                 .workers = knobs.loader.workers};

  StepBuilder builder(plan);
  if (knobs.host.step_us > 0) {
    builder.enter(Phase::host);
    builder.act("host work", HostWork{static_cast<std::int64_t>(knobs.host.step_us *
                                                                nanoseconds_per_microsecond)});
  }
  const int loss = build_turns(builder, knobs);
  build_log(builder, knobs, loss);
  build_sync(builder, knobs, loss);
  build_allocations(plan, knobs.alloc);
  if (knobs.alloc.with == Allocator::arena && !find_race(plan)) plan = in_arena(std::move(plan));
  plan.allocator = allocator_plan(plan, knobs.alloc);
  plan.counted_steps = scenario.measure.steps;
  return plan;
}

// What the step's allocator will do; in words why there cannot be a step.
std::optional<CannotLoad> count_allocations(StepPlan& plan, const MemoryCap& cap) {
  if (!plan.allocator) {
    const auto allowed = cap_bytes(plan, cap);
    const std::int64_t held = held_memory(plan).most_bytes;
    if (!allowed || held <= *allowed) return std::nullopt;
    return CannotLoad{"its buffers and its arena take " +
                          rounded_bytes_text(static_cast<double>(held)) + " under a cap of " +
                          rounded_bytes_text(static_cast<double>(*allowed)),
                      "raise 'alloc.cap'"};
  }
  const auto counted = run_allocator(plan, plan.counted_steps);
  if (const auto* cannot = std::get_if<CannotLoad>(&counted)) return *cannot;
  const auto& [course, calls] = std::get<CountedAllocations>(counted);
  plan.course = course;
  for (std::size_t index = 0; index < calls.size(); ++index) {
    Action& action = plan.operations[index].action;
    if (auto* allocate = std::get_if<Allocate>(&action)) allocate->driver = calls[index];
    if (auto* empty = std::get_if<EmptyCache>(&action)) empty->driver = calls[index];
  }
  return std::nullopt;
}

}  // namespace

std::vector<StepPlan> build_step_plans(const Scenario& scenario, std::uint64_t seed) {
  std::vector<StepPlan> plans;
  std::vector<Diagnostic> wrong;
  for (const Variant& variant : scenario.variants) {
    if (const auto sizes = wrong_sizes(variant)) {
      wrong.push_back(*sizes);
      continue;
    }
    StepPlan plan = build(scenario, variant, seed);
    const std::string who = "variant '" + variant.name + "' ";
    if (const auto error = find_capture_error(plan)) {
      wrong.push_back(
          {variant.place, who + "cannot be launched as a graph: " + *error,
           "launch it through the stream ('launch.via = \"stream\"'), or take that operation out"});
    } else if (const auto race = find_race(plan)) {
      wrong.push_back({variant.place, who + "is a race: " + *race,
                       "rotate over two device buffers ('h2d.buffers = 2'), which hands them over "
                       "with events"});
    } else if (const auto refused = count_allocations(plan, variant.knobs.alloc.cap)) {
      wrong.push_back({variant.place, who + "has no memory to start with: " + refused->reason,
                       refused->way_out});
    } else if (plan.course && plan.course->refused_steps > 0 && !is_planned_only(scenario)) {
      wrong.push_back(
          {variant.place,
           who + "is refused memory in " + std::to_string(plan.course->refused_steps) + " of " +
               std::to_string(plan.course->steps) +
               " steps and cannot be timed: " + plan.course->first_refusal,
           "tag the scenario \"no_gpu\" to have its plans decide it, or raise 'alloc.cap'"});
    }
    plans.push_back(std::move(plan));
  }
  if (!wrong.empty()) throw RequestError(std::move(wrong));
  return plans;
}

}  // namespace stepgate
