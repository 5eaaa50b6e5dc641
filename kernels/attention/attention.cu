// SPDX-License-Identifier: MIT
// The CUDA side of attention: which kernel a launch takes. Meaning and shapes: attention.h.
#include "kernels/attention/attention.h"

#include "kernels/attention/attention_launch.cuh"
#include "kernels/attention/cudnn/choose_cudnn.h"
#include "kernels/attention/plain_attention.cuh"
#include "kernels/attention/tiled_attention.cuh"
#include "kernels/launch.cuh"

namespace stepgate {
namespace {

struct Operands {
  explicit Operands(void* const* buffers)
      : qkv(buffers[0]), out(buffers[1]), log_sums(static_cast<float*>(buffers[2])) {}

  const void* qkv;
  void* out;
  float* log_sums;
};

template <class Number>
Launch plain(const KernelShape& shape) {
  const unsigned blocks = blocks_for_rows(shape);
  return [sizes = PackedShape(shape), blocks](void* const* buffers, cudaStream_t stream) {
    const Operands operands(buffers);
    plain_attention<<<blocks, 32 * row_warps, 0, stream>>>(
        sizes, static_cast<const Number*>(operands.qkv), static_cast<Number*>(operands.out),
        operands.log_sums);
    check_launch("attention");
  };
}

template <class Number, int width>
Launch tiled(const KernelShape& shape, const LaunchContext& context) {
  using Tiles = AttentionTiles<width>;
  require_shared_memory("attention", tiled_attention<Number, width>, Tiles::shared_bytes, context);
  const unsigned blocks = blocks_for_tiles(shape, Tiles::queries);
  return [sizes = PackedShape(shape), blocks](void* const* buffers, cudaStream_t stream) {
    const Operands operands(buffers);
    require_alignment("attention", operands.qkv, operands.out);
    tiled_attention<Number, width><<<blocks, Tiles::threads, Tiles::shared_bytes, stream>>>(
        sizes, static_cast<const Number*>(operands.qkv), static_cast<Number*>(operands.out),
        operands.log_sums);
    check_launch("attention");
  };
}

template <class Number>
Launch launch_of(const KernelShape& shape, const LaunchContext& context) {
  const std::int64_t width = shape.columns / shape.groups;
  require_width("attention", width);
  if constexpr (sizeof(Number) == 2) {
    if (width == 64) return tiled<Number, 64>(shape, context);
    if (width == 128) return tiled<Number, 128>(shape, context);
  }
  return plain<Number>(shape);
}

}  // namespace

Launch prepare_attention(const KernelShape& shape, DType dtype, const KernelAttributes&,
                         const LaunchContext& context) {
  if (const auto launch = attention_by_cudnn(shape, dtype, context)) return *launch;
  return with_storage(dtype, [&](auto zero) { return launch_of<decltype(zero)>(shape, context); });
}

}  // namespace stepgate
