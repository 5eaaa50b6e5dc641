// SPDX-License-Identifier: MIT
// The user's request: a claim, a few variants of one training step, and assertions about them.
// Plain values; read_scenario.h reads them from TOML, and plans turn them into operations.
#pragma once

#include <cstdint>
#include <map>
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
  std::int64_t kernels = 10;    // spin, elementwise: kernels a step
  std::int64_t kernel_us = 10;  // spin: duration of each, by the device's clock
  DType dtype = DType::fp32;
  bool inplace = true;  // mlp, resnet, elementwise: results overwrite their operands
  std::int64_t workspace_bytes = 32LL * 1024 * 1024;  // of a GEMM; default of cuBLAS for Hopper
  // For transformers.
  std::int64_t seq = 256;   // tokens of a sample
  std::int64_t heads = 16;  // of attention; together as wide as `hidden`
  // Key and value heads, each shared by a group of query heads; absent: as many as `heads`.
  std::optional<std::int64_t> kv_heads = {};
  std::int64_t vocab = 8192;                   // number of different tokens
  std::int64_t vocab_multiple = 1;             // the table's rows are padded to a multiple of this
  std::optional<std::int64_t> positions = {};  // positions with an embedding; absent: `seq`
  ModelNorm norm = ModelNorm::layer;
  ModelMlp mlp = ModelMlp::gelu;
  std::optional<std::int64_t> ffn = {};  // width of the MLP; absent: see the field's meaning
  ModelPosition position = ModelPosition::learned;
  bool tied = false;              // the head shares its weight with the token embedding
  bool bias = true;               // the blocks' GEMMs have biases
  ModelFp8 fp8 = ModelFp8::none;  // scales of the factors of the blocks' GEMMs
  // Workspace that cuDNN's attention gradient may use for scores; 0: our own kernel.
  std::int64_t attention_workspace_bytes = 1280LL * 1024 * 1024;
  // For elementwise models.
  Layout layout = Layout::arrays;
  std::int64_t stride = 1;        // between elements of neighbouring threads
  std::int64_t extra_copies = 0;  // of the result, in sequence
  // For pointer chases.
  std::int64_t footprint_bytes = 16LL * 1024;  // spread of the loads, a power of two
  std::int64_t accesses = 20000;               // dependent loads a step
  // For models of images; a UNet has other defaults (unet_levels.h).
  std::int64_t image = 224;    // pixels of a sample's height and of its width
  std::int64_t width = 64;     // channels of the first stage's inner convolutions, or first level
  bool layout_copies = false;  // results of convolutions are copied to NCHW and back
  std::int64_t image_channels = 3;  // of a sample, and of the noise that a UNet predicts
  // For ResNets.
  std::int64_t classes = 1000;
  ModelStem stem = ModelStem::imagenet;
  // For recommenders.
  std::int64_t tables = 8;  // each with `vocab` rows of `hidden` numbers
  bool operator==(const ModelKnobs&) const = default;
};

struct BatchKnobs {
  std::int64_t size = 64;                         // samples
  std::optional<std::int64_t> sample_bytes = {};  // absent: what the model reads, from the plan
  std::int64_t tensors = 1;                       // host tensors, hence copies, a batch
  std::vector<std::int64_t> sizes = {};           // used in turns by steps; empty: always `size`
  bool largest_first = false;                     // the turns begin with the largest size
  std::int64_t accumulate = 1;  // parts of a batch whose gradients add up before the update
  std::vector<std::int64_t> lengths = {};  // of samples, in turns; empty: always model.seq
  bool packed = false;  // a sample takes as many rows as it is long, rather than model.seq
  BatchFormat format = BatchFormat::fp32;  // mlp, images; uint8: the device decodes it
  bool operator==(const BatchKnobs&) const = default;
};

struct LoaderKnobs {
  double wait_us = 0;      // time that a worker needs for a batch
  double jitter = 0;       // coefficient of variation of wait_us, seeded
  std::int64_t depth = 0;  // batches loaded ahead; 0: loaded by the step's own thread
  std::int64_t workers = 1;
  std::int64_t restart_every = 0;  // workers restart after so many batches; 0: never
  double start_us = 0;             // from a worker's start to its first batch
  bool busy = false;               // wait_us is processor time, which threads compete for
  bool operator==(const LoaderKnobs&) const = default;
};

struct HostKnobs {
  double step_us = 0;    // busy host time once a step
  double jitter = 0;     // coefficient of variation of step_us, seeded
  double launch_us = 0;  // busy host time before every launch
  double pause_us = 0;   // busy host time once in every pause_every steps
  std::int64_t pause_every = 10;
  bool operator==(const HostKnobs&) const = default;
};

struct TransferKnobs {
  HostMemory host = HostMemory::pinned;
  CopyStream stream = CopyStream::compute;
  bool blocking = false;
  std::int64_t buffers = 1;  // device buffers that the batches use in turns
  DeviceBuffer device_buffer = DeviceBuffer::resident;
  ManagedAdvice advise = ManagedAdvice::none;
  CopyBack back = CopyBack::none;
  std::int64_t others = 0;  // other copies to the device, each as large as the batch
  bool operator==(const TransferKnobs&) const = default;
};

struct SyncKnobs {
  SyncWhere where = SyncWhere::none;
  SyncHow how = SyncHow::device;
  std::int64_t every = 1;  // steps
  std::int64_t times = 1;  // waits in a row
  SyncWait wait = SyncWait::spin;
  bool operator==(const SyncKnobs&) const = default;
};

enum class CapOf { nothing, bytes, need, device };

// The limit on device memory that an allocator may take.
struct MemoryCap {
  CapOf of = CapOf::nothing;
  double amount = 0;  // bytes, a multiple of what the step needs, or a share of the device's memory
  bool operator==(const MemoryCap&) const = default;
};

struct AllocKnobs {
  Allocator with = Allocator::fixed;
  AllocWhen when = AllocWhen::never;
  AllocStream stream = AllocStream::compute;    // whose memory it is
  std::optional<std::int64_t> keep_bytes = {};  // cuda_async's release threshold; absent: keep all
  MemoryCap cap = {};
  AllocRound round = AllocRound::none;               // of block sizes, beyond multiples of 512 B
  std::optional<std::int64_t> split_max_bytes = {};  // larger blocks are not split; absent: all are
  std::int64_t empty_cache_every = 0;                // steps; 0: never
  std::int64_t leak_bytes = 0;                       // allocated a step and never released
  std::int64_t temps = 0;                            // short-lived tensors around every kernel
  bool release = true;                               // false: what `when` allocates is leaked
  bool operator==(const AllocKnobs&) const = default;
};

struct MemoryKnobs {
  ZeroGrad zero_grad = ZeroGrad::none;
  Offload offload = Offload::none;  // what is moved to host memory between its uses
  OffloadVia offload_via = OffloadVia::pinned_overlap;
  // Keeps the input of one in so many blocks only, and recomputes the rest in the backward pass. 0
  // keeps everything, 1 recomputes every block ("full"), and checkpoint_norms the results of norms.
  std::int64_t checkpoint_every = 0;
  static constexpr std::int64_t checkpoint_norms = -1;
  bool operator==(const MemoryKnobs&) const = default;
};

struct OptimKnobs {
  OptimKind kind = OptimKind::sgd;
  OptimImpl impl = OptimImpl::fused;
  bool master = false;                   // fp32 weights that the 16-bit weights are copied from
  MasterCast cast = MasterCast::update;  // when they are
  double average = 0;  // decay of a moving average of the weights; 0: there is none
  double clip = 0;     // largest global norm of gradients; 0: no limit
  bool operator==(const OptimKnobs&) const = default;
};

struct LaunchKnobs {
  LaunchVia via = LaunchVia::stream;
  Fuse fuse = Fuse::attention;
  GemmChoice gemm = GemmChoice::heuristic;
  AttentionSums attention_sums = AttentionSums::fixed;
  bool operator==(const LaunchKnobs&) const = default;
};

struct LogKnobs {
  std::int64_t every = 0;  // steps; 0 never logs
  LogVia via = LogVia::mean_on_device;
  bool operator==(const LogKnobs&) const = default;
};

// The state that a training run saves: weights and the optimizer's state.
struct SaveKnobs {
  std::int64_t every = 0;  // steps; 0 never saves
  SaveVia via = SaveVia::blocking;
  bool operator==(const SaveKnobs&) const = default;
};

struct EvalKnobs {
  std::int64_t every = 0;    // steps; 0 never evaluates
  std::int64_t batches = 1;  // validation batches an evaluation
  EvalStore store = EvalStore::none;
  bool save_for_backward = false;  // keeps every layer's output until the forward pass ends
  bool operator==(const EvalKnobs&) const = default;
};

// The most ranks of a step.
inline constexpr int most_ranks = 64;

// How collectives run on devices. A plan is the same for all values.
struct CollectiveKnobs {
  // The most thread blocks of a collective; absent: as many as NCCL chooses.
  std::optional<std::int64_t> max_ctas = {};
  RankLinks links = RankLinks::usual;
  double link_gbps = 0;  // the most that simulated links move, in GB/s; 0: the device's own rate
  bool operator==(const CollectiveKnobs&) const = default;
};

// Processes with one GPU each that train one model, each on its own batch.
struct RanksKnobs {
  std::int64_t count = 1;
  Shard shard = Shard::none;
  std::int64_t bucket_bytes = 25LL * 1024 * 1024;       // gradients; 0: a bucket for each parameter
  std::optional<std::int64_t> first_bucket_bytes = {};  // absent: as bucket_bytes
  BucketOrder bucket_order = BucketOrder::reverse;
  ReduceOverlap overlap = ReduceOverlap::backward;
  GradientDtype gradient_dtype = GradientDtype::model;
  Averaging average = Averaging::collective;
  std::int64_t communicators = 1;  // 2: weights are gathered by a second one
  std::int64_t gather_ahead = 1;   // blocks whose weights are gathered in advance
  CollectiveKnobs collectives = {};
  std::int64_t spare_sms = 0;        // left free by GEMMs for concurrent reductions
  bool sync_each_part = false;       // with batch.accumulate: reduce after every part
  bool check_each_bucket = false;    // the host checks that a bucket's gradients are finite
  std::int64_t broadcast_bytes = 0;  // of buffers that rank 0 sends to all before a forward pass
  std::int64_t broadcast_calls = 1;  // collectives that they come in
  std::int64_t forward_reduces = 0;  // all-reduces of statistics that a forward pass waits for
  double slow_us = 0;                // extra busy host time of one rank, a step
  std::int64_t slow_rank = 0;        // the rank that slow_us applies to
  std::int64_t slow_every = 1;       // steps between those that slow_us applies to
  bool operator==(const RanksKnobs&) const = default;
};

// A step of the user's own program, in place of one that stepgate composes. It is counted with the
// library of `stepgate attach`, and timed by being held between two steps.
struct ProgramKnobs {
  std::vector<std::string> command;        // words, without a shell; empty: the step is composed
  std::vector<std::string> arguments;      // follow those of the command
  std::map<std::string, std::string> env;  // variables beside those of stepgate
  std::string cwd;                         // empty: the folder that stepgate runs in
  std::int64_t skip_steps = 10;            // before the counted ones
  std::int64_t steps = 20;                 // counted
  std::string step_range;                  // NVTX range that begins a step
  std::string step_kernel;                 // regular expression of a kernel that ends one
  std::string step_call;                   // CUDA call that ends one
  double timeout_s = 600;                  // of one start
  bool operator==(const ProgramKnobs&) const = default;
};

// Kernels of the catalogue by name, with the functions that launch them instead.
using ReplacedKernels = std::map<std::string, KernelReplacement>;

// All knobs that a variant may override.
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
  SaveKnobs save;
  RanksKnobs ranks;
  ReplacedKernels kernels;
  ProgramKnobs program;
  bool operator==(const Knobs&) const = default;
};

// Limits of `stepgate gate` for this variant; not part of the step.
struct GateKnobs {
  // The relative slowdown of HEAD's step time that is allowed; absent: the command's limit. If both
  // are set, the larger one counts.
  std::optional<double> margin = {};
  bool operator==(const GateKnobs&) const = default;
};

struct Variant {
  std::string name;
  Knobs knobs;
  Place place;  // of the variant's table
  GateKnobs gate = {};
  std::map<std::string, Place> kernel_places = {};  // of the keys that replace kernels, by name
};

// Where the variant's library for this kernel is named.
inline const Place& place_of_kernel(const Variant& variant, const std::string& kernel) {
  const auto found = variant.kernel_places.find(kernel);
  return found == variant.kernel_places.end() ? variant.place : found->second;
}

// How the whole scenario is measured; the same for all its variants.
struct MeasureKnobs {
  std::optional<std::int64_t> warmup_steps = {};  // absent: until steady
  std::int64_t steps = 50;                        // scored steps a segment
  // The fewest scored steps of a variant in a round; follows from the percentiles in assertions.
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
  std::optional<std::int64_t> processors = {};
  RequiredLink link = RequiredLink::any;
  std::optional<std::int64_t> free_memory_bytes = {};
  bool operator==(const Requirements&) const = default;
};

// A knob whose value is searched by measuring on this machine, such that the assertion is true. The
// assertion is about one metric of one variant; all variants use the value.
struct Calibration {
  std::string knob;  // "batch.sample_bytes"
  std::string text;  // as written: "fix.h2d_share ~= 30% within 5%"
  MetricOf metric;
  Relation relation = Relation::about;  // or at_least, at_most: a limit
  double value = 0;                     // target value of the metric in its base unit
  double within = 0;                    // relative tolerance; 0 for a limit
};

// Whether the aim is a limit. The file's own value of the knob then stays wherever the assertion is
// true of it, and verbs that do not calibrate use that value.
inline bool is_limit(const Calibration& calibration) {
  return calibration.relation != Relation::about;
}

// The source says a number of the ratio that an assertion of [expect] compares. Decides nothing.
struct ArticleFigure {
  std::string assertion;
  std::string experiment;  // in words: "a device wait every step"
  double low = 1;          // left metric / right metric; one number where both are equal
  double high = 1;
};

// A knob that a variant's own table sets.
struct VariantOverride {
  std::string variant;
  std::string knob;   // "sync.where"
  std::string value;  // as files write it
  Place place;        // of the key
};

// The value of the knob that [sweep] gives several of.
struct SweepPoint {
  std::string knob;                      // "batch.size"
  std::string value;                     // as files write it
  double number = 0;                     // in base units
  bool is_whole = true;                  // of a knob of whole numbers or bytes
  std::vector<std::string> values = {};  // all values that the file sweeps
};

struct Scenario {
  std::string name;  // file name without folder and extension; of a sweep "graphs@batch.size=8"
  std::string file;  // path as given
  std::string claim;
  std::string source;
  std::vector<std::string> tags;  // "no_gpu": see is_planned_only
  Requirements requirements;
  MeasureKnobs measure;
  std::vector<Variant> variants;           // in the file's order, at least one
  std::optional<SweepPoint> point;         // of a sweep, which this scenario is a part of
  std::optional<Calibration> calibrate;    // also absent when the knob was given a value
  std::vector<Expectation> regime;         // if false, timed assertions are skipped
  std::vector<Expectation> expect;         // in the file's order
  std::vector<ArticleFigure> article;      // in the file's order
  std::vector<VariantOverride> overrides;  // in the order of the variants
  std::uint64_t fingerprint = 0;           // of all knobs and assertions, see fingerprint.h
};

// Whether a knob has no value before it is calibrated.
inline bool lacks_a_value(const Scenario& scenario) {
  return scenario.calibrate && !is_limit(*scenario.calibrate);
}

// The file's name without folder and extension, which all points of a sweep share.
std::string name_of_file(const Scenario&);

// Whether the scenario has the tag "no_gpu": plans and the allocator's model alone decide it, on
// any machine, and nothing is measured.
bool is_planned_only(const Scenario&);

// Whether the variant runs the user's own program. It then has no plan.
bool runs_a_program(const Variant&);
// Whether its variants run the user's own program: all of them do, or none does.
bool runs_programs(const Scenario&);

// Returns whether a variant launches kernels of a user's library.
bool launches_libraries(const Scenario&);

// The largest number of ranks of any variant; each needs a GPU.
int ranks_needed(const Scenario&);

}  // namespace stepgate
