// SPDX-License-Identifier: MIT
// The CUDA side of strided_scale. Meaning and shapes: probes.h.
#include "kernels/launch.cuh"
#include "kernels/probes/probes.h"

namespace stepgate {
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

Launch prepare_strided_scale(const KernelShape& shape, DType dtype,
                             const KernelAttributes& attributes, const LaunchContext&) {
  const Walk walk{
      .elements_a_round = shape.rows * shape.columns / shape.depth,
      .stride = shape.depth,
      .fields_from = static_cast<std::int64_t>(attributes.as<kernels::StridedScale>().fields_from),
      .fields_to = static_cast<std::int64_t>(attributes.as<kernels::StridedScale>().fields_to)};
  const auto factor = static_cast<float>(attributes.as<kernels::StridedScale>().factor);
  return with_storage(dtype,
                      [&](auto zero) -> Launch { return scaling<decltype(zero)>(walk, factor); });
}

}  // namespace stepgate
