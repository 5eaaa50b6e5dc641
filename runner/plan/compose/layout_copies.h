// SPDX-License-Identifier: MIT
// Copies that a model in channels_last makes where a layer calls .contiguous()
// (model.layout_copies).
#pragma once

#include <string>

#include "kernels/convolution/convolution.h"
#include "kernels/layout/layout.h"
#include "plan/compose/step_builder.h"

namespace stepgate {

// Appends two launches: one copies what a convolution of this shape writes, or its gradient, to
// NCHW, in a buffer of as many numbers, and the other copies it back to where it was.
inline void copy_layouts(StepBuilder& builder, const std::string& name,
                         const ConvolutionShape& shape, const StepBuilder::Operand& image,
                         const StepBuilder::Operand& copy) {
  const std::int64_t pixels = shape.output_height() * shape.output_width();
  builder.launch<kernels::ChangeLayout>(name + ": to NCHW", {shape.images, pixels, shape.outputs},
                                        {image, copy});
  builder.launch<kernels::ChangeLayout>(name + ": to NHWC", {shape.images, shape.outputs, pixels},
                                        {copy, image});
}

}  // namespace stepgate
