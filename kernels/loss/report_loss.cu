// SPDX-License-Identifier: MIT
// The CUDA side of report_loss. Meaning and shapes: loss.h.
#include "kernels/launch.cuh"
#include "kernels/loss/loss.h"

namespace stepgate {
namespace {

constexpr int block_threads = 256;

__device__ std::uint64_t device_clock_nanoseconds() {
  std::uint64_t nanoseconds;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds));
  return nanoseconds;
}

__device__ std::uint64_t multiprocessor_number() {
  std::uint32_t number;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(number));
  return number;
}

// One block: thread t takes rows t, t + 256, ..., then a fixed tree.
__global__ void __launch_bounds__(block_threads)
    report_loss(const float* row_losses, float* loss, float* history, std::uint64_t* stamps,
                std::uint64_t* counter, std::uint64_t* cycles, std::int64_t rows,
                float rows_of_mean, std::uint64_t capacity) {
  __shared__ float partial[block_threads];
  float sum = 0.0f;
  for (std::int64_t row = threadIdx.x; row < rows; row += block_threads) sum += row_losses[row];
  partial[threadIdx.x] = sum;
  for (int half = block_threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
  }
  if (threadIdx.x != 0) return;
  const float mean = partial[0] / rows_of_mean;
  const std::uint64_t step = *counter;
  *loss = mean;
  history[step % capacity] = mean;
  // The two clocks are read one after the other: their readings belong together.
  const std::uint64_t stamp = device_clock_nanoseconds();
  const auto cycle = static_cast<std::uint64_t>(clock64());
  stamps[step % capacity] = stamp;
  cycles[2 * (step % capacity)] = cycle;
  cycles[2 * (step % capacity) + 1] = multiprocessor_number();
  *counter = step + 1;
}

}  // namespace

Launch prepare_report_loss(const KernelShape& shape, DType, const KernelAttributes& attributes,
                           const LaunchContext&) {
  const auto capacity = static_cast<std::uint64_t>(attributes.as<kernels::ReportLoss>().capacity);
  const auto rows_of_mean = static_cast<float>(rows_of_loss(shape, attributes));
  return [rows = shape.rows, rows_of_mean, capacity](void* const* buffers, cudaStream_t stream) {
    report_loss<<<1, block_threads, 0, stream>>>(
        static_cast<const float*>(buffers[0]), static_cast<float*>(buffers[1]),
        static_cast<float*>(buffers[2]), static_cast<std::uint64_t*>(buffers[3]),
        static_cast<std::uint64_t*>(buffers[4]), static_cast<std::uint64_t*>(buffers[5]), rows,
        rows_of_mean, capacity);
    check_launch("report_loss");
  };
}

}  // namespace stepgate
