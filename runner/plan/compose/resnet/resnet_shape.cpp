// SPDX-License-Identifier: MIT
#include "plan/compose/resnet/resnet_shape.h"

#include <fmt/format.h>

#include <cmath>

#include "base/require.h"
#include "scenario/resnet_blocks.h"

namespace stepgate {
namespace {

constexpr std::int64_t expansion = 4;  // outputs of a block's last convolution by its width

ConvolutionShape after(const ConvolutionShape& before, std::int64_t outputs, std::int64_t window,
                       std::int64_t stride = 1) {
  return {.images = before.images,
          .height = before.output_height(),
          .width = before.output_width(),
          .channels = before.outputs,
          .outputs = outputs,
          .window = window,
          .stride = stride,
          .padding = window / 2};
}

// The shape whose output is what the max pool makes of the stem's result.
ConvolutionShape pooled(const ConvolutionShape& stem) {
  ConvolutionShape pool = after(stem, stem.outputs, pool_window, pool_stride);
  pool.padding = pool_padding;
  return pool;
}

}  // namespace

ResnetParameters::ResnetParameters(const Knobs& knobs)
    : pools_(knobs.model.stem == ModelStem::imagenet) {
  const ModelKnobs& model = knobs.model;
  stem_ = add_convolution("conv1", "bn1",
                          {.images = knobs.batch.size / knobs.batch.accumulate,
                           .height = model.image,
                           .width = model.image,
                           .channels = model.image_channels,
                           .outputs = model.width,
                           .window = pools_ ? 7 : 3,
                           .stride = pools_ ? 2 : 1,
                           .padding = pools_ ? 3 : 1});
  ConvolutionShape before = pools_ ? pooled(stem_.shape) : stem_.shape;
  std::int64_t width = model.width;
  std::int64_t stage = 0;
  for (const std::int64_t blocks : resnet_blocks(model.layers)) {
    ++stage;
    for (std::int64_t index = 0; index < blocks; ++index) {
      ResidualBlock block{.name = fmt::format("layer{}.{}", stage, index)};
      const auto add = [&](int place, const ConvolutionShape& shape) {
        return add_convolution(fmt::format("{}.conv{}", block.name, place),
                               fmt::format("{}.bn{}", block.name, place), shape);
      };
      const std::int64_t stride = stage > 1 && index == 0 ? 2 : 1;
      block.first = add(1, after(before, width, 1));
      block.second = add(2, after(block.first.shape, width, 3, stride));
      block.third = add(3, after(block.second.shape, expansion * width, 1));
      if (index == 0)
        block.down = add_convolution(block.name + ".downsample.0", block.name + ".downsample.1",
                                     after(before, expansion * width, 1, stride));
      before = block.third.shape;
      blocks_.push_back(std::move(block));
    }
    width *= 2;
  }
  require(!blocks_.empty(), "a resnet has blocks");
  features_ = before.outputs;
  align();
  const double scale = 1 / std::sqrt(static_cast<double>(features_));  // torch.nn.Linear's
  head_ = add("fc.weight", model.classes * features_, scale);
  align();
  add("fc.bias", model.classes, scale);
}

// He et al.: Delving deep into rectifiers, 2015, equation 14, for a uniform distribution.
NormedConvolution ResnetParameters::add_convolution(const std::string& name,
                                                    const std::string& norm,
                                                    const ConvolutionShape& shape) {
  NormedConvolution made{.name = name, .shape = shape, .running = running_elements_};
  running_elements_ += 2 * shape.outputs;
  align();
  made.weight =
      add(name + ".weight", shape.outputs * shape.depth(),
          std::sqrt(6.0 / static_cast<double>(shape.window * shape.window * shape.outputs)));
  align();
  made.norm = add(norm + ".weight", shape.outputs, 0, 1);
  align();
  add(norm + ".bias", shape.outputs, 0);
  return made;
}

std::vector<const NormedConvolution*> ResnetParameters::convolutions() const {
  std::vector<const NormedConvolution*> all{&stem_};
  for (const ResidualBlock& block : blocks_) {
    all.insert(all.end(), {&block.first, &block.second, &block.third});
    if (block.down) all.push_back(&*block.down);
  }
  return all;
}

}  // namespace stepgate
