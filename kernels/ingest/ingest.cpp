// SPDX-License-Identifier: MIT
// The host side of ingest: operands, work and the reference. Meaning and shapes: ingest.h.
#include "kernels/ingest/ingest.h"

#include <bit>

#include "kernels/cuda_build.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

// --- shape and scalars ---------------------------------------------------------------------------

constexpr KernelOperand ingest_operands[] = {
    {"payload", Access::read},
    {"features", Access::write},
    {"labels", Access::write},
};

// --- work ----------------------------------------------------------------------------------------

KernelWork ingest_work(const KernelShape& shape, DType dtype, const KernelScalars&) {
  const std::int64_t words = shape.rows * shape.depth;
  const std::int64_t features = shape.rows * shape.columns;
  return {.bytes_read = words * 4,
          .bytes_written = features * bytes_of(dtype) + shape.rows * 4,
          .flops = shape.rows * (shape.depth - 1) + features};
}

// --- reference -----------------------------------------------------------------------------------

void ingest_reference(const KernelCall& call) {
  const auto [samples, features, words, unused] = call.shape;
  const auto* payload = static_cast<const float*>(call.buffers[0]);
  auto* labels = static_cast<std::int32_t*>(call.buffers[2]);
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    const float* row = payload + sample * words;
    for (std::int64_t feature = 0; feature < features; ++feature) {
      double sum = 0;
      std::int64_t count = 0;
      for (std::int64_t word = feature; word < words - 1; word += features, ++count) {
        sum += row[word];
      }
      set_number(call.buffers[1], call.dtype, sample * features + feature,
                 sum / static_cast<double>(count));
    }
    const auto bits = std::bit_cast<std::uint32_t>(row[words - 1]);
    labels[sample] = static_cast<std::int32_t>(bits % static_cast<std::uint64_t>(features));
  }
}

}  // namespace

// --- the row -------------------------------------------------------------------------------------

Kernel ingest_kernel() {
  return {"ingest", ingest_operands, ingest_work, ingest_reference,
          in_cuda_builds<prepare_ingest>()};
}

}  // namespace stepgate
