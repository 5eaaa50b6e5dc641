// SPDX-License-Identifier: MIT
// The CUDA side of decode. Meaning and shapes: input.h.
#include "kernels/input/input.h"
#include "kernels/stream_elementwise.cuh"

namespace stepgate {
namespace {

struct Decode {
  const std::uint8_t* bytes;
  float* words;

  template <int count>
  __device__ Pack<std::uint8_t, count> read(std::int64_t first) const {
    return load<count>(bytes, first);
  }

  template <int count>
  __device__ void finish(std::int64_t first, const Pack<std::uint8_t, count>& read) const {
    Pack<float, count> pack;
#pragma unroll
    for (int i = 0; i < count; ++i) pack.values[i] = decoded(read.values[i]);
    store<count>(words, first, pack);
  }
};

}  // namespace

Launch prepare_decode(const KernelShape& shape, DType, const KernelAttributes&,
                      const LaunchContext&) {
  // A pack fills a store: four fifths of what is moved are words, and a warp's stores are
  // neighbours only where a thread has one.
  constexpr int count = access_bytes / sizeof(float);
  return [shape](void* const* buffers, cudaStream_t stream) {
    const Decode element{static_cast<const std::uint8_t*>(buffers[0]),
                         static_cast<float*>(buffers[1])};
    launch_stream<count>("decode", elements_of(shape), element,
                         aligned_to_access(element.bytes, element.words), stream);
  };
}

}  // namespace stepgate
