// SPDX-License-Identifier: MIT
// Operands, work and host references of upsampling; upsample.h has their meaning and shapes.
#include "kernels/upsample/upsample.h"

#include "kernels/extents.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

constexpr auto small = [](const auto& s) { return s.images * s.height * s.width * s.columns; };
constexpr auto large = [](const auto& s) { return 4 * s.images * s.height * s.width * s.columns; };

// Index in the small image of the pixel that element i of the large one copies.
std::int64_t source_of(const kernels::Upsample::Shape& shape, std::int64_t i) {
  const std::int64_t column = i % shape.columns, pixel = i / shape.columns;
  const std::int64_t across = pixel % (2 * shape.width) / 2;
  // The rows of all images follow one another, and each image has an even number of them.
  const std::int64_t down = pixel / (2 * shape.width) / 2;
  return (down * shape.width + across) * shape.columns + column;
}

constexpr auto upsample_operands = operands_of<kernels::Upsample>({
    {"x", Access::read, small},
    {"y", Access::write, large},
});

void upsample_reference(const CallOf<kernels::Upsample>& call) {
  for (std::int64_t i = 0; i < large(call.shape); ++i)
    set_number(call.buffers[1], call.dtype, i,
               number_at(call.buffers[0], call.dtype, source_of(call.shape, i)));
}

constexpr auto upsample_gradient_operands = operands_of<kernels::UpsampleGradient>({
    {"d_y", Access::read, large},
    {"d_x", Access::write, small},
});

void upsample_gradient_reference(const CallOf<kernels::UpsampleGradient>& call) {
  std::vector<double> sums(static_cast<std::size_t>(small(call.shape)));
  for (std::int64_t i = 0; i < large(call.shape); ++i)
    sums[static_cast<std::size_t>(source_of(call.shape, i))] +=
        number_at(call.buffers[0], call.dtype, i);
  for (std::size_t i = 0; i < sums.size(); ++i)
    set_number(call.buffers[1], call.dtype, static_cast<std::int64_t>(i), sums[i]);
}

}  // namespace

// An H200 wrote the larger image at this share of its speed in a UNet's step.
std::vector<Kernel> upsample_kernels() {
  using namespace kernels;
  return {
      row<Upsample, upsample_reference>(upsample_operands, no_flops, {}, {.share_of_rate = 0.4}),
      row<UpsampleGradient, upsample_gradient_reference>(
          upsample_gradient_operands, [](const auto& s) { return 3 * small(s); })};
}

}  // namespace stepgate
