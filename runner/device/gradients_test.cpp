// SPDX-License-Identifier: MIT
#include "device/gradients.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"
#include "plan/testing/plan_by_hand.h"

namespace stepgate {
namespace {

GradientSketch sketch_of_values(const std::vector<float>& values, std::int64_t first = 0) {
  GradientSketch sketch;
  add_part({.first = first, .elements = std::ssize(values)}, values.data(), DType::fp32, sketch);
  return sketch;
}

std::vector<float> drawn(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(random.normal());
  return values;
}

TEST(Gradients, AreAsFarApartAsTheirSketchesSay) {
  const std::vector<float> one = drawn(4096, 1);
  for (const double share : {1.0, 0.1, 1e-3}) {
    double sum = 0;
    for (std::uint64_t seed = 2; seed < 22; ++seed) {
      std::vector<float> other = one;
      const std::vector<float> noise = drawn(other.size(), seed);
      for (std::size_t index = 0; index < other.size(); ++index)
        other[index] += static_cast<float>(share) * noise[index];
      const double told = relative_difference(sketch_of_values(one), sketch_of_values(other));
      const double larger = std::sqrt(1 + share * share);
      EXPECT_NEAR(told * larger / share, 1, 4 * 0.09) << share;  // half of 18 % is that of a root
      sum += told * larger / share;
    }
    EXPECT_NEAR(sum / 20, 1, 4 * 0.09 / std::sqrt(20)) << share;
  }
}

TEST(Gradients, ThatAreEqualHaveNoDistanceAndOfARowAreSeen) {
  const std::vector<float> whole = drawn(128 * 32, 3);
  std::vector<float> without = whole;
  for (std::size_t index = 127 * 32; index < without.size(); ++index) without[index] = 0;
  EXPECT_EQ(relative_difference(sketch_of_values(whole), sketch_of_values(whole)), 0);
  EXPECT_NEAR(relative_difference(sketch_of_values(whole), sketch_of_values(without)),
              std::sqrt(1.0 / 128), 0.03);
}

TEST(Gradients, OfPartsAddUp) {
  const std::vector<float> whole = drawn(100, 4);
  GradientSketch sum = sketch_of_values({whole.begin(), whole.begin() + 37});
  sum += sketch_of_values({whole.begin() + 37, whole.end()}, 37);
  EXPECT_EQ(sum.elements, 100);
  EXPECT_LT(relative_difference(sum, sketch_of_values(whole)), 1e-12);
}

TEST(Gradients, AreComparedWithWhatIsNotNegligible) {
  const GradientSketch large = sketch_of_values(drawn(1000, 5));
  std::vector<float> rounding = drawn(100, 6);
  for (float& value : rounding) value *= 1e-6F;
  const GradientSketch small = sketch_of_values(rounding);
  GradientSketch whole = large;
  whole += small;
  EXPECT_NEAR(relative_difference(small, {}), 1, 0.4);
  EXPECT_LT(relative_difference(small, {}, negligible_norm(whole, small)), 2e-3);
  GradientSketch infinite = small;
  infinite.squares = std::numeric_limits<double>::infinity();
  const double before = negligible_norm(whole, small);
  add_finite(whole, infinite);
  EXPECT_EQ(negligible_norm(whole, small), before);
}

TEST(Gradients, TravelAsText) {
  const GradientSketch sketch = sketch_of_values(drawn(50, 7));
  const std::string text = text_of(sketch);
  const auto back = sketch_of(text);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->elements, 50);
  EXPECT_EQ(back->squares, sketch.squares);
  EXPECT_LT(relative_difference(*back, sketch), 1e-6);
  for (const std::string& wrong :
       {std::string(), text.substr(1), text + "0", "x" + text.substr(1), "-" + text.substr(1),
        "f" + text.substr(1), text.substr(0, 40) + " " + text.substr(41)})
    EXPECT_FALSE(sketch_of(wrong)) << wrong;
}

// This holds for every kind of launch of the optimizer, and for any number of pieces.
TEST(Gradients, OfAPlanAreReadOnceEach) {
  for (const OptimImpl impl : {OptimImpl::fused, OptimImpl::per_tensor, OptimImpl::foreach}) {
    Knobs knobs = small_transformer();
    knobs.optim.impl = impl;
    const StepPlan plan = plan_of(knobs);
    std::vector<std::int64_t> read(plan.parameters.size(), 0);
    for (const Operation& operation : plan.operations) {
      if (!operation.reads_gradients) continue;
      for (const GradientPart& part : gradient_parts(plan, *operation.reads_gradients))
        read[part.parameter] += part.elements;
    }
    EXPECT_GT(read.size(), 8U);
    for (std::size_t index = 0; index < read.size(); ++index)
      EXPECT_EQ(read[index], plan.parameters[index].elements) << plan.parameters[index].name;
    EXPECT_EQ(reason_against_gradients(plan), "");
  }
}

// foreach overwrites gradients between its launches, and allocation per operation releases them. In
// a graph both happen before the gradients can be read.
TEST(Gradients, ThatAGraphOverwritesCannotBeRead) {
  Knobs knobs = small_transformer();
  knobs.launch.via = LaunchVia::graph;
  EXPECT_EQ(reason_against_gradients(plan_of(knobs)), "");
  knobs.optim.impl = OptimImpl::foreach;
  EXPECT_EQ(reason_against_gradients(plan_of(knobs)),
            "its graph overwrites or releases the gradients that 'unscale the gradients' reads");
  knobs.model.dtype = DType::fp32;
  knobs.optim.impl = OptimImpl::per_tensor;
  knobs.alloc.with = Allocator::caching;
  EXPECT_EQ(reason_against_gradients(plan_of(knobs)), "");
  knobs.alloc.when = AllocWhen::op;
  EXPECT_NE(reason_against_gradients(plan_of(knobs)), "") << "which go with the update";
  knobs.launch.via = LaunchVia::stream;
  EXPECT_EQ(reason_against_gradients(plan_of(knobs)), "");
}

}  // namespace
}  // namespace stepgate
