// SPDX-License-Identifier: MIT
// The CUDA side of repeat_heads and repeat_heads_gradient. Meaning and shapes: heads.h.
#include "kernels/heads/grouped_rows.h"
#include "kernels/launch.cuh"

namespace stepgate {
namespace {

template <class Number, class Index>
struct RepeatHeads {
  const Number* grouped;
  Number* rows;
  GroupedRows<Index> places;

  template <int count>
  __device__ void apply(std::int64_t first) const {
    store<count>(rows, first, load<count>(grouped, places.grouped(static_cast<Index>(first))));
  }
};

template <class Number, class Index>
struct RepeatHeadsGradient {
  const Number* d_rows;
  Number* d_grouped;
  GroupedRows<Index> places;

  template <int count>
  __device__ void apply(std::int64_t first) const {
    const std::int64_t from = places.first_repeated(static_cast<Index>(first));
    const std::int64_t repetitions = places.repetitions(static_cast<Index>(first));
    float sums[count] = {};
#pragma unroll 4
    for (std::int64_t head = 0; head < repetitions; ++head) {
      const auto pack = load<count>(d_rows, from + head * places.width);
#pragma unroll
      for (int i = 0; i < count; ++i) sums[i] += to_float(pack.values[i]);
    }
    Pack<Number, count> sum;
#pragma unroll
    for (int i = 0; i < count; ++i) sum.values[i] = from_float<Number>(sums[i]);
    store<count>(d_grouped, first, sum);
  }
};

// Heads that are whole packs keep a pack in one head.
template <template <class, class> class Element, class Index>
Launch heads_launch(const char* kernel, const GroupedRows<Index>& places, std::int64_t elements,
                    DType dtype) {
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [=](void* const* buffers, cudaStream_t stream) {
      constexpr int count = access_bytes / sizeof(Number);
      const auto* from = static_cast<const Number*>(buffers[0]);
      auto* to = static_cast<Number*>(buffers[1]);
      launch_elementwise<count>(kernel, elements, Element<Number, Index>{from, to, places},
                                places.width % count == 0 && aligned_to_access(from, to), stream);
    };
  });
}

// Calls `with` with the places of those indices that all elements fit.
template <class Function>
Launch with_places(const KernelShape& shape, const KernelAttributes& attributes, Function with) {
  const auto places = grouped_rows<std::int64_t>(shape, attributes);
  if (places.elements() >> 32 != 0) return with(places);
  return with(grouped_rows<std::uint32_t>(shape, attributes));
}

}  // namespace

Launch prepare_repeat_heads(const KernelShape& shape, DType dtype,
                            const KernelAttributes& attributes, const LaunchContext&) {
  return with_places(shape, attributes, [&](const auto& places) {
    return heads_launch<RepeatHeads>("repeat_heads", places, places.elements(), dtype);
  });
}

Launch prepare_repeat_heads_gradient(const KernelShape& shape, DType dtype,
                                     const KernelAttributes& attributes, const LaunchContext&) {
  return with_places(shape, attributes, [&](const auto& places) {
    return heads_launch<RepeatHeadsGradient>("repeat_heads_gradient", places,
                                             places.grouped_elements(), dtype);
  });
}

}  // namespace stepgate
