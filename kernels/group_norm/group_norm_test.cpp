// SPDX-License-Identifier: MIT
// Compares host references of group norm, of upsampling and of the additions beside them with
// formulas written independently here, and their gradients with central differences.
#include "kernels/group_norm/group_norm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "kernels/kernels.h"
#include "kernels/testing/expect_formulas.h"
#include "kernels/testing/norms_in_fp64.h"

namespace stepgate {
namespace {

// Rounding a moment is multiplied by up to epsilon^-3/2.
constexpr double unit_of_group_sums = 1e4;

// An element of the two images side by side: its sample, its row among all samples, its channel.
struct Place {
  std::int64_t sample, row, channel;
};

template <class Shape>
Place place_of(const Shape& shape, std::int64_t i) {
  const std::int64_t channels = shape.columns + shape.others;
  return {i / channels / shape.pixels, i / channels, i % channels};
}

// A number of both images; x is operand `x`, and the other image the next one.
template <class Shape>
double image_at(const KernelTrial& t, const Shape& shape, std::size_t x, const Place& at) {
  if (at.channel >= shape.columns)
    return value_at(t, x + 1, at.row * shape.others + at.channel - shape.columns);
  return value_at(t, x, at.row * shape.columns + at.channel);
}

// Number `which` of the pair of the element's group.
template <class Shape>
double of_group(const KernelTrial& t, const Shape& shape, std::size_t operand, const Place& at,
                std::int64_t which) {
  const std::int64_t width = (shape.columns + shape.others) / shape.groups;
  return value_at(t, operand, (at.sample * shape.groups + at.channel / width) * 2 + which);
}

template <class Shape>
double normalised(const KernelTrial& t, const Shape& shape, std::size_t x, const Place& at) {
  return of_group(t, shape, x + 2, at, 1) *
         (image_at(t, shape, x, at) - of_group(t, shape, x + 2, at, 0));
}

template <class Shape>
double normed(const KernelTrial& t, const Shape& shape, std::size_t x, const Place& at) {
  return value_at(t, x + 4, at.channel) +
         value_at(t, x + 3, at.channel) * normalised(t, shape, x, at);
}

double silu(double z) {
  return z * (1 + std::tanh(z / 2)) / 2;
}

// The slope of a SiLU, as the derivative of the form with a tangent.
double silu_slope(double z) {
  const double tangent = std::tanh(z / 2);
  return (1 + tangent) / 2 + z * (1 - tangent * tangent) / 4;
}

// d of an element from d_y in operand 0.
template <class Trial>
double d_of(const Trial& t, const Place& at) {
  const double d_y = value_at(t, 0, at.row * (t.shape.columns + t.shape.others) + at.channel);
  return t.attributes.silu ? d_y * silu_slope(normed(t, t.shape, 1, at)) : d_y;
}

// Formula of a number of partials: the sum over the pixels of its part of a term of the channel.
template <class Kernel, class Terms>
FormulaOf<Kernel> group_parts_of(Terms terms) {
  return [=](const TrialOf<Kernel>& t, std::int64_t i) {
    const std::int64_t channels = t.shape.columns + t.shape.others, part = i / (2 * channels);
    const std::int64_t sample = part / t.shape.parts;
    double sum = 0;
    for (std::int64_t pixel = t.shape.pixels - 1; pixel >= 0; --pixel)
      if (pixel % t.shape.parts == part % t.shape.parts)
        sum += terms(t, Place{sample, sample * t.shape.pixels + pixel, i % channels},
                     i / channels % 2 == 1);
    return sum;
  };
}

// Sum over the parts of a channel of a sample.
template <class Shape>
double channel_sum(const KernelTrial& t, const Shape& shape, std::size_t partials,
                   std::int64_t sample, std::int64_t vector, std::int64_t channel) {
  const std::int64_t channels = shape.columns + shape.others;
  double sum = 0;
  for (std::int64_t part = shape.parts - 1; part >= 0; --part)
    sum += value_at(t, partials,
                    (sample * shape.parts + part) * 2 * channels + vector * channels + channel);
  return sum;
}

TEST(GroupNormSums, SumDifferencesFromTheFirstPixelAndTheirSquares) {
  using Trial = TrialOf<kernels::GroupNormSums>;
  const auto first = [](const Trial& t, std::int64_t i) {
    const std::int64_t channels = t.shape.columns + t.shape.others, sample = i / channels;
    return image_at(t, t.shape, 0, {sample, sample * t.shape.pixels, i % channels});
  };
  const auto terms = [](const Trial& t, const Place& at, bool of_squares) {
    const Place before{at.sample, at.sample * t.shape.pixels, at.channel};
    const double shifted = image_at(t, t.shape, 0, at) - image_at(t, t.shape, 0, before);
    return of_squares ? shifted * shifted : shifted;
  };
  expect_formulas<kernels::GroupNormSums>(
      {{2, first}, {3, group_parts_of<kernels::GroupNormSums>(terms)}});
}

TEST(GroupNormFinish, TakesTheMomentsOfAllChannelsOfAGroup) {
  using Trial = TrialOf<kernels::GroupNormFinish>;
  // The raw moments of a group, counted from the first number of its first channel.
  const auto statistics = [](const Trial& t, std::int64_t i) {
    const std::int64_t channels = t.shape.columns + t.shape.others;
    const std::int64_t width = channels / t.shape.groups, group = i / 2 % t.shape.groups;
    const std::int64_t sample = i / 2 / t.shape.groups;
    const auto pixels = static_cast<double>(t.shape.pixels);
    const double origin = value_at(t, 0, sample * channels + group * width);
    double sum = 0, squares = 0;
    for (std::int64_t c = group * width; c < (group + 1) * width; ++c) {
      const double shift = value_at(t, 0, sample * channels + c) - origin;
      const double of_channel = channel_sum(t, t.shape, 1, sample, 0, c);
      sum += of_channel + pixels * shift;
      squares += channel_sum(t, t.shape, 1, sample, 1, c) + 2 * shift * of_channel +
                 pixels * shift * shift;
    }
    const double count = pixels * static_cast<double>(width), mean = sum / count;
    const double variance = std::max(squares / count - mean * mean, 0.0);
    return i % 2 == 0 ? origin + mean : std::pow(variance + t.attributes.epsilon, -0.5);
  };
  expect_formulas<kernels::GroupNormFinish>({{2, statistics}}, unit_of_group_sums);
}

TEST(GroupNormApply, NormalisesByGroupsAndTakesTheSilu) {
  const FormulaOf<kernels::GroupNormApply> y = [](const TrialOf<kernels::GroupNormApply>& t,
                                                  std::int64_t i) {
    const double z = normed(t, t.shape, 0, place_of(t.shape, i));
    return t.attributes.silu ? silu(z) : z;
  };
  expect_formulas<kernels::GroupNormApply>({{5, y}});
}

TEST(GroupNormGradientSums, SumByChannels) {
  const auto terms = [](const TrialOf<kernels::GroupNormGradientSums>& t, const Place& at,
                        bool of_projections) {
    return d_of(t, at) * (of_projections ? normalised(t, t.shape, 1, at) : 1);
  };
  expect_formulas<kernels::GroupNormGradientSums>(
      {{6, group_parts_of<kernels::GroupNormGradientSums>(terms)}});
}

TEST(GroupNormGradientFinish, AddsSamplesForParametersAndChannelsForMeans) {
  using Trial = TrialOf<kernels::GroupNormGradientFinish>;
  const auto gradient = [](std::size_t operand) {
    return [=](const Trial& t, std::int64_t channel) {
      double sum = t.attributes.accumulate ? value_at(t, operand, channel) : 0;
      for (std::int64_t sample = t.shape.samples - 1; sample >= 0; --sample)
        sum += channel_sum(t, t.shape, 0, sample, operand == 2 ? 1 : 0, channel);
      return sum;
    };
  };
  const auto means = [](const Trial& t, std::int64_t i) {
    const std::int64_t width = (t.shape.columns + t.shape.others) / t.shape.groups;
    const std::int64_t group = i / 2 % t.shape.groups;
    double sum = 0;
    for (std::int64_t c = (group + 1) * width - 1; c >= group * width; --c)
      sum += value_at(t, 1, c) * channel_sum(t, t.shape, 0, i / 2 / t.shape.groups, i % 2, c);
    return sum / static_cast<double>(width * t.shape.pixels);
  };
  expect_formulas<kernels::GroupNormGradientFinish>(
      {{2, gradient(2)}, {3, gradient(3)}, {4, means}});
}

TEST(GroupNormGradientApply, TakesTheMeansOfTheGroupAway) {
  using Trial = TrialOf<kernels::GroupNormGradientApply>;
  const auto gradient = [](std::size_t operand) {
    return [=](const Trial& t, std::int64_t i) {
      const std::int64_t columns = operand == 7 ? t.shape.columns : t.shape.others;
      const std::int64_t row = i / columns;
      const Place at{row / t.shape.pixels, row, i % columns + (operand == 7 ? 0 : t.shape.columns)};
      const double inner = value_at(t, 4, at.channel) * d_of(t, at) -
                           of_group(t, t.shape, 6, at, 0) -
                           normalised(t, t.shape, 1, at) * of_group(t, t.shape, 6, at, 1);
      const double old = t.attributes.accumulate ? value_at(t, operand, i) : 0;
      return old + of_group(t, t.shape, 3, at, 1) * inner;
    };
  };
  expect_formulas<kernels::GroupNormGradientApply>({{7, gradient(7)}, {8, gradient(8)}});
}

TEST(GroupNormParts, AreAtLeastOneAndNeverMoreThanThePixels) {
  for (const std::int64_t samples : {1, 3, 64, 2000}) {
    for (const std::int64_t pixels : {1, 63, 64, 100, 4096}) {
      EXPECT_GE(group_norm_parts(samples, pixels), 1) << samples << ' ' << pixels;
      EXPECT_LE(group_norm_parts(samples, pixels), pixels) << samples << ' ' << pixels;
    }
  }
}

TEST(Upsample, CopiesEachPixelIntoASquare) {
  const FormulaOf<kernels::Upsample> y = [](const TrialOf<kernels::Upsample>& t, std::int64_t i) {
    const auto [images, height, width, columns] = t.shape;
    const std::int64_t c = i % columns, w = i / columns % (2 * width);
    const std::int64_t h = i / columns / (2 * width) % (2 * height);
    const std::int64_t image = i / columns / (2 * width) / (2 * height);
    return value_at(t, 0, ((image * height + h / 2) * width + w / 2) * columns + c);
  };
  expect_formulas<kernels::Upsample>({{1, y}});
}

TEST(UpsampleGradient, SumsASquare) {
  const FormulaOf<kernels::UpsampleGradient> d_x = [](const TrialOf<kernels::UpsampleGradient>& t,
                                                      std::int64_t i) {
    const auto [images, height, width, columns] = t.shape;
    const std::int64_t c = i % columns, w = i / columns % width;
    const std::int64_t h = i / columns / width % height, image = i / columns / width / height;
    double sum = 0;
    for (const std::int64_t down : {1, 0})
      for (const std::int64_t right : {1, 0})
        sum += value_at(
            t, 0, ((image * 2 * height + 2 * h + down) * 2 * width + 2 * w + right) * columns + c);
    return sum;
  };
  expect_formulas<kernels::UpsampleGradient>({{1, d_x}});
}

TEST(SumPixels, SumsTheColumnsOfEachImage) {
  const FormulaOf<kernels::SumPixels> y = [](const TrialOf<kernels::SumPixels>& t, std::int64_t i) {
    const auto [images, pixels, columns] = t.shape;
    double sum = 0;
    for (std::int64_t pixel = pixels - 1; pixel >= 0; --pixel)
      sum += value_at(t, 0, (i / columns * pixels + pixel) * columns + i % columns);
    return sum;
  };
  expect_formulas<kernels::SumPixels>({{1, y}});
}

TEST(TimeBias, AddsTheVectorOfTheSample) {
  const FormulaOf<kernels::TimeBias> y = [](const TrialOf<kernels::TimeBias>& t, std::int64_t i) {
    const std::int64_t columns = t.shape.columns, sample = i / (t.shape.pixels * columns);
    return value_at(t, 1, i % columns) + value_at(t, 2, sample * columns + i % columns) +
           value_at(t, 0, i);
  };
  expect_formulas<kernels::TimeBias>({{3, y}});
}

TEST(ResidualBias, AddsTheResidual) {
  const FormulaOf<kernels::ResidualBias> y = [](const TrialOf<kernels::ResidualBias>& t,
                                                std::int64_t i) {
    return value_at(t, 1, i % t.shape.columns) + value_at(t, 2, i) + value_at(t, 0, i);
  };
  expect_formulas<kernels::ResidualBias>({{3, y}});
}

TEST(Silu, IsItsFormWithATangent) {
  const FormulaOf<kernels::Silu> y = [](const TrialOf<kernels::Silu>& t, std::int64_t i) {
    return silu(value_at(t, 0, i));
  };
  expect_formulas<kernels::Silu>({{1, y}});
}

TEST(SiluGradient, IsTheSlopeOfSilu) {
  const FormulaOf<kernels::SiluGradient> d_x = [](const TrialOf<kernels::SiluGradient>& t,
                                                  std::int64_t i) {
    return value_at(t, 1, i) * silu_slope(value_at(t, 0, i));
  };
  expect_formulas<kernels::SiluGradient>({{2, d_x}});
}

// A norm of two images side by side with its SiLU, whose references run in fp64.
struct GroupNormInFp64 {
  GroupNormPartsShape shape{2, 6, 4, 8, 3, 2};
  bool with_silu = true;
  Doubles x, other, weight, bias, outer;
  Doubles first = Doubles(2 * 12), partials = Doubles(2 * 2 * 2 * 12), statistics = Doubles(12);
  Doubles y = Doubles(2 * 6 * 12), means = Doubles(12);
  Doubles d_x = Doubles(2 * 6 * 4), d_other = Doubles(2 * 6 * 8);
  Doubles d_weight = Doubles(12), d_bias = Doubles(12);

  explicit GroupNormInFp64(std::mt19937_64& random)
      : x(random_doubles(2 * 6 * 4, random)),
        other(random_doubles(2 * 6 * 8, random)),
        weight(random_doubles(12, random)),
        bias(random_doubles(12, random)),
        outer(random_doubles(2 * 6 * 12, random)) {}

  GroupNormShape image() const {
    return {shape.samples, shape.pixels, shape.columns, shape.others, shape.groups};
  }
  void find_statistics() {
    run_in_fp64<kernels::GroupNormSums>(shape, {},
                                        {x.data(), other.data(), first.data(), partials.data()});
    run_in_fp64<kernels::GroupNormFinish>(shape, {1e-5},
                                          {first.data(), partials.data(), statistics.data()});
  }
  LossAndDecisions forward() {
    find_statistics();
    run_in_fp64<kernels::GroupNormApply>(
        image(), {with_silu},
        {x.data(), other.data(), statistics.data(), weight.data(), bias.data(), y.data()});
    LossAndDecisions loss;
    for (std::size_t i = 0; i < y.size(); ++i) loss.value += outer[i] * y[i];
    return loss;
  }
  void backward(bool silu_of_gradient) {
    const std::vector<void*> norm = {outer.data(),      x.data(),      other.data(),
                                     statistics.data(), weight.data(), bias.data()};
    std::vector<void*> sums = norm, apply = norm;
    sums.push_back(partials.data());
    run_in_fp64<kernels::GroupNormGradientSums>(shape, {silu_of_gradient}, sums);
    run_in_fp64<kernels::GroupNormGradientFinish>(
        shape, {false},
        {partials.data(), weight.data(), d_weight.data(), d_bias.data(), means.data()});
    apply.insert(apply.end(), {means.data(), d_x.data(), d_other.data()});
    run_in_fp64<kernels::GroupNormGradientApply>(image(), {silu_of_gradient, false}, apply);
  }
  double error(std::mt19937_64& random) {
    return slope_error(
        {{&x, &d_x}, {&other, &d_other}, {&weight, &d_weight}, {&bias, &d_bias}},
        [this] { return forward(); }, random);
  }
};

TEST(GroupNormGradients, FollowTheSlopesWithAndWithoutASilu) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (const bool with_silu : {false, true}) {
    GroupNormInFp64 norm(random);
    norm.with_silu = with_silu;
    (void)norm.forward();
    norm.backward(with_silu);
    EXPECT_LT(norm.error(random), 1e-7);
    norm.backward(!with_silu);
    EXPECT_GT(norm.error(random), 0.01) << "a SiLU that only one side computes would go unnoticed";
  }
}

TEST(GroupNormGradients, NeedTheMeansOfTheGroup) {
  std::mt19937_64 random(11);
  GroupNormInFp64 norm(random);
  (void)norm.forward();
  norm.shape.groups = 2;
  norm.backward(true);
  norm.shape.groups = 3;
  EXPECT_GT(norm.error(random), 0.01) << "other groups in the gradient would go unnoticed";
}

// The largest relative error of the deviation of the first sample's groups, where the squares are
// divided by `divisor`.
double error_of_deviation(const GroupNormInFp64& norm, double divisor) {
  double worst = 0;
  for (std::int64_t group = 0; group < norm.shape.groups; ++group) {
    Doubles numbers;
    for (std::int64_t pixel = 0; pixel < 6; ++pixel)
      for (std::int64_t c = 4 * group; c < 4 * group + 4; ++c)
        numbers.push_back(c < 4 ? norm.x[static_cast<std::size_t>(pixel * 4 + c)]
                                : norm.other[static_cast<std::size_t>(pixel * 8 + c - 4)]);
    double mean = 0, squares = 0;
    for (const double number : numbers) mean += number / 24;
    for (const double number : numbers) squares += (number - mean) * (number - mean);
    const double reciprocal = 1 / std::sqrt(squares / divisor + 1e-5);
    const double got = norm.statistics[static_cast<std::size_t>(2 * group + 1)];
    worst = std::max(worst, std::abs(got / reciprocal - 1));
  }
  return worst;
}

TEST(GroupNorm, NormalisesByTheBiasedVarianceOfTheGroup) {
  std::mt19937_64 random(12);
  GroupNormInFp64 norm(random);
  norm.find_statistics();
  EXPECT_LT(error_of_deviation(norm, 24), 1e-13);
  EXPECT_GT(error_of_deviation(norm, 23), 0.01) << "an unbiased variance would go unnoticed";
}

// The deviation of a group of 4096 numbers with mean 1000 and deviation 1, from fp32 sums.
TEST(GroupNorm, KeepsTheBitsOfADeviationFarBelowTheMean) {
  std::mt19937_64 random(13);
  std::normal_distribution<float> normal(1000, 1);
  constexpr GroupNormPartsShape shape{1, 1024, 4, 0, 1, 8};
  std::vector<float> x(4096), first(4), partials(8 * 2 * 4), statistics(2);
  double mean = 0, squares = 0;
  for (float& number : x) mean += (number = normal(random)) / 4096.0;
  for (const float number : x) squares += (number - mean) * (number - mean);
  run_in_fp32<kernels::GroupNormSums>(shape, {},
                                      {x.data(), nullptr, first.data(), partials.data()});
  const auto error = [&] {
    run_in_fp32<kernels::GroupNormFinish>(shape, {0},
                                          {first.data(), partials.data(), statistics.data()});
    return std::abs(statistics[1] * std::sqrt(squares / 4096) - 1);
  };
  EXPECT_LT(error(), 1e-6);
  std::ranges::fill(first, 0.0f);
  std::ranges::fill(partials, 0.0f);
  for (std::size_t i = 0; i < x.size(); ++i) {
    float* const part = partials.data() + i / 4 % 8 * 8;
    part[i % 4] += x[i];
    part[4 + i % 4] += x[i] * x[i];
  }
  EXPECT_GT(error(), 1e-3) << "sums of x and its squares would go unnoticed";
}

}  // namespace
}  // namespace stepgate
