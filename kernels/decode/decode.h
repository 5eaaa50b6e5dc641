// SPDX-License-Identifier: MIT
// Turns the bytes of a batch into the words that a model reads, as ToTensor and Normalize with mean
// and deviation 0.5 do to images in a loader.
//   shape     rows = samples; columns = numbers of a sample
//   operands  bytes (uint8 [rows][columns]), words (fp32 [rows][columns])
// words[b][i] is bytes[b][i] / 127.5 - 1, hence in [-1, 1], rounded once: the same bits on host and
// device, whose labels are bits.
#pragma once

#include <cstdint>

#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

struct Decode {
  static constexpr std::string_view name = "decode";
  using Attributes = NoAttributes;
};

}  // namespace kernels

// The number that the kernel computes for a byte. v / 127.5 - 1 is n / 255 with n = 2 v - 255, and
// 1 / 255 is 2^-8 + 2^-16 + 2^-24 + ... So n times the first two terms is exact, and n times the
// next three is so small that the sum alone rounds, in whichever instructions a compiler has it.
// decode.cpp proves that of every byte.
constexpr float decoded(std::uint8_t byte) {
  const auto doubled = static_cast<float>(2 * byte - 255);
  return doubled * 0x1.01p-8f + doubled * 0x1.0101p-24f;
}

std::vector<Kernel> decode_kernels();

// Only in CUDA builds.
Launch prepare_decode(const KernelShape&, DType, const KernelAttributes&, const LaunchContext&);

}  // namespace stepgate
