// SPDX-License-Identifier: MIT
// A plan loaded on the GPU: issues its operations, step after step, and reads the times and losses
// afterwards.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/cuda/cupti/cupti.h"
#include "device/cuda/handles.h"
#include "device/cuda/nccl/load_agreement.h"
#include "device/cuda/nccl/nccl_communicator.h"
#include "device/cuda/nccl/nccl_record.h"
#include "device/cuda/step/cuda_buffers.h"
#include "device/cuda/step/cuda_streams.h"
#include "device/cuda/step/gradient_reader.h"
#include "device/cuda/step_observer.h"
#include "device/device.h"
#include "device/loader.h"
#include "device/mean_clock.h"
#include "device/thread_clock.h"
#include "kernels/device_limits.h"
#include "kernels/kernel.h"
#include "plugin/open_library.h"

namespace stepgate {

// Services that the steps of a device share; they must outlive the steps.
struct CudaServices {
  cublasLtHandle_t blas = nullptr;
  Cudnn* dnn = nullptr;  // null: kernels do without
  GemmAutotuner* gemm_autotuner = nullptr;
  std::string_view cudnn_unavailable_reason = {};
  ContentsCache& contents;           // of host memory
  Cupti* cupti = nullptr;            // null: nothing is recorded
  StepObserver* observer = nullptr;  // of all scored steps; null: none
  // Opens the user's kernel of a row with a replacement. Throws DeviceError.
  std::function<const LoadedKernel&(const Kernel& row)> kernel_of_user;
  int gpu = 0;                          // index of the device
  std::span<const DeviceLimit> limits;  // when the device was opened, before any library
  // Empty if the device is the only rank; a plan of several ranks may add communicators later.
  const std::vector<std::unique_ptr<NcclCommunicator>>& communicators;
  LoadAgreement* agreement = nullptr;  // null if the device is the only rank
};

class CudaStep : public LoadedStep {
 public:
  // Loads the step into `kept`, which must outlive it, or into memory of its own if `kept` is null.
  CudaStep(const StepPlan&, const CudaServices&, const LoadDraw&, PersistentMemory* kept,
           std::shared_ptr<CudaStreams>);
  ~CudaStep() override;

  std::vector<KernelChoice> choices() const override { return choices_; }
  StepResult run(const Observe&) override;
  bool restart() override;

  // Parts of an interleaved run of several steps on a common stream: begin, issue the segments in
  // turn, read the results.
  void begin_interleaved();
  void issue_segment(const Interleaving&, bool scored);
  StepResult end_interleaved(const Interleaving&);

  // The position for messages: "variant 'fix', step 12, 'update'", of the current or the failed
  // operation.
  std::string place() const;

 private:
  // An operation, prepared as far as possible before the step runs.
  struct Prepared {
    const Operation* operation = nullptr;
    cudaStream_t stream = nullptr;
    Launch launch;  // of a LaunchKernel
    std::vector<void*>
        operands;  // period x operands addresses; empty when one of them comes and goes
    std::int64_t period = 1;
    std::int64_t operand_count = 0;
  };

  StepResult run_and_read(const Observe&);
  void begin_run();
  // The window of a stream's accesses that stay in the cache.
  DeviceLimit window_of(std::size_t stream, std::size_t bytes) const;
  // The limits of the device and the windows of the streams, before any step and now.
  std::vector<DeviceLimit> limits_before(std::span<const DeviceLimit> of_device) const;
  std::vector<DeviceLimit> limits() const;
  void note_changes();
  void begin_steps();
  void prepare(const CudaServices&);
  Launch prepare_launch(int operation, const LaunchKernel&, const CudaServices&);
  Launch launch_of_user(int operation, const LaunchKernel&, const CudaServices&);
  void bind_operands(Prepared&, const LaunchKernel&);
  void capture_graphs(const CudaServices&);
  void run_first_collectives(const CudaServices&);

  void run_steps(std::int64_t count);
  void run_scored(const Observe&, StepResult&, StepObserver*);
  Trace traced(const Observe&, StepResult&);
  void issue_step(std::int64_t step);
  void read_gradients(const Operation&, std::int64_t step, cudaStream_t);
  bool is_audited(std::size_t operation, std::int64_t step) const;
  void audit(const Prepared&, std::int64_t step);
  void issue(const Prepared&, std::int64_t step);
  void issue_launch(const Prepared&, std::int64_t step);
  void issue_copy(const CopyBytes&, cudaStream_t, std::int64_t step);
  CollectiveCall call_of(const Collective&, std::int64_t step) const;
  void issue_prefetch(const Prefetch&, cudaStream_t, std::int64_t step);
  void wait(const HostWaits&, cudaStream_t, std::int64_t step);
  void launch_graph(std::int64_t step);
  void throttle();
  void mark_progress();
  void pass_launch_time() const;

  void* address(const BufferUse& use, std::int64_t step) const;
  NcclCommunicator& communicator(const Collective& collective) const {
    return *communicators_[static_cast<std::size_t>(collective.communicator)];
  }
  cudaStream_t stream(int index) const { return streams_[static_cast<std::size_t>(index)]; }
  cudaEvent_t event(int index, std::int64_t step) const;

  // Reads the losses and stamps of the steps since the last call, before their rings are
  // overwritten.
  void harvest();
  void read_tensors(StepResult&) const;
  std::optional<double> mean_clock_since(std::int64_t wash_out_steps) const;
  std::vector<ClockReading> clocks_of(const Trace&, std::int64_t wash_out_steps) const;
  std::vector<ClockStamp> stamps_since(std::int64_t first) const;

  // Runs a call whose host time does not count as issuing work, since it may contain a wait for the
  // GPU.
  template <class Call>
  void waiting(Call call) {
    const auto begin = std::chrono::steady_clock::now();
    call();
    waited_ += std::chrono::steady_clock::now() - begin;
  }

  // Runs a wait of the runner itself; its processor time does not count as used by the step.
  template <class Call>
  void holding_back(Call call) {
    const auto begin = thread_processor_time();
    waiting(call);
    held_back_ += thread_processor_time() - begin;
  }

  // Processor time that the step has used so far.
  std::chrono::nanoseconds processor_time() const { return thread_processor_time() - held_back_; }

  const StepPlan& plan_;
  LoadDraw draw_;
  ContentsCache& contents_;
  Cupti* cupti_;
  const std::vector<std::unique_ptr<NcclCommunicator>>& communicators_;
  StepObserver* always_watches_;
  StepObserver* observer_ = nullptr;  // of the scored steps, while they run
  PersistentMemory own_memory_;
  // The streams are declared before the buffers, since a step's allocator waits for its streams in
  // its destructor.
  std::shared_ptr<CudaStreams> created_streams_;
  StepStreams streams_;  // by index of the plan
  CudaBuffers buffers_;
  std::vector<std::vector<CudaEvent>> events_;
  std::vector<void*> operands_of_launch_;  // of one whose memory comes and goes, while it is issued
  std::vector<CudaEvent> progress_;        // one for each half of the run-ahead, in turns
  CudaEvent first_mark_;
  CudaEvent last_mark_;
  std::vector<Prepared> prepared_;
  LaunchContext context_;  // of all launches
  std::vector<KernelChoice> choices_;
  std::map<int, std::string> unsupported_;  // operations that a user's kernel does not launch
  std::vector<GraphExec> graphs_;  // one for each combination of slots, empty without a graph
  std::vector<int> graph_work_;    // of each, by node: the operation that made it; for traces only
  NcclRecord captured_record_;     // of all of them, likewise
  std::optional<GradientReader> gradients_;  // of a step whose gradients are asked for
  std::int64_t audited_step_ = -1;
  std::vector<int> audited_;   // operations of that step, ascending
  bool audits_graph_ = false;  // some of them are of its graph, which is not launched in that step
  std::vector<LaunchAudit> audits_;
  std::optional<Loader> loader_;
  int prefetch_depth_ = 0;
  bool running_ = false;                // stays set when a run throws
  const Operation* issuing_ = nullptr;  // likewise
  std::int64_t first_step_;
  std::int64_t next_step_ = 0;
  std::int64_t harvested_ = 0;             // before which step losses and stamps have been read
  std::vector<float> losses_;              // of the steps of the current run
  std::vector<std::uint64_t> stamps_;      // likewise
  std::vector<std::uint64_t> cycles_;      // likewise, pairs of cycles and multiprocessor
  std::chrono::nanoseconds waited_{0};     // in the current run
  std::chrono::nanoseconds issued_{0};     // host time of scored steps, in an interleaved run
  std::chrono::nanoseconds processor_{0};  // likewise, processor time of whole scored segments
  std::chrono::nanoseconds held_back_{0};  // processor time of waits that are the runner's own
  std::int64_t unscored_segments_ = 0;     // of an interleaved run, before the scored ones
  std::vector<DeviceLimit> limits_;        // before any step was loaded
  std::string device_changed_;             // the first of them that was another one, in words
};

}  // namespace stepgate
