// SPDX-License-Identifier: MIT
// The convolutions of a ResNet of bottleneck blocks (He et al.: Deep residual learning for image
// recognition, 2015, table 1), with the stride in the 3x3 convolution, as torchvision has them
// ("v1.5"), and the places of its parameters. Parameters have torchvision's names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/convolution/convolution.h"
#include "plan/compose/update/parameter_list.h"
#include "scenario/scenario.h"

namespace stepgate {

// A convolution without bias, and the batch norm of its result. `weight` and `norm` are tensors of
// the ResnetParameters; the norm's bias follows its weight.
struct NormedConvolution {
  std::string name;  // "layer1.0.conv1"
  ConvolutionShape shape;
  std::size_t weight = 0;
  std::size_t norm = 0;
  std::int64_t running = 0;  // first of its running means; as many running variances follow

  // A GEMM computes it, whose rows are pixels.
  bool is_gemm() const { return shape.window == 1 && shape.stride == 1; }
};

// y = relu(norm(third(relu(norm(second(relu(norm(first(x)))))))) + shortcut), where the shortcut is
// x or norm(down(x)).
struct ResidualBlock {
  std::string name;  // "layer1.0"
  NormedConvolution first, second, third;
  std::optional<NormedConvolution> down;
};

class ResnetParameters : public ParameterList {
 public:
  explicit ResnetParameters(const Knobs&);

  const NormedConvolution& stem() const { return stem_; }
  const std::vector<ResidualBlock>& blocks() const { return blocks_; }
  std::size_t head() const { return head_; }  // weight [classes][features], then the bias
  std::int64_t features() const { return features_; }
  // Numbers of the running statistics of all norms.
  std::int64_t running_elements() const { return running_elements_; }
  bool pools() const { return pools_; }  // the stem ends with a max pool

  // All normed convolutions, in the order of the forward pass.
  std::vector<const NormedConvolution*> convolutions() const;

 private:
  NormedConvolution add_convolution(const std::string& name, const std::string& norm,
                                    const ConvolutionShape& shape);

  NormedConvolution stem_;
  std::vector<ResidualBlock> blocks_;
  std::size_t head_ = 0;
  std::int64_t features_ = 0;
  std::int64_t running_elements_ = 0;
  bool pools_ = false;
};

// The max pool of the stem.
inline constexpr std::int64_t pool_window = 3, pool_stride = 2, pool_padding = 1;

}  // namespace stepgate
