// SPDX-License-Identifier: MIT
// Element-wise kernels of large tensors: every thread loads two packs of each input before it
// writes. With one pack per thread (launch.cuh), too few loads are in flight if there is only one
// input.
#pragma once

#include "kernels/launch.cuh"

namespace stepgate {

constexpr int stream_threads = 256;
constexpr int packs_in_flight = 2;

// Calls element.read<n>(i), which returns the inputs of elements [i, i + n), and
// element.finish<n>(i, inputs), which writes their outputs. An output may be an input: a thread
// reads all its elements before it writes, and no other thread reads them. The first threads also
// process the `rest` elements after the packs, one each.
template <int count, class Element>
__global__ void __launch_bounds__(stream_threads)
    stream_elements(std::int64_t packs, std::int64_t rest, Element element) {
  using Inputs = decltype(element.template read<count>(0));
  const std::int64_t first =
      static_cast<std::int64_t>(blockIdx.x) * stream_threads * packs_in_flight + threadIdx.x;
  Inputs inputs[packs_in_flight];
#pragma unroll
  for (int i = 0; i < packs_in_flight; ++i) {
    const std::int64_t pack = first + i * stream_threads;
    if (pack < packs) inputs[i] = element.template read<count>(pack * count);
  }
#pragma unroll
  for (int i = 0; i < packs_in_flight; ++i) {
    const std::int64_t pack = first + i * stream_threads;
    if (pack < packs) element.template finish<count>(pack * count, inputs[i]);
  }
  if (first < rest) {
    const std::int64_t single = packs * count + first;
    element.template finish<1>(single, element.template read<1>(single));
  }
}

// Processes all elements: in packs of `count` where every operand is aligned, else one by one.
template <int count, class Element>
void launch_stream(std::string_view kernel, std::int64_t elements, const Element& element,
                   bool aligned, cudaStream_t stream) {
  if (elements == 0) return;
  const std::int64_t packs = aligned ? elements / count : elements;
  const std::int64_t rest = aligned ? elements % count : 0;
  const auto blocks = static_cast<unsigned>(
      ceiling_quotient(packs > rest ? packs : rest, stream_threads * packs_in_flight));
  if (aligned) {
    stream_elements<count><<<blocks, stream_threads, 0, stream>>>(packs, rest, element);
  } else {
    stream_elements<1><<<blocks, stream_threads, 0, stream>>>(packs, rest, element);
  }
  check_launch(kernel);
}

}  // namespace stepgate
