// SPDX-License-Identifier: MIT
// Kernels and launchers of the family; the header has their meaning and shapes.
#include "kernels/heads/heads.h"

#include <cmath>

#include "kernels/heads/grouped_rows.h"
#include "kernels/heads/packed_rows.cuh"
#include "kernels/launch.cuh"

namespace stepgate {
namespace {

struct Split {
  __device__ std::int64_t from(std::int64_t in_rows, std::int64_t) const { return in_rows; }
  __device__ std::int64_t to(std::int64_t, std::int64_t in_matrices) const { return in_matrices; }
};

}  // namespace

Launch prepare_split_heads(const KernelShape& shape, DType dtype,
                           const KernelAttributes& attributes, const LaunchContext&) {
  const auto parts = static_cast<std::int64_t>(attributes.as<kernels::SplitHeads>().parts);
  return packed_rows_launch("split_heads", shape, dtype, parts, Split{});
}

namespace {

struct Merge {
  __device__ std::int64_t from(std::int64_t, std::int64_t in_matrices) const { return in_matrices; }
  __device__ std::int64_t to(std::int64_t in_rows, std::int64_t) const { return in_rows; }
};

}  // namespace

Launch prepare_merge_heads(const KernelShape& shape, DType dtype,
                           const KernelAttributes& attributes, const LaunchContext&) {
  const auto parts = static_cast<std::int64_t>(attributes.as<kernels::MergeHeads>().parts);
  return packed_rows_launch("merge_heads", shape, dtype, parts, Merge{});
}

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

namespace {

constexpr int block_threads = 256;
constexpr int most_pairs = 128;     // of a head
constexpr int heads_of_thread = 4;  // that share their sines, and are read before one is written

// A turn is 2^64: what a position's multiple of an angle has beyond whole turns is what is left of
// an integer product, exactly, however long the sequence is.
struct Rope {
  std::uint64_t angles[most_pairs];  // of position 1
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t tokens;
  int half;  // pairs of a head
  int heads;
  float sign;  // of the sine
};

// A thread has a row's pack of pairs, in a few heads.
template <int count, class Number>
__global__ void __launch_bounds__(block_threads)
    rope(const __grid_constant__ Rope call, Number* numbers) {
  const int packs = call.half / count;
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * block_threads + threadIdx.x;
  const std::int64_t row = thread / packs;
  if (row >= call.rows) return;
  const int pair = static_cast<int>(thread % packs) * count;
  const auto position = static_cast<std::uint64_t>(row % call.tokens);
  float sine[count], cosine[count];
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const std::uint64_t angle = position * call.angles[pair + i];
    // The upper half of it, as a signed share of half a turn.
    const auto half_turns = static_cast<float>(static_cast<std::int32_t>(angle >> 32)) * 0x1p-31f;
    sincospif(half_turns, &sine[i], &cosine[i]);
    sine[i] *= call.sign;
  }
  const int first_head = static_cast<int>(blockIdx.y) * heads_of_thread;
  Number* const first = numbers + row * call.columns + pair;
  Pack<Number, count> x[heads_of_thread], y[heads_of_thread];
#pragma unroll
  for (int h = 0; h < heads_of_thread; ++h) {
    if (first_head + h >= call.heads) continue;
    const std::int64_t place = static_cast<std::int64_t>(first_head + h) * 2 * call.half;
    x[h] = load<count>(first, place);
    y[h] = load<count>(first, place + call.half);
  }
#pragma unroll
  for (int h = 0; h < heads_of_thread; ++h) {
    if (first_head + h >= call.heads) continue;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const float a = to_float(x[h].values[i]), b = to_float(y[h].values[i]);
      x[h].values[i] = from_float<Number>(fmaf(a, cosine[i], -b * sine[i]));
      y[h].values[i] = from_float<Number>(fmaf(b, cosine[i], a * sine[i]));
    }
    const std::int64_t place = static_cast<std::int64_t>(first_head + h) * 2 * call.half;
    store<count>(first, place, x[h]);
    store<count>(first, place + call.half, y[h]);
  }
}

Rope call_of(const KernelShape& shape, const kernels::Rope::Attributes& attributes) {
  constexpr double two_pi = 6.28318530717958647693;
  Rope call{};
  call.rows = shape.rows;
  call.columns = shape.columns;
  call.tokens = shape.depth;
  call.half = static_cast<int>(attributes.width / 2);
  call.heads = static_cast<int>(shape.groups);
  call.sign = attributes.inverse ? -1.0f : 1.0f;
  for (int i = 0; i < call.half; ++i) {
    const double exponent = -2.0 * i / static_cast<double>(attributes.width);
    const double turns = std::pow(attributes.base, exponent) / two_pi;  // below 1
    call.angles[i] = static_cast<std::uint64_t>(std::ldexp(turns, 64));
  }
  return call;
}

}  // namespace

Launch prepare_rope(const KernelShape& shape, DType dtype, const KernelAttributes& attributes,
                    const LaunchContext&) {
  const auto rope_attributes = attributes.as<kernels::Rope>();
  if (rope_attributes.width > 2 * most_pairs) {
    throw std::runtime_error("rope: a head is at most " + std::to_string(2 * most_pairs) +
                             " wide, not " + std::to_string(rope_attributes.width));
  }
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [call = call_of(shape, rope_attributes)](void* const* buffers, cudaStream_t stream) {
      constexpr int count = access_bytes / sizeof(Number);
      auto* numbers = static_cast<Number*>(buffers[0]);
      const bool packs =
          call.half % count == 0 && call.columns % count == 0 && aligned_to_access(numbers);
      const std::int64_t threads = call.rows * (packs ? call.half / count : call.half);
      const dim3 blocks(static_cast<unsigned>(ceiling_quotient(threads, block_threads)),
                        static_cast<unsigned>(ceiling_quotient(call.heads, heads_of_thread)));
      auto* const turning = packs ? rope<count, Number> : rope<1, Number>;
      turning<<<blocks, block_threads, 0, stream>>>(call, numbers);
      check_launch("rope");
    };
  });
}

}  // namespace stepgate
