// SPDX-License-Identifier: MIT
// Turns a payload of raw words into the model's input and labels.
//   shape     rows = samples; columns = features H; depth = words of a sample W, at least H + 1
//   operands  payload (fp32 [rows][W]), features ([rows][H]), labels (int32 [rows])
// features[b][h] is the mean of payload[b][h + k H] over all k with h + k H < W - 1; the bits of a
// sample's last word modulo H are its label. Every word of the payload is read.
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

struct Ingest {
  static constexpr std::string_view name = "ingest";
  using Attributes = NoAttributes;
};

}  // namespace kernels

std::vector<Kernel> ingest_kernels();

// Only in CUDA builds.
Launch prepare_ingest(const KernelShape&, DType, const KernelAttributes&, const LaunchContext&);

}  // namespace stepgate
