// SPDX-License-Identifier: MIT
// Tools that measure costs: a stream, scratch memory with random content, a small kernel, and three
// ways to take a time. The files measure_*_costs.cpp use them.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/text/units.h"
#include "device/cuda/handles.h"
#include "kernels/gemm/gemm.h"

namespace stepgate {

constexpr int cost_repeats = 21;  // every cost is a median of so many
// How long a kernel blocks the stream while the host queues the timed work behind it.
constexpr std::int64_t hold_microseconds = 2000;

std::int64_t median_of(std::vector<std::int64_t>);

class CostBench {
 public:
  static constexpr std::int64_t scratch_bytes = 512 * mebibyte;

  CostBench();

  // Returns the host time of the call on an idle device. All times here are in nanoseconds.
  std::int64_t host_time(const std::function<void()>& call) const;
  // Returns the device time of the enqueued work.
  std::int64_t device_time(const std::function<void()>& enqueue) const;
  // Returns the time from start to start of repeated work on the device with a full queue: a long
  // kernel blocks the stream while the host enqueues.
  std::int64_t time_in_full_queue(const std::function<void()>& enqueue, int count) const;

  // Launches the shortest possible kernel.
  void launch_small() const;
  // Launches a kernel that keeps the stream busy for this long.
  void hold(std::int64_t microseconds) const;
  // Prepares a matrix product; multiply() enqueues it on scratch memory.
  Launch prepare_gemm(const kernels::Matmul::Shape&, DType) const;
  void multiply(const Launch&) const;
  // Fills both factors: zeros multiply faster than data.
  void fill_factors(DType) const;

  cudaStream_t stream() const { return stream_.get(); }
  std::byte* scratch(std::size_t index) const {
    return static_cast<std::byte*>(scratch_[index].get());
  }

 private:
  std::int64_t elapsed_nanoseconds() const;

  CudaStream stream_;
  BlasHandle blas_;
  CudaEvent begin_, end_;
  DeviceMemoryBlock scratch_[3];
  DeviceMemoryBlock workspace_;
  Launch small_;
};

}  // namespace stepgate
