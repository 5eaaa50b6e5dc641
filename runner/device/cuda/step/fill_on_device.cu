// SPDX-License-Identifier: MIT
// This file is compiled without fused multiply-adds (device/CMakeLists.txt); drawn_number says why.
#include "device/cuda/step/fill_on_device.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "device/contents.h"
#include "kernels/number_format.h"
#include "kernels/probes/probes.h"

namespace stepgate {
namespace {

constexpr unsigned threads = 256;
constexpr std::int64_t most_blocks = 2048;  // of a stretch: more than run at once

// Stretches for one launch, as a kernel argument of at most 4 KiB. A transformer's parameters are
// hundreds of stretches, most of them tiny, so a launch takes many.
struct Stretches {
  static constexpr std::size_t most = 64;
  DrawnStretch all[most];
};
static_assert(sizeof(Stretches) <= 4000);

template <class Stored>
__device__ void store(Stored* to, DType dtype, std::int64_t place, double number) {
  if constexpr (sizeof(Stored) == 2) {
    to[place] = rounded_to_16_bits(dtype, number);
  } else {
    to[place] = static_cast<float>(number);
  }
}

// Blocks along x share a stretch; blockIdx.y is the index of the stretch.
template <class Stored>
__global__ void __launch_bounds__(threads)
    draw(Stored* to, DType dtype, std::uint64_t seed, const __grid_constant__ Stretches stretches) {
  const DrawnStretch& stretch = stretches.all[blockIdx.y];
  const std::int64_t together = static_cast<std::int64_t>(gridDim.x) * threads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
       i < stretch.elements; i += together) {
    const std::int64_t place = stretch.first + i;
    store(to, dtype, place, drawn_number(seed, stretch, place));
  }
}

std::int64_t most_elements(std::span<const DrawnStretch> stretches) {
  std::int64_t most = 0;
  for (const DrawnStretch& stretch : stretches) most = std::max(most, stretch.elements);
  return most;
}

cudaError_t draw_on_device(const DrawnContent& content, std::span<const DrawnStretch> stretches,
                           void* to, cudaStream_t stream) {
  const std::int64_t most = most_elements(stretches);
  if (most == 0) return cudaSuccess;
  Stretches argument{};
  std::copy(stretches.begin(), stretches.end(), argument.all);
  const std::int64_t blocks = std::min((most + threads - 1) / threads, most_blocks);
  const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(stretches.size()));
  if (is_16_bit(content.dtype)) {
    draw<<<grid, threads, 0, stream>>>(static_cast<std::uint16_t*>(to), content.dtype, content.seed,
                                       argument);
  } else {
    draw<<<grid, threads, 0, stream>>>(static_cast<float*>(to), content.dtype, content.seed,
                                       argument);
  }
  return cudaGetLastError();
}

__global__ void __launch_bounds__(threads)
    make_chain(std::uint32_t* chain, std::int64_t lines, std::uint64_t seed) {
  const std::int64_t together = static_cast<std::int64_t>(gridDim.x) * threads;
  for (std::int64_t line = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
       line < lines; line += together) {
    chain[line * chase_line_words] = next_line(static_cast<std::uint64_t>(line), lines, seed);
  }
}

cudaError_t chain_on_device(const DrawnContent& content, void* to, cudaStream_t stream) {
  const std::int64_t lines = content.chained_lines;
  const auto blocks = static_cast<unsigned>(std::min((lines + threads - 1) / threads, most_blocks));
  make_chain<<<blocks, threads, 0, stream>>>(static_cast<std::uint32_t*>(to), lines, content.seed);
  return cudaGetLastError();
}

std::int64_t drawn_bytes(const DrawnContent& content) {
  std::int64_t elements = 0;
  for (const DrawnStretch& stretch : content.stretches) elements += stretch.elements;
  return elements * bytes_of(content.dtype);
}

}  // namespace

cudaError_t fill_on_device(const Buffer& buffer, std::int64_t slot, std::uint64_t seed, void* to,
                           cudaStream_t stream) {
  const DrawnContent content = drawn_content(buffer, slot, seed);
  if (drawn_bytes(content) < buffer.bytes) {
    const auto bytes = static_cast<std::size_t>(buffer.bytes);
    if (const cudaError_t status = cudaMemsetAsync(to, 0, bytes, stream); status != cudaSuccess)
      return status;
  }
  if (content.chained_lines > 0) return chain_on_device(content, to, stream);
  std::span<const DrawnStretch> left = content.stretches;
  while (!left.empty()) {
    const std::size_t count = std::min(left.size(), Stretches::most);
    if (const cudaError_t status = draw_on_device(content, left.first(count), to, stream);
        status != cudaSuccess)
      return status;
    left = left.subspan(count);
  }
  return cudaSuccess;
}

bool has_code_for_this_device() {
  cudaFuncAttributes attributes{};
  const cudaError_t status = cudaFuncGetAttributes(&attributes, draw<float>);
  (void)cudaGetLastError();
  return status != cudaErrorNoKernelImageForDevice && status != cudaErrorInvalidDeviceFunction;
}

}  // namespace stepgate
