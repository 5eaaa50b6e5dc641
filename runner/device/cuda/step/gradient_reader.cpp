// SPDX-License-Identifier: MIT
#include "device/cuda/step/gradient_reader.h"

#include "base/require.h"
#include "device/cuda/check.h"
#include "device/cuda/step/sketch_on_device.h"

namespace stepgate {

GradientReader::GradientReader(const StepPlan& plan, std::int64_t step) : plan_(plan), step_(step) {
  for (const Operation& operation : plan.operations) {
    if (!operation.reads_gradients) continue;
    for (const GradientPart& part : gradient_parts(plan, *operation.reads_gradients))
      most_blocks_ += sketch_blocks(part.elements);
  }
  if (most_blocks_ == 0) return;
  sums_ =
      make_pinned_memory(most_blocks_ * sketch_numbers * static_cast<std::int64_t>(sizeof(float)));
}

void GradientReader::read(const Operation& operation, const void* operand, cudaStream_t stream) {
  for (const GradientPart& part : gradient_parts(plan_, *operation.reads_gradients)) {
    auto* const sums = static_cast<float*>(sums_.get()) + blocks_ * sketch_numbers;
    parts_.push_back({part, blocks_});
    blocks_ += sketch_blocks(part.elements);
    require(blocks_ <= most_blocks_, "an operation of a step is issued once");
    check(sketch_on_device(part, operand, plan_.dtype, sums, stream), "read the gradients");
  }
}

std::vector<GradientSketch> GradientReader::take() const {
  const auto* const sums = static_cast<const float*>(sums_.get());
  std::vector<GradientSketch> sketches(plan_.parameters.size());
  for (const auto& [part, first_block] : parts_) {
    GradientSketch& sketch = sketches.at(part.parameter);
    sketch.elements += part.elements;
    for (std::int64_t block = 0; block < sketch_blocks(part.elements); ++block) {
      const float* const own = sums + (first_block + block) * sketch_numbers;
      sketch.squares += own[0];
      for (std::size_t k = 0; k < gradient_projections; ++k) sketch.projections[k] += own[1 + k];
    }
  }
  return sketches;
}

}  // namespace stepgate
