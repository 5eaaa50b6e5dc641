// SPDX-License-Identifier: MIT
// The host side of ingest: operands, work and the reference. Meaning and shapes: ingest.h.
#include "kernels/ingest/ingest.h"

#include <bit>

#include "kernels/cuda_build.h"
#include "kernels/extents.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

// --- operands ------------------------------------------------------------------------------------

constexpr KernelOperand ingest_operands[] = {
    {"payload", Access::read, extent::rows_by_depth, OperandFormat::single},
    {"features", Access::write, extent::elements},
    {"labels", Access::write, extent::rows, OperandFormat::label},
};

// --- work ----------------------------------------------------------------------------------------

CheckedSize ingest_flops(const CheckedShape& shape, const KernelAttributes&) {
  return shape.rows * (shape.depth - 1) + elements_of(shape);
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

std::vector<Kernel> ingest_kernels() {
  return {{kernels::Ingest::name, ingest_operands, ingest_flops, ingest_reference,
           in_cuda_builds<prepare_ingest>()}};
}

}  // namespace stepgate
