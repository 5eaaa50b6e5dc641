// SPDX-License-Identifier: MIT
// Kernels and launchers of the family; the header has their meaning and shapes.
#include "kernels/probes/probes.h"

#include "kernels/launch.cuh"

namespace stepgate {
namespace {

// One thread, so that one load is on its way at a time. Loads are cached in every level; the first
// level is empty when a launch begins, so a small footprint misses it once a line and launch. A
// large footprint also misses the TLB, which is part of what a load from memory costs here.
__global__ void chase(const std::uint32_t* chain, std::uint32_t* position, float* fraction,
                      std::int64_t accesses, float line_share) {
  std::uint32_t line = *position;
  for (std::int64_t access = 0; access < accesses; ++access) {
    line = __ldca(chain + line * chase_line_words);
  }
  *position = line;
  *fraction = static_cast<float>(line) * line_share;
}

}  // namespace

Launch kernels::Chase::prepare(const Shape& shape, DType, const Attributes& attributes,
                               const LaunchContext&) {
  const std::int64_t accesses = attributes.accesses;
  const float line_share = 1.0f / static_cast<float>(shape.lines);  // exact: a power of two
  return [accesses, line_share](void* const* buffers, cudaStream_t stream) {
    chase<<<1, 1, 0, stream>>>(static_cast<const std::uint32_t*>(buffers[0]),
                               static_cast<std::uint32_t*>(buffers[1]),
                               static_cast<float*>(buffers[2]), accesses, line_share);
    check_launch("chase");
  };
}

namespace {

__device__ std::uint64_t device_clock_nanoseconds() {
  std::uint64_t nanoseconds;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds));
  return nanoseconds;
}

// One warp busy-waits. The clock is the wall clock of the device, so the time does not depend on
// the multiprocessors' frequency.
__global__ void spin(std::uint32_t* word, std::uint64_t nanoseconds) {
  const std::uint64_t start = device_clock_nanoseconds();
  while (device_clock_nanoseconds() - start < nanoseconds) {
  }
  if (threadIdx.x == 0) *word += 1;
}

}  // namespace

Launch kernels::Spin::prepare(const Shape&, DType, const Attributes& attributes,
                              const LaunchContext&) {
  const auto nanoseconds = static_cast<std::uint64_t>(attributes.microseconds * 1e3);
  return [nanoseconds](void* const* buffers, cudaStream_t stream) {
    spin<<<1, 32, 0, stream>>>(static_cast<std::uint32_t*>(buffers[0]), nanoseconds);
    check_launch("spin");
  };
}

namespace {

struct Walk {
  std::int64_t elements_a_round;  // that threads take before they begin again, one further
  std::int64_t stride;
  std::int64_t fields_from;
  std::int64_t fields_to;
};

// As many as keep memory busy: one 4-byte load a thread is on its way for longer than it lasts.
constexpr int elements_a_thread = 8;
constexpr int elements_a_block = elementwise_threads * elements_a_thread;

// An access for every element on purpose, and a thread's elements a block apart: neighbours in one
// access would hide from memory the very pattern that is to be measured. A row of the grid is a
// round, so that no thread divides, and a sector's next element comes when the whole array has
// passed.
template <class Number>
__global__ void __launch_bounds__(elementwise_threads)
    strided_scale(const Number* from, Number* to, Walk walk, float factor) {
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * elements_a_block + threadIdx.x;
  const auto element = [&](int i) {
    return (first + i * elementwise_threads) * walk.stride + blockIdx.y;
  };
  const auto is_there = [&](int i) {
    return first + i * elementwise_threads < walk.elements_a_round;
  };
  float numbers[elements_a_thread];
#pragma unroll
  for (int i = 0; i < elements_a_thread; ++i) {
    if (is_there(i)) numbers[i] = to_float(from[element(i) * walk.fields_from]);
  }
#pragma unroll
  for (int i = 0; i < elements_a_thread; ++i) {
    if (is_there(i)) to[element(i) * walk.fields_to] = from_float<Number>(factor * numbers[i]);
  }
}

template <class Number>
Launch scaling(const Walk& walk, float factor) {
  return [walk, factor](void* const* buffers, cudaStream_t stream) {
    if (walk.elements_a_round == 0) return;
    const dim3 blocks(
        static_cast<unsigned>(ceiling_quotient(walk.elements_a_round, elements_a_block)),
        static_cast<unsigned>(walk.stride));
    strided_scale<<<blocks, elementwise_threads, 0, stream>>>(
        static_cast<const Number*>(buffers[0]), static_cast<Number*>(buffers[1]), walk, factor);
    check_launch("strided_scale");
  };
}

}  // namespace

Launch kernels::StridedScale::prepare(const Shape& shape, DType dtype, const Attributes& attributes,
                                      const LaunchContext&) {
  const Walk walk{.elements_a_round = shape.rows * shape.columns / shape.stride,
                  .stride = shape.stride,
                  .fields_from = static_cast<std::int64_t>(attributes.fields_from),
                  .fields_to = static_cast<std::int64_t>(attributes.fields_to)};
  const auto factor = static_cast<float>(attributes.factor);
  return with_storage(dtype,
                      [&](auto zero) -> Launch { return scaling<decltype(zero)>(walk, factor); });
}

}  // namespace stepgate
