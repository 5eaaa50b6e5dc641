// SPDX-License-Identifier: MIT
// CUDA kernels and launchers of the probes; probes.h has their meaning and shapes.
#include "kernels/probes/probes.h"

#include "kernels/launch.cuh"

namespace stepgate {
namespace {

// One thread runs, so that only one load is in flight. All cache levels are used. The L1 cache is
// empty when a launch begins, so a small footprint misses it once per line and launch. A large
// footprint also misses the TLB, which is part of the cost of a load from memory here.
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
  std::int64_t
      elements_a_round;  // elements of one pass; each later pass starts one element further
  std::int64_t stride;
  std::int64_t fields_from;
  std::int64_t fields_to;
};

// The number of elements per thread that keeps memory busy: with one 4-byte load per thread, too
// few bytes would be in flight.
constexpr int elements_a_thread = 8;
constexpr int elements_a_block = elementwise_threads * elements_a_thread;

// Each element is a separate access, and a thread's elements are a block apart: vector accesses of
// neighbours would hide the access pattern that is to be measured. Each row of the grid is one
// pass, so that no thread divides. The next element of a sector is accessed when the whole array
// has been passed.
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
