// SPDX-License-Identifier: MIT
#include "plan/compose/build_step_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <span>

#include "base/random.h"
#include "base/require.h"
#include "base/text/nearest.h"
#include "base/text/units.h"
#include "plan/allocate/pack_arena.h"
#include "plan/allocate/run_allocator.h"
#include "plan/analyse/find_capture_errors.h"
#include "plan/analyse/find_races.h"
#include "plan/analyse/operation_uses.h"
#include "plan/compose/build_input.h"
#include "plan/compose/build_model.h"
#include "plan/compose/build_parts.h"
#include "plan/compose/own_gradients.h"
#include "plan/compose/replace_kernels.h"
#include "plan/compose/step_builder.h"
#include "plan/count/step_memory.h"
#include "scenario/knobs/field_value.h"

namespace stepgate {
namespace {

constexpr std::int64_t most_steps_to_settle = 800;
constexpr std::uint64_t stream_of_host_work = 1;  // of random numbers, besides the loader's

std::int64_t smallest_size(const BatchKnobs& batch) {
  return batch.sizes.empty() ? batch.size
                             : *std::min_element(batch.sizes.begin(), batch.sizes.end());
}

std::int64_t sample_bytes_of(const Knobs& knobs) {
  return knobs.batch.sample_bytes.value_or(model_sample_bytes(knobs));
}

std::vector<std::int64_t> sizes_in_turns(const BatchKnobs& batch) {
  if (batch.sizes.empty()) return {batch.size};
  std::vector<std::int64_t> sizes = batch.sizes;
  if (batch.largest_first) {
    std::rotate(sizes.begin(), std::max_element(sizes.begin(), sizes.end()), sizes.end());
  }
  return sizes;
}

// With alloc.when = "resize" every step that allocates, the first one included, must follow a step
// of another size.
std::optional<Diagnostic> wrong_resizing(const Variant& variant) {
  const std::vector<std::int64_t> sizes = sizes_in_turns(variant.knobs.batch);
  if (variant.knobs.alloc.when != AllocWhen::resize || sizes.front() != sizes.back())
    return std::nullopt;
  return Diagnostic{variant.place,
                    "variant '" + variant.name +
                        "': the turns of 'batch.sizes' begin and end with " +
                        std::to_string(sizes.front()) +
                        ", so the first step would use what no step before it has allocated",
                    "begin the list with another of its sizes, in the same order"};
}

// The error in the sizes, found before anything is built from them.
std::optional<Diagnostic> wrong_sizes(const Variant& variant) {
  const Knobs& knobs = variant.knobs;
  const std::int64_t needed = model_sample_bytes(knobs);
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
    return Diagnostic{
        variant.place,
        who + "a batch of " +
            std::to_string(bytes_of_batch(knobs.batch, smallest_size(knobs.batch), given)) +
            " bytes cannot be split into " + std::to_string(knobs.batch.tensors) + " tensors",
        "lower 'batch.tensors'"};
  }
  if (knobs.transfer.device_buffer == DeviceBuffer::per_step &&
      knobs.transfer.host != HostMemory::resident &&
      allocated_by(knobs.alloc.with) == AllocatedBy::the_plan) {
    return Diagnostic{variant.place,
                      who +
                          "'transfer.device_buffer = \"per_step\"' needs an allocator, but "
                          "'alloc.with' is static",
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
  return wrong_resizing(variant);
}

// Index of the last operation from `first` on that reads the batch.
std::size_t last_reader(StepPlan& plan, int batch, std::size_t first) {
  std::optional<std::size_t> last;
  for (std::size_t index = first; index < plan.operations.size(); ++index) {
    for_each_use(plan.operations[index], [&](const BufferUse& use) {
      if (use.buffer == batch) last = index;
    });
  }
  require(last.has_value(), "a model reads its batch");
  return *last;
}

void capture(StepPlan& plan, std::size_t first, std::size_t last) {
  for (std::size_t index = first; index < last; ++index) plan.operations[index].captured = true;
}

// Records the event that the batch was read: right after its last reader, or after the graph that
// contains the reader.
void hand_back(StepPlan& plan, const InputParts& input, std::size_t after, bool captured) {
  const std::size_t place = captured ? plan.operations.size() : after + 1;
  const Operation& reader = plan.operations[after];
  std::vector<Operation> back;
  if (input.consumed) {
    back.push_back({.name = "batch is consumed",
                    .phase = Phase::forward,
                    .stream = reader.captured ? compute_stream : reader.stream,
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

// The suffix of a turn's own buffers. Turns share allocated buffers only if nothing is allocated
// between them.
std::string own_name_of_turn(const std::vector<std::int64_t>& sizes, std::int64_t turn,
                             AllocWhen when) {
  if (when == AllocWhen::never || sizes.size() == 1) return "";
  auto first = static_cast<std::size_t>(turn);
  if (when == AllocWhen::resize) {
    while (first > 0 && sizes[first - 1] == sizes[first]) --first;
  }
  return ", turn " + std::to_string(first + 1);
}

// Appends input and model once for every batch size. Returns the buffer of the loss.
int build_turns(StepBuilder& builder, const Knobs& knobs) {
  StepPlan& plan = builder.plan();
  const std::int64_t sample_bytes = sample_bytes_of(knobs);
  const bool captured = knobs.launch.via == LaunchVia::graph;
  const auto turns = static_cast<std::int64_t>(plan.batch_sizes.size());
  int loss = 0;
  for (std::int64_t turn = 0; turn < turns; ++turn) {
    Knobs of_turn = knobs;
    of_turn.batch.size = plan.batch_sizes[static_cast<std::size_t>(turn)];
    builder.begin_turn(turn, turns, own_name_of_turn(plan.batch_sizes, turn, knobs.alloc.when));
    InputParts input = build_input(builder, of_turn, sample_bytes);
    const std::optional<int> others = build_other_copies(builder, of_turn, sample_bytes);
    const std::size_t first = plan.operations.size();
    const ModelParts model = build_model(builder, of_turn, input.batch, sample_bytes);
    build_forward_collectives(builder, of_turn, first);
    if (model.learned) build_reduction(builder, knobs, *model.learned, first);
    if (captured) capture(plan, first, plan.operations.size());
    build_copy_back(builder, knobs, input.batch);
    const bool evaluates = knobs.eval.every > 0;
    const InputParts of_evaluation = input;
    if (evaluates) input.release_batch = false;
    hand_back(plan, input, last_reader(plan, input.batch, first), captured);
    if (evaluates) build_evaluation(builder, of_turn, model.weights, of_evaluation, sample_bytes);
    if (others) {
      builder.enter(Phase::h2d);
      builder.act("wait for the other data", StreamWaitsEvent{*others});
    }
    loss = model.loss;
  }
  builder.end_turns();
  return loss;
}

// Resets the knobs that only say how the model is computed, so that a changed loss means a changed
// model.
ModelKnobs model_of_losses(ModelKnobs model) {
  const ModelKnobs usual;
  // Spinning kernels change no number, and in other models each second kernel reverts the one
  // before.
  model.kernels = model.kind == ModelKind::elementwise ? model.kernels % 2 : usual.kernels;
  model.kernel_us = usual.kernel_us;
  model.inplace = usual.inplace;
  model.layout_copies = usual.layout_copies;
  model.workspace_bytes = usual.workspace_bytes;
  model.attention_workspace_bytes = usual.attention_workspace_bytes;
  model.layout = usual.layout;
  model.stride = usual.stride;
  model.extra_copies = usual.extra_copies;
  return model;
}

StepPlan build(const Scenario& scenario, const Variant& variant, std::uint64_t seed,
               const MemoryCap& cap) {
  const Knobs& knobs = variant.knobs;
  StepPlan plan;
  plan.scenario = scenario.name;
  plan.variant = variant.name;
  plan.seed = seed;
  plan.batch_sizes = sizes_in_turns(knobs.batch);
  plan.model = model_of_losses(knobs.model);
  plan.dtype = knobs.model.dtype;
  plan.ranks = {.count = static_cast<int>(knobs.ranks.count),
                .communicators = static_cast<int>(knobs.ranks.communicators),
                .collectives = knobs.ranks.collectives};
  if (knobs.model.kind == ModelKind::transformer) {
    plan.tokens_per_sample = mean_tokens_of_a_sample(knobs);
    plan.lengths = knobs.batch.lengths;
  }
  plan.keep_bytes = knobs.alloc.keep_bytes;
  plan.launch_host_nanoseconds = nanoseconds_of(knobs.host.launch_us);
  plan.wait_style = knobs.sync.wait;
  plan.gemm_algorithms = knobs.launch.gemm;
  plan.attention_sums = knobs.launch.attention_sums;
  plan.loader = knobs.loader;

  StepBuilder builder(plan);
  // Adds all possible streams in one order, so that a stream has the same number in the traces of
  // all variants.
  for (const CopyStream stream : {CopyStream::compute, CopyStream::side, CopyStream::legacy})
    builder.add_stream(stream_of(stream));
  if (knobs.host.step_us > 0) {
    builder.enter(Phase::host);
    builder.act("host work", HostWork{.nanoseconds = nanoseconds_of(knobs.host.step_us),
                                      .variation = knobs.host.jitter,
                                      .seed = random_bits(seed, stream_of_host_work)});
  }
  if (knobs.host.pause_us > 0) {
    builder.enter(Phase::host);
    builder.only_every(knobs.host.pause_every);
    builder.act("pause of the host", HostWork{nanoseconds_of(knobs.host.pause_us)});
  }
  if (knobs.ranks.slow_us > 0) {
    builder.enter(Phase::host);
    builder.only_every(knobs.ranks.slow_every);
    builder.act("host work of the slow rank",
                HostWork{.nanoseconds = nanoseconds_of(knobs.ranks.slow_us),
                         .rank = static_cast<int>(knobs.ranks.slow_rank)});
  }
  const int loss = build_turns(builder, knobs);
  build_log(builder, knobs, loss);
  build_save(builder, knobs.save);
  build_sync(builder, knobs, loss);
  replace_kernels(plan, knobs.kernels);
  build_allocations(plan, knobs.alloc, gives_gradients_back(knobs));
  check_size(plan);
  if (knobs.alloc.with == Allocator::arena && !find_race(plan)) plan = in_arena(std::move(plan));
  plan.cap_bytes = cap_bytes(plan, cap);
  plan.allocator = allocator_plan(knobs.alloc, plan.cap_bytes);
  plan.pool_cap_bytes = pool_cap_bytes(plan, knobs.alloc, plan.cap_bytes);
  plan.counted_steps = scenario.measure.steps;
  return plan;
}

// The sizes and counts of the step that exceed their defaults by the largest factors, as a file
// writes them.
std::string largest_knobs(const Knobs& knobs) {
  constexpr std::size_t most = 4;
  Settings settings;
  settings.knobs = knobs;
  std::vector<std::pair<double, std::string>> knobs_by_size;
  for (const Field& field : field_table()) {
    if (!is_built(field) || field.scope != FieldScope::variant) continue;
    const FieldValue value = field.get(settings);
    const FieldValue usual = default_of(field);
    const auto* set = std::get_if<std::int64_t>(&value);
    const bool counts =
        field.values.kind == FieldKind::integer || field.values.kind == FieldKind::bytes;
    if (set == nullptr || !counts || value == usual) continue;
    const auto* from = std::get_if<std::int64_t>(&usual);
    const double times = static_cast<double>(*set) /
                         static_cast<double>(from ? std::max<std::int64_t>(*from, 1) : 1);
    if (times <= 1) continue;
    knobs_by_size.emplace_back(-times,
                               fmt::format("{} = {}", field.name, field_value_text(field, value)));
  }
  std::ranges::stable_sort(knobs_by_size, {}, &std::pair<double, std::string>::first);
  if (knobs_by_size.size() > most) knobs_by_size.resize(most);
  std::vector<std::string> words;
  for (const auto& [times, word] : knobs_by_size) words.push_back(word);
  return fmt::format("{}", fmt::join(words, ", "));
}

Diagnostic too_large(const Variant& variant, const StepTooLarge& error) {
  return {variant.place, "variant '" + variant.name + "': " + error.what(),
          "make the step smaller; what is largest in it: " + largest_knobs(variant.knobs)};
}

Diagnostic too_many_together(const Scenario& scenario, const Variant& last, std::size_t planned) {
  return {
      last.place,
      fmt::format("the steps of its first {} of {} variants have more than {} operations, and a "
                  "scenario has room for no more",
                  planned, scenario.variants.size(), most_operations_together),
      "give it fewer variants, or smaller steps; what is largest in this one: " +
          largest_knobs(last.knobs)};
}

// The simulation of the counted steps, with what is known only from more steps.
CountedAllocations known_from_more(const AllocatorSimulation& counted, CountedAllocations more) {
  more.simulation.steps = counted.steps;
  more.simulation.refused_steps = counted.refused_steps;
  more.simulation.ooms = counted.ooms;
  more.simulation.retries = counted.retries;
  more.simulation.live_after_empty_cache_bytes = counted.live_after_empty_cache_bytes;
  return more;
}

// Simulates the step's allocator. Returns why no step can run, if that is so. A period of the step
// may be longer than the counted steps. The driver calls of a steady step are known only once the
// allocator has settled, which may take more steps yet.
std::optional<CannotLoad> count_allocations(StepPlan& plan) {
  if (!plan.allocator) {
    const auto& allowed = plan.cap_bytes;
    const std::int64_t held = held_memory(plan).most_bytes;
    if (!allowed || held <= *allowed) return std::nullopt;
    return CannotLoad{std::string("its buffers and its ") +
                          (plan.pool_cap_bytes ? "pool" : "arena") + " take " +
                          rounded_bytes_text(static_cast<double>(held)) + " under a cap of " +
                          rounded_bytes_text(static_cast<double>(*allowed)),
                      "raise 'alloc.cap'"};
  }
  const auto counted = run_allocator(plan, plan.counted_steps);
  if (const auto* cannot = std::get_if<CannotLoad>(&counted)) return *cannot;
  auto known = std::get<CountedAllocations>(counted);
  auto& [simulation, calls] = known;
  std::int64_t steps = steps_to_simulate(plan).steps;
  if (steps > plan.counted_steps) {
    auto more = std::get<CountedAllocations>(run_allocator(plan, steps));
    known = known_from_more(simulation, std::move(more));
  }
  const bool may_settle = simulation.first_refusal.empty() && simulation.live_slope_bytes <= 0;
  while (may_settle && !simulation.settled_after && 2 * steps <= most_steps_to_settle) {
    steps *= 2;
    auto longer = std::get<CountedAllocations>(run_allocator(plan, steps));
    simulation.settled_after = longer.simulation.settled_after;
    calls = std::move(longer.calls);
  }
  plan.allocator_simulation = simulation;
  for (std::size_t index = 0; index < calls.size(); ++index) {
    Action& action = plan.operations[index].action;
    if (auto* allocate = std::get_if<Allocate>(&action)) allocate->driver = calls[index];
    if (auto* empty = std::get_if<EmptyCache>(&action)) empty->driver = calls[index];
  }
  return std::nullopt;
}

// A share of device memory is an error in scenarios that plans alone decide, since they have no
// device.
std::optional<Diagnostic> wrong_cap(const Scenario& scenario, const Variant& variant) {
  if (variant.knobs.alloc.cap.of != CapOf::device || !is_planned_only(scenario))
    return std::nullopt;
  return Diagnostic{variant.place,
                    "variant '" + variant.name +
                        "': 'alloc.cap' is a share of a device's memory, and a scenario tagged "
                        "no_gpu is decided without a device",
                    "write it in bytes or as a share of need, or take the tag out"};
}

// Steps that are refused memory cannot be timed. Plans alone decide about them where 'ooms' counts
// the first refusal.
std::optional<Diagnostic> reason_against_refusals(const Scenario& scenario, const Variant& variant,
                                                  const StepPlan& plan) {
  const auto& simulation = plan.allocator_simulation;
  if (!simulation || simulation->first_refusal.empty()) return std::nullopt;
  if (simulation->refused_steps == 0) {
    return Diagnostic{
        variant.place,
        fmt::format("variant '{}' is refused memory after the {} steps that are counted: {}",
                    variant.name, simulation->steps, simulation->first_refusal),
        "raise 'alloc.cap', or, where plans decide the scenario, 'measure.steps' beyond that step"};
  }
  if (is_planned_only(scenario)) return std::nullopt;
  return Diagnostic{
      variant.place,
      fmt::format("variant '{}' is refused memory in {} of {} steps and cannot be timed: {}",
                  variant.name, simulation->refused_steps, simulation->steps,
                  simulation->first_refusal),
      "tag the scenario \"no_gpu\" to have its plans decide it, or raise 'alloc.cap'"};
}

// Returns why the plan cannot run; simulates its allocator for this.
std::optional<Diagnostic> reason_against(const Scenario& scenario, const Variant& variant,
                                         StepPlan& plan) {
  const std::string who = "variant '" + variant.name + "' ";
  if (const auto error = find_capture_error(plan)) {
    return Diagnostic{
        variant.place, who + "cannot be launched as a graph: " + *error,
        "launch it through the stream ('launch.via = \"stream\"'), or take that operation out"};
  }
  if (const auto race = find_race(plan)) {
    return Diagnostic{
        variant.place, who + "is a race: " + *race,
        "rotate over two device buffers ('transfer.buffers = 2'), which hands them off "
        "with events"};
  }
  if (const auto refused = count_allocations(plan)) {
    return Diagnostic{variant.place, who + "has no memory to start with: " + refused->reason,
                      refused->way_out};
  }
  return reason_against_refusals(scenario, variant, plan);
}

// Names of the kernels without duplicates, in the order of their first launches.
std::vector<std::string_view> kernels_of(const StepPlan& plan) {
  std::vector<std::string_view> names;
  for (const Operation& operation : plan.operations) {
    const auto* launch = std::get_if<LaunchKernel>(&operation.action);
    if (launch && std::ranges::find(names, launch->kernel.name()) == names.end())
      names.push_back(launch->kernel.name());
  }
  return names;
}

std::optional<Diagnostic> wrong_replacement(const Variant& variant, const StepPlan& plan) {
  const auto unused = unused_replacement(plan, variant.knobs.kernels);
  if (!unused) return std::nullopt;
  const auto launched = kernels_of(plan);
  return Diagnostic{
      place_of_kernel(variant, *unused),
      fmt::format("variant '{}' replaces the kernel '{}', which it does not launch", variant.name,
                  *unused),
      did_you_mean(*unused, launched, fmt::format("it launches {}", fmt::join(launched, ", ")))};
}

// Checks that assertions name only kernels that the variant launches.
void check_named_kernels(const Scenario& scenario, std::span<const StepPlan> plans,
                         std::vector<Diagnostic>& wrong) {
  for (const auto* assertions : {&scenario.regime, &scenario.expect}) {
    for (const Expectation& assertion : *assertions) {
      for (const MetricOf& of : metrics_in(assertion)) {
        if (of.kernel.empty()) continue;
        const auto launched = kernels_of(*std::ranges::find(plans, of.variant, &StepPlan::variant));
        if (std::ranges::find(launched, of.kernel) != launched.end()) continue;
        wrong.push_back({assertion.place,
                         fmt::format("'{}' launches no kernel '{}'", of.variant, of.kernel),
                         did_you_mean(of.kernel, launched,
                                      fmt::format("it launches {}", fmt::join(launched, ", ")))});
      }
    }
  }
}

}  // namespace

std::vector<StepPlan> build_step_plans(const Scenario& scenario, std::uint64_t seed,
                                       std::optional<std::int64_t> device_memory_bytes) {
  std::vector<StepPlan> plans;
  std::vector<Diagnostic> wrong;
  std::size_t operations = 0;
  for (const Variant& variant : scenario.variants) {
    auto fault = wrong_sizes(variant);
    if (!fault) fault = wrong_cap(scenario, variant);
    if (fault) {
      wrong.push_back(*std::move(fault));
      continue;
    }
    const MemoryCap cap = known_cap(variant.knobs.alloc.cap, device_memory_bytes);
    StepPlan plan;
    try {
      plan = build(scenario, variant, seed, cap);
    } catch (const StepTooLarge& error) {
      wrong.push_back(too_large(variant, error));
      continue;
    }
    if (variant.knobs.alloc.cap.of == CapOf::device && !device_memory_bytes)
      plan.cap_of_device = variant.knobs.alloc.cap.amount;
    fault = reason_against(scenario, variant, plan);
    if (!fault) fault = wrong_replacement(variant, plan);
    if (fault) wrong.push_back(*std::move(fault));
    operations += plan.operations.size();
    if (operations > most_operations_together) {
      wrong.push_back(too_many_together(scenario, variant, plans.size() + 1));
      break;
    }
    plans.push_back(std::move(plan));
  }
  if (wrong.empty()) check_named_kernels(scenario, plans, wrong);
  if (!wrong.empty()) throw RequestError(std::move(wrong));
  return plans;
}

}  // namespace stepgate
