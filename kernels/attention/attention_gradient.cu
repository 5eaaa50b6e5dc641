// SPDX-License-Identifier: MIT
// The CUDA side of attention_gradient: which kernels a launch takes. Meaning and shapes:
// attention.h.
#include "kernels/attention/attention.h"

#include <cstdint>

#include "kernels/attention/attention_launch.cuh"
#include "kernels/attention/cudnn/choose_cudnn.h"
#include "kernels/attention/plain_gradient.cuh"
#include "kernels/attention/tiled_gradient.cuh"
#include "kernels/launch.cuh"

namespace stepgate {
namespace {

template <class Number>
GradientOperands<Number> operands_of(void* const* buffers) {
  return {static_cast<const Number*>(buffers[0]), static_cast<const Number*>(buffers[2]),
          static_cast<const float*>(buffers[3]), static_cast<const float*>(buffers[4]),
          static_cast<Number*>(buffers[5])};
}

template <int count, int lanes, class Number>
void launch_row_dots(const KernelShape& shape, void* const* buffers, cudaStream_t stream) {
  const std::int64_t threads = shape.rows * shape.groups * lanes;
  row_dots<count, lanes><<<static_cast<unsigned>(ceiling_quotient(threads, 256)), 256, 0, stream>>>(
      PackedShape(shape), static_cast<const Number*>(buffers[1]),
      static_cast<const Number*>(buffers[2]), static_cast<float*>(buffers[4]));
  check_launch("attention_gradient");
}

template <class Number>
Launch plain(const KernelShape& shape) {
  const unsigned blocks = blocks_for_rows(shape);
  return [shape, blocks](void* const* buffers, cudaStream_t stream) {
    const PackedShape sizes(shape);
    const auto operands = operands_of<Number>(buffers);
    launch_row_dots<1, 32, Number>(shape, buffers, stream);
    plain_query_gradient<<<blocks, 32 * row_warps, 0, stream>>>(sizes, operands);
    check_launch("attention_gradient");
    plain_key_gradient<<<blocks, 32 * row_warps, 0, stream>>>(sizes, operands);
    check_launch("attention_gradient");
  };
}

template <class Number, int width>
Launch tiled(const KernelShape& shape, const LaunchContext& context) {
  using Queries = QueryTiles<width>;
  using Keys = KeyTiles<width>;
  auto* const query_gradient = tiled_query_gradient<Number, width>;
  auto* const key_gradient = tiled_key_gradient<Number, width>;
  require_shared_memory("attention_gradient", query_gradient, Queries::shared_bytes, context);
  require_shared_memory("attention_gradient", key_gradient, Keys::shared_bytes, context);
  const unsigned query_blocks = blocks_for_tiles(shape, Queries::owned);
  const unsigned key_blocks = blocks_for_tiles(shape, Keys::owned);
  return [=](void* const* buffers, cudaStream_t stream) {
    require_alignment("attention_gradient", buffers[0], buffers[1], buffers[2], buffers[5]);
    const PackedShape sizes(shape);
    const auto operands = operands_of<Number>(buffers);
    launch_row_dots<8, 8, Number>(shape, buffers, stream);
    query_gradient<<<query_blocks, Queries::threads, Queries::shared_bytes, stream>>>(sizes,
                                                                                      operands);
    check_launch("attention_gradient");
    key_gradient<<<key_blocks, Keys::threads, Keys::shared_bytes, stream>>>(sizes, operands);
    check_launch("attention_gradient");
  };
}

template <class Number>
Launch launch_of(const KernelShape& shape, const LaunchContext& context) {
  const std::int64_t width = shape.columns / shape.groups;
  require_width("attention_gradient", width);
  if constexpr (sizeof(Number) == 2) {
    if (width == 64) return tiled<Number, 64>(shape, context);
    if (width == 128) return tiled<Number, 128>(shape, context);
  }
  return plain<Number>(shape);
}

}  // namespace

Launch prepare_attention_gradient(const KernelShape& shape, DType dtype,
                                  const KernelAttributes& attributes,
                                  const LaunchContext& context) {
  const auto most_scratch =
      static_cast<std::int64_t>(attributes.as<kernels::AttentionGradient>().most_scratch);
  if (const auto launch = attention_gradient_by_cudnn(shape, dtype, most_scratch, context))
    return *launch;
  return with_storage(dtype, [&](auto zero) { return launch_of<decltype(zero)>(shape, context); });
}

}  // namespace stepgate
