// SPDX-License-Identifier: MIT
// The user's request: a claim, a few variants of one training step, and assertions about them.
// Plain values; read_scenario.h reads them from TOML, and plans turn them into operations.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/text/diagnostic.h"
#include "kernels/kernel.h"
#include "scenario/assertions/expectation.h"
#include "scenario/choices.h"

namespace stepgate {

struct ModelKnobs {
  ModelKind kind = ModelKind::mlp;
  std::int64_t layers = 4;
  std::int64_t hidden = 1024;
  std::int64_t kernels = 10;    // spin, elementwise: how many a step
  std::int64_t kernel_us = 10;  // spin: how long each, by the device's clock
  DType dtype = DType::fp32;
  bool inplace = true;  // mlp, elementwise: results overwrite what they are made of
  std::int64_t workspace_bytes = 32LL * 1024 * 1024;  // of a GEMM; cuBLAS's for Hopper
  // transformer
  std::int64_t seq = 256;   // tokens of a sample
  std::int64_t heads = 16;  // of attention; they share `hidden`
  // Heads of keys and of values, each for as many heads of queries; absent: `heads`.
  std::optional<std::int64_t> kv_heads = {};
  std::int64_t vocab = 8192;                   // tokens there are
  std::int64_t vocab_multiple = 1;             // the table has a multiple of this many rows
  std::optional<std::int64_t> positions = {};  // that have an embedding; absent: `seq`
  ModelNorm norm = ModelNorm::layer;
  ModelMlp mlp = ModelMlp::gelu;
  std::optional<std::int64_t> ffn = {};  // width of the MLP; absent: what the field's text says
  ModelPosition position = ModelPosition::learned;
  bool tied = false;  // the head's weight is the token embedding
  bool bias = true;   // of the blocks' GEMMs
  // Workspace that cuDNN's attention gradient may use for scores; 0: our own kernel.
  std::int64_t attention_workspace_bytes = 1280LL * 1024 * 1024;
  // elementwise
  Layout layout = Layout::arrays;
  std::int64_t stride = 1;        // from the element of a thread to that of its neighbour
  std::int64_t extra_copies = 0;  // of the result, one after the other
  // chase
  std::int64_t footprint_bytes = 16LL * 1024;  // that loads are spread over, a power of two
  std::int64_t accesses = 20000;               // loads a step, one after the other
  // recommender
  std::int64_t tables = 8;  // of `vocab` rows of `hidden` numbers
  bool operator==(const ModelKnobs&) const = default;
};

struct BatchKnobs {
  std::int64_t size = 64;                         // samples
  std::optional<std::int64_t> sample_bytes = {};  // absent: what the model reads, from the plan
  std::int64_t tensors = 1;                       // host tensors, hence copies, a batch
  std::vector<std::int64_t> sizes = {};           // one a step, in turns; empty: always `size`
  bool largest_first = false;                     // the turns begin with the largest
  std::int64_t accumulate = 1;  // parts of a batch, whose gradients add up before the update
  std::vector<std::int64_t> lengths = {};  // tokens, one a sample in turns; empty: always model.seq
  bool packed = false;  // samples take as many rows as they are long, rather than model.seq
  BatchFormat format = BatchFormat::fp32;  // mlp; uint8: the step decodes them on the device
  bool operator==(const BatchKnobs&) const = default;
};

struct LoaderKnobs {
  double wait_us = 0;      // what one batch costs its worker
  double jitter = 0;       // coefficient of variation of that, seeded
  std::int64_t depth = 0;  // batches ready ahead; 0 loads inline on the step's own thread
  std::int64_t workers = 1;
  std::int64_t restart_every = 0;  // batches after which the workers start anew; 0: never
  double start_us = 0;             // from a worker's start to its first batch
  bool operator==(const LoaderKnobs&) const = default;
};

struct HostKnobs {
  double step_us = 0;    // busy host time once a step
  double launch_us = 0;  // busy host time before every launch
  bool operator==(const HostKnobs&) const = default;
};

struct TransferKnobs {
  HostMemory host = HostMemory::pinned;
  CopyStream stream = CopyStream::compute;
  bool blocking = false;
  std::int64_t buffers = 1;  // device buffers the batches rotate over
  DeviceBuffer device_buffer = DeviceBuffer::resident;
  ManagedAdvice advise = ManagedAdvice::none;
  bool operator==(const TransferKnobs&) const = default;
};

struct SyncKnobs {
  SyncWhere where = SyncWhere::none;
  SyncHow how = SyncHow::device;
  std::int64_t every = 1;  // steps
  SyncWait wait = SyncWait::spin;
  bool operator==(const SyncKnobs&) const = default;
};

enum class CapOf { nothing, bytes, need, device };

// How much device memory an allocator may take.
struct MemoryCap {
  CapOf of = CapOf::nothing;
  double amount =
      0;  // bytes, a multiple of what the step needs, or a share of all that a device has
  bool operator==(const MemoryCap&) const = default;
};

struct AllocKnobs {
  Allocator with = Allocator::fixed;
  AllocWhen when = AllocWhen::never;
  std::optional<std::int64_t> keep_bytes = {};  // cuda_async's release threshold; absent: keep all
  MemoryCap cap = {};
  AllocRound round = AllocRound::none;               // of blocks, beyond multiples of 512 bytes
  std::optional<std::int64_t> split_max_bytes = {};  // larger blocks are not split; absent: all are
  std::int64_t empty_cache_every = 0;                // steps; 0: never
  std::int64_t leak_bytes = 0;                       // allocated a step and never released
  std::int64_t temps = 0;                            // short-lived tensors around every kernel
  bool release = true;                               // what `when` allocates; false forgets to
  bool operator==(const AllocKnobs&) const = default;
};

struct MemoryKnobs {
  ZeroGrad zero_grad = ZeroGrad::none;
  Offload offload = Offload::none;  // what lies in host memory between its uses
  OffloadVia offload_via = OffloadVia::pinned_overlap;
  // Blocks that keep only their input and recompute the rest in the backward pass; 0 keeps
  // everything, 1 is "full".
  std::int64_t checkpoint_every = 0;
  bool operator==(const MemoryKnobs&) const = default;
};

struct OptimKnobs {
  OptimKind kind = OptimKind::sgd;
  OptimImpl impl = OptimImpl::fused;
  bool master = false;  // fp32 weights besides those of 16 bits, which follow them
  double clip = 0;      // largest global norm of the gradients; 0: any
  bool operator==(const OptimKnobs&) const = default;
};

struct LaunchKnobs {
  LaunchVia via = LaunchVia::stream;
  Fuse fuse = Fuse::attention;
  GemmChoice gemm = GemmChoice::heuristic;
  bool operator==(const LaunchKnobs&) const = default;
};

struct LogKnobs {
  std::int64_t every = 0;  // steps; 0 never logs
  LogVia via = LogVia::mean_on_device;
  bool operator==(const LogKnobs&) const = default;
};

struct EvalKnobs {
  std::int64_t every = 0;    // steps; 0 never evaluates
  std::int64_t batches = 1;  // validation batches an evaluation
  EvalStore store = EvalStore::none;
  bool save_for_backward = false;  // every layer's output is kept until the forward pass ends
  bool operator==(const EvalKnobs&) const = default;
};

// Most ranks of one step.
inline constexpr int most_ranks = 64;

// How collectives are carried out. A plan has them as they are: only devices act on them.
struct CollectiveKnobs {
  // Thread blocks of a collective, at most; absent: as many as whoever carries it out chooses.
  std::optional<std::int64_t> max_ctas = {};
  RankLinks links = RankLinks::usual;
  bool operator==(const CollectiveKnobs&) const = default;
};

// Processes with a GPU each that train one model, each on a batch of its own.
struct RanksKnobs {
  std::int64_t count = 1;
  Shard shard = Shard::none;
  std::int64_t bucket_bytes = 25LL * 1024 * 1024;       // of gradients; 0: one bucket a parameter
  std::optional<std::int64_t> first_bucket_bytes = {};  // absent: the same
  BucketOrder bucket_order = BucketOrder::reverse;
  ReduceOverlap overlap = ReduceOverlap::backward;
  GradientDtype gradient_dtype = GradientDtype::model;
  Averaging average = Averaging::collective;
  std::int64_t communicators = 1;  // 2: weights are gathered by one of their own
  std::int64_t gather_ahead = 1;   // blocks' weights that are gathered before they are needed
  CollectiveKnobs collectives = {};
  std::int64_t spare_sms = 0;      // that GEMMs leave to the reductions beside them
  bool sync_each_part = false;     // with batch.accumulate: reduce after every part
  bool check_each_bucket = false;  // the host reads whether its gradients are finite
  double slow_us = 0;              // of busy host time that one rank has besides, a step
  std::int64_t slow_rank = 0;      // which
  bool operator==(const RanksKnobs&) const = default;
};

// Everything a variant may override.
struct Knobs {
  ModelKnobs model;
  BatchKnobs batch;
  LoaderKnobs loader;
  HostKnobs host;
  TransferKnobs transfer;
  SyncKnobs sync;
  AllocKnobs alloc;
  MemoryKnobs memory;
  OptimKnobs optim;
  LaunchKnobs launch;
  LogKnobs log;
  EvalKnobs eval;
  RanksKnobs ranks;
  bool operator==(const Knobs&) const = default;
};

// Limits that `stepgate gate` sets for this variant. No part of the step.
struct GateKnobs {
  // HEAD's step time may be this much longer, relative; absent: what is asked of all. The larger of
  // the two counts.
  std::optional<double> margin = {};
  bool operator==(const GateKnobs&) const = default;
};

struct Variant {
  std::string name;
  Knobs knobs;
  Place place;  // of the variant's table
  GateKnobs gate = {};
};

// How the scenario as a whole is measured; the same for all its variants.
struct MeasureKnobs {
  std::optional<std::int64_t> warmup_steps = {};  // absent: until steady
  std::int64_t steps = 50;                        // scored steps a segment
  // Scored steps of a variant in a round, at least. Follows from the percentiles that assertions
  // name.
  std::int64_t fewest_steps = 1;
  std::int64_t rounds = 200;  // at most; a decided scenario stops earlier
  double max_seconds = 30;
  Interleave interleave = Interleave::automatic;
  double confidence = 0.95;  // of the intervals in the report
  bool operator==(const MeasureKnobs&) const = default;
};

// Requirements of the machine; the scenario is skipped where one is not met.
struct Requirements {
  std::optional<double> compute = {};  // compute capability, e.g. 8.0
  std::optional<std::int64_t> copy_engines = {};
  std::optional<std::int64_t> gpus = {};
  RequiredLink link = RequiredLink::any;
  std::optional<std::int64_t> free_memory_bytes = {};
  bool operator==(const Requirements&) const = default;
};

// A knob whose value is found by measuring on this machine. The assertion, about one metric of one
// variant, is true at that value; all variants then use it.
struct Calibration {
  std::string knob;  // "batch.sample_bytes"
  std::string text;  // as written: "fix.h2d_share ~= 30% within 5%"
  MetricOf metric;
  double value = 0;   // that the metric should have, in its base unit
  double within = 0;  // relative
};

// One knob in a variant's own table.
struct VariantOverride {
  std::string variant;
  std::string knob;   // "sync.where"
  std::string value;  // as files write it
  Place place;        // of the key
};

struct Scenario {
  std::string name;  // the file's name without its folder and ending
  std::string file;  // as given
  std::string claim;
  std::string source;
  std::vector<std::string> tags;  // "no_gpu": see is_planned_only
  Requirements requirements;
  MeasureKnobs measure;
  std::vector<Variant> variants;           // in the file's order, at least one
  std::optional<Calibration> calibrate;    // absent too when the knob was given its value
  std::vector<Expectation> regime;         // false: timed assertions are skipped
  std::vector<Expectation> expect;         // in the file's order
  std::vector<VariantOverride> overrides;  // in the order of the variants
  std::uint64_t fingerprint =
      0;  // of all knobs and assertions; comments and order of keys do not change it
};

// Tagged "no_gpu": decided by its plans and the allocator's model alone, on any machine; nothing
// is measured.
bool is_planned_only(const Scenario&);

// How many ranks that variant has which has the most, each with a GPU of its own.
int ranks_needed(const Scenario&);

}  // namespace stepgate
