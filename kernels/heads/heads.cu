// SPDX-License-Identifier: MIT
// CUDA kernels and launchers of the heads kernels; heads.h has their meaning and shapes.
#include "kernels/heads/heads.h"

#include <bit>
#include <cmath>

#include "kernels/heads/grouped_rows.h"
#include "kernels/launch.cuh"
#include "kernels/packed_numbers.cuh"

namespace stepgate {

// Moves numbers between rows of packed heads and one matrix per head; split_heads and merge_heads
// are the two directions.

constexpr int packed_threads = 128;
constexpr int packed_rows = 8;  // of a block: also the accesses of a thread in flight

struct PackedRows {
  std::int64_t rows;
  std::int64_t columns;  // of a part
  int parts;
  int tokens;
  int heads;
};

// A thread processes the same columns in all its rows, so that their target is computed only once.
template <int count, class Number, class Move>
__global__ void __launch_bounds__(packed_threads)
    move_packed_rows(PackedRows shape, const Number* from, Number* to, Move move) {
  const std::int64_t row_columns = shape.parts * shape.columns;
  const std::int64_t column =
      (static_cast<std::int64_t>(blockIdx.y) * packed_threads + threadIdx.x) * count;
  if (column >= row_columns) return;
  const int width = static_cast<int>(shape.columns / shape.heads);
  const std::int64_t part = column / shape.columns;
  const std::int64_t head = column % shape.columns / width;
  const std::int64_t within = column % width;
  const std::int64_t first_row = static_cast<std::int64_t>(blockIdx.x) * packed_rows;
  std::int64_t sequence = first_row / shape.tokens;
  std::int64_t token = first_row % shape.tokens;
  const std::int64_t sequences = shape.rows / shape.tokens;

  Pack<Number, count> packs[packed_rows];
  std::int64_t targets[packed_rows];
#pragma unroll
  for (int i = 0; i < packed_rows; ++i) {
    const std::int64_t in_rows = (first_row + i) * row_columns + column;
    const std::int64_t matrix = (part * sequences + sequence) * shape.heads + head;
    const std::int64_t in_matrices = (matrix * shape.tokens + token) * width + within;
    targets[i] = move.to(in_rows, in_matrices);
    if (first_row + i < shape.rows) packs[i] = load<count>(from, move.from(in_rows, in_matrices));
    if (++token == shape.tokens) {
      token = 0;
      ++sequence;
    }
  }
#pragma unroll
  for (int i = 0; i < packed_rows; ++i) {
    if (first_row + i < shape.rows) store(to, targets[i], packs[i]);
  }
}

// Launches `kernel` with the first operand as source and the second as target.
template <class Move>
Launch packed_rows_launch(const char* kernel, const PackedHeadsShape& shape, DType dtype,
                          std::int64_t parts, Move move) {
  const PackedRows sizes{shape.rows, shape.columns, static_cast<int>(parts),
                         static_cast<int>(shape.tokens), static_cast<int>(shape.heads)};
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [=](void* const* buffers, cudaStream_t stream) {
      constexpr int count = access_bytes / sizeof(Number);
      const auto* from = static_cast<const Number*>(buffers[0]);
      auto* to = static_cast<Number*>(buffers[1]);
      const bool packs = sizes.columns / sizes.heads % count == 0 && aligned_to_access(from, to);
      auto* const moving =
          packs ? move_packed_rows<count, Number, Move> : move_packed_rows<1, Number, Move>;
      const std::int64_t columns = sizes.parts * sizes.columns / (packs ? count : 1);
      const dim3 blocks(static_cast<unsigned>(ceiling_quotient(sizes.rows, packed_rows)),
                        static_cast<unsigned>(ceiling_quotient(columns, packed_threads)));
      moving<<<blocks, packed_threads, 0, stream>>>(sizes, from, to, move);
      check_launch(kernel);
    };
  });
}

namespace {

struct Split {
  __device__ std::int64_t from(std::int64_t in_rows, std::int64_t) const { return in_rows; }
  __device__ std::int64_t to(std::int64_t, std::int64_t in_matrices) const { return in_matrices; }
};

}  // namespace

Launch kernels::SplitHeads::prepare(const Shape& shape, DType dtype, const Attributes& attributes,
                                    const LaunchContext&) {
  const auto parts = static_cast<std::int64_t>(attributes.parts);
  return packed_rows_launch("split_heads", shape, dtype, parts, Split{});
}

namespace {

struct Merge {
  __device__ std::int64_t from(std::int64_t, std::int64_t in_matrices) const { return in_matrices; }
  __device__ std::int64_t to(std::int64_t in_rows, std::int64_t) const { return in_rows; }
};

}  // namespace

Launch kernels::MergeHeads::prepare(const Shape& shape, DType dtype, const Attributes& attributes,
                                    const LaunchContext&) {
  const auto parts = static_cast<std::int64_t>(attributes.parts);
  return packed_rows_launch("merge_heads", shape, dtype, parts, Merge{});
}

namespace {

template <class Number, class Index>
struct RepeatHeadsOnDevice {
  const Number* grouped;
  Number* rows;
  GroupedRows<Index> places;

  template <int count>
  __device__ void apply(std::int64_t first) const {
    store<count>(rows, first, load<count>(grouped, places.grouped(static_cast<Index>(first))));
  }
};

template <class Number, class Index>
struct RepeatHeadsGradientOnDevice {
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

// If heads are whole packs, no pack spans two heads.
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

// Calls `with` with GroupedRows of 32-bit indices if all elements fit, else of 64-bit indices.
template <class Function>
Launch with_places(const kernels::RepeatHeads::Shape& shape,
                   const kernels::RepeatHeads::Attributes& attributes, Function with) {
  const auto places = grouped_rows<std::int64_t>(shape, attributes);
  if (places.elements() >> 32 != 0) return with(places);
  return with(grouped_rows<std::uint32_t>(shape, attributes));
}

}  // namespace

Launch kernels::RepeatHeads::prepare(const Shape& shape, DType dtype, const Attributes& attributes,
                                     const LaunchContext&) {
  return with_places(shape, attributes, [&](const auto& places) {
    return heads_launch<RepeatHeadsOnDevice>("repeat_heads", places, places.elements(), dtype);
  });
}

Launch kernels::RepeatHeadsGradient::prepare(const Shape& shape, DType dtype,
                                             const Attributes& attributes, const LaunchContext&) {
  return with_places(shape, attributes, [&](const auto& places) {
    return heads_launch<RepeatHeadsGradientOnDevice>("repeat_heads_gradient", places,
                                                     places.grouped_elements(), dtype);
  });
}

namespace {

constexpr int block_threads = 256;
constexpr int most_pairs = 128;     // of a head
constexpr int packs_of_thread = 8;  // share their sines; all are read before one is written

// Angles are multiples of 2^-64 of a turn. The product of a position and an angle wraps modulo
// whole turns, exactly, however long the sequence is.
struct RopeOnDevice {
  std::uint64_t angles[most_pairs];  // at position 1
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t tokens;
  int half;  // pairs of a head
  int heads;
  float sign;  // of the sine
};

// Sines and cosines of the angles by which `count` pairs from `pair` on are rotated in this row.
template <int count>
struct Turns {
  float sines[count], cosines[count];

  __device__ Turns(const RopeOnDevice& call, std::int64_t row, int pair) {
    const auto position = static_cast<std::uint64_t>(row % call.tokens);
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const std::uint64_t angle = position * call.angles[pair + i];
      // The upper half of the angle, as a signed number of half turns.
      const auto half_turns = static_cast<float>(static_cast<std::int32_t>(angle >> 32)) * 0x1p-31f;
      sincospif(half_turns, &sines[i], &cosines[i]);
      sines[i] *= call.sign;
    }
  }
};

// A thread processes one pack of numbers of a row, all of the first or all of the second half of a
// head, in a few heads. It gets the other numbers of the pairs from its partner, `packs` lanes away
// in the warp. So a warp reads and writes whole lines of memory, where half of a head may be as
// short as half a line. `packs` is of half a head, a power of two, at most most_partner_packs.
constexpr int most_partner_packs = 16;

template <int count, class Number>
__global__ void __launch_bounds__(block_threads)
    rope_with_partner(const __grid_constant__ RopeOnDevice call, int heads_apart, Number* numbers) {
  const int packs = call.half / count;
  const int threads_of_row = 2 * packs * heads_apart;
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * block_threads + threadIdx.x;
  const std::int64_t row = thread / threads_of_row;
  const int within = static_cast<int>(thread - row * threads_of_row);
  const int pack = within % (2 * packs);
  const int first_head = within / (2 * packs);
  const bool is_first_half = pack < packs;
  Number* const numbers_of_row = numbers + row * call.columns + pack * count;
  const auto head = [&](int i) { return first_head + i * heads_apart; };
  const auto place = [&](int i) { return static_cast<std::int64_t>(head(i)) * 2 * call.half; };
  const auto exists = [&](int i) { return row < call.rows && head(i) < call.heads; };
  Pack<Number, count> own[packs_of_thread] = {};
#pragma unroll
  for (int i = 0; i < packs_of_thread; ++i)
    if (exists(i)) own[i] = load<count>(numbers_of_row, place(i));
  const Turns<count> turns(call, row, pack % packs * count);
#pragma unroll
  for (int i = 0; i < packs_of_thread; ++i) {
    Pack<Number, count> other = own[i];
#pragma unroll
    for (std::size_t word = 0; word < sizeof other / 4; ++word)
      words_of(other)[word] = __shfl_xor_sync(0xffffffffu, words_of(other)[word], packs);
    float turned[count];
#pragma unroll
    for (int j = 0; j < count; ++j) {
      const float product = number_of(other, j) * turns.sines[j];
      turned[j] = fmaf(number_of(own[i], j), turns.cosines[j], is_first_half ? -product : product);
    }
    if (exists(i)) store<count>(numbers_of_row, place(i), packed<Number>(turned));
  }
}

// The same for heads of any size: a thread processes one pack of pairs of a row, in a few heads.
template <int count, class Number>
__global__ void __launch_bounds__(block_threads)
    rope_of_any_width(const __grid_constant__ RopeOnDevice call, Number* numbers) {
  constexpr int heads_of_thread = packs_of_thread / 2;
  const int packs = call.half / count;
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * block_threads + threadIdx.x;
  const std::int64_t row = thread / packs;
  if (row >= call.rows) return;
  const int pair = static_cast<int>(thread % packs) * count;
  const Turns<count> turns(call, row, pair);
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
      x[h].values[i] = from_float<Number>(fmaf(a, turns.cosines[i], -b * turns.sines[i]));
      y[h].values[i] = from_float<Number>(fmaf(b, turns.cosines[i], a * turns.sines[i]));
    }
    const std::int64_t place = static_cast<std::int64_t>(first_head + h) * 2 * call.half;
    store<count>(first, place, x[h]);
    store<count>(first, place + call.half, y[h]);
  }
}

template <class Number>
void launch_rope(const RopeOnDevice& call, Number* numbers, cudaStream_t stream) {
  constexpr int count = access_bytes / sizeof(Number);
  const bool is_packed =
      call.half % count == 0 && call.columns % count == 0 && aligned_to_access(numbers);
  const int packs = is_packed ? call.half / count : call.half;
  const auto blocks_of = [](std::int64_t threads) {
    return static_cast<unsigned>(ceiling_quotient(threads, block_threads));
  };
  if (is_packed && packs <= most_partner_packs &&
      std::has_single_bit(static_cast<unsigned>(packs))) {
    const auto heads_apart = static_cast<int>(ceiling_quotient(call.heads, packs_of_thread));
    const unsigned blocks = blocks_of(call.rows * heads_apart * 2 * packs);
    rope_with_partner<count><<<blocks, block_threads, 0, stream>>>(call, heads_apart, numbers);
  } else {
    const dim3 blocks(blocks_of(call.rows * packs),
                      static_cast<unsigned>(ceiling_quotient(call.heads, packs_of_thread / 2)));
    auto* const turning =
        is_packed ? rope_of_any_width<count, Number> : rope_of_any_width<1, Number>;
    turning<<<blocks, block_threads, 0, stream>>>(call, numbers);
  }
  check_launch("rope");
}

RopeOnDevice call_of(const PackedHeadsShape& shape, const kernels::Rope::Attributes& attributes) {
  constexpr double two_pi = 6.28318530717958647693;
  RopeOnDevice call{};
  call.rows = shape.rows;
  call.columns = shape.columns;
  call.tokens = shape.tokens;
  call.half = static_cast<int>(attributes.width / 2);
  call.heads = static_cast<int>(shape.heads);
  call.sign = attributes.inverse ? -1.0f : 1.0f;
  for (int i = 0; i < call.half; ++i) {
    const double exponent = -2.0 * i / static_cast<double>(attributes.width);
    const double turns = std::pow(attributes.base, exponent) / two_pi;  // less than 1
    call.angles[i] = static_cast<std::uint64_t>(std::ldexp(turns, 64));
  }
  return call;
}

}  // namespace

Launch kernels::Rope::prepare(const Shape& shape, DType dtype, const Attributes& attributes,
                              const LaunchContext&) {
  if (attributes.width > 2 * most_pairs) {
    throw std::runtime_error("rope: a head is at most " + std::to_string(2 * most_pairs) +
                             " wide, not " + std::to_string(attributes.width));
  }
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [call = call_of(shape, attributes)](void* const* buffers, cudaStream_t stream) {
      launch_rope(call, static_cast<Number*>(buffers[0]), stream);
    };
  });
}

}  // namespace stepgate
