// SPDX-License-Identifier: MIT
#include "device/cuda/calibrate/cost_bench.h"

#include <algorithm>
#include <chrono>

#include "device/cuda/check.h"
#include "device/cuda/step/fill_on_device.h"
#include "kernels/catalogue.h"
#include "kernels/probes/probes.h"

namespace stepgate {
namespace {

using std::chrono::nanoseconds;
using std::chrono::steady_clock;

constexpr std::int64_t workspace_bytes = 32 * mebibyte;

}  // namespace

std::int64_t median_of(std::vector<std::int64_t> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

CostBench::CostBench()
    : stream_(make_stream()), blas_(make_blas()), begin_(make_event()), end_(make_event()) {
  for (DeviceMemoryBlock& memory : scratch_) memory = make_device_memory(scratch_bytes);
  fill_factors(DType::fp32);
  workspace_ = make_device_memory(workspace_bytes);
  small_ = kernel("accumulate_loss").prepare({}, DType::fp32, {}, {});
}

std::int64_t CostBench::host_time(const std::function<void()>& call) const {
  std::vector<std::int64_t> times;
  for (int repeat = 0; repeat < cost_repeats + 1; ++repeat) {
    check(cudaDeviceSynchronize(), "wait before a measurement");
    const auto begin = steady_clock::now();
    call();
    if (repeat > 0) times.push_back(nanoseconds(steady_clock::now() - begin).count());
  }
  return median_of(std::move(times));
}

std::int64_t CostBench::device_time(const std::function<void()>& enqueue) const {
  std::vector<std::int64_t> times;
  for (int repeat = 0; repeat < cost_repeats + 1; ++repeat) {
    check(cudaEventRecord(begin_.get(), stream()), "record an event");
    enqueue();
    const std::int64_t elapsed = elapsed_nanoseconds();
    if (repeat > 0) times.push_back(elapsed);
  }
  return median_of(std::move(times));
}

std::int64_t CostBench::time_in_full_queue(const std::function<void()>& enqueue, int count) const {
  std::vector<std::int64_t> times;
  for (int repeat = 0; repeat < cost_repeats; ++repeat) {
    hold(hold_microseconds);
    check(cudaEventRecord(begin_.get(), stream()), "record an event");
    for (int queued = 0; queued < count; ++queued) enqueue();
    times.push_back(elapsed_nanoseconds() / count);
  }
  return median_of(std::move(times));
}

std::int64_t CostBench::elapsed_nanoseconds() const {
  check(cudaEventRecord(end_.get(), stream()), "record an event");
  check(cudaStreamSynchronize(stream()), "wait for a measurement");
  return time_between(begin_, end_).count();
}

void CostBench::launch_small() const {
  void* operands[] = {scratch(2), scratch(2) + 256};
  small_(operands, stream());
}

void CostBench::hold(std::int64_t microseconds) const {
  void* operands[] = {scratch(2)};
  const kernels::Spin::Attributes attributes{static_cast<double>(microseconds)};
  kernel("spin").prepare({}, DType::fp32, attributes, {})(operands, stream());
}

Launch CostBench::prepare_gemm(const kernels::Matmul::Shape& shape, DType dtype) const {
  return kernel("matmul").prepare(
      shape, dtype, {},
      {.blas = blas_.get(), .workspace = workspace_.get(), .workspace_bytes = workspace_bytes});
}

void CostBench::multiply(const Launch& gemm) const {
  void* operands[] = {scratch(0), scratch(1), scratch(2)};
  gemm(operands, stream());
}

void CostBench::fill_factors(DType dtype) const {
  const Buffer as{.name = "numbers",
                  .bytes = scratch_bytes,
                  .content = Content::weights,
                  .dtype = dtype,
                  .scale = 1};
  for (const std::size_t factor : {0u, 1u}) {
    check(fill_on_device(as, 0, factor, scratch(factor), stream()), "fill a factor");
  }
}

}  // namespace stepgate
