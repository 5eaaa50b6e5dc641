// SPDX-License-Identifier: MIT
// Reads results that a run leaves on the device after the steps: losses, clocks, tensors.
#include <algorithm>
#include <cstring>

#include "device/cuda/check.h"
#include "device/cuda/step/cuda_step.h"
#include "device/mean_clock.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

template <class Number>
void append_ring(std::vector<Number>& to, const std::vector<std::byte>& ring, std::int64_t first,
                 std::int64_t last) {
  const auto capacity = static_cast<std::int64_t>(ring.size() / sizeof(Number));
  for (std::int64_t index = first; index < last; ++index) {
    Number value;
    std::memcpy(&value, ring.data() + static_cast<std::size_t>(index % capacity) * sizeof value,
                sizeof value);
    to.push_back(value);
  }
}

}  // namespace

// Reads the rings of losses and stamps, which are indexed by the steps since the load.
void CudaStep::harvest() {
  check(cudaStreamSynchronize(stream(compute_stream)), "wait before reading the losses");
  const std::int64_t begin = harvested_ - first_step_;
  const std::int64_t end = next_step_ - first_step_;
  append_ring(losses_, buffers_.read(plan_.telemetry.losses, 0), begin, end);
  append_ring(stamps_, buffers_.read(plan_.telemetry.stamps, 0), begin, end);
  append_ring(cycles_, buffers_.read(plan_.telemetry.cycles, 0), 2 * begin, 2 * end);
  harvested_ = next_step_;
}

// A step reads its clocks near its end. So the readings of the last wash-out step mark the begin of
// the scored steps.
std::optional<double> CudaStep::mean_clock_since(std::int64_t wash_out_steps) const {
  return mean_clock_hertz(stamps_since(std::max<std::int64_t>(wash_out_steps - 1, 0)));
}

// One of a step's last kernels reads its clocks; that is close enough to the end of its work.
std::vector<ClockReading> CudaStep::clocks_of(const Trace& trace,
                                              std::int64_t wash_out_steps) const {
  std::vector<TraceTime> ends(static_cast<std::size_t>(trace.steps), TraceTime(0));
  for (const DeviceWork& work : trace.work) {
    if (work.operation < 0) continue;
    TraceTime& end = ends[static_cast<std::size_t>(work.step - trace.first_step)];
    end = std::max(end, work.end);
  }
  const auto clocks = clocks_hertz(stamps_since(wash_out_steps));
  std::vector<ClockReading> readings;
  for (std::size_t step = 0; step < std::min(clocks.size(), ends.size()); ++step) {
    if (clocks[step]) readings.push_back({.at = ends[step], .hertz = *clocks[step]});
  }
  std::sort(readings.begin(), readings.end(),
            [](const ClockReading& one, const ClockReading& other) { return one.at < other.at; });
  return readings;
}

std::vector<ClockStamp> CudaStep::stamps_since(std::int64_t first) const {
  std::vector<ClockStamp> stamps;
  for (auto step = static_cast<std::size_t>(first); step < stamps_.size(); ++step) {
    stamps.push_back({.nanoseconds = stamps_[step],
                      .cycles = cycles_[2 * step],
                      .multiprocessor = cycles_[2 * step + 1]});
  }
  return stamps;
}

void CudaStep::read_tensors(StepResult& result) const {
  for (std::size_t index = 0; index < plan_.buffers.size(); ++index) {
    const Buffer& buffer = plan_.buffers[index];
    if (buffer.purpose != Purpose::weights && buffer.purpose != Purpose::gradients) continue;
    if (buffer.allocated_by != AllocatedBy::the_plan) continue;  // no content between steps
    const std::vector<std::byte> bytes = buffers_.read(static_cast<int>(index), 0);
    result.tensors.push_back({buffer.name, floats_of(bytes.data(), buffer.dtype,
                                                     buffer.bytes / bytes_of(buffer.dtype))});
  }
}

}  // namespace stepgate
