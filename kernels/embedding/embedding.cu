// SPDX-License-Identifier: MIT
// CUDA kernels and launchers of the embedding; embedding.h has their meaning and shapes.
#include "kernels/embedding/embedding.h"

#include "kernels/launch.cuh"
#include "kernels/packed_numbers.cuh"

namespace stepgate {
namespace {

constexpr int embedding_block_threads = 256;
constexpr int embedding_warps = embedding_block_threads / 32;

template <class Number>
struct EmbeddingOnDevice {
  const std::int32_t* tokens;
  const Number* table;
  const Number* positions;  // null: none are added
  Number* x;
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t period;
};

// One warp processes a row, so that the token is read once and no thread divides by the columns.
// Operands do not overlap, so several loads can be in flight.
template <int count, bool with_positions, class Number>
__global__ void __launch_bounds__(embedding_block_threads)
    embedding(const EmbeddingOnDevice<Number> call) {
  const std::int64_t row =
      static_cast<std::int64_t>(blockIdx.x) * embedding_warps + threadIdx.x / 32;
  if (row >= call.rows) return;
  const Number* __restrict__ entry = call.table + call.tokens[row] * call.columns;
  Number* __restrict__ x = call.x + row * call.columns;
  [[maybe_unused]] const Number* __restrict__ position = nullptr;
  if constexpr (with_positions) position = call.positions + row % call.period * call.columns;
#pragma unroll 4
  for (std::int64_t c = threadIdx.x % 32 * count; c < call.columns; c += 32 * count) {
    auto pack = load<count>(entry, c);
    if constexpr (with_positions) {
      const auto other = load<count>(position, c);
#pragma unroll
      for (int i = 0; i < count; ++i) {
        pack.values[i] = from_float<Number>(to_float(pack.values[i]) + to_float(other.values[i]));
      }
    }
    store<count>(x, c, pack);
  }
}

template <bool with_positions>
Launch embedding_launch(const char* kernel, const kernels::Embedding::Shape& shape, DType dtype) {
  const auto blocks = static_cast<unsigned>(ceiling_quotient(shape.rows, embedding_warps));
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [=](void* const* buffers, cudaStream_t stream) {
      constexpr int count = access_bytes / sizeof(Number);
      const EmbeddingOnDevice<Number> call{
          static_cast<const std::int32_t*>(buffers[0]),
          static_cast<const Number*>(buffers[1]),
          with_positions ? static_cast<const Number*>(buffers[2]) : nullptr,
          static_cast<Number*>(buffers[with_positions ? 3 : 2]),
          shape.rows,
          shape.columns,
          shape.positions};
      const bool packs =
          shape.columns % count == 0 && aligned_to_access(call.table, call.positions, call.x);
      auto* const embedding_kernel =
          packs ? embedding<count, with_positions, Number> : embedding<1, with_positions, Number>;
      embedding_kernel<<<blocks, embedding_block_threads, 0, stream>>>(call);
      check_launch(kernel);
    };
  });
}

}  // namespace

Launch kernels::Embedding::prepare(const Shape& shape, DType dtype, const Attributes&,
                                   const LaunchContext&) {
  return embedding_launch<true>("embedding", shape, dtype);
}

Launch kernels::TokenEmbedding::prepare(const Shape& shape, DType dtype, const Attributes&,
                                        const LaunchContext&) {
  return embedding_launch<false>("token_embedding", {shape.rows, shape.columns, shape.table_rows},
                                 dtype);
}

namespace {

constexpr int embedding_gradient_block_threads = 256;
constexpr int embedding_gradient_warps = embedding_gradient_block_threads / 32;
constexpr unsigned whole_warp = 0xffffffffu;

// Block b sums the rows of the table whose number has remainder b modulo `owners`. It is a
// constant, so that the compiler turns the remainder into two multiplications. It gives eight
// blocks for each multiprocessor of an H200.
constexpr std::uint32_t owners = 8 * 132;

struct Found {
  std::int32_t position, token;
};

// The block's own tokens in a window of positions, in order. Each warp has a list for its part of
// the window.
constexpr int list_length = 256;

struct Lists {
  Found found[embedding_gradient_warps][list_length];
  int lengths[embedding_gradient_warps];
};

struct Window {
  std::int64_t begin, end;
};

__device__ __forceinline__ int warp_of_thread() {
  return threadIdx.x / 32;
}
__device__ __forceinline__ int lane_of_thread() {
  return threadIdx.x % 32;
}

// Fills the warp's list. If a length exceeds the list's, the other tokens are missing.
__device__ void list_tokens(const std::int32_t* tokens, Window window, Lists& lists) {
  constexpr int loads = 8;
  const int warp = warp_of_thread(), lane = lane_of_thread();
  const std::int64_t part = ((window.end - window.begin) + embedding_gradient_block_threads - 1) /
                            embedding_gradient_block_threads * 32;
  const std::int64_t begin = window.begin + warp * part;
  const std::int64_t end = begin + part < window.end ? begin + part : window.end;
  int length = 0;
  for (std::int64_t base = begin; base < end; base += 32 * loads) {
    std::int32_t read[loads];
#pragma unroll
    for (int i = 0; i < loads; ++i) {
      const std::int64_t position = base + 32 * i + lane;
      read[i] = position < end ? tokens[position] : -1;
    }
#pragma unroll
    for (int i = 0; i < loads; ++i) {
      const bool own = read[i] >= 0 && static_cast<std::uint32_t>(read[i]) % owners == blockIdx.x;
      const unsigned all = __ballot_sync(whole_warp, own);
      const int slot = length + __popc(all & ((1u << lane) - 1));
      if (own && slot < list_length) {
        lists.found[warp][slot] = {static_cast<std::int32_t>(base + 32 * i + lane), read[i]};
      }
      length += __popc(all);
    }
  }
  if (lane == 0) lists.lengths[warp] = length;
}

// Returns the lanes that hold an entry of [begin, end) of the list with that token; lane l has
// entry base + l.
__device__ __forceinline__ unsigned equal_entries(const Lists& lists, int list, int base, int begin,
                                                  int end, std::int32_t token) {
  const int entry = base + lane_of_thread();
  const bool equal = entry >= begin && entry < end && lists.found[list][entry].token == token;
  return __ballot_sync(whole_warp, equal);
}

// Like equal_entries, for positions among all tokens.
__device__ __forceinline__ unsigned equal_tokens(const std::int32_t* tokens, std::int64_t base,
                                                 std::int64_t end, std::int32_t token) {
  const std::int64_t position = base + lane_of_thread();
  return __ballot_sync(whole_warp, position < end && tokens[position] == token);
}

// Whether the token occurs before that entry. The positions before the window are searched too,
// which is needed for a block with more tokens than lists.
__device__ bool occurs_before(const std::int32_t* tokens, Window window, const Lists& lists,
                              int list, int entry, std::int32_t token) {
  for (std::int64_t base = 0; base < window.begin; base += 32) {
    if (equal_tokens(tokens, base, window.begin, token) != 0) return true;
  }
  for (int i = 0; i <= list; ++i) {
    const int end = i == list ? entry : lists.lengths[i];
    for (int base = 0; base < end; base += 32) {
      if (equal_entries(lists, i, base, 0, end, token) != 0) return true;
    }
  }
  return false;
}

// Calls sum(position) for that entry and all later ones of its token, in their order.
template <class Sum>
__device__ __forceinline__ void for_each_equal(const std::int32_t* tokens, std::int64_t rows,
                                               Window window, const Lists& lists, int list,
                                               int entry, std::int32_t token, Sum sum) {
  for (int i = list; i < embedding_gradient_warps; ++i) {
    const int begin = i == list ? entry : 0;
    for (int base = begin / 32 * 32; base < lists.lengths[i]; base += 32) {
      unsigned equal = equal_entries(lists, i, base, begin, lists.lengths[i], token);
      for (; equal != 0; equal &= equal - 1) {
        sum(static_cast<std::int64_t>(lists.found[i][base + __ffs(equal) - 1].position));
      }
    }
  }
  for (std::int64_t base = window.end; base < rows; base += 32) {
    unsigned equal = equal_tokens(tokens, base, rows, token);
    for (; equal != 0; equal &= equal - 1) sum(base + __ffs(equal) - 1);
  }
}

template <class Number>
struct Call {
  const std::int32_t* tokens;
  const Number* dx;
  Number* d_table;
  std::int64_t rows;
  std::int64_t columns;
};

constexpr int held = 4;  // packs of a row that a lane sums at once

// Lets a warp sum the rows of one token, if the entry is the token's first.
template <int count, class Number>
__device__ void sum_token(const Call<Number>& call, Window window, const Lists& lists, int list,
                          int entry) {
  const std::int32_t token = lists.found[list][entry].token;
  if (occurs_before(call.tokens, window, lists, list, entry, token)) return;
  Number* table_row = call.d_table + token * call.columns;
  for (std::int64_t first = lane_of_thread() * count;
       first - lane_of_thread() * count < call.columns; first += held * 32 * count) {
    float sums[held][count] = {};
    const auto add_row = [&](std::int64_t position) {
      Pack<Number, count> packs[held]{};
#pragma unroll
      for (int i = 0; i < held; ++i) {
        const std::int64_t column = first + i * 32 * count;
        if (column < call.columns)
          packs[i] = load<count>(call.dx, position * call.columns + column);
      }
#pragma unroll
      for (int i = 0; i < held; ++i) {
#pragma unroll
        for (int j = 0; j < count; ++j) sums[i][j] += number_of(packs[i], j);
      }
    };
    for_each_equal(call.tokens, call.rows, window, lists, list, entry, token, add_row);
#pragma unroll
    for (int i = 0; i < held; ++i) {
      const std::int64_t column = first + i * 32 * count;
      if (column >= call.columns) continue;
      auto pack = load<count>(table_row, column);
#pragma unroll
      for (int j = 0; j < count; ++j) {
        pack.values[j] = from_float<Number>(to_float(pack.values[j]) + sums[i][j]);
      }
      store<count>(table_row, column, pack);
    }
  }
}

// Every block reads all tokens, which stay in the L2 cache, and lists its own: about one in
// `owners`. If they exceed its lists, it processes windows that always fit. The sum of a token then
// also searches the positions after the window.
template <int count, class Number>
__global__ void __launch_bounds__(embedding_gradient_block_threads, 4)
    embedding_gradient(const Call<Number> call) {
  __shared__ Lists lists;
  const int warp = warp_of_thread();
  std::int64_t length = call.rows;
  for (std::int64_t begin = 0; begin < call.rows;) {
    const Window window{begin, begin + length < call.rows ? begin + length : call.rows};
    list_tokens(call.tokens, window, lists);
    __syncthreads();
    bool fits = true;
    for (int i = 0; i < embedding_gradient_warps; ++i)
      fits = fits && lists.lengths[i] <= list_length;
    if (fits) {
      int entries = 0;  // number of entries in earlier lists; warps take entries in turns
      for (int list = 0; list < embedding_gradient_warps; ++list) {
        const int first = (warp - entries % embedding_gradient_warps + embedding_gradient_warps) %
                          embedding_gradient_warps;
        for (int entry = first; entry < lists.lengths[list]; entry += embedding_gradient_warps) {
          sum_token<count>(call, window, lists, list, entry);
        }
        entries += lists.lengths[list];
      }
      begin = window.end;
    }
    length = fits ? length : embedding_gradient_warps * list_length;
    __syncthreads();
  }
}

}  // namespace

Launch kernels::EmbeddingGradient::prepare(const Shape& shape, DType dtype, const Attributes&,
                                           const LaunchContext&) {
  const auto blocks = static_cast<unsigned>(shape.table_rows < owners ? shape.table_rows : owners);
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [shape, blocks](void* const* buffers, cudaStream_t stream) {
      constexpr int count = access_bytes / sizeof(Number);
      const Call<Number> call{static_cast<const std::int32_t*>(buffers[0]),
                              static_cast<const Number*>(buffers[1]),
                              static_cast<Number*>(buffers[2]), shape.rows, shape.columns};
      const bool packs = shape.columns % count == 0 && aligned_to_access(call.dx, call.d_table);
      auto* const kernel =
          packs ? embedding_gradient<count, Number> : embedding_gradient<1, Number>;
      kernel<<<blocks, embedding_gradient_block_threads, 0, stream>>>(call);
      check_launch("embedding_gradient");
    };
  });
}

}  // namespace stepgate
