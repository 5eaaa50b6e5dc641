// SPDX-License-Identifier: MIT
// The CUDA side of add. Meaning and shapes: pointwise.h.
#include "kernels/pointwise/pointwise.h"
#include "kernels/stream_elementwise.cuh"

namespace stepgate {
namespace {

template <class Number>
struct Add {
  const Number* x;
  const Number* branch;
  Number* sum;

  template <int count>
  struct Inputs {
    Pack<Number, count> x, branch;
  };

  template <int count>
  __device__ Inputs<count> read(std::int64_t first) const {
    return {load<count>(x, first), load<count>(branch, first)};
  }

  template <int count>
  __device__ void finish(std::int64_t first, Inputs<count> inputs) const {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      inputs.x.values[i] =
          from_float<Number>(to_float(inputs.x.values[i]) + to_float(inputs.branch.values[i]));
    }
    store<count>(sum, first, inputs.x);
  }
};

}  // namespace

Launch prepare_add(const KernelShape& shape, DType dtype, const KernelAttributes&,
                   const LaunchContext&) {
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    constexpr int count = access_bytes / sizeof(Number);
    return [shape](void* const* buffers, cudaStream_t stream) {
      const Add<Number> element{static_cast<const Number*>(buffers[0]),
                                static_cast<const Number*>(buffers[1]),
                                static_cast<Number*>(buffers[2])};
      launch_stream<count>("add", shape.rows * shape.columns, element,
                           aligned_to_access(element.x, element.branch, element.sum), stream);
    };
  });
}

}  // namespace stepgate
