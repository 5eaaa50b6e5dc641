// SPDX-License-Identifier: MIT
// The CUDA side of convert. Meaning and shapes: pointwise.h.
#include "kernels/pointwise/pointwise.h"
#include "kernels/stream_elementwise.cuh"

namespace stepgate {
namespace {

template <class From, class To>
struct Convert {
  const From* from;
  To* to;

  template <int count>
  __device__ Pack<From, count> read(std::int64_t first) const {
    return load<count>(from, first);
  }

  template <int count>
  __device__ void finish(std::int64_t first, const Pack<From, count>& read) const {
    Pack<To, count> pack;
#pragma unroll
    for (int i = 0; i < count; ++i) pack.values[i] = from_float<To>(to_float(read.values[i]));
    store<count>(to, first, pack);
  }
};

// As many numbers a pack as the wider ones fill an access with.
template <class From, class To>
Launch launch_of(std::string_view kernel, const KernelShape& shape) {
  constexpr int count = access_bytes / sizeof(float);
  return [kernel, shape](void* const* buffers, cudaStream_t stream) {
    const Convert<From, To> element{static_cast<const From*>(buffers[0]),
                                    static_cast<To*>(buffers[1])};
    launch_stream<count>(kernel, shape.columns, element,
                         aligned_to_access(element.from, element.to), stream);
  };
}

}  // namespace

Launch prepare_widen(const KernelShape& shape, DType dtype, const KernelAttributes&,
                     const LaunchContext&) {
  return with_storage(dtype, [&](auto zero) -> Launch {
    return launch_of<decltype(zero), float>(kernels::Widen::name, shape);
  });
}

Launch prepare_narrow(const KernelShape& shape, DType dtype, const KernelAttributes&,
                      const LaunchContext&) {
  return with_storage(dtype, [&](auto zero) -> Launch {
    return launch_of<float, decltype(zero)>(kernels::Narrow::name, shape);
  });
}

}  // namespace stepgate
