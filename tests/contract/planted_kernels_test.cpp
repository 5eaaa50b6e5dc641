// SPDX-License-Identifier: MIT
// Tests that kernels with more sizes, attributes and operands than any in the catalogue are planned
// and executed like those. Linked into the programs of the device contract.
#include <gtest/gtest.h>

#include <map>

#include "kernels/testing/planted_kernels.h"
#include "plan/compose/step_builder.h"
#include "tests/contract/device_contract.h"

namespace stepgate {
namespace {

class PlantedKernels : public testing::TestWithParam<DeviceCase> {
 protected:
  PlantedKernels() { builder_.enter(Phase::forward); }

  // Adds a buffer that a run returns; it is filled with zeros if `content` has no numbers.
  int tensor(const std::string& name, std::int64_t numbers, Content content) {
    return builder_.add({.name = name,
                         .purpose = Purpose::weights,
                         .bytes = 4 * numbers,
                         .content = content,
                         .scale = 1});
  }

  std::map<std::string, std::vector<float>> tensors_of_a_step() const {
    const StepResult ran =
        GetParam().make()->load(plan_)->run({.wash_out_steps = 0, .steps = 1, .tensors = true});
    std::map<std::string, std::vector<float>> tensors;
    for (const Tensor& each : ran.tensors) tensors[each.name] = each.values;
    return tensors;
  }
  bool has_numbers() const { return GetParam().kind != DeviceKind::simulated; }

  StepPlan plan_ = plan_of(model_knobs("spin"));
  StepBuilder builder_{plan_};
};

// The launch has more operands than any of the catalogue.
TEST_P(PlantedKernels, MayHaveNineOperands) {
  constexpr std::int64_t numbers = 6;
  std::vector<StepBuilder::Operand> operands;
  for (int input = 0; input < 8; ++input)
    operands.push_back(
        builder_.whole(tensor("in" + std::to_string(input), numbers, Content::weights)));
  const int kept = tensor("kept", 8 * numbers, Content::zeros);
  const int out = builder_.add(
      {.name = "out", .bytes = 8 * 4 * numbers, .allocated_by = AllocatedBy::cuda_async});
  operands.push_back(builder_.whole(out));
  builder_.act("allocate", Allocate{out});
  builder_.launch("concatenate", KernelRef(concatenation()), DType::fp32,
                  kernels::Concatenation::Shape{numbers}, operands, {});
  builder_.act("keep", CopyBytes{builder_.whole(kept), builder_.whole(out)});
  builder_.act("release", Release{out});
  auto tensors = tensors_of_a_step();
  if (!has_numbers()) return;
  std::vector<float> expected;
  for (int input = 0; input < 8; ++input) {
    const std::vector<float>& in = tensors["in" + std::to_string(input)];
    expected.insert(expected.end(), in.begin(), in.end());
  }
  ASSERT_EQ(expected.size(), 8u * numbers);
  EXPECT_NE(expected[numbers], expected[0]);
  EXPECT_EQ(tensors["kept"], expected);
}

TEST_P(PlantedKernels, MayHaveFiveSizesAndSevenAttributes) {
  if (GetParam().kind == DeviceKind::cuda) return;  // it has no launcher
  constexpr std::int64_t samples = 2, channels = 3, height = 5, width = 4, filters = 2;
  constexpr std::int64_t rows = 3, columns = 2;
  const kernels::DilatedConvolution::Attributes told{.filter_height = 3,
                                                     .filter_width = 2,
                                                     .stride = 2,
                                                     .padding = 1,
                                                     .dilation = 1,
                                                     .scale = 0.5};
  const kernels::DilatedConvolution::Shape shape{samples, channels, height, width, filters};
  const int x = tensor("x", samples * channels * height * width, Content::weights);
  const int w = tensor("w", filters * channels * 3 * 2, Content::weights);
  const int y = tensor("y", samples * filters * rows * (columns + 1), Content::zeros);
  builder_.launch("convolve", KernelRef(convolution()), DType::fp32, shape,
                  {builder_.whole(x), builder_.whole(w), builder_.whole(y)}, told);
  EXPECT_EQ(work_of(convolution(), shape, DType::fp32, told).flops,
            2 * samples * filters * rows * (columns + 1) * channels * 3 * 2);
  auto tensors = tensors_of_a_step();
  if (!has_numbers()) return;
  // Computes the expected result by adding each product of x and w to its element of y.
  std::vector<float> expected(tensors["y"].size());
  for (std::int64_t at = 0; at < std::ssize(tensors["x"]); ++at) {
    const std::int64_t j = at % width, i = at / width % height,
                       c = at / (width * height) % channels;
    const std::int64_t n = at / (width * height * channels);
    for (std::int64_t from = 0; from < std::ssize(tensors["w"]); ++from) {
      const std::int64_t b = from % 2, a = from / 2 % 3;
      if (from / 6 % channels != c) continue;
      const std::int64_t row = i + 1 - a, column = j + 1 - b;
      if (row < 0 || column < 0 || row % 2 != 0 || column % 2 != 0) continue;
      if (row / 2 >= rows || column / 2 > columns) continue;
      expected[((n * filters + from / 18) * rows + row / 2) * (columns + 1) + column / 2] +=
          0.5f * tensors["x"][at] * tensors["w"][from];
    }
  }
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(tensors["y"][i], expected[i], 1e-6) << i;
  EXPECT_NE(expected.front(), 0);
}

INSTANTIATE_TEST_SUITE_P(Every, PlantedKernels, testing::ValuesIn(device_cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace stepgate
