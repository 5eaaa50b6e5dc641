// SPDX-License-Identifier: MIT
#include "device/cuda/cuda_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>

#include "base/time_of_scope.h"
#include "device/cuda/check.h"
#include "device/cuda/cuda_failure.h"
#include "device/cuda/cupti/nvtx_ranges.h"
#include "device/cuda/gpu_index.h"
#include "device/cuda/mig_slice.h"
#include "device/cuda/nccl/load_agreement.h"
#include "device/cuda/nccl/nccl.h"
#include "device/cuda/nccl/nccl_record.h"
#include "device/cuda/nccl/nccl_settings.h"
#include "device/cuda/nccl/nccl_words.h"
#include "device/cuda/nccl/rank_groups.h"
#include "device/cuda/nvml/nvml.h"
#include "device/cuda/step/cuda_step.h"
#include "device/cuda/step/fill_on_device.h"
#include "device/cuda/step/may_use_cudnn.h"
#include "device/cuda/supported_gpu.h"
#include "device/planned_memory.h"
#include "kernels/cudnn/open_cudnn.h"
#include "kernels/device_limits.h"
#include "kernels/gemm/gemm_autotuner.h"
#include "plan/analyse/access.h"
#include "plugin/open_kernels.h"
#include "plugin/tables/open_cubin.h"

namespace stepgate {
namespace {

int attribute(cudaDeviceAttr which, int index) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, which, index), "ask for a device attribute");
  return value;
}

cudaDeviceProp properties_of(int index) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, index), "ask for the GPU's properties");
  return properties;
}

// Returns the version of the kernel module, "580.159.03", which CUDA does not report. Empty where
// the file does not exist.
std::string kernel_module_version() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string word;
  while (file >> word) {
    if (word.find_first_not_of("0123456789.") == std::string::npos &&
        word.find('.') != std::string::npos)
      return word;
  }
  return {};
}

// Returns the model of the processor, "AMD EPYC 9654 96-Core Processor"; empty where the kernel
// does not report it.
std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return {};
}

std::string uuid_text(const cudaDeviceProp& gpu) {
  const cudaUUID_t& uuid = gpu.uuid;
  std::string text = mig_slice_of(gpu.name) ? "MIG-" : "GPU-";
  for (int index = 0; index < 16; ++index) {
    text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[index]));
    if (index == 3 || index == 5 || index == 7 || index == 9) text += '-';
  }
  return text;
}

GpuName name_of_gpu(int index) {
  const cudaDeviceProp properties = properties_of(index);
  return {.uuid = uuid_text(properties),
          .pci_bus = fmt::format("{:04x}:{:02x}:{:02x}.0", properties.pciDomainID,
                                 properties.pciBusID, properties.pciDeviceID)};
}

// The value of the key; empty where it is missing.
std::string value_of(const std::vector<DeviceKey>& keys, std::string_view name) {
  const auto found = std::find_if(keys.begin(), keys.end(),
                                  [&](const DeviceKey& key) { return key.name == name; });
  return found == keys.end() ? std::string() : found->value;
}

class CudaDevice : public Device {
 public:
  CudaDevice(Recording recording, int index, KernelLibraries libraries)
      : index_(index), opens_libraries_(libraries == KernelLibraries::opened) {
    if (recording == Recording::on) cupti_ = std::make_unique<Cupti>();
    int count = 0;
    check(cudaGetDeviceCount(&count), "find a GPU");
    if (count == 0) throw DeviceError("no GPU is visible");
    if (const auto none = reason_against_index(index, count))
      throw DeviceError(none->reason + "; " + none->way_out);
    // The wake-up from a wait is part of the measurement, so it must not depend on the number of
    // CPUs.
    start(cudaInitDevice(index, cudaDeviceScheduleSpin, cudaInitDeviceFlagsAreValid), "start CUDA");
    start(cudaSetDevice(index), "choose the GPU");
    refuse_unsupported_gpu();
    limits_ = device_limits();
    blas_ = make_blas();
  }

  // Checks a call that must succeed before any step; the error says what to do.
  static void start(cudaError_t status, std::string_view doing) {
    try {
      check(status, doing);
    } catch (const DeviceError& error) {
      const std::string_view way_out = way_out_of(static_cast<int>(status));
      throw DeviceError(way_out.empty() ? std::string(error.what())
                                        : fmt::format("{}; {}", error.what(), way_out));
    }
  }

  void refuse_unsupported_gpu() const {
    const cudaDeviceProp properties = properties_of(index_);
    const FoundGpu gpu{.name = properties.name,
                       .compute_capability = properties.major + properties.minor / 10.0,
                       .has_code = has_code_for_this_device()};
    if (const auto reason = reason_against(gpu, built_architectures())) throw DeviceError(*reason);
  }

  DeviceIdentity identity() const override {
    try {
      return identity_now();
    } catch (...) {
      rethrow_from_gpu("");
    }
  }

  std::vector<DeviceKey> libraries_for(const StepPlan& plan) override {
    std::vector<DeviceKey> keys;
    for (const std::shared_ptr<const Kernel>& row : plan.library_kernels) {
      keys.push_back({.name = fmt::format("{}{}", key_of_kernel, row->name),
                      .value = kernel_of_user(*row).identity});
    }
    if (may_use_cudnn(plan))
      keys.push_back({.name = "cuDNN", .value = dnn() == nullptr ? "none" : version_of(*dnn_)});
    if (plan.ranks.count > 1) {
      const bool is_there = nccl().unavailable().empty();
      keys.push_back({.name = "NCCL", .value = is_there ? nccl().version() : "none"});
      const std::vector<DeviceKey> settings = settings_of_communication();
      keys.insert(keys.end(), settings.begin(), settings.end());
    }
    return keys;
  }

  Communication communication(std::span<const std::string> uuids) override {
    Communication with{.settings = settings_of_communication()};
    if (nccl().unavailable().empty()) {
      with.library = "NCCL " + nccl().version();
      with.file = nccl().file();
    }
    for (const std::string& uuid : uuids) with.links.push_back(nvml().link_to(uuid));
    return with;
  }

  std::optional<std::string> missing_for(const StepPlan& plan) override {
    if (!needs_cudnn(plan) || dnn() != nullptr) return std::nullopt;
    return refusal_without_cudnn(cudnn_unavailable_reason_);
  }

  std::unique_ptr<LoadedStep> load(const StepPlan& plan, const LoadDraw& draw) override {
    return loaded(plan, draw, nullptr);
  }

  std::unique_ptr<LoadedStep> load_into(int slot, const StepPlan& plan,
                                        const LoadDraw& draw) override {
    return loaded(plan, draw, &slots_[slot]);
  }

  std::vector<StepResult> run_interleaved(std::span<LoadedStep* const> steps,
                                          const Interleaving& how) override {
    std::vector<CudaStep*> ours;
    for (LoadedStep* step : steps) ours.push_back(&dynamic_cast<CudaStep&>(*step));
    CudaStep* at_work = ours.front();
    try {
      return run_by_turns(ours, how, at_work);
    } catch (...) {
      rethrow_from_gpu(at_work->place());
    }
  }

  std::string reason_against_tracing() const override {
    return cupti_ ? cupti_->unavailable() : "the GPU was opened for timing";
  }

  std::string make_rendezvous() override { return RankGroups::make_rendezvous(nccl()); }

  void join(const RankMembership& membership) override {
    if (membership.count == 1) agreements_.clear();
    agreements_.erase(membership.count);
    groups_.join(nccl(), membership);
    RankGroup* const group = groups_.of(membership.count);
    if (group == nullptr) return;
    try {
      agreements_.try_emplace(membership.count, group->first());
    } catch (...) {  // a group has both
      groups_.leave(membership.count);
      throw;
    }
  }

  std::optional<EnvironmentReading> read_environment() override { return nvml().read(); }

 private:
  DeviceIdentity identity_now() const {
    const cudaDeviceProp properties = properties_of(index_);
    int runtime = 0;
    check(cudaRuntimeGetVersion(&runtime), "ask for the runtime's version");
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    check(cudaMemGetInfo(&free_bytes, &total_bytes), "ask for the free memory");
    DeviceIdentity identity{.kind = DeviceKind::cuda,
                            .name = properties.name,
                            .driver = kernel_module_version(),
                            .runtime = cuda_version_in_words(runtime),
                            .compute_capability = properties.major + properties.minor / 10.0,
                            .copy_engines = attribute(cudaDevAttrAsyncEngineCount, index_),
                            .memory_bytes = static_cast<std::int64_t>(total_bytes),
                            .free_memory_bytes = static_cast<std::int64_t>(free_bytes),
                            .uuid = uuid_text(properties),
                            .cpu = cpu_model(),
                            .keys = nvml().keys(),
                            .multiprocessors = properties.multiProcessorCount,
                            .gpus = 1};
    if (const unsigned count = std::thread::hardware_concurrency()) identity.processors = count;
    if (auto slice = mig_slice_of(identity.name))
      identity.keys.push_back({"mig slice", std::move(*slice)});
    identity.keys.push_back({"cublas", cublas_version()});
    identity.power_limit = value_of(identity.keys, "power limit");
    const std::string generation = value_of(identity.keys, "pcie generation");
    if (!generation.empty()) {
      identity.pcie = generation + " " + value_of(identity.keys, "pcie width");
    }
    return identity;
  }

  // Loads the step into persistent memory, or into memory of its own if `kept` is null.
  std::unique_ptr<LoadedStep> loaded(const StepPlan& plan, const LoadDraw& draw,
                                     PersistentMemory* kept) {
    const TimeOfScope loading(time_loading_);
    const std::string at = "variant '" + plan.variant + "', being loaded";
    const int count = plan.ranks.count;
    if (const auto reason = reason_against_ranks(plan.ranks, groups_.membership_among(count)))
      throw DeviceError(at + ": " + *reason);
    LoadAgreement* const agreement = agreement_among(count);
    if (agreement != nullptr) agreement->begin();
    try {
      if (agreement != nullptr)
        (void)groups_.communicators_for(nccl(), *groups_.of(count), plan.ranks);
      if (const auto missing = missing_for(plan)) throw std::runtime_error(*missing);
      make_room(plan, kept);
      return std::make_unique<CudaStep>(
          plan, services_for(plan), draw, kept,
          kept ? streams_of_slots() : std::make_shared<CudaStreams>());
    } catch (const DeviceMemoryFull& full) {
      if (agreement != nullptr) agreement->tell_of_failure();
      if (const auto failure = failure_for_good())
        throw DeviceLost(lost_in_words(at + ": " + full.what(), *failure));
      throw DeviceMemoryFull(full.what() + held_by_others_in_words(memory_now()));
    } catch (...) {
      if (agreement != nullptr) agreement->tell_of_failure();
      rethrow_from_gpu(at);
    }
  }

  // Returns nullptr for a step of one rank, and if the device has not joined a group of so many
  // ranks.
  LoadAgreement* agreement_among(int count) {
    const auto found = agreements_.find(count);
    return found == agreements_.end() ? nullptr : &found->second;
  }

  MemoryHolders memory_now() const {
    MemoryHolders memory;
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    check(cudaMemGetInfo(&free_bytes, &total_bytes), "ask for the free memory");
    memory.free_bytes = static_cast<std::int64_t>(free_bytes);
    memory.total_bytes = static_cast<std::int64_t>(total_bytes);
    for (const auto& [slot, kept] : slots_) memory.own_bytes += kept.device_bytes();
    memory.processes = nvml().read().processes;
    return memory;
  }

  // Runs steps interleaved. `at_work` is set to the step that uses the GPU at the moment, for
  // messages.
  static std::vector<StepResult> run_by_turns(std::span<CudaStep* const> ours,
                                              const Interleaving& how, CudaStep*& at_work) {
    for (CudaStep* step : ours) step->begin_interleaved();
    for (std::size_t place = 0; place < how.order.size(); ++place) {
      const bool scored = static_cast<std::int64_t>(place) >= how.unscored;
      at_work = ours[static_cast<std::size_t>(how.order[place])];
      at_work->issue_segment(how, scored);
    }
    std::vector<StepResult> results;
    for (CudaStep* step : ours) {
      at_work = step;
      results.push_back(step->end_interleaved(how));
    }
    return results;
  }

  // Frees cached memory of slots that no step uses, if this step might lack it.
  void make_room(const StepPlan& plan, const PersistentMemory* own) {
    constexpr double to_spare = 1.25;  // pools and allocators splinter
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    check(cudaMemGetInfo(&free_bytes, &total_bytes), "ask for the free memory");
    const double there =
        static_cast<double>(free_bytes) + static_cast<double>(own ? own->device_bytes() : 0);
    if (to_spare * static_cast<double>(planned_memory(plan).peak_reserved_bytes) <= there) return;
    for (auto& [slot, kept] : slots_) {
      if (&kept != own) kept.give_up_device_memory();
    }
  }

  // NVML is opened on first use, since that takes longer than most tests.
  const Nvml& nvml() const {
    if (!nvml_) nvml_.emplace(name_of_gpu(index_));
    return *nvml_;
  }

  // Returns the streams that the steps now in slots share; creates them if there are none.
  std::shared_ptr<CudaStreams> streams_of_slots() {
    std::shared_ptr<CudaStreams> streams = streams_of_slots_.lock();
    if (!streams) streams_of_slots_ = streams = std::make_shared<CudaStreams>();
    return streams;
  }

  // NCCL is opened on first use. NCCL's record is kept only for traces, never where steps are
  // timed.
  const Nccl& nccl() {
    if (!nccl_ && cupti_) begin_nccl_record();
    if (!nccl_) nccl_.emplace();
    return *nccl_;
  }

  // cuDNN is opened on first use, which takes a second; nullptr where there is no cuDNN.
  Cudnn* dnn() {
    if (!dnn_asked_) {
      dnn_asked_ = true;
      dnn_ = open_cudnn(&cudnn_unavailable_reason_);
    }
    return dnn_.get();
  }

  // A library runs code of its own in the process that opens it.
  const LoadedKernel& kernel_of_user(const Kernel& row) {
    const KernelReplacement& with = *row.replacement;
    if (!opens_libraries_) {
      throw DeviceError(
          fmt::format("'{}' is only opened by a process that may crash, which this verb does not "
                      "start; say 'stepgate run' or 'stepgate gate'",
                      with.library));
    }
    try {
      return kernels_.at(with.library, with.function, row);
    } catch (const RequestError& error) {
      throw DeviceError(error.what());
    }
  }

  // Page events cost time, so only traces of steps that can have some record them.
  CudaServices services_for(const StepPlan& plan) {
    const bool records = cupti_ && cupti_->unavailable().empty();
    if (records && uses_managed_memory(plan)) cupti_->watch_pages();
    const RankGroup* const group = groups_.of(plan.ranks.count);
    return {.blas = blas_.get(),
            .dnn = may_use_cudnn(plan) ? dnn() : nullptr,
            .gemm_autotuner = &gemm_autotuner_,
            .cudnn_unavailable_reason = cudnn_unavailable_reason_,
            .contents = contents_,
            .cupti = records ? cupti_.get() : nullptr,
            .observer = ranges_.get(),
            .kernel_of_user = [this](const Kernel& row) -> const LoadedKernel& {
              return kernel_of_user(row);
            },
            .gpu = index_,
            .limits = limits_,
            .communicators = group == nullptr
                                 ? no_communicators_
                                 : group->communicators.at(plan.ranks.collectives.max_ctas),
            .agreement = agreement_among(plan.ranks.count)};
  }

  int index_;
  std::unique_ptr<Cupti> cupti_;  // first, as it must be there before CUDA starts
  std::unique_ptr<StepObserver> ranges_ = make_nvtx_ranges();
  std::vector<DeviceLimit> limits_;  // before any library was opened
  BlasHandle blas_;
  bool dnn_asked_ = false;
  std::shared_ptr<Cudnn> dnn_;
  std::string cudnn_unavailable_reason_;  // why there is none
  GemmAutotuner gemm_autotuner_;
  ContentsCache contents_;
  std::map<int, PersistentMemory> slots_;
  std::weak_ptr<CudaStreams> streams_of_slots_;
  mutable std::optional<Nvml> nvml_;
  std::optional<Nccl> nccl_;
  bool opens_libraries_;
  OpenKernels kernels_{loaded_on_gpu};
  RankGroups groups_{[index = index_] { check(cudaSetDevice(index), "choose the GPU"); }};
  const Communicators no_communicators_;     // of a step of one rank
  std::map<int, LoadAgreement> agreements_;  // of each group, by how many ranks it has
};

}  // namespace

std::optional<NoGpu> reason_against_local_gpu(int index) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  (void)cudaGetLastError();
  if (status == cudaSuccess && count > 0) return reason_against_index(index, count);
  if (status == cudaSuccess) return NoGpu{.reason = "no GPU is visible"};
  DriverFacts facts{.failure = failure_of(status), .kernel_module = kernel_module_version()};
  (void)cudaDriverGetVersion(&facts.driver_version);
  (void)cudaRuntimeGetVersion(&facts.runtime_version);
  (void)cudaGetLastError();
  return reason_of(facts);
}

int visible_gpus() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  (void)cudaGetLastError();
  return status == cudaSuccess ? count : 0;
}

std::unique_ptr<Device> make_cuda_device(Recording recording, int index,
                                         KernelLibraries libraries) {
  return std::make_unique<CudaDevice>(recording, index, libraries);
}

}  // namespace stepgate
