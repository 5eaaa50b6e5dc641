// SPDX-License-Identifier: MIT
// The CUDA side of strided_scale. Meaning and shapes: strided_scale.h.
#include "kernels/launch.cuh"
#include "kernels/strided_scale/strided_scale.h"

namespace stepgate {
namespace {

// --- kernels -------------------------------------------------------------------------------------

struct Walk {
  std::int64_t elements_a_round;  // that threads take before they begin again, one further
  std::int64_t stride;
  std::int64_t fields_from;
  std::int64_t fields_to;
};

// One element a thread on purpose: a thread that took several neighbours would put them into one
// access, and hide from memory the very pattern that is to be measured. A row of the grid is a
// round, so that no thread divides, and a sector's next element comes when the whole array has
// passed.
template <class Number>
__global__ void __launch_bounds__(elementwise_threads)
    strided_scale(const Number* from, Number* to, Walk walk, float factor) {
  const std::int64_t place =
      static_cast<std::int64_t>(blockIdx.x) * elementwise_threads + threadIdx.x;
  if (place >= walk.elements_a_round) return;
  const std::int64_t element = place * walk.stride + blockIdx.y;
  const float number = to_float(from[element * walk.fields_from]);
  to[element * walk.fields_to] = from_float<Number>(factor * number);
}

// --- launcher ------------------------------------------------------------------------------------

template <class Number>
Launch scaling(const Walk& walk, float factor) {
  return [walk, factor](void* const* buffers, cudaStream_t stream) {
    if (walk.elements_a_round == 0) return;
    const dim3 blocks(
        static_cast<unsigned>(ceiling_quotient(walk.elements_a_round, elementwise_threads)),
        static_cast<unsigned>(walk.stride));
    strided_scale<<<blocks, elementwise_threads, 0, stream>>>(
        static_cast<const Number*>(buffers[0]), static_cast<Number*>(buffers[1]), walk, factor);
    check_launch("strided_scale");
  };
}

}  // namespace

Launch prepare_strided_scale(const KernelShape& shape, DType dtype, const KernelScalars& scalars,
                             const LaunchContext&) {
  const Walk walk{
      .elements_a_round = shape.rows * shape.columns / shape.depth,
      .stride = shape.depth,
      .fields_from = static_cast<std::int64_t>(scalars[strided_scale_scalar::fields_from]),
      .fields_to = static_cast<std::int64_t>(scalars[strided_scale_scalar::fields_to])};
  const auto factor = static_cast<float>(scalars[strided_scale_scalar::factor]);
  return with_storage(dtype,
                      [&](auto zero) -> Launch { return scaling<decltype(zero)>(walk, factor); });
}

}  // namespace stepgate
