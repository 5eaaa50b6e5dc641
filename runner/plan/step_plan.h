// SPDX-License-Identifier: MIT
// One training step as data: the buffers it uses and the operations that the host issues, in
// program order. Devices carry it out; nothing here knows of time, devices or files.
//
// The host issues the operations of step 0, 1, 2, ... in order. An operation with `ahead = a` acts
// for step i + a while the host is at step i (a prefetch), or for an earlier one when a < 0 (a late
// read); before step 0 the host issues the operations of the steps that lie ahead. A buffer or
// event with n slots uses slot (step acted for) mod n.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/random.h"
#include "kernels/catalogue.h"
#include "plan/allocator_simulation.h"
#include "plan/allocators/caching/caching_rules.h"
#include "plan/stream.h"
#include "scenario/assertions/step_counts.h"
#include "scenario/choices.h"
#include "scenario/scenario.h"

namespace stepgate {

// Managed memory has one address on host and device; its pages migrate to the side that touches
// them.
enum class MemoryKind { device, pinned, pageable, registered, managed };

// Managed memory counts as if all of it were on the device, where its pages go when they are used.
constexpr bool takes_device_memory(MemoryKind memory) {
  return memory == MemoryKind::device || memory == MemoryKind::managed;
}

enum class Purpose {
  weights,
  gradients,
  optimizer_state,
  activations,
  workspace,
  batch,
  staging,
  bookkeeping
};
constexpr int purpose_count = 8;

// How a buffer is filled before the first step. The same seed gives the same numbers on every
// device.
enum class Content { zeros, weights, payload, chain };

// step_allocator: the one in StepPlan::allocator, which then also serves the memory that the plan
// keeps.
enum class AllocatedBy { the_plan, cuda, cuda_async, step_allocator };

// A stretch of a buffer's `weights` content: uniform in [centre - scale, centre + scale).
struct ContentPart {
  std::int64_t elements = 0;
  double centre = 0;
  double scale = 0;
  auto operator<=>(const ContentPart&) const = default;
};

// Elements of a flat buffer that this rank has. Those of the next rank begin at a fixed stride
// after them.
struct RankPiece {
  std::int64_t first = 0;
  std::int64_t elements = 0;
  std::int64_t rank_stride = 0;
  auto operator<=>(const RankPiece&) const = default;
};

struct Buffer {
  std::string name;
  MemoryKind memory = MemoryKind::device;
  Purpose purpose = Purpose::activations;
  std::int64_t bytes = 0;  // of one slot
  std::int64_t slots = 1;
  Content content = Content::zeros;
  DType dtype = DType::fp32;            // how `weights` content is stored
  double scale = 0;                     // `weights`: uniform in [-scale, scale)
  std::vector<ContentPart> parts = {};  // `weights`: one after the other, instead of one scale
  std::string numbers_of = {};  // `weights`: the buffer that has the same numbers; empty: its own
  // `weights`: the buffer holds only these pieces of the numbers that `parts` describe, in
  // sequence; empty: all of them.
  std::vector<RankPiece> pieces = {};
  // `payload`: the index of the slot's first number in the batches of all ranks side by side.
  std::int64_t first_number = 0;
  ManagedAdvice advice = ManagedAdvice::none;  // of managed memory
  // Unless `the_plan`, the buffer exists only between its Allocate and its Release, with undefined
  // content at first.
  AllocatedBy allocated_by = AllocatedBy::the_plan;
};

struct BufferUse {
  int buffer = 0;                 // index into StepPlan::buffers
  std::int64_t offset_bytes = 0;  // from the start of the slot
  std::int64_t bytes = 0;         // touched from there
  // Rank r accesses bytes at r times this distance; 0 in the plan of one rank
  // (derive/plan_of_rank.h).
  std::int64_t rank_stride_bytes = 0;
};

struct LaunchKernel {
  KernelRef kernel;
  KernelShape shape;
  DType dtype = DType::fp32;
  KernelAttributes attributes = {};
  std::vector<BufferUse> operands;  // in the kernel's order
};

struct CopyBytes {
  BufferUse to;
  BufferUse from;
  bool host_waits = false;  // a synchronous call (cudaMemcpy); otherwise cudaMemcpyAsync
};

struct FillZero {
  BufferUse what;
};

// The host thread itself copies the bytes into managed memory.
struct HostCopies {
  BufferUse to;
  BufferUse from;
};

// The pages of managed memory go to the device, in the stream's order, before anything touches
// them there.
struct Prefetch {
  BufferUse what;
};

// Calls to the driver by the step's own allocator for one operation, on average over steady steps.
// Zero where the step calls the driver directly, one call for each operation.
struct DriverCalls {
  double allocations = 0;
  double frees = 0;  // each waits for the device
};

struct Allocate {
  int buffer = 0;
  DriverCalls driver = {};
  std::int64_t steps = 1;  // one after the other that use it; its Release acts for the last of them
};

struct Release {
  int buffer = 0;
};

// The step's allocator frees all segments without live blocks.
struct EmptyCache {
  DriverCalls driver = {};
};

struct RegisterHost {  // cudaHostRegister of one slot
  int buffer = 0;
};

struct UnregisterHost {
  int buffer = 0;
};

struct RecordEvent {
  int event = 0;
};

// The stream waits for the event's last record; an event never recorded is complete.
struct StreamWaitsEvent {
  int event = 0;
};

enum class WaitFor { device, stream, event, poll };  // poll: the host spins on an event query

struct HostWaits {
  WaitFor what = WaitFor::device;
  int event = 0;  // with event and poll
};

// The host takes the next batch from the loader, or makes it itself when the loader has no depth.
struct TakeBatch {};

struct HostWork {
  std::int64_t nanoseconds = 0;  // on average over steps
  std::optional<int> rank = {};  // that alone does it; absent: every one
  double variation = 0;          // coefficient of variation from step to step
  std::uint64_t seed = 0;        // of that; each rank's own plan has another one

  std::int64_t nanoseconds_of_step(std::int64_t step) const {
    return varied_nanoseconds(nanoseconds, variation, seed, step);
  }
};

enum class Reduction { sum, average };

// A collective begins when all ranks have reached it. Each rank's part is an equal share of the
// whole, in the order of ranks.
struct Collective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  BufferUse from;             // of all_gather this rank's part, of others the whole
  BufferUse to;               // of reduce_scatter this rank's part, of others the whole
                              // broadcast: `from` is read on rank 0 alone
  DType dtype = DType::fp32;  // of the numbers, as they are on the wire
  Reduction reduction = Reduction::average;
  int communicator = 0;  // those of one take their turns in the order in which they were issued
};

// Bytes of the whole, as nccl-tests counts them.
inline std::int64_t payload_bytes(const Collective& collective) {
  return collective.kind == CollectiveKind::reduce_scatter ? collective.from.bytes
                                                           : collective.to.bytes;
}

// Bytes that a rank sends in NCCL's ring algorithms: (n-1)/n of the payload for n ranks, and twice
// that for an all-reduce, which scatters and gathers. Tree algorithms send as many on average over
// ranks, and so does a broadcast, which the last rank passes on to nobody.
inline double ring_wire_bytes(CollectiveKind kind, std::int64_t payload, int ranks) {
  const double trips = kind == CollectiveKind::all_reduce ? 2 : 1;
  return trips * (ranks - 1) * static_cast<double>(payload) / ranks;
}

using Action = std::variant<LaunchKernel, CopyBytes, FillZero, HostCopies, Prefetch, Allocate,
                            EmptyCache, Release, RegisterHost, UnregisterHost, RecordEvent,
                            StreamWaitsEvent, HostWaits, TakeBatch, HostWork, Collective>;

// A visitor of actions must name each kind. A visitor with a catch-all would accept this kind, and
// silently any kind that is added later.
struct ActionOfAnotherKind {};
template <class Visitor>
concept NamesItsActions = !std::is_invocable_v<Visitor&, const ActionOfAnotherKind&>;

// Does not compile if the visitor misses a kind.
template <NamesItsActions Visitor>
decltype(auto) visit_action(Visitor&& visitor, const Action& action) {
  return std::visit(std::forward<Visitor>(visitor), action);
}

// The gradients that a launch of the update reads first, in the storage of StepPlan::dtype. Before
// this launch they are complete, and not yet scaled or clipped.
struct GradientsRead {
  std::size_t operand = 0;  // of the launch
  RankPiece flat;           // the parameters that they are of, in the flat buffer of all
};

struct Operation {
  std::string name;  // for people: "forward layer 2: gemm"
  Phase phase = Phase::forward;
  int stream = compute_stream;  // index into StepPlan::streams
  Action action;
  std::int64_t every = 1;  // acts for step s only when (s + 1) mod every == turn
  std::int64_t turn = 0;   // below `every`
  int ahead = 0;
  bool captured = false;  // part of the step's graph; captured operations are contiguous
  // The share of its arithmetic that the model needs; recomputation does not count.
  double model_share = 1;
  std::vector<BufferUse> keeps = {};  // needed until it is over, though it touches none of them
  std::optional<GradientsRead> reads_gradients = {};
};

struct Event {
  std::string name;
  std::int64_t slots = 1;
};

// A tensor that the model learns, as a range of the flat parameter buffer.
struct Parameter {
  std::string name;
  std::int64_t first = 0;  // element
  std::int64_t elements = 0;
};

// Knobs are in microseconds; devices count nanoseconds.
constexpr std::int64_t nanoseconds_of(double microseconds) {
  return static_cast<std::int64_t>(microseconds * 1000);
}

// Whether all workers restart before this batch.
inline bool restarts_before(const LoaderKnobs& loader, std::int64_t batch) {
  return loader.depth > 0 && loader.restart_every > 0 && batch % loader.restart_every == 0;
}

enum class AllocatorKind { caching, first_fit };

// The allocator that serves all device memory of a step.
struct AllocatorPlan {
  AllocatorKind kind = AllocatorKind::caching;
  CachingRules rules;
  std::optional<std::int64_t> cap_bytes;
};

// Where to find the numbers that a device reports for every step. All are rings over steps with
// `capacity` entries.
struct StepTelemetry {
  int losses = 0;  // buffer of fp32, one loss a step
  int stamps = 0;  // buffer of 64-bit nanoseconds of the device's clock, taken at the same point of
                   // every step
  std::int64_t capacity = 0;
  // Buffer of pairs of 64-bit numbers, read together with the stamp: the cycle counter of a
  // multiprocessor, and which one it was.
  int cycles = 0;
};

// The most communicators that all steps of a run need for one number of ranks. A step needs one or
// two, and each limit of thread blocks needs its own.
inline constexpr int most_communicators = 16;

// Processes with a GPU each that carry out one plan together.
struct RanksPlan {
  int count = 1;
  int rank = 0;  // whose plan it is; the plan as it is built is rank 0's
  int communicators = 1;
  CollectiveKnobs collectives = {};
};

struct StepPlan {
  std::string scenario;
  std::string variant;
  std::uint64_t seed = 0;  // of contents and of the loader's jitter
  std::vector<Stream> streams = {{.name = "compute", .kind = StreamKind::blocking}};
  std::vector<Buffer> buffers;
  std::vector<Event> events;
  std::vector<Operation> operations;
  // Rows of kernels that libraries launch (Kernel::replacement). Launches refer to them, so copies
  // of the plan share them.
  std::vector<std::shared_ptr<const Kernel>> library_kernels;
  std::optional<int> library_workspace;  // buffer that launches of libraries share
  RanksPlan ranks;
  LoaderKnobs loader;
  StepTelemetry telemetry;
  std::int64_t launch_host_nanoseconds =
      0;  // busy host time before every launch; a graph pays it once
  std::optional<std::int64_t> keep_bytes;  // release threshold of the async pool; absent: keep all
  std::optional<std::int64_t> cap_bytes;   // what all of it may take on the device
  std::optional<std::int64_t> pool_cap_bytes;  // what the async pool may take; absent: everything
  // The cap is this share of device memory whose size is not known yet. Such a plan is shown but
  // not run.
  std::optional<double> cap_of_device;
  std::optional<AllocatorPlan> allocator;  // absent: the driver has all memory in pieces of its own
  std::optional<AllocatorSimulation>
      allocator_simulation;               // of that allocator over `counted_steps`
  std::int64_t counted_steps = 0;         // of a segment, or of a scenario without a GPU
  std::vector<std::int64_t> batch_sizes;  // samples of the steps, in turns; at least one
  std::int64_t batch_bytes = 0;           // of the largest
  std::int64_t tokens_per_sample = 0;     // on average, without padding; 0: they are no sequences
  std::vector<std::int64_t> lengths;      // tokens of the samples, in turns; empty: all alike
  std::int64_t param_bytes = 0;
  std::vector<Parameter> parameters;  // in the order of the forward pass; empty: it learns nothing
  // Each rank updates only its part of the parameters, and no two the same one.
  bool shards_updates = false;
  ModelKnobs model;  // what losses depend on; what only says how to compute them is as by default
  DType dtype = DType::fp32;
  SyncWait wait_style = SyncWait::spin;                // of all waits of the step
  GemmChoice gemm_algorithms = GemmChoice::heuristic;  // of GEMMs
  // `any`: two runs of the step may differ in their last bits.
  AttentionSums attention_sums = AttentionSums::fixed;
  int steps_in_flight = 8;  // even; the host is never further ahead of the device than this
};

inline const Operation& operation_at(const StepPlan& plan, int index) {
  return plan.operations.at(static_cast<std::size_t>(index));
}

inline const Buffer& buffer_at(const StepPlan& plan, int index) {
  return plan.buffers[static_cast<std::size_t>(index)];
}

inline const Stream& stream_at(const StepPlan& plan, int index) {
  return plan.streams.at(static_cast<std::size_t>(index));
}

// Whether the streams are one, or implicitly ordered with each other, so that they need no events.
inline bool are_ordered(const StepPlan& plan, int stream, int other) {
  return stream == other || wait_for_each_other(stream_at(plan, stream), stream_at(plan, other));
}
inline bool is_ordered_with_compute(const StepPlan& plan, int stream) {
  return are_ordered(plan, stream, compute_stream);
}

// Samples a step, of all ranks together, on average.
inline double mean_batch_size(const StepPlan& plan) {
  double sum = 0;
  for (const std::int64_t size : plan.batch_sizes) sum += static_cast<double>(size);
  return plan.ranks.count * sum / static_cast<double>(plan.batch_sizes.size());
}

// Tokens a step, on average.
inline double mean_tokens(const StepPlan& plan) {
  return mean_batch_size(plan) * static_cast<double>(plan.tokens_per_sample);
}

}  // namespace stepgate
