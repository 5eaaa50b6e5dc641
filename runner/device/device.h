// SPDX-License-Identifier: MIT
// The one interface between plans and machines: load a plan, then run steps of it. CUDA, simulated
// and reference devices implement it and pass the same contract tests.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/record/fields.h"
#include "device/audit.h"
#include "device/environment.h"
#include "device/gradients.h"
#include "device/trace.h"
#include "kernels/kernel.h"
#include "plan/step_plan.h"

namespace stepgate {

// The device failed: no driver, out of memory, a CUDA error. Exit 3.
class DeviceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The device cannot be used again in this process. Every further scenario would fail in the same
// way.
class DeviceLost : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

// The device has no memory for the request. The next step may fit.
class DeviceMemoryFull : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

// The message for std::bad_alloc to the caller that asked for the step.
constexpr std::string_view no_host_memory =
    "there is not enough host memory for this step; make it smaller";

enum class DeviceKind { cuda, simulated, reference };

// The name in files: "cuda", "simulated", "reference".
std::string_view name_of(DeviceKind);

// Begins the key of a user's kernel, {"kernel layer_norm", "libmine.so 1f0a33c2e0d94b55"}: another
// build of it is the subject of a comparison with stored runs and no reason against one.
inline constexpr std::string_view key_of_kernel = "kernel ";

// A fact that two runs must share besides to be compared, in words: {"power limit", "700 W"}.
struct DeviceKey {
  std::string name;
  std::string value;
  bool operator==(const DeviceKey&) const = default;
};
template <>
inline constexpr auto fields_of<DeviceKey> = entry_fields<&DeviceKey::name, &DeviceKey::value>;

// The library with which ranks communicate, its settings, and the links of the GPU.
struct Communication {
  std::string library;              // "NCCL 2.28.9"; empty: none
  std::string file;                 // that it was found in
  std::vector<DeviceKey> settings;  // variables that it goes by, those that are set
  std::vector<std::string> links;   // to the GPU of each rank; empty: not known, or its own
  bool operator==(const Communication&) const = default;
};
template <>
inline constexpr auto fields_of<Communication> =
    fields<&Communication::library, &Communication::file, &Communication::settings,
           &Communication::links>;

// Names of links between two GPUs.
constexpr std::string_view nvlink = "NVLink";
constexpr std::string_view no_nvlink = "PCIe";

// The identity of one process of a device of several ranks.
struct RankIdentity {
  std::string host;
  std::string uuid;  // of its GPU
  Communication communication;
  bool operator==(const RankIdentity&) const = default;
};
template <>
inline constexpr auto fields_of<RankIdentity> =
    fields<&RankIdentity::host, &RankIdentity::uuid, &RankIdentity::communication>;

struct DeviceIdentity {
  DeviceKind kind = DeviceKind::simulated;
  std::string name;     // "NVIDIA H200"; for a simulated device the profile's
  std::string driver;   // "580.159"; empty where there is none
  std::string runtime;  // "13.0"
  double compute_capability = 0;
  std::int64_t copy_engines = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t free_memory_bytes = 0;  // when asked
  std::string uuid;                    // empty where there is none
  // These are other facts that step times depend on. A fact is empty if step times do not depend on
  // it, or if it is not known.
  std::string cpu = {};              // "AMD EPYC 9654 96-Core Processor"
  std::string power_limit = {};      // "700 W"
  std::string pcie = {};             // "5 x16"
  std::vector<DeviceKey> keys = {};  // those that are known, always in the same order
  std::int64_t multiprocessors = 0;  // 0: not known
  // GPUs for the ranks of a step, one each. Absent on a device that computes all ranks itself, so
  // any number will do.
  std::optional<std::int64_t> gpus = {};
  std::optional<std::int64_t> processors = {};  // of the host, for this process
  // The link between any two devices of this kind; empty if not known.
  std::string link = {};
  std::vector<RankIdentity> ranks = {};  // those in processes of their own; empty: none
  std::string launcher = {};             // that started `ranks`: "torchrun"; empty: this program
  bool operator==(const DeviceIdentity&) const = default;
};
template <>
inline constexpr auto fields_of<DeviceIdentity> =
    fields<&DeviceIdentity::kind, &DeviceIdentity::name, &DeviceIdentity::driver,
           &DeviceIdentity::runtime, &DeviceIdentity::compute_capability,
           &DeviceIdentity::copy_engines, &DeviceIdentity::memory_bytes,
           &DeviceIdentity::free_memory_bytes, &DeviceIdentity::uuid, &DeviceIdentity::cpu,
           &DeviceIdentity::power_limit, &DeviceIdentity::pcie, &DeviceIdentity::keys,
           &DeviceIdentity::multiprocessors, &DeviceIdentity::gpus, &DeviceIdentity::processors,
           &DeviceIdentity::link, &DeviceIdentity::ranks, &DeviceIdentity::launcher>;

// The link between the GPUs of two ranks of a step; empty if not known.
std::string link_between(const DeviceIdentity&, std::size_t rank, std::size_t other);

// "NVIDIA H200, driver 580.159", "a simulated NVIDIA H200 (no measurement)", "the host reference
// (no times)".
std::string in_words(const DeviceIdentity&);

// Values that a load draws anew. The variants that are compared share them, so that they pay for
// the same rare operations and wait for the same batches.
struct LoadDraw {
  std::int64_t first_step = 0;  // number of the step that the load begins with
  std::uint64_t loader = 0;     // seed of the loader's jitter; 0: the plan's own
};
template <>
inline constexpr auto fields_of<LoadDraw> = fields<&LoadDraw::first_step, &LoadDraw::loader>;

// The steps to run and the facts to record of them. Steps are numbered from the load's first one
// over the life of the loaded step.
struct Observe {
  std::int64_t wash_out_steps = 0;  // run first and not scored
  std::int64_t steps = 1;           // scored; at least 1
  bool tensors = false;             // read back parameters and gradients at the end
  bool trace = false;               // record the scored steps, which makes them slower
  bool gradients = false;           // of the last step, as its update reads them
  // Seed that chooses launches of the last step (launches_to_audit), which are audited and take
  // long; 0: none are.
  std::uint64_t audit = 0;
  // Chooses the processor that issues the steps in each of the processes that ranks have
  // (base/process/one_cpu.h); absent: any. A device of this process leaves it to the caller.
  std::optional<std::uint64_t> cpu_draw = {};
};
template <>
inline constexpr auto fields_of<Observe> =
    fields<&Observe::wash_out_steps, &Observe::steps, &Observe::tensors, &Observe::trace,
           &Observe::gradients, &Observe::audit, &Observe::cpu_draw>;

struct Tensor {
  std::string name;  // of the plan's buffer
  std::vector<float> values;
};
template <>
inline constexpr auto fields_of<Tensor> = fields<&Tensor::name, &Tensor::values>;

struct StepResult {
  std::int64_t first_step = 0;  // number of the first step run, wash-out included
  std::int64_t steps = 0;       // scored
  // From the end of the wash-out's work to the end of the scored steps' work, by the device's
  // clock; the queue is never drained in between. Absent where the device has no notion of time.
  std::optional<std::chrono::nanoseconds> elapsed;
  // Mean clock of the multiprocessors during the scored steps. Absent where the device cannot know.
  std::optional<double> sm_clock_hertz;
  // Host time spent issuing the scored steps, with the waits taken out.
  std::optional<std::chrono::nanoseconds> host_busy;
  // Processor time of the thread that issues the scored steps. Waits that are part of the step
  // count as far as they hold a processor. Time in which the runner throttles the host does not
  // count.
  std::optional<std::chrono::nanoseconds> host_processor;
  // Time from step to step, one value for each scored step. The first value needs a wash-out step
  // before the first scored step. Empty where unknown.
  std::vector<std::chrono::nanoseconds> step_times;
  std::vector<float> losses;    // one for each step run, wash-out included
  std::vector<Tensor> tensors;  // only when asked for
  // Sketches in the order of the plan's parameters, only when asked for; with several ranks, sums
  // over all of them. Empty where the device computes no numbers, and where
  // reason_against_gradients returns a reason.
  std::vector<GradientSketch> gradients = {};
  // Sketches of the other ranks, by rank. They exist only where every rank has the whole gradient;
  // then `gradients` has the sketches of rank 0.
  std::vector<std::vector<GradientSketch>> other_gradients = {};
  // The limit of the device that is another one than when the step was loaded, in words:
  // "persisting L2 was 0 B and is 4096 B"; empty: none is. A step must leave them alone.
  std::string device_changed = {};
  std::vector<LaunchAudit> audits = {};  // only when asked for; of all ranks
  std::optional<Trace> trace;            // only when asked for and supported; of rank 0
  // Traces of the other ranks, by rank. One trace may stand for all ranks that do the same
  // (Trace::alike).
  std::vector<Trace> other_traces = {};
};
template <>
inline constexpr auto fields_of<StepResult> =
    fields<&StepResult::first_step, &StepResult::steps, &StepResult::elapsed,
           &StepResult::sm_clock_hertz, &StepResult::host_busy, &StepResult::host_processor,
           &StepResult::step_times, &StepResult::losses, &StepResult::tensors,
           &StepResult::gradients, &StepResult::other_gradients, &StepResult::device_changed,
           &StepResult::audits, &StepResult::trace, &StepResult::other_traces>;

// give_traces stores the traces of all ranks, by rank, in a result; take_traces takes them out
// again. Both work with an empty list where nothing was recorded.
void give_traces(std::vector<Trace>, StepResult&);
std::vector<Trace> take_traces(StepResult&&);

// Which of several ranks a device is, and how they find each other.
struct RankMembership {
  int rank = 0;
  int count = 1;
  std::string rendezvous;  // what rank 0's device made, the same for all
};
template <>
inline constexpr auto fields_of<RankMembership> =
    fields<&RankMembership::rank, &RankMembership::count, &RankMembership::rendezvous>;

template <>
inline constexpr auto fields_of<KernelChoice> =
    fields<&KernelChoice::kernel, &KernelChoice::library, &KernelChoice::reason,
           &KernelChoice::own_launches, &KernelChoice::launches>;

// The choices of a device that runs no library: the plan's kernels of libraries, each with this
// reason.
std::vector<KernelChoice> library_kernels_not_run(const StepPlan&, std::string_view reason);

class LoadedStep {
 public:
  virtual ~LoadedStep() = default;
  // The kernels of this step for which a library has an alternative, as the choice was made when
  // the step was loaded. Each choice is listed once; empty where there was nothing to choose.
  virtual std::vector<KernelChoice> choices() const { return {}; }
  // Runs wash-out and scored steps and returns when all their work is done. Throws DeviceError.
  virtual StepResult run(const Observe&) = 0;
  // Resets the step to the contents and the step number that it was loaded with; kernels, addresses
  // and graphs stay. Returns false, and changes nothing, where only a new load can do that. Throws
  // DeviceError.
  virtual bool restart() { return false; }
};

// Short segments of several loaded steps, run in this order without a host wait in between. Every
// segment begins with wash-out steps, so that each scored step follows a step of the same variant.
struct Interleaving {
  std::vector<int> order;           // index of the loaded step of each segment; every index occurs
  std::int64_t unscored = 0;        // segments at the start that only fill the queue
  std::int64_t wash_out_steps = 1;  // of every segment; at least 1
  std::int64_t steps = 2;           // of every segment, scored
};
template <>
inline constexpr auto fields_of<Interleaving> =
    fields<&Interleaving::order, &Interleaving::unscored, &Interleaving::wash_out_steps,
           &Interleaving::steps>;

// Slot for callers that load one step at a time: its memory is kept from step to step, and all
// steps use the same place.
constexpr int only_slot = 0;

// Runs loaded steps. Measuring needs nothing else of a device, and steps may be loaded in any way.
class StepRunner {
 public:
  virtual ~StepRunner() = default;
  virtual DeviceIdentity identity() const = 0;
  // Monotonic time in which budgets count: the machine's, or the simulated device's own, whose runs
  // depend on nothing but their seed. Only differences matter.
  virtual std::chrono::nanoseconds now() const {
    return std::chrono::steady_clock::now().time_since_epoch();
  }
  // Called before a scenario is traced or measured. A device that computes times limits the time
  // that it takes itself for what follows, since now() does not.
  virtual void begin_scenario() {}
  // Wall time spent in loading so far; 0 on devices that do not measure it.
  std::chrono::nanoseconds time_loading() const { return time_loading_; }
  // Runs steps that were loaded into slots of this device at the same time. Returns one result for
  // each step over all its segments; `elapsed` and `step_times` cover the scored steps alone. All
  // steps must allow interleaving. Throws DeviceError.
  virtual std::vector<StepResult> run_interleaved(std::span<LoadedStep* const>,
                                                  const Interleaving&);
  // Reads the environment of the device. May take milliseconds of host time, so callers read it
  // between rounds. nullopt from a device without an environment; does not throw.
  virtual std::optional<EnvironmentReading> read_environment() { return std::nullopt; }

 protected:
  std::chrono::nanoseconds time_loading_{0};
};

class Device : public StepRunner {
 public:
  // The libraries found at run time that steps of this plan may get kernels from, with their
  // versions: {"cuDNN", "9.14.0"}, {"cuDNN", "none"}. Two runs of such a plan must share them to be
  // compared; steps of other plans do not depend on them. May take a second when first asked.
  virtual std::vector<DeviceKey> libraries_for(const StepPlan&) { return {}; }
  // The library that steps of this plan cannot do without and that is not there, with a way out;
  // absent where none is missing. May take a second when first asked.
  virtual std::optional<std::string> missing_for(const StepPlan&) { return std::nullopt; }
  // Loads a step: allocates, uploads, chooses algorithms and captures graphs. Throws DeviceError;
  // if memory is lacking, its message says what was requested and what was free. The plan and the
  // device must outlive the loaded step.
  virtual std::unique_ptr<LoadedStep> load(const StepPlan&, const LoadDraw&) = 0;
  std::unique_ptr<LoadedStep> load(const StepPlan& plan) { return load(plan, LoadDraw{}); }
  // Loads a step into a slot: a place whose memory is kept after the step in it is destroyed. Steps
  // that take turns in a slot have the same addresses and pages, which on a GPU change a step's
  // time by up to a percent. A slot holds one loaded step at a time. While it holds none, its
  // memory may be freed for another step.
  virtual std::unique_ptr<LoadedStep> load_into(int /*slot*/, const StepPlan& plan,
                                                const LoadDraw& draw) {
    return load(plan, draw);  // where memory has no place, slots do not differ
  }
  std::unique_ptr<LoadedStep> load_into(int slot, const StepPlan& plan) {
    return load_into(slot, plan, LoadDraw{});
  }
  // The reason why a run cannot be traced, in words; empty where it can.
  virtual std::string reason_against_tracing() const { return "this device records nothing"; }
  // Makes on rank 0 the bytes that the devices of all ranks need to find each other. Throws
  // DeviceError if this device cannot communicate.
  virtual std::string make_rendezvous() { throw DeviceError("this device is no rank of several"); }
  // Joins the group of this many ranks, beside groups of other sizes. From then on the device also
  // loads one rank's part of a plan with that many ranks (derive/plan_of_rank.h). Rejoining
  // requires that no such plan is loaded. Returns when all ranks have joined; throws DeviceError.
  virtual void join(const RankMembership&) {
    throw DeviceError("this device is no rank of several");
  }
  // The library, settings and links with which this rank communicates with the ranks whose GPUs
  // have these UUIDs. Does not throw; empty for a device that cannot communicate.
  virtual Communication communication(std::span<const std::string> /*uuids*/) { return {}; }
};

}  // namespace stepgate
