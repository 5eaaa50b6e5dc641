// SPDX-License-Identifier: MIT
#include "plan/compose/unet/unet_shape.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <utility>

#include "base/require.h"
#include "scenario/unet_levels.h"

namespace stepgate {
namespace {

constexpr std::int64_t head_width = 64;

// At most 32 groups, each of at least 4 channels.
std::int64_t groups_of(std::int64_t channels) {
  constexpr std::int64_t most = 32, least_channels = 4;
  for (std::int64_t groups = most; groups > 1; --groups)
    if (channels % groups == 0 && channels / groups >= least_channels) return groups;
  return 1;
}

// Heads of 64 channels, or one head.
std::int64_t heads_of(std::int64_t channels) {
  return channels % head_width == 0 ? channels / head_width : 1;
}

}  // namespace

// The initial numbers are those of torch.nn.Conv2d, Linear and GroupNorm.
UnetParameters::UnetParameters(const Knobs& knobs)
    : samples_(knobs.batch.size), time_width_(4 * knobs.model.width) {
  const std::int64_t width = knobs.model.width, blocks = knobs.model.layers;
  const auto levels = static_cast<int>(unet_levels.size());
  const auto channels = [&](int level) {
    return width * unet_levels[static_cast<std::size_t>(level)];
  };
  time1_ = add_linear("time_embedding.linear_1", time_width_, width);
  time2_ = add_linear("time_embedding.linear_2", time_width_, time_width_);
  image_ = {knobs.model.image, knobs.model.image_channels};
  conv_in_ = add_convolution("conv_in", image_, width);
  image_.channels = width;
  keep_for_later();
  for (int level = 0; level < levels; ++level) {
    const std::string name = fmt::format("down_blocks.{}", level);
    for (std::int64_t block = 0; block < blocks; ++block) {
      add_residual(fmt::format("{}.resnets.{}", name, block), channels(level));
      if (level == unet_attention_level)
        add_attention(fmt::format("{}.attentions.{}", name, block));
      keep_for_later();
    }
    if (level + 1 == levels) continue;
    const std::string sampler = name + ".downsamplers.0";
    add_layer(sampler,
              UnetDownsample{add_convolution(sampler + ".conv", image_, channels(level), 2)});
    keep_for_later();
  }
  add_residual("mid_block.resnets.0", image_.channels);
  add_attention("mid_block.attentions.0");
  add_residual("mid_block.resnets.1", image_.channels);
  std::size_t left = skips_.size();
  for (int level = levels - 1; level >= 0; --level) {
    const std::string name = fmt::format("up_blocks.{}", levels - 1 - level);
    for (std::int64_t block = 0; block <= blocks; ++block) {
      add_residual(fmt::format("{}.resnets.{}", name, block), channels(level), --left);
      if (level == unet_attention_level)
        add_attention(fmt::format("{}.attentions.{}", name, block));
    }
    if (level == 0) continue;
    const std::string sampler = name + ".upsamplers.0";
    add_layer(sampler,
              UnetUpsample{add_convolution(sampler + ".conv", {2 * image_.side, image_.channels},
                                           channels(level))});
  }
  require(left == 0, "every skip is read");
  norm_out_ = add_norm("conv_norm_out", image_);
  conv_out_ = add_convolution("conv_out", image_, knobs.model.image_channels);
}

std::vector<const UnetNorm*> UnetParameters::norms() const {
  std::vector<const UnetNorm*> all;
  for (const UnetLayer& layer : layers_) {
    if (const auto* residual = std::get_if<UnetResidual>(&layer.what))
      all.insert(all.end(), {&residual->norm1, &residual->norm2});
    if (const auto* attention = std::get_if<UnetAttention>(&layer.what))
      all.push_back(&attention->norm);
  }
  all.push_back(&norm_out_);
  return all;
}

UnetConvolution UnetParameters::add_convolution(const std::string& name, const Image& from,
                                                std::int64_t outputs, std::int64_t stride) {
  const ConvolutionShape shape{.images = samples_,
                               .height = from.side,
                               .width = from.side,
                               .channels = from.channels,
                               .outputs = outputs,
                               .window = 3,
                               .stride = stride,
                               .padding = 1};
  return {name, shape, add_linear(name, outputs, shape.depth())};
}

std::size_t UnetParameters::add_linear(const std::string& name, std::int64_t outputs,
                                       std::int64_t inputs) {
  const double scale = 1 / std::sqrt(static_cast<double>(inputs));
  align();
  const std::size_t weight = add(name + ".weight", outputs * inputs, scale);
  align();
  add(name + ".bias", outputs, scale);
  return weight;
}

UnetNorm UnetParameters::add_norm(const std::string& name, const Image& from, std::int64_t others) {
  const GroupNormShape shape{.samples = samples_,
                             .pixels = from.side * from.side,
                             .columns = from.channels,
                             .others = others,
                             .groups = groups_of(from.channels + others)};
  align();
  const std::size_t weight = add(name + ".weight", shape.channels(), 0, 1);
  align();
  add(name + ".bias", shape.channels(), 0);
  return {name, shape, weight};
}

void UnetParameters::add_residual(const std::string& name, std::int64_t outputs,
                                  std::optional<std::size_t> skip) {
  const std::int64_t others = skip ? skip_channels_[*skip] : 0;
  const std::int64_t inputs = image_.channels + others;
  UnetResidual made;
  made.norm1 = add_norm(name + ".norm1", image_, others);
  made.conv1 = add_convolution(name + ".conv1", {image_.side, inputs}, outputs);
  made.time = add_linear(name + ".time_emb_proj", outputs, time_width_);
  const Image inside{image_.side, outputs};
  made.norm2 = add_norm(name + ".norm2", inside);
  made.conv2 = add_convolution(name + ".conv2", inside, outputs);
  if (inputs != outputs) {
    const double scale = 1 / std::sqrt(static_cast<double>(inputs));
    const auto add_weight = [&](const char* part, std::int64_t channels) {
      align();
      return add(name + ".conv_shortcut.weight" + part, outputs * channels, scale);
    };
    UnetResidual::Shortcut shortcut;
    shortcut.stream = shortcut.skip = add_weight("", image_.channels);
    if (skip) shortcut.skip = add_weight(" of the skip", others);
    align();
    shortcut.bias = add(name + ".conv_shortcut.bias", outputs, scale);
    made.shortcut = shortcut;
  }
  add_layer(name, made, skip);
}

void UnetParameters::add_attention(const std::string& name) {
  UnetAttention made{.norm = add_norm(name + ".group_norm", image_),
                     .heads = heads_of(image_.channels)};
  made.qkv = add_linear(name + ".to_qkv", 3 * image_.channels, image_.channels);
  made.projection = add_linear(name + ".to_out.0", image_.channels, image_.channels);
  add_layer(name, made);
}

void UnetParameters::add_layer(const std::string& name, decltype(UnetLayer::what) what,
                               std::optional<std::size_t> skip) {
  if (const auto* residual = std::get_if<UnetResidual>(&what))
    image_.channels = residual->conv1.shape.outputs;
  if (std::holds_alternative<UnetDownsample>(what)) image_.side /= 2;
  if (std::holds_alternative<UnetUpsample>(what)) image_.side *= 2;
  layers_.push_back(
      {name, std::move(what), samples_ * image_.side * image_.side, image_.channels, skip});
}

void UnetParameters::keep_for_later() {
  skips_.push_back(static_cast<int>(layers_.size()) - 1);
  skip_channels_.push_back(image_.channels);
}

}  // namespace stepgate
