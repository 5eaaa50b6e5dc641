// SPDX-License-Identifier: MIT
// Compares host references of pooling with formulas written independently here, and the gradient
// of norm_pool with central differences.
#include "kernels/pool/pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "kernels/number_format.h"
#include "kernels/testing/expect_formulas.h"
#include "kernels/testing/norms_in_fp64.h"

namespace stepgate {
namespace {

// norm(x) of element i, whose operand is followed by the statistics.
double norm_of(const KernelTrial& t, std::size_t x, std::int64_t i, std::int64_t columns) {
  const auto statistic = [&](std::int64_t vector) {
    return value_at(t, x + 1, vector * columns + i % columns);
  };
  return value_at(t, x, i) * statistic(2) - statistic(0) * statistic(2) + statistic(3);
}

// Element i of the windows: its image, its window and its column.
struct Output {
  std::int64_t image, p, q, column;
};

template <class Shape>
Output output_at(const Shape& shape, const WindowAttributes& told, std::int64_t i) {
  const std::int64_t across = (shape.width + 2 * told.padding - told.window) / told.stride + 1;
  const std::int64_t down = (shape.height + 2 * told.padding - told.window) / told.stride + 1;
  const std::int64_t pixel = i / shape.columns;
  return {pixel / (across * down), pixel / across % down, pixel % across, i % shape.columns};
}

// The element of the images at a place of a window that begins `before` ahead of its stride; -1
// outside of the image.
template <class Shape>
std::int64_t element_at(const Shape& shape, const WindowAttributes& told, const Output& output,
                        std::int64_t place, std::int64_t before) {
  const std::int64_t h = output.p * told.stride + place / told.window - before;
  const std::int64_t w = output.q * told.stride + place % told.window - before;
  const bool inside = h >= 0 && w >= 0 && h < shape.height && w < shape.width;
  if (!inside) return -1;
  return ((output.image * shape.height + h) * shape.width + w) * shape.columns + output.column;
}

struct Choice {
  double value = 0;
  std::int64_t place = -1;
};

// The largest value of a window. The places are visited from the last to the first, so that the
// first of equals is the last to win.
template <class Trial, class Value>
Choice largest_of(const Trial& t, std::int64_t i, std::int64_t before, Value value_of) {
  const Output output = output_at(t.shape, t.attributes, i);
  Choice best;
  for (std::int64_t place = t.attributes.window * t.attributes.window - 1; place >= 0; --place) {
    const std::int64_t x = element_at(t.shape, t.attributes, output, place, before);
    if (x < 0) continue;
    const double value = value_of(x);
    if (best.place < 0 || value >= best.value) best = {value, place};
  }
  return best;
}

Choice choice_of(const TrialOf<kernels::NormPool>& t, std::int64_t i, std::int64_t before) {
  return largest_of(t, i, before, [&](std::int64_t x) {
    return stored_number(t.trial.dtype, std::max(norm_of(t, 0, x, t.shape.columns), 0.0));
  });
}

Choice choice_of(const TrialOf<kernels::MaxPool>& t, std::int64_t i) {
  return largest_of(t, i, t.attributes.padding, [&](std::int64_t x) { return value_at(t, 0, x); });
}

TEST(NormPool, TakesTheFirstOfTheLargestActivationsOfAWindow) {
  using Trial = TrialOf<kernels::NormPool>;
  expect_formulas<kernels::NormPool>(
      {{2,
        [](const Trial& t, std::int64_t i) { return choice_of(t, i, t.attributes.padding).value; }},
       {3,
        [](const Trial& t, std::int64_t i) {
          return static_cast<double>(choice_of(t, i, t.attributes.padding).place);
        }},
       {4, [](const Trial& t, std::int64_t i) {
          const std::int64_t place = choice_of(t, i, t.attributes.padding).place;
          return value_at(t, 0,
                          element_at(t.shape, t.attributes, output_at(t.shape, t.attributes, i),
                                     place, t.attributes.padding));
        }}});
}

TEST(MaxPool, TakesTheFirstOfTheLargestNumbersOfAWindow) {
  using Trial = TrialOf<kernels::MaxPool>;
  expect_formulas<kernels::MaxPool>(
      {{1, [](const Trial& t, std::int64_t i) { return choice_of(t, i).value; }},
       {2, [](const Trial& t, std::int64_t i) {
          return static_cast<double>(choice_of(t, i).place);
        }}});
}

TEST(MaxPoolGradient, GivesEachWindowsGradientToThePlaceThatItChose) {
  using Trial = TrialOf<kernels::MaxPoolGradient>;
  expect_formulas<kernels::MaxPoolGradient>(
      {{2, [d = std::vector<double>()](const Trial& t, std::int64_t i) mutable {
          if (i == 0) {
            d.assign(static_cast<std::size_t>(value_count(t, 2)), 0);
            for (std::int64_t y = 0; y < value_count(t, 0); ++y) {
              const auto place = static_cast<std::int64_t>(value_at(t, 1, y));
              d[static_cast<std::size_t>(element_at(t.shape, t.attributes,
                                                    output_at(t.shape, t.attributes, y), place,
                                                    t.attributes.padding))] += value_at(t, 0, y);
            }
          }
          return d[static_cast<std::size_t>(i)];
        }}});
}

// The number of places that a window would choose otherwise if it began `before` ahead.
std::int64_t other_choices(std::int64_t before) {
  const kernels::NormPool::Shape shape{2, 8, 8, 5};
  const WindowAttributes told{3, 2, 1};
  KernelTrial trial = make_trial<kernels::NormPool>(shape, DType::bf16, told, 3);
  run_reference(trial);
  const TrialOf<kernels::NormPool> typed{trial, shape, told};
  std::int64_t others = 0;
  for (std::int64_t i = 0; i < value_count(trial, 3); ++i)
    if (static_cast<double>(choice_of(typed, i, before).place) != value_at(trial, 3, i)) ++others;
  return others;
}

TEST(NormPool, PadsOnEachSide) {
  EXPECT_EQ(other_choices(1), 0);
  EXPECT_GT(other_choices(0), 100) << "padding on one side would go unnoticed";
}

// All activations are 0, as places outside of the image would be, and all places are equal.
TEST(NormPool, NeverTakesAPlaceOutsideOfTheImage) {
  constexpr std::int64_t side = 5, down = 3;
  std::vector<float> x(side * side, -1.0f), y(down * down), chosen = y;
  std::vector<std::uint8_t> which(down * down);
  float statistics[] = {0, 1, 1, 0};
  run_in_fp32<kernels::NormPool>({1, side, side, 1}, {3, 2, 1},
                                 {x.data(), statistics, y.data(), which.data(), chosen.data()});
  for (std::int64_t p = 0; p < down; ++p)
    for (std::int64_t q = 0; q < down; ++q)
      EXPECT_EQ(which[p * down + q], (p == 0 ? 3 : 0) + (q == 0 ? 1 : 0)) << p << ' ' << q;
}

// PyTorch does so too: a step that has gone wrong is seen at its end.
TEST(NormPool, TakesANaNWhereverItIs) {
  std::vector<float> x(9, 0.5f), y(1), chosen(1);
  std::uint8_t which = 0xff;
  float statistics[] = {0, 1, 1, 0};
  for (std::size_t place = 0; place < x.size(); ++place) {
    std::vector<float> with_nan = x;
    with_nan[place] = std::nanf("");
    run_in_fp32<kernels::NormPool>({1, 3, 3, 1}, {3, 1, 0},
                                   {with_nan.data(), statistics, y.data(), &which, chosen.data()});
    EXPECT_TRUE(std::isnan(y[0]));
    EXPECT_EQ(which, place);
  }
}

// d of every element of the images: each window's d_y goes to the place that it chose.
template <class Trial>
std::vector<double> scattered(const Trial& t) {
  std::vector<double> d(static_cast<std::size_t>(value_count(t, 2)));
  for (std::int64_t i = 0; i < value_count(t, 0); ++i) {
    const auto place = static_cast<std::int64_t>(value_at(t, 1, i));
    const std::int64_t x = element_at(t.shape, t.attributes, output_at(t.shape, t.attributes, i),
                                      place, t.attributes.padding);
    if (norm_of(t, 2, x, t.shape.columns) > 0) d[static_cast<std::size_t>(x)] += value_at(t, 0, i);
  }
  return d;
}

template <class Trial>
double normalised(const Trial& t, std::int64_t i) {
  const std::int64_t columns = t.shape.columns, c = i % columns;
  return (value_at(t, 2, i) - value_at(t, 3, c)) * value_at(t, 3, columns + c);
}

TEST(NormPoolGradient, TakesTheMeansAway) {
  using Trial = TrialOf<kernels::NormPoolGradient>;
  expect_formulas<kernels::NormPoolGradient>(
      {{5, [d = std::vector<double>()](const Trial& t, std::int64_t i) mutable {
          if (i == 0) d = scattered(t);
          const std::int64_t columns = t.shape.columns, c = i % columns;
          const double inner = d[static_cast<std::size_t>(i)] - value_at(t, 4, c) -
                               normalised(t, i) * value_at(t, 4, columns + c);
          return value_at(t, 3, 2 * columns + c) * inner;
        }}});
}

TEST(MeanPool, TakesTheMeanOfAnImagesPixels) {
  const FormulaOf<kernels::MeanPool> y = [](const TrialOf<kernels::MeanPool>& t, std::int64_t i) {
    const auto [images, pixels, columns] = t.shape;
    double sum = 0;
    for (std::int64_t pixel = pixels - 1; pixel >= 0; --pixel)
      sum += value_at(t, 0, (i / columns * pixels + pixel) * columns + i % columns);
    return sum / static_cast<double>(pixels);
  };
  expect_formulas<kernels::MeanPool>({{1, y}});
}

TEST(MeanPoolGradient, GivesEachPixelAnEqualShare) {
  const FormulaOf<kernels::MeanPoolGradient> d_x = [](const TrialOf<kernels::MeanPoolGradient>& t,
                                                      std::int64_t i) {
    const auto [images, pixels, columns] = t.shape;
    const std::int64_t of_image = i / (pixels * columns) * columns + i % columns;
    return value_at(t, 0, of_image) / static_cast<double>(pixels);
  };
  expect_formulas<kernels::MeanPoolGradient>({{1, d_x}});
}

// The stem of a network: sums, statistics, norm with relu and pool.
struct PoolChain {
  kernels::NormPool::Shape shape{2, 7, 8, 5};
  WindowAttributes told{3, 2, 1};
  NormInFp64 norm;
  Doubles y, outer, chosen;
  Bytes which;

  explicit PoolChain(std::mt19937_64& random)
      : norm({2 * 7 * 8, 5, 3}, random),
        y(2 * 4 * 4 * 5),
        outer(random_doubles(2 * 4 * 4 * 5, random)),
        chosen(y.size()),
        which(y.size()) {}

  // A window whose largest activation is 0 has no slope, whichever place it chose.
  LossAndDecisions forward() {
    norm.find_statistics();
    run_in_fp64<kernels::NormPool>(
        shape, told,
        {norm.x.data(), norm.statistics.data(), y.data(), which.data(), chosen.data()});
    LossAndDecisions loss{0, which};
    for (std::size_t i = 0; i < y.size(); ++i) {
      loss.value += outer[i] * y[i];
      loss.decisions.push_back(y[i] > 0 ? 1 : 0);
    }
    return loss;
  }
  void backward() {
    run_in_fp64<kernels::BatchNormGradientSums>(
        {2 * 4 * 4, norm.shape.columns, norm.shape.parts}, {.relu = true},
        {outer.data(), chosen.data(), norm.statistics.data(), norm.partials.data()});
    norm.finish_gradient();
    run_in_fp64<kernels::NormPoolGradient>(
        shape, told,
        {outer.data(), which.data(), norm.x.data(), norm.statistics.data(), norm.means.data(),
         norm.d_x.data()});
  }
  double error(std::mt19937_64& random) {
    return slope_error(
        {{&norm.x, &norm.d_x}, {&norm.weight, &norm.d_weight}, {&norm.bias, &norm.d_bias}},
        [this] { return forward(); }, random);
  }
};

TEST(NormPoolGradients, FollowTheSlopesOfNormReluAndPool) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  PoolChain chain(random);
  (void)chain.forward();
  chain.backward();
  EXPECT_LT(chain.error(random), 1e-7);

  const Doubles x = chain.norm.x;
  chain.norm.x = random_doubles(static_cast<std::int64_t>(x.size()), random);
  (void)chain.forward();
  const Bytes stale = chain.which;
  chain.norm.x = x;
  (void)chain.forward();
  chain.which = stale;
  chain.backward();
  EXPECT_GT(chain.error(random), 0.01) << "choices of another step would go unnoticed";
}

}  // namespace
}  // namespace stepgate
