// SPDX-License-Identifier: MIT
// Runs of a loaded step: wash-out, scored steps, traces. issue_operations.cpp issues single
// operations, read_step.cpp reads results afterwards.
#include "device/cuda/step/cuda_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/require.h"
#include "device/cuda/check.h"
#include "device/cuda/nccl/compare_collectives.h"
#include "plan/analyse/access.h"

namespace stepgate {
namespace {

using std::chrono::nanoseconds;
using std::chrono::steady_clock;

unsigned flags_of(SyncWait style) {
  switch (style) {
    case SyncWait::spin:
      return cudaDeviceScheduleSpin;
    case SyncWait::yield:
      return cudaDeviceScheduleYield;
    case SyncWait::block:
      return cudaDeviceScheduleBlockingSync;
  }
  require(false, "every way to wait is known");
  return cudaDeviceScheduleSpin;
}

// Records when the host issued each operation, by the clock of the trace.
class SpanRecorder : public StepObserver {
 public:
  // Reserves space, so that recording does not allocate.
  explicit SpanRecorder(std::size_t spans) { spans_.reserve(spans); }

  void begin(int operation, std::int64_t step, std::int64_t acts_for) override {
    spans_.push_back(
        {.operation = operation, .step = step, .acts_for = acts_for, .begin = trace_now()});
  }
  void end() override { spans_.back().end = trace_now(); }

  std::vector<HostSpan> take() { return std::move(spans_); }

 private:
  std::vector<HostSpan> spans_;
};

}  // namespace

void CudaStep::begin_run() {
  // After a failed run queues, slots and loader are in an unknown state, so no step can begin.
  if (running_) {
    throw DeviceError("variant '" + plan_.variant +
                      "' failed in an earlier run and must be loaded again");
  }
  running_ = true;
  check(cudaSetDeviceFlags(flags_of(plan_.wait_style)), "choose how the host waits");
  losses_.clear();
  stamps_.clear();
  cycles_.clear();
  note_changes();
  // Other steps may have left lines in the cache to stay, which must not help this one.
  if (cudaCtxResetPersistingL2Cache() != cudaSuccess) (void)cudaGetLastError();  // there is none
}

DeviceLimit CudaStep::window_of(std::size_t stream, std::size_t bytes) const {
  return {"the access policy window of the stream '" + plan_.streams[stream].name + "'",
          static_cast<std::int64_t>(bytes)};
}

std::vector<DeviceLimit> CudaStep::limits_before(std::span<const DeviceLimit> of_device) const {
  std::vector<DeviceLimit> all(of_device.begin(), of_device.end());
  for (std::size_t index = 0; index < streams_.size(); ++index) all.push_back(window_of(index, 0));
  return all;
}

std::vector<DeviceLimit> CudaStep::limits() const {
  std::vector<DeviceLimit> all = device_limits();
  for (std::size_t index = 0; index < streams_.size(); ++index) {
    cudaStreamAttrValue value{};
    if (cudaStreamGetAttribute(streams_[index], cudaStreamAttributeAccessPolicyWindow, &value) !=
        cudaSuccess) {
      (void)cudaGetLastError();
      continue;
    }
    all.push_back(window_of(index, value.accessPolicyWindow.num_bytes));
  }
  return all;
}

void CudaStep::note_changes() {
  if (device_changed_.empty()) device_changed_ = changed_limit(limits_, limits());
}

StepResult CudaStep::run(const Observe& observe) {
  try {
    return run_and_read(observe);
  } catch (...) {
    rethrow_from_gpu(place());
  }
}

std::string CudaStep::place() const {
  const std::string variant = "variant '" + plan_.variant + "'";
  if (issuing_ == nullptr) return variant;
  return fmt::format("{}, step {}, '{}'", variant, next_step_, issuing_->name);
}

StepResult CudaStep::run_and_read(const Observe& observe) {
  require(observe.steps >= 1, "at least one step is scored");
  begin_run();
  StepResult result;
  result.first_step = next_step_;
  result.steps = observe.steps;
  if (observe.gradients && reason_against_gradients(plan_).empty())
    gradients_.emplace(plan_, next_step_ + observe.wash_out_steps + observe.steps - 1);
  if (observe.audit != 0) {
    audited_step_ = next_step_ + observe.wash_out_steps + observe.steps - 1;
    std::vector<int> by_us;
    for (const auto& [operation, words] : unsupported_) by_us.push_back(operation);
    audited_ = launches_to_audit(plan_, audited_step_, observe.audit, by_us);
    audits_graph_ = std::ranges::any_of(
        audited_, [&](int index) { return operation_at(plan_, index).captured; });
  }
  run_steps(observe.wash_out_steps);
  if (observe.trace && cupti_) {
    result.trace = traced(observe, result);
  } else {
    run_scored(observe, result, always_watches_);
  }
  harvest();
  if (gradients_) result.gradients = gradients_->take();
  gradients_.reset();
  result.audits = std::exchange(audits_, {});
  audited_step_ = -1;
  result.losses = losses_;
  for (auto step = static_cast<std::size_t>(std::max<std::int64_t>(observe.wash_out_steps, 1));
       step < stamps_.size(); ++step) {
    result.step_times.emplace_back(static_cast<std::int64_t>(stamps_[step] - stamps_[step - 1]));
  }
  result.sm_clock_hertz = mean_clock_since(observe.wash_out_steps);
  if (result.trace) result.trace->clocks = clocks_of(*result.trace, observe.wash_out_steps);
  if (observe.tensors) read_tensors(result);
  note_changes();
  result.device_changed = device_changed_;
  running_ = false;
  return result;
}

void CudaStep::begin_interleaved() {
  begin_run();
  waited_ = nanoseconds(0);
  issued_ = nanoseconds(0);
  processor_ = nanoseconds(0);
  unscored_segments_ = 0;
}

void CudaStep::issue_segment(const Interleaving& how, bool scored) {
  require(how.wash_out_steps >= 1, "a scored step follows one of its own kind");
  // The clock is read between segments, where the reading delays no scored step.
  const nanoseconds processor_before = processor_time();
  run_steps(how.wash_out_steps);
  if (!scored) {
    ++unscored_segments_;
    return run_steps(how.steps);
  }
  const nanoseconds waited_before = waited_;
  const auto begin = steady_clock::now();
  run_steps(how.steps);
  issued_ += steady_clock::now() - begin - (waited_ - waited_before);
  processor_ += processor_time() - processor_before;
}

// The stamps of a segment are consecutive, so the time of a scored step starts at the previous
// stamp of the same step.
StepResult CudaStep::end_interleaved(const Interleaving& how) {
  StepResult result;
  harvest();
  const std::int64_t length = how.wash_out_steps + how.steps;
  const auto run = std::ssize(stamps_);
  result.first_step = next_step_ - run;
  result.elapsed = nanoseconds(0);
  for (std::int64_t step = unscored_segments_ * length; step < run; ++step) {
    if (step % length < how.wash_out_steps) continue;
    const auto at = static_cast<std::size_t>(step);
    result.step_times.emplace_back(static_cast<std::int64_t>(stamps_[at] - stamps_[at - 1]));
    *result.elapsed += result.step_times.back();
  }
  result.steps = std::ssize(result.step_times);
  result.host_busy = issued_;
  result.host_processor = processor_ * how.steps / length;
  result.sm_clock_hertz = mean_clock_since(0);
  result.losses = losses_;
  note_changes();
  result.device_changed = device_changed_;
  running_ = false;
  return result;
}

void CudaStep::run_scored(const Observe& observe, StepResult& result, StepObserver* observer) {
  if (observer) observer->begin_run(plan_);
  observer_ = observer;
  check(cudaEventRecord(first_mark_.get(), stream(compute_stream)), "mark the first scored step");
  waited_ = nanoseconds(0);
  const nanoseconds processor_before = processor_time();
  const auto begin = steady_clock::now();
  run_steps(observe.steps);
  result.host_busy = steady_clock::now() - begin - waited_;
  result.host_processor = processor_time() - processor_before;
  check(cudaEventRecord(last_mark_.get(), stream(compute_stream)), "mark the last scored step");
  for (std::size_t index = 0; index < streams_.size(); ++index) {
    check(cudaStreamSynchronize(streams_[index]),
          "finish the scored steps on the " + plan_.streams[index].name + " stream");
  }
  result.elapsed = time_between(first_mark_, last_mark_);
  observer_ = nullptr;
  if (observer) observer->end_run();
}

// Work of the wash-out is still running when the spans begin, so that queues are as deep as in a
// run without a trace.
Trace CudaStep::traced(const Observe& observe, StepResult& result) {
  const std::int64_t first = next_step_;
  // There is one span for every operation and three for the runner itself, in every step.
  const std::size_t spans = (plan_.operations.size() + 3) * static_cast<std::size_t>(observe.steps);
  SpanRecorder recorder(spans);
  const bool is_of_several = plan_.ranks.count > 1;
  if (is_of_several) (void)take_nccl_record();  // of the load and of the wash-out
  run_scored(observe, result, &recorder);
  ActivityRecords records = cupti_->take();
  records.graph_work = graph_work_;
  Trace trace = assemble_trace(plan_, std::move(records), recorder.take(), first, observe.steps);
  trace.memory = buffers_.use();
  if (is_of_several) {
    const IssuedSteps steps{.first_of_load = first_step_,
                            .first = first,
                            .count = observe.steps,
                            .graphs = std::ssize(graphs_)};
    trace.library = library_record_of(plan_, steps, communicators_,
                                      {.captured = captured_record_, .issued = take_nccl_record()});
  }
  return trace;
}

void CudaStep::run_steps(std::int64_t count) {
  if (next_step_ == first_step_ && count > 0) {
    for (std::int64_t step = first_step_ - prefetch_depth_; step < first_step_; ++step)
      issue_step(step);
  }
  for (std::int64_t done = 0; done < count; ++done) {
    {
      const Observed own(observer_, -1, next_step_, next_step_);
      if (next_step_ - harvested_ == plan_.telemetry.capacity) {
        holding_back([&] { harvest(); });
      }
      throttle();
    }
    issue_step(next_step_);
    ++next_step_;
    mark_progress();
  }
}

// The driver accepts about a thousand launches and then blocks; a real input pipeline throttles far
// earlier. Progress is checked once per half of steps_in_flight, since recording an event takes
// time on the device. By then the half before the last one must be done.
void CudaStep::throttle() {
  const std::int64_t half = plan_.steps_in_flight / 2;
  if (next_step_ % half != 0) return;
  const cudaEvent_t before_last = progress_[static_cast<std::size_t>(next_step_ / half % 2)].get();
  if (cudaEventQuery(before_last) == cudaSuccess) return;
  (void)cudaGetLastError();  // "not ready" must not look like the error of the next launch
  holding_back([&] { check(cudaEventSynchronize(before_last), "wait for earlier steps"); });
}

void CudaStep::mark_progress() {
  const std::int64_t half = plan_.steps_in_flight / 2;
  if (next_step_ % half != 0) return;
  const std::int64_t finished = next_step_ / half - 1;
  check(cudaEventRecord(progress_[static_cast<std::size_t>(finished % 2)].get(),
                        stream(compute_stream)),
        "mark the end of some steps");
}

}  // namespace stepgate
