// SPDX-License-Identifier: MIT
// The layers of a UNet that predicts noise (Ho, Jain and Abbeel: Denoising diffusion probabilistic
// models, 2020, appendix B), as UNet2DModel of diffusers has them, and the places of its
// parameters, which have diffusers' names. Levels have 1, 2, 2 and 4 times `model.width` channels,
// and each halves the sides of the one before.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "kernels/convolution/convolution.h"
#include "kernels/group_norm/group_norm.h"
#include "plan/compose/update/parameter_list.h"
#include "scenario/scenario.h"

namespace stepgate {

// The weight of a convolution or of a linear layer; its bias is the next tensor.
struct UnetConvolution {
  std::string name;
  ConvolutionShape shape;
  std::size_t weight = 0;
};

struct UnetNorm {
  std::string name;
  GroupNormShape shape;
  std::size_t weight = 0;
};

// out = shortcut + conv2(silu(norm2(conv1(silu(norm1(x))) + time))), where x is the stream, or the
// stream and a skip side by side. The shortcut is x, or a convolution of single pixels.
struct UnetResidual {
  UnetNorm norm1, norm2;
  UnetConvolution conv1, conv2;
  std::size_t time = 0;
  struct Shortcut {
    std::size_t stream = 0, skip = 0;  // weights of either part of x; equal without a skip
    std::size_t bias = 0;
  };
  std::optional<Shortcut> shortcut;
};

// out = x + projection(attention(norm(x))), each pixel seeing all others.
struct UnetAttention {
  UnetNorm norm;
  std::int64_t heads = 1;
  std::size_t qkv = 0, projection = 0;
};

struct UnetDownsample {
  UnetConvolution conv;  // with stride 2
};

// A convolution of the doubled image.
struct UnetUpsample {
  UnetConvolution conv;
};

struct UnetLayer {
  std::string name;
  std::variant<UnetResidual, UnetAttention, UnetDownsample, UnetUpsample> what;
  std::int64_t pixels = 0;               // of the output, of all samples
  std::int64_t channels = 0;             // of the output
  std::optional<std::size_t> skip = {};  // read beside the stream: an index of skips()
};

class UnetParameters : public ParameterList {
 public:
  explicit UnetParameters(const Knobs&);

  const UnetConvolution& conv_in() const { return conv_in_; }
  const UnetConvolution& conv_out() const { return conv_out_; }
  const UnetNorm& norm_out() const { return norm_out_; }
  const std::vector<UnetLayer>& layers() const { return layers_; }
  // Layers whose output a later one reads once more; conv_in is -1.
  const std::vector<int>& skips() const { return skips_; }
  // Linear layers of the embedding of the time, from `width` to time_width() and on.
  std::size_t time1() const { return time1_; }
  std::size_t time2() const { return time2_; }
  std::int64_t time_width() const { return time_width_; }

  // All norms, in the order of the forward pass.
  std::vector<const UnetNorm*> norms() const;

 private:
  // The image between two layers.
  struct Image {
    std::int64_t side = 0, channels = 0;
  };

  UnetConvolution add_convolution(const std::string& name, const Image& from, std::int64_t outputs,
                                  std::int64_t stride = 1);
  std::size_t add_linear(const std::string& name, std::int64_t outputs, std::int64_t inputs);
  UnetNorm add_norm(const std::string& name, const Image& from, std::int64_t others = 0);
  void add_residual(const std::string& name, std::int64_t outputs,
                    std::optional<std::size_t> skip = {});
  void add_attention(const std::string& name);
  void add_layer(const std::string& name, decltype(UnetLayer::what),
                 std::optional<std::size_t> skip = {});
  void keep_for_later();

  std::int64_t samples_ = 0;
  Image image_;  // behind the last layer
  std::int64_t time_width_ = 0;
  std::size_t time1_ = 0, time2_ = 0;
  UnetConvolution conv_in_, conv_out_;
  UnetNorm norm_out_;
  std::vector<UnetLayer> layers_;
  std::vector<int> skips_;
  std::vector<std::int64_t> skip_channels_;
};

}  // namespace stepgate
