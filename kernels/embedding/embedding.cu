// SPDX-License-Identifier: MIT
// The CUDA side of embedding and token_embedding. Meaning and shapes: embedding.h.
#include "kernels/embedding/embedding.h"
#include "kernels/launch.cuh"

namespace stepgate {
namespace {

constexpr int block_threads = 256;
constexpr int warps = block_threads / 32;

template <class Number>
struct Embedding {
  const std::int32_t* tokens;
  const Number* table;
  const Number* positions;  // null: none are added
  Number* x;
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t period;
};

// A warp takes a row, so that the token is read once and no thread divides by the columns. Operands
// do not overlap, which lets the loads of several packs fly together.
template <int count, bool with_positions, class Number>
__global__ void __launch_bounds__(block_threads) embedding(const Embedding<Number> call) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * warps + threadIdx.x / 32;
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
Launch embedding_launch(const char* kernel, const KernelShape& shape, DType dtype) {
  const auto blocks = static_cast<unsigned>(ceiling_quotient(shape.rows, warps));
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [=](void* const* buffers, cudaStream_t stream) {
      constexpr int count = access_bytes / sizeof(Number);
      const Embedding<Number> call{
          static_cast<const std::int32_t*>(buffers[0]),
          static_cast<const Number*>(buffers[1]),
          with_positions ? static_cast<const Number*>(buffers[2]) : nullptr,
          static_cast<Number*>(buffers[with_positions ? 3 : 2]),
          shape.rows,
          shape.columns,
          shape.groups};
      const bool packs =
          shape.columns % count == 0 && aligned_to_access(call.table, call.positions, call.x);
      auto* const embedding_kernel =
          packs ? embedding<count, with_positions, Number> : embedding<1, with_positions, Number>;
      embedding_kernel<<<blocks, block_threads, 0, stream>>>(call);
      check_launch(kernel);
    };
  });
}

}  // namespace

Launch prepare_embedding(const KernelShape& shape, DType dtype, const KernelAttributes&,
                         const LaunchContext&) {
  return embedding_launch<true>("embedding", shape, dtype);
}

Launch prepare_token_embedding(const KernelShape& shape, DType dtype, const KernelAttributes&,
                               const LaunchContext&) {
  return embedding_launch<false>("token_embedding", shape, dtype);
}

}  // namespace stepgate
