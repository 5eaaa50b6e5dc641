// SPDX-License-Identifier: MIT
// The steps that every device must carry out alike: tables of knobs, and mixes of them. Nothing is
// run or judged here.
#include <fmt/format.h>

#include "device_contract.h"
#include "plan/build_step_plan.h"
#include "support/random.h"
#include "support/require.h"

namespace stepgate {
namespace {

constexpr HostMemory host_memories[] = {HostMemory::resident,        HostMemory::pageable,
                                        HostMemory::pinned,          HostMemory::registered,
                                        HostMemory::pin_each_step,   HostMemory::managed,
                                        HostMemory::managed_prefetch};
constexpr CopyStream copy_streams[] = {CopyStream::compute, CopyStream::side, CopyStream::legacy};
constexpr DeviceBuffer device_buffers[] = {DeviceBuffer::resident, DeviceBuffer::per_step};
constexpr SyncWhere sync_places[] = {SyncWhere::none, SyncWhere::step, SyncWhere::micro,
                                     SyncWhere::phase, SyncWhere::op};
constexpr SyncHow sync_kinds[] = {SyncHow::device, SyncHow::stream, SyncHow::event,
                                  SyncHow::item,   SyncHow::memcpy, SyncHow::poll};
constexpr LaunchVia launch_kinds[] = {LaunchVia::stream, LaunchVia::graph};
constexpr LogVia log_kinds[] = {LogVia::mean_on_device, LogVia::item, LogVia::late_pinned,
                                LogVia::keep_on_device};

const AllocKnobs allocations[] = {
    {},
    {.with = Allocator::cuda, .when = AllocWhen::step, .keep_bytes = {}},
    {.with = Allocator::cuda, .when = AllocWhen::op, .keep_bytes = {}},
    {.with = Allocator::cuda_async, .when = AllocWhen::step, .keep_bytes = {}},
    {.with = Allocator::cuda_async, .when = AllocWhen::op, .keep_bytes = {}},
    {.with = Allocator::cuda_async, .when = AllocWhen::op, .keep_bytes = 0},
    {.with = Allocator::arena, .when = AllocWhen::never, .keep_bytes = {}},
    {.with = Allocator::caching, .when = AllocWhen::never, .keep_bytes = {}},
    {.with = Allocator::caching, .when = AllocWhen::op, .keep_bytes = {}, .temps = 2},
    {.with = Allocator::caching,
     .when = AllocWhen::step,
     .keep_bytes = {},
     .empty_cache_every = 2,
     .leak_bytes = 512},
    {.with = Allocator::expandable, .when = AllocWhen::op, .keep_bytes = {}},
    {.with = Allocator::first_fit, .when = AllocWhen::op, .keep_bytes = {}},
    {.with = Allocator::cuda, .when = AllocWhen::op, .keep_bytes = {}, .release = false},
    {.with = Allocator::cuda_async, .when = AllocWhen::step, .keep_bytes = {}, .release = false},
    {.with = Allocator::caching, .when = AllocWhen::step, .keep_bytes = {}, .release = false},
    {.with = Allocator::cuda_async,
     .when = AllocWhen::op,
     .keep_bytes = {},
     .cap = {CapOf::bytes, 1 << 30}},
};

const LoaderKnobs loaders[] = {
    {},
    {.wait_us = 2, .jitter = 0.3, .depth = 0, .workers = 1},
    {.wait_us = 2, .jitter = 0.3, .depth = 2, .workers = 1},
    {.wait_us = 2, .jitter = 0, .depth = 2, .workers = 3},
};

void append_arrivals(const Knobs& model, std::vector<Knobs>& ways) {
  for (const HostMemory host : host_memories)
    for (const CopyStream stream : copy_streams)
      for (const std::int64_t buffers : {1, 2, 3})
        for (const DeviceBuffer device_buffer : device_buffers)
          for (const bool blocking : {false, true})
            for (const LaunchVia via : launch_kinds) {
              Knobs knobs = model;
              knobs.h2d = {host, stream, blocking, buffers, device_buffer};
              knobs.batch.tensors = 2 * buffers - 1;
              knobs.launch.via = via;
              if (device_buffer == DeviceBuffer::per_step) knobs.alloc.with = Allocator::cuda_async;
              ways.push_back(knobs);
            }
}

void append_waits(const Knobs& model, std::vector<Knobs>& ways) {
  for (const SyncWhere where : sync_places)
    for (const SyncHow how : sync_kinds)
      for (const std::int64_t every : {1, 3}) {
        Knobs knobs = model;
        knobs.sync = {where, how, every};
        ways.push_back(knobs);
      }
}

void append_allocations(const Knobs& model, std::vector<Knobs>& ways) {
  for (const AllocKnobs& alloc : allocations)
    for (const LaunchVia via : launch_kinds)
      for (const LogVia log : log_kinds)
        for (const std::int64_t every : {0, 1, 4}) {
          Knobs knobs = model;
          knobs.alloc = alloc;
          knobs.launch.via = via;
          knobs.log = {every, log};
          ways.push_back(knobs);
        }
}

template <class Value, std::size_t count>
const Value& any_of(Random& random, const Value (&values)[count]) {
  return values[random.below(count)];
}

Knobs mix(const Knobs& model, Random& random) {
  Knobs knobs = model;
  knobs.h2d = {any_of(random, host_memories), any_of(random, copy_streams), random.below(2) == 0,
               static_cast<std::int64_t>(1 + random.below(3)), any_of(random, device_buffers)};
  knobs.batch.tensors = static_cast<std::int64_t>(1 + random.below(4));
  knobs.loader = any_of(random, loaders);
  knobs.sync = {any_of(random, sync_places), any_of(random, sync_kinds),
                static_cast<std::int64_t>(1 + random.below(3))};
  knobs.alloc = any_of(random, allocations);
  knobs.launch.via = any_of(random, launch_kinds);
  knobs.log = {static_cast<std::int64_t>(random.below(4)), any_of(random, log_kinds)};
  knobs.host.step_us = random.below(2) == 0 ? 0 : 3;
  knobs.host.launch_us = random.below(2) == 0 ? 0 : 1;
  if (model.model.kind == ModelKind::mlp) {
    knobs.optim.impl = random.below(2) == 0 ? OptimImpl::fused : OptimImpl::per_tensor;
    knobs.memory.zero_grad = random.below(2) == 0 ? ZeroGrad::none : ZeroGrad::memset;
  }
  return knobs;
}

}  // namespace

std::vector<ModelCase> model_cases() {
  Knobs spin;
  spin.model = {.kind = ModelKind::spin, .kernels = 2, .kernel_us = 1};
  spin.batch = {.size = 3, .sample_bytes = 24};
  std::vector<ModelCase> cases = {{"spin", spin}};
  for (const auto& [name, dtype, kind] : {std::tuple{"fp32_sgd", DType::fp32, OptimKind::sgd},
                                          {"fp32_adamw", DType::fp32, OptimKind::adamw},
                                          {"tf32_sgd", DType::tf32, OptimKind::sgd},
                                          {"bf16_adamw", DType::bf16, OptimKind::adamw}}) {
    Knobs mlp;
    mlp.model = {.layers = 2, .hidden = 8, .dtype = dtype};
    mlp.batch.size = 4;
    mlp.optim.kind = kind;
    cases.push_back({name, mlp});
  }
  return cases;
}

Knobs model_knobs(const std::string& name) {
  for (const ModelCase& model : model_cases()) {
    if (model.name == name) return model.knobs;
  }
  require(false, "the model exists");
  return {};
}

std::vector<Knobs> ways_to_run(const Knobs& model, std::uint64_t seed) {
  constexpr int mixes = 60;
  std::vector<Knobs> ways;
  append_arrivals(model, ways);
  append_waits(model, ways);
  append_allocations(model, ways);
  Random random(seed);
  for (int index = 0; index < mixes; ++index) ways.push_back(mix(model, random));
  return ways;
}

std::string describe(const Knobs& knobs) {
  const auto number = [](auto choice) { return static_cast<int>(choice); };
  return fmt::format(
      "h2d host {} stream {} blocking {} buffers {} device_buffer {}; tensors {}; loader depth {} "
      "workers {}; sync where {} how {} every {}; alloc with {} when {} keep {} release {}; launch "
      "via {}; "
      "log "
      "via {} every {}; host {} {} us; optim impl {}; zero_grad {}",
      number(knobs.h2d.host), number(knobs.h2d.stream), knobs.h2d.blocking, knobs.h2d.buffers,
      number(knobs.h2d.device_buffer), knobs.batch.tensors, knobs.loader.depth,
      knobs.loader.workers, number(knobs.sync.where), number(knobs.sync.how), knobs.sync.every,
      number(knobs.alloc.with), number(knobs.alloc.when), knobs.alloc.keep_bytes.value_or(-1),
      knobs.alloc.release, number(knobs.launch.via), number(knobs.log.via), knobs.log.every,
      knobs.host.step_us, knobs.host.launch_us, number(knobs.optim.impl),
      number(knobs.memory.zero_grad));
}

std::optional<StepPlan> accepted_plan(const Knobs& knobs) {
  Scenario scenario;
  scenario.name = "by_hand";
  scenario.file = "by_hand.toml";
  scenario.variants.push_back({"only", knobs, {"by_hand.toml", 3, 1}});
  try {
    return build_step_plans(scenario, 20).front();
  } catch (const RequestError&) {
    return std::nullopt;
  }
}

StepPlan plan_of(const Knobs& knobs) {
  std::optional<StepPlan> plan = accepted_plan(knobs);
  require(plan.has_value(), "plans accept these knobs");
  return *plan;
}

}  // namespace stepgate
