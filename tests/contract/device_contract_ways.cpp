// SPDX-License-Identifier: MIT
// The steps on which all devices must agree: tables of knobs, and mixtures of them. This code runs
// and judges nothing.
#include <fmt/format.h>

#include "base/random.h"
#include "base/require.h"
#include "plan/compose/build_step_plan.h"
#include "scenario/knobs/field_value.h"
#include "scenario/knobs/fields.h"
#include "tests/contract/device_contract.h"

namespace stepgate {
namespace {

constexpr HostMemory host_memories[] = {HostMemory::resident,        HostMemory::pageable,
                                        HostMemory::pinned,          HostMemory::registered,
                                        HostMemory::pin_each_step,   HostMemory::managed,
                                        HostMemory::managed_prefetch};
constexpr ManagedAdvice managed_advices[] = {ManagedAdvice::none, ManagedAdvice::read_mostly,
                                             ManagedAdvice::preferred, ManagedAdvice::accessed_by};
constexpr CopyStream copy_streams[] = {CopyStream::compute, CopyStream::side, CopyStream::legacy};
constexpr CopyBack ways_back[] = {CopyBack::none, CopyBack::compute, CopyBack::side};
constexpr DeviceBuffer device_buffers[] = {DeviceBuffer::resident, DeviceBuffer::per_step};
constexpr SyncWhere sync_places[] = {SyncWhere::none,     SyncWhere::step,  SyncWhere::micro,
                                     SyncWhere::phase,    SyncWhere::op,    SyncWhere::forward,
                                     SyncWhere::backward, SyncWhere::update};
constexpr SaveVia save_ways[] = {SaveVia::blocking, SaveVia::waited, SaveVia::beside};
constexpr SyncHow sync_kinds[] = {SyncHow::device, SyncHow::stream, SyncHow::event,
                                  SyncHow::item,   SyncHow::memcpy, SyncHow::poll};
constexpr LaunchVia launch_kinds[] = {LaunchVia::stream, LaunchVia::graph};
constexpr EvalStore eval_stores[] = {EvalStore::none, EvalStore::host, EvalStore::device};
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

constexpr Offload offloads[] = {Offload::none, Offload::activations, Offload::optimizer,
                                Offload::weights};
constexpr OffloadVia offload_vias[] = {OffloadVia::pinned_overlap, OffloadVia::pinned,
                                       OffloadVia::pageable};

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
              knobs.transfer = {.host = host,
                                .stream = stream,
                                .blocking = blocking,
                                .buffers = buffers,
                                .device_buffer = device_buffer};
              knobs.batch.tensors = 2 * buffers - 1;
              knobs.launch.via = via;
              if (device_buffer == DeviceBuffer::per_step) knobs.alloc.with = Allocator::cuda_async;
              ways.push_back(knobs);
            }
}

void append_copies_beside(const Knobs& model, std::vector<Knobs>& ways) {
  for (const CopyStream stream : copy_streams)
    for (const CopyBack back : ways_back)
      for (const std::int64_t buffers : {1, 3})
        for (const std::int64_t others : {0, 2})
          for (const LaunchVia via : launch_kinds) {
            Knobs knobs = model;
            knobs.transfer = {.host = HostMemory::pinned,
                              .stream = stream,
                              .buffers = buffers,
                              .back = back,
                              .others = others};
            knobs.launch.via = via;
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

bool is_updated_in_passes(const Knobs& model) {
  return model.optim.impl == OptimImpl::foreach || model.optim.impl == OptimImpl::operations;
}

// Adds steps that allocate and release each gradient separately. Updates in passes are left out,
// since they round differently.
void append_own_gradients(const Knobs& model, std::vector<Knobs>& ways) {
  if (is_updated_in_passes(model)) return;
  for (const AllocKnobs& alloc : allocations)
    for (const LaunchVia via : launch_kinds) {
      if (alloc.when != AllocWhen::op) continue;
      Knobs knobs = model;
      knobs.optim.impl = OptimImpl::per_tensor;
      knobs.alloc = alloc;
      knobs.launch.via = via;
      ways.push_back(knobs);
    }
}

// Combines evaluations with batches that must wait until the evaluation has read its batch, and
// with memory that exists only during evaluation steps.
void append_evaluations(const Knobs& model, std::vector<Knobs>& ways) {
  const TransferKnobs arrivals[] = {
      {},
      {.host = HostMemory::pinned, .stream = CopyStream::side, .buffers = 2},
      {.host = HostMemory::managed_prefetch}};
  std::size_t next = 0;  // arrival; the allocators are a multiple of the arrivals
  for (const EvalKnobs& eval : {EvalKnobs{.every = 1}, {.every = 3, .batches = 2}})
    for (const EvalStore store : eval_stores)
      for (const bool saves : {false, true}) {
        ++next;
        for (const AllocKnobs& alloc : allocations) {
          ++next;
          for (const LaunchVia via : launch_kinds) {
            Knobs knobs = model;
            knobs.eval = {eval.every, eval.batches, store, saves};
            knobs.model.inplace = saves;
            knobs.transfer = arrivals[next % std::size(arrivals)];
            knobs.alloc = alloc;
            knobs.launch.via = via;
            ways.push_back(knobs);
          }
        }
      }
}

// Sets the offload knobs. Returns whether the model has anything to offload.
bool set_offload(Knobs& knobs, Offload offload, OffloadVia via) {
  if (offload == Offload::none || knobs.model.kind != ModelKind::mlp) return false;
  if (offload == Offload::optimizer && knobs.optim.kind != OptimKind::adamw) return false;
  knobs.memory.offload = offload;
  knobs.memory.offload_via = via;
  if (offload != Offload::activations) knobs.optim.impl = OptimImpl::per_tensor;
  if (offload == Offload::weights) {
    knobs.memory.zero_grad = ZeroGrad::none;
    knobs.eval = {};
  }
  return true;
}

void append_offloads(const Knobs& model, std::vector<Knobs>& ways) {
  for (const Offload offload : offloads)
    for (const OffloadVia via : offload_vias)
      for (const AllocKnobs& alloc : allocations)
        for (const LaunchVia launch : launch_kinds)
          for (const HostMemory host : {HostMemory::resident, HostMemory::pinned}) {
            Knobs knobs = model;
            if (!set_offload(knobs, offload, via)) continue;
            knobs.alloc = alloc;
            knobs.launch.via = launch;
            if (host == HostMemory::pinned) knobs.transfer = {host, CopyStream::side, false, 2};
            ways.push_back(knobs);
          }
}

// Returns one variation in `stride`, from one that the seed chooses. All values of all columns
// occur with strides of 5 and 11. With 5, all pairs of values of two columns of arrivals and
// allocations occur, too, since the lengths of these tables are not multiples of it.
std::vector<Knobs> thinned(const std::vector<Knobs>& ways, std::size_t stride, std::uint64_t seed) {
  std::vector<Knobs> kept;
  for (std::size_t index = seed % stride; index < ways.size(); index += stride)
    kept.push_back(ways[index]);
  return kept;
}

template <class Value, std::size_t count>
const Value& any_of(Random& random, const Value (&values)[count]) {
  return values[random.below(count)];
}

Knobs mix(const Knobs& model, Random& random) {
  Knobs knobs = model;
  knobs.transfer = {any_of(random, host_memories),  any_of(random, copy_streams),
                    random.below(2) == 0,           static_cast<std::int64_t>(1 + random.below(3)),
                    any_of(random, device_buffers), any_of(random, managed_advices)};
  knobs.batch.tensors = static_cast<std::int64_t>(1 + random.below(4));
  knobs.loader = any_of(random, loaders);
  knobs.sync = {any_of(random, sync_places), any_of(random, sync_kinds),
                static_cast<std::int64_t>(1 + random.below(3))};
  knobs.alloc = any_of(random, allocations);
  knobs.launch.via = any_of(random, launch_kinds);
  knobs.log = {static_cast<std::int64_t>(random.below(4)), any_of(random, log_kinds)};
  knobs.host.step_us = random.below(2) == 0 ? 0 : 3;
  knobs.host.launch_us = random.below(2) == 0 ? 0 : 1;
  const bool has_tables = model.model.kind == ModelKind::recommender;
  if (model.model.kind == ModelKind::mlp || has_tables) {
    // Passes round differently.
    if (random.below(2) == 0 && !is_updated_in_passes(model))
      knobs.optim.impl = OptimImpl::per_tensor;
    knobs.memory.zero_grad = random.below(2) == 0 ? ZeroGrad::none : ZeroGrad::memset;
    knobs.model.inplace = random.below(2) == 0;
  }
  if (has_tables) knobs.launch.fuse = random.below(2) == 0 ? Fuse::none : Fuse::attention;
  if (model.model.kind == ModelKind::mlp) {
    if (random.below(2) == 0) {
      knobs.eval = {static_cast<std::int64_t>(1 + random.below(3)),
                    static_cast<std::int64_t>(1 + random.below(3)), any_of(random, eval_stores),
                    random.below(2) == 0};
    }
    (void)set_offload(knobs, any_of(random, offloads), any_of(random, offload_vias));
  }
  if (model.model.kind == ModelKind::transformer || model.model.kind == ModelKind::resnet) {
    knobs.optim.impl = random.below(2) == 0 ? OptimImpl::fused : OptimImpl::per_tensor;
    knobs.memory.zero_grad = random.below(2) == 0 ? ZeroGrad::none : ZeroGrad::memset;
    knobs.memory.checkpoint_every = static_cast<std::int64_t>(random.below(4));
    if (model.model.kind == ModelKind::resnet && random.below(4) == 0)
      knobs.memory.checkpoint_every = MemoryKnobs::checkpoint_norms;
  }
  if (model.model.kind == ModelKind::resnet && model.launch.fuse == Fuse::none)
    knobs.model.inplace = random.below(2) == 0;
  if (model.optim.kind != OptimKind::sgd && knobs.memory.offload == Offload::none)
    knobs.save = {static_cast<std::int64_t>(random.below(4)), any_of(random, save_ways)};
  return knobs;
}

}  // namespace

std::vector<Knobs> ways_to_run(const Knobs& model, std::uint64_t seed) {
  const int stride = one_combination_in(model.model.kind);
  const int mixes = stride > 5 ? 30 : 60;
  std::vector<Knobs> ways;
  append_arrivals(model, ways);
  append_copies_beside(model, ways);
  append_waits(model, ways);
  append_allocations(model, ways);
  append_own_gradients(model, ways);
  if (model.model.kind == ModelKind::mlp) append_evaluations(model, ways);
  append_offloads(model, ways);
  ways = thinned(ways, static_cast<std::size_t>(stride), seed);
  Random random(seed);
  for (int index = 0; index < mixes; ++index) ways.push_back(mix(model, random));
  return ways;
}

std::vector<Knobs> ways_to_resize(const Knobs& model) {
  std::vector<Knobs> ways;
  for (const Allocator with : {Allocator::cuda, Allocator::cuda_async, Allocator::caching,
                               Allocator::expandable, Allocator::first_fit}) {
    for (const bool release : {true, false}) {
      Knobs knobs = model;
      knobs.alloc.with = with;
      knobs.alloc.when = AllocWhen::resize;
      knobs.alloc.release = release;
      ways.push_back(knobs);
    }
  }
  return ways;
}

// Names the knobs that do not have their default values.
std::string describe(const Knobs& knobs) {
  std::string words;
  const Settings settings{.knobs = knobs, .measure = {}, .requirements = {}};
  for (const Field& field : field_table()) {
    if (!is_built(field) || field.scope != FieldScope::variant) continue;
    const FieldValue value = field.get(settings);
    if (value == default_of(field)) continue;
    words += fmt::format("{}{}={}", words.empty() ? "" : " ", field.name,
                         field_value_text(field, value));
  }
  return words;
}

std::optional<StepPlan> accepted_plan(const Knobs& knobs) {
  try {
    return plan_of(knobs);
  } catch (const RequestError&) {
    return std::nullopt;
  }
}

}  // namespace stepgate
