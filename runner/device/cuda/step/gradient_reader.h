// SPDX-License-Identifier: MIT
// Reads the gradients of one step on the device, just before the update reads them.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "device/cuda/handles.h"
#include "device/gradients.h"
#include "plan/step_plan.h"

namespace stepgate {

class GradientReader {
 public:
  // Allocates pinned host memory, at most 68 KB for each part of a parameter that an operation
  // reads, and no device memory: a plan that fits on a device still fits with reading. Throws
  // DeviceError. The plan must outlive this object.
  GradientReader(const StepPlan&, std::int64_t step);

  std::int64_t step() const { return step_; }
  // Enqueues the sums over the gradients that an operation reads from this operand.
  void read(const Operation&, const void* operand, cudaStream_t);
  // Returns the sketches in the order of the plan's parameters. All streams must be done.
  std::vector<GradientSketch> take() const;

 private:
  struct Part {
    GradientPart part;
    std::int64_t first_block = 0;
  };

  const StepPlan& plan_;
  std::int64_t step_;
  std::int64_t blocks_ = 0;  // enqueued
  std::int64_t most_blocks_ = 0;
  PinnedMemory sums_;
  std::vector<Part> parts_;  // enqueued
};

}  // namespace stepgate
