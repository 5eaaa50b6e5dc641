// SPDX-License-Identifier: MIT
// CUDA kernels and launchers of attention; attention.h has their meaning and shapes.
#include "kernels/attention/attention.h"

#include <cstdint>

#include "kernels/attention/cudnn/choose_cudnn.h"
#include "kernels/attention/plain_attention.cuh"
#include "kernels/attention/plain_gradient.cuh"
#include "kernels/attention/rows_of_warps.cuh"
#include "kernels/attention/tiled_attention.cuh"
#include "kernels/attention/tiled_gradient.cuh"
#include "kernels/launch.cuh"

namespace stepgate {

// Grids, limits and attributes that the launchers of attention and of its gradient share.

// One warp processes a row of one of the `heads` heads.
inline unsigned blocks_for_rows(const AttentionShape& shape, std::int64_t heads) {
  return static_cast<unsigned>(ceiling_quotient(shape.rows * heads, row_warps));
}

// One block processes a tile of one of the `heads` heads of a sequence.
inline unsigned blocks_for_tiles(const AttentionShape& shape, std::int64_t heads, int tile_rows) {
  const std::int64_t tiles = ceiling_quotient(shape.tokens, tile_rows);
  return static_cast<unsigned>(shape.rows / shape.tokens * heads * tiles);
}

inline void require_width(const char* kernel, std::int64_t width) {
  if (width <= widest_head) return;
  throw std::runtime_error(std::string(kernel) + ": a head has " + std::to_string(width) +
                           " numbers, more than " + std::to_string(widest_head));
}

template <class... Pointer>
void require_alignment(const char* kernel, const Pointer*... operands) {
  if (aligned_to_access(operands...)) return;
  throw std::runtime_error(std::string(kernel) + ": an operand is not aligned to 16 bytes");
}

// Dynamic shared memory beyond 48 KiB must be requested for each kernel.
template <class Function>
void require_shared_memory(const char* kernel, Function* function, int bytes,
                           const LaunchContext& context) {
  if (take_shared_memory(kernel, function, bytes, Carveout::as_it_is, context)) return;
  throw std::runtime_error(std::string(kernel) + ": needs " + std::to_string(bytes) +
                           " bytes of shared memory a block, of which this GPU has " +
                           std::to_string(most_dynamic_shared_bytes(function, context)));
}

// Parts that kernels over the rows of causal matrices share: one block per row, its sums, and its
// size.

constexpr int largest_row_block = 512;

struct Sum {
  static constexpr float nothing = 0.0f;
  __device__ float operator()(float a, float b) const { return a + b; }
};

struct Largest {
  static constexpr float nothing = -3.402823466e38f;
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

// Combines the values of all threads of a block in a fixed tree; every thread gets the result. The
// block has whole warps, and `space` has a float for each warp.
template <class Combine>
__device__ float over_block(float own, Combine combine, float* space) {
  for (int distance = 16; distance > 0; distance /= 2) {
    own = combine(own, __shfl_xor_sync(0xffffffffu, own, distance));
  }
  if (threadIdx.x % 32 == 0) space[threadIdx.x / 32] = own;
  __syncthreads();
  float all = Combine::nothing;
  for (int warp = 0; warp < blockDim.x / 32; ++warp) all = combine(all, space[warp]);
  return all;
}

// The block size for a row. A thread gets at least two packs where possible, since barriers cost
// more with every warp.
inline unsigned row_block(std::int64_t packs) {
  unsigned threads = 32;
  while (threads < largest_row_block && 2 * threads < packs) threads *= 2;
  return threads;
}

namespace {

struct Operands {
  explicit Operands(void* const* buffers)
      : qkv(buffers[0]), out(buffers[1]), log_sums(static_cast<float*>(buffers[2])) {}

  const void* qkv;
  void* out;
  float* log_sums;
};

template <class Number>
Launch plain(const AttentionShape& shape, bool causal) {
  const unsigned blocks = blocks_for_rows(shape, shape.heads);
  return [sizes = PackedShape(shape, causal), blocks](void* const* buffers, cudaStream_t stream) {
    const Operands operands(buffers);
    plain_attention<<<blocks, 32 * row_warps, 0, stream>>>(
        sizes, static_cast<const Number*>(operands.qkv), static_cast<Number*>(operands.out),
        operands.log_sums);
    check_launch("attention");
  };
}

template <class Number, int width>
Launch tiled(const AttentionShape& shape, bool causal, const LaunchContext& context) {
  using Tiles = AttentionTiles<width>;
  require_shared_memory("attention", tiled_attention<Number, width>, Tiles::shared_bytes, context);
  const unsigned blocks = blocks_for_tiles(shape, shape.heads, Tiles::queries);
  return [sizes = PackedShape(shape, causal), blocks](void* const* buffers, cudaStream_t stream) {
    const Operands operands(buffers);
    require_alignment("attention", operands.qkv, operands.out);
    tiled_attention<Number, width><<<blocks, Tiles::threads, Tiles::shared_bytes, stream>>>(
        sizes, static_cast<const Number*>(operands.qkv), static_cast<Number*>(operands.out),
        operands.log_sums);
    check_launch("attention");
  };
}

template <class Number>
Launch launch_of(const AttentionShape& shape, bool causal, const LaunchContext& context) {
  const std::int64_t width = shape.columns / shape.heads;
  require_width("attention", width);
  if constexpr (sizeof(Number) == 2) {
    if (width == 64) return tiled<Number, 64>(shape, causal, context);
    if (width == 128) return tiled<Number, 128>(shape, causal, context);
  }
  return plain<Number>(shape, causal);
}

}  // namespace

Launch kernels::Attention::prepare(const Shape& shape, DType dtype, const Attributes& attributes,
                                   const LaunchContext& context) {
  const bool causal = attributes.causal;
  if (const auto launch = attention_by_cudnn(shape, dtype, context, causal)) return *launch;
  return with_storage(dtype,
                      [&](auto zero) { return launch_of<decltype(zero)>(shape, causal, context); });
}

namespace {

template <class Number>
GradientOperands<Number> operands_of(void* const* buffers) {
  return {static_cast<const Number*>(buffers[0]), static_cast<const Number*>(buffers[2]),
          static_cast<const float*>(buffers[3]), static_cast<const float*>(buffers[4]),
          static_cast<Number*>(buffers[5])};
}

template <int count, int lanes, class Number>
void launch_row_dots(const PackedShape& sizes, void* const* buffers, cudaStream_t stream) {
  const std::int64_t threads = sizes.sequences * sizes.tokens * sizes.heads * lanes;
  row_dots<count, lanes><<<static_cast<unsigned>(ceiling_quotient(threads, 256)), 256, 0, stream>>>(
      sizes, static_cast<const Number*>(buffers[1]), static_cast<const Number*>(buffers[2]),
      static_cast<float*>(buffers[4]));
  check_launch("attention_gradient");
}

template <class Number>
Launch plain_gradient(const AttentionShape& shape, bool causal) {
  const unsigned query_blocks = blocks_for_rows(shape, shape.heads);
  const unsigned key_blocks = blocks_for_rows(shape, shape.kv_heads);
  return [=](void* const* buffers, cudaStream_t stream) {
    const PackedShape sizes(shape, causal);
    const auto operands = operands_of<Number>(buffers);
    launch_row_dots<1, 32, Number>(sizes, buffers, stream);
    plain_query_gradient<<<query_blocks, 32 * row_warps, 0, stream>>>(sizes, operands);
    check_launch("attention_gradient");
    plain_key_gradient<<<key_blocks, 32 * row_warps, 0, stream>>>(sizes, operands);
    check_launch("attention_gradient");
  };
}

template <class Number, int width>
Launch tiled_gradient(const AttentionShape& shape, bool causal, const LaunchContext& context) {
  using Queries = QueryTiles<width>;
  using Keys = KeyTiles<width>;
  auto* const query_gradient = tiled_query_gradient<Number, width>;
  auto* const key_gradient = tiled_key_gradient<Number, width>;
  require_shared_memory("attention_gradient", query_gradient, Queries::shared_bytes, context);
  require_shared_memory("attention_gradient", key_gradient, Keys::shared_bytes, context);
  const unsigned query_blocks = blocks_for_tiles(shape, shape.heads, Queries::owned);
  const unsigned key_blocks = blocks_for_tiles(shape, shape.kv_heads, Keys::owned);
  return [=](void* const* buffers, cudaStream_t stream) {
    require_alignment("attention_gradient", buffers[0], buffers[1], buffers[2], buffers[5]);
    const PackedShape sizes(shape, causal);
    const auto operands = operands_of<Number>(buffers);
    launch_row_dots<8, 8, Number>(sizes, buffers, stream);
    query_gradient<<<query_blocks, Queries::threads, Queries::shared_bytes, stream>>>(sizes,
                                                                                      operands);
    check_launch("attention_gradient");
    key_gradient<<<key_blocks, Keys::threads, Keys::shared_bytes, stream>>>(sizes, operands);
    check_launch("attention_gradient");
  };
}

template <class Number>
Launch gradient_launch_of(const AttentionShape& shape, bool causal, const LaunchContext& context) {
  const std::int64_t width = shape.columns / shape.heads;
  require_width("attention_gradient", width);
  if constexpr (sizeof(Number) == 2) {
    if (width == 64) return tiled_gradient<Number, 64>(shape, causal, context);
    if (width == 128) return tiled_gradient<Number, 128>(shape, causal, context);
  }
  return plain_gradient<Number>(shape, causal);
}

}  // namespace

Launch kernels::AttentionGradient::prepare(const Shape& shape, DType dtype,
                                           const Attributes& attributes,
                                           const LaunchContext& context) {
  const auto most_scratch = static_cast<std::int64_t>(attributes.most_scratch);
  const bool causal = attributes.causal;
  if (const auto launch = attention_gradient_by_cudnn(shape, dtype, most_scratch,
                                                      attributes.order(), context, causal))
    return *launch;
  return with_storage(
      dtype, [&](auto zero) { return gradient_launch_of<decltype(zero)>(shape, causal, context); });
}

namespace {

// One block processes a row, which later passes find in cache. Probabilities may overwrite the
// scores, since a thread writes only what it alone has read.
template <bool causal, int count, class Number>
__global__ void __launch_bounds__(largest_row_block)
    softmax(const Number* scores, Number* probabilities, int columns, float scale) {
  __shared__ float of_warp[2][largest_row_block / 32];
  const std::int64_t row = blockIdx.x;
  const int last = causal ? static_cast<int>(row % columns) : columns - 1;
  const Number* row_scores = scores + row * columns;
  Number* row_probabilities = probabilities + row * columns;
  const int start = threadIdx.x * count, step = blockDim.x * count;

  float largest = Largest::nothing;
  for (int c = start; c <= last; c += step) {
    const auto pack = load<count>(row_scores, c);
#pragma unroll
    for (int i = 0; i < count; ++i) {
      if (c + i <= last) largest = fmaxf(largest, scale * to_float(pack.values[i]));
    }
  }
  largest = over_block(largest, Largest{}, of_warp[0]);

  float sum = 0.0f;
  for (int c = start; c <= last; c += step) {
    const auto pack = load<count>(row_scores, c);
#pragma unroll
    for (int i = 0; i < count; ++i) {
      if (c + i <= last) sum += expf(scale * to_float(pack.values[i]) - largest);
    }
  }
  const float factor = 1.0f / over_block(sum, Sum{}, of_warp[1]);

  for (int c = start; c < columns; c += step) {
    Pack<Number, count> pack = {};
    if (c <= last) pack = load<count>(row_scores, c);
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const float weight =
          c + i <= last ? expf(scale * to_float(pack.values[i]) - largest) * factor : 0.0f;
      pack.values[i] = from_float<Number>(weight);
    }
    store(row_probabilities, c, pack);
  }
}

template <bool causal>
Launch prepare_softmax(std::string_view name, const MatrixShape& shape, DType dtype,
                       const kernels::Softmax::Attributes& attributes) {
  const auto scale = static_cast<float>(attributes.scale);
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [=](void* const* buffers, cudaStream_t stream) {
      constexpr int count = access_bytes / sizeof(Number);
      const auto* scores = static_cast<const Number*>(buffers[0]);
      auto* probabilities = static_cast<Number*>(buffers[1]);
      const bool packs = shape.columns % count == 0 && aligned_to_access(scores, probabilities);
      auto* const kernel = packs ? softmax<causal, count, Number> : softmax<causal, 1, Number>;
      const unsigned threads = row_block(packs ? shape.columns / count : shape.columns);
      kernel<<<static_cast<unsigned>(shape.rows), threads, 0, stream>>>(
          scores, probabilities, static_cast<int>(shape.columns), scale);
      check_launch(name);
    };
  });
}

}  // namespace

Launch kernels::CausalSoftmax::prepare(const Shape& shape, DType dtype,
                                       const Attributes& attributes, const LaunchContext&) {
  return prepare_softmax<true>(name, shape, dtype, attributes);
}

Launch kernels::Softmax::prepare(const Shape& shape, DType dtype, const Attributes& attributes,
                                 const LaunchContext&) {
  return prepare_softmax<false>(name, shape, dtype, attributes);
}

namespace {

// One block processes a row, which the second pass finds in cache. d_scores may be d_probabilities,
// since a thread writes only what it alone has read.
template <bool causal, int count, class Number>
__global__ void __launch_bounds__(largest_row_block)
    softmax_gradient(const Number* probabilities, const Number* d_probabilities, Number* d_scores,
                     int columns, float scale) {
  __shared__ float of_warp[largest_row_block / 32];
  const std::int64_t row = blockIdx.x;
  const std::int64_t first = row * columns;
  const int last = causal ? static_cast<int>(row % columns) : columns - 1;
  const int start = threadIdx.x * count, step = blockDim.x * count;

  float own = 0.0f;
  for (int c = start; c <= last; c += step) {
    const auto p = load<count>(probabilities, first + c);
    const auto dp = load<count>(d_probabilities, first + c);
#pragma unroll
    for (int i = 0; i < count; ++i) {
      if (c + i <= last) own += to_float(p.values[i]) * to_float(dp.values[i]);
    }
  }
  const float dot = over_block(own, Sum{}, of_warp);

  for (int c = start; c < columns; c += step) {
    Pack<Number, count> p = {}, dp = {};
    if (c <= last) {
      p = load<count>(probabilities, first + c);
      dp = load<count>(d_probabilities, first + c);
    }
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const float slope = scale * to_float(p.values[i]) * (to_float(dp.values[i]) - dot);
      dp.values[i] = from_float<Number>(c + i <= last ? slope : 0.0f);
    }
    store(d_scores, first + c, dp);
  }
}

template <bool causal>
Launch prepare_softmax_gradient(std::string_view name, const MatrixShape& shape, DType dtype,
                                const kernels::Softmax::Attributes& attributes) {
  const auto scale = static_cast<float>(attributes.scale);
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [=](void* const* buffers, cudaStream_t stream) {
      constexpr int count = access_bytes / sizeof(Number);
      const auto* p = static_cast<const Number*>(buffers[0]);
      const auto* dp = static_cast<const Number*>(buffers[1]);
      auto* d_scores = static_cast<Number*>(buffers[2]);
      const bool packs = shape.columns % count == 0 && aligned_to_access(p, dp, d_scores);
      auto* const kernel =
          packs ? softmax_gradient<causal, count, Number> : softmax_gradient<causal, 1, Number>;
      const unsigned threads = row_block(packs ? shape.columns / count : shape.columns);
      kernel<<<static_cast<unsigned>(shape.rows), threads, 0, stream>>>(
          p, dp, d_scores, static_cast<int>(shape.columns), scale);
      check_launch(name);
    };
  });
}

}  // namespace

Launch kernels::CausalSoftmaxGradient::prepare(const Shape& shape, DType dtype,
                                               const Attributes& attributes, const LaunchContext&) {
  return prepare_softmax_gradient<true>(name, shape, dtype, attributes);
}

Launch kernels::SoftmaxGradient::prepare(const Shape& shape, DType dtype,
                                         const Attributes& attributes, const LaunchContext&) {
  return prepare_softmax_gradient<false>(name, shape, dtype, attributes);
}

}  // namespace stepgate
