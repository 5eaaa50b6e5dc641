// SPDX-License-Identifier: MIT
// The CUDA side of narrow and widen. Meaning and shapes: cast.h.
#include "kernels/cast/cast.h"
#include "kernels/mixed_packs.cuh"

namespace stepgate {
namespace {

// --- kernels -------------------------------------------------------------------------------------

template <class From, class To>
struct Copy {
  const From* from;
  To* to;

  template <int count>
  __device__ void apply(std::int64_t first) const {
    const auto pack = load<count>(from, first);
    Pack<To, count> copied;
#pragma unroll
    for (int i = 0; i < count; ++i) copied.values[i] = from_float<To>(to_float(pack.values[i]));
    store<count>(to, first, copied);
  }
};

// --- launcher ------------------------------------------------------------------------------------

// Little is read for each number, so a thread takes 16 bytes of the narrower side.
template <class From, class To>
Launch copying(std::string_view kernel, const KernelShape& shape) {
  constexpr int count = access_bytes / std::min(sizeof(From), sizeof(To));
  return [kernel, numbers = shape.rows * shape.columns](void* const* buffers, cudaStream_t stream) {
    const Copy<From, To> element{static_cast<const From*>(buffers[0]),
                                 static_cast<To*>(buffers[1])};
    const bool aligned = all_aligned_to_packs<count>(element.from, element.to);
    launch_elementwise<count>(kernel, numbers, element, aligned, stream);
  };
}

}  // namespace

Launch prepare_narrow(const KernelShape& shape, DType dtype, const KernelScalars&,
                      const LaunchContext&) {
  return with_storage(
      dtype, [&](auto zero) -> Launch { return copying<float, decltype(zero)>("narrow", shape); });
}

Launch prepare_widen(const KernelShape& shape, DType dtype, const KernelScalars&,
                     const LaunchContext&) {
  return with_storage(
      dtype, [&](auto zero) -> Launch { return copying<decltype(zero), float>("widen", shape); });
}

}  // namespace stepgate
