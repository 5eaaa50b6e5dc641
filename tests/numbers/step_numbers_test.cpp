// SPDX-License-Identifier: MIT
// Tests the numbers of the whole step: its gradients against finite differences of its loss, its
// updates against a textbook implementation in double, and that it learns. kernels_test.cpp tests
// single kernels.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <ostream>
#include <random>

#include "base/random.h"
#include "device/reference/reference_device.h"
#include "tests/contract/device_contract.h"
#include "tests/numbers/step_by_hand.h"
#include "tests/numbers/step_numbers_textbook.h"

namespace stepgate {

struct ShapeCase {
  std::string name;
  std::int64_t layers, hidden, samples;
  std::optional<std::int64_t> sample_bytes;  // absent: what the model needs
  BatchFormat format = BatchFormat::fp32;
};

// Prints the case in GoogleTest's messages.
void PrintTo(const ShapeCase& shape, std::ostream* out) {
  *out << shape.name;
}

namespace {

Knobs knobs_of(const ShapeCase& shape, OptimKind optimizer) {
  Knobs knobs;
  knobs.transfer.host = HostMemory::resident;
  knobs.model = {.layers = shape.layers, .hidden = shape.hidden};
  knobs.batch = {.size = shape.samples, .sample_bytes = shape.sample_bytes, .format = shape.format};
  knobs.optim.kind = optimizer;
  return knobs;
}

const ShapeCase shapes[] = {
    {"one_layer", 1, 8, 6, {}},      {"three_layers", 3, 16, 5, {}},
    {"one_sample", 2, 8, 1, {}},     {"five_layers", 5, 8, 7, {}},
    {"long_samples", 2, 16, 4, 400}, {"bytes", 2, 16, 4, 400, BatchFormat::uint8}};

// Returns which units of the hidden layers are active; where this changes, the loss has a kink.
std::vector<bool> active_units(const StepPlan& plan, StepByHand& step) {
  std::vector<bool> active;
  for (const Buffer& buffer : plan.buffers) {
    if (!buffer.name.starts_with("hidden ")) continue;
    for (const float value : step.numbers(buffer.name)) active.push_back(value > 0);
  }
  return active;
}

// Returns the central difference of the loss; nullopt where the loss has a kink in between.
std::optional<double> slope(const StepPlan& plan, StepByHand& forward, std::size_t index,
                            float distance) {
  const float middle = forward.weight(index);
  forward.weight(index) = middle + distance;
  const double up = forward.weight(index);
  const double loss_up = forward.loss();
  const std::vector<bool> active_up = active_units(plan, forward);
  forward.weight(index) = middle - distance;
  const double down = forward.weight(index);
  const double loss_down = forward.loss();
  const bool kink = active_up != active_units(plan, forward);
  forward.weight(index) = middle;
  if (kink) return std::nullopt;
  return (loss_up - loss_down) / (up - down);  // the distance after rounding
}

class StepGradients : public testing::TestWithParam<ShapeCase> {};

// A loss of about 3 has a rounding error of some 2^-24 of itself, so the difference quotient has
// 2e-7 / 2h. Its other error is h^2 / 6 times a third derivative of at most one tenth. At h = 2^-6
// both are some 1e-5. Gradients are up to a tenth.
TEST_P(StepGradients, AgreeWithFiniteDifferencesOfTheLoss) {
  constexpr float distance = 0x1p-6f;
  constexpr double bound = 3e-5;
  constexpr int trials_a_tensor = 24;
  const ShapeCase& shape = GetParam();
  const StepPlan plan = plan_of(knobs_of(shape, OptimKind::sgd));
  const auto device = make_reference_device(1);
  const std::vector<float> gradients = device->load(plan)->run({0, 1, true}).tensors.at(1).values;
  StepByHand forward(plan);
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  const auto hidden = static_cast<std::size_t>(shape.hidden);
  double largest_error = 0;
  int kinks = 0;
  int compared = 0;
  std::size_t first = 0;
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
    for (const std::size_t count : {hidden * hidden, hidden}) {
      for (int trial = 0; trial < trials_a_tensor; ++trial) {
        const std::size_t index = first + random.below(count);
        const auto expected = slope(plan, forward, index, distance);
        kinks += expected ? 0 : 1;
        if (!expected) continue;
        ++compared;
        const double error = std::abs(gradients[index] - *expected);
        largest_error = std::max(largest_error, error);
        EXPECT_LE(error, bound) << "weight " << index << " of layer " << layer << ": gradient "
                                << gradients[index] << ", difference quotient " << *expected;
      }
      first += count;
    }
  }
  EXPECT_GE(compared, trials_a_tensor) << kinks << " kinks";
  std::printf("largest error %.1e over %d weights, %d kinks\n", largest_error, compared, kinks);
}

INSTANTIATE_TEST_SUITE_P(Every, StepGradients, testing::ValuesIn(shapes),
                         [](const auto& shape) { return shape.param.name; });

const char* name_of(OptimKind kind) {
  constexpr const char* names[] = {"sgd", "adamw", "lion", "momentum"};
  return names[static_cast<std::size_t>(kind)];
}

class StepUpdates : public testing::TestWithParam<std::tuple<ShapeCase, OptimKind>> {};

double largest_difference(const std::vector<float>& got, const std::vector<double>& expected) {
  EXPECT_EQ(got.size(), expected.size());
  double largest = 0;
  for (std::size_t index = 0; index < got.size(); ++index)
    largest = std::max(largest, std::abs(got[index] - expected[index]));
  return largest;
}

// In fp32, rounding changes a weight of at most 1/2 by 2^-26 per step, and a gradient of at most 1
// by some 2^-24 in all. AdamW divides by the gradient's own size, so the direction of a tiny
// gradient may be wrong by a share. This moves a weight by that share of the learning rate, 1e-4.
// The measured differences are at most a third of the bounds.
TEST_P(StepUpdates, AgreeWithATextbookForTenSteps) {
  const auto& [shape, optimizer] = GetParam();
  const Knobs knobs = knobs_of(shape, optimizer);
  const StepPlan plan = plan_of(knobs);
  const auto device = make_reference_device(2);
  const auto step = device->load(plan);
  TextbookStep textbook(plan, knobs);
  double weight_error = 0;
  double gradient_error = 0;
  for (int index = 0; index < 10; ++index) {
    SCOPED_TRACE("step " + std::to_string(index));
    const double loss = textbook.run();
    const StepResult result = step->run({0, 1, true});
    ASSERT_NEAR(result.losses.at(0), loss, 2e-6 * loss);
    weight_error = std::max(weight_error, largest_difference(result.tensors.at(0).values,
                                                             textbook.parameters().flat()));
    gradient_error = std::max(gradient_error, largest_difference(result.tensors.at(1).values,
                                                                 textbook.gradients().flat()));
  }
  EXPECT_LE(weight_error, optimizer == OptimKind::sgd ? 2e-7 : 5e-7);
  EXPECT_LE(gradient_error, 3e-7);
  std::printf("largest error of a weight %.1e, of a gradient %.1e\n", weight_error, gradient_error);
}

INSTANTIATE_TEST_SUITE_P(Every, StepUpdates,
                         testing::Combine(testing::ValuesIn(shapes),
                                          testing::Values(OptimKind::sgd, OptimKind::adamw,
                                                          OptimKind::lion, OptimKind::momentum)),
                         [](const auto& both) {
                           return std::get<0>(both.param).name + '_' +
                                  name_of(std::get<1>(both.param));
                         });

TEST(StepOfBytes, IsThatOfTheWordsThatALoaderWouldHaveDecoded) {
  ShapeCase shape = {"", 3, 16, 5, 400};
  const StepPlan of_words = plan_of(knobs_of(shape, OptimKind::sgd));
  shape.format = BatchFormat::uint8;
  const StepPlan of_bytes = plan_of(knobs_of(shape, OptimKind::sgd));
  StepByHand decoding(of_bytes);
  StepByHand finished(of_words);
  const auto bytes = std::as_bytes(decoding.numbers("device batch"));
  const std::span<float> words = finished.numbers("device batch");
  ASSERT_EQ(bytes.size(), words.size());
  for (std::size_t i = 0; i < bytes.size(); ++i)
    words[i] = static_cast<float>((std::to_integer<int>(bytes[i]) - 127.5) / 127.5);
  EXPECT_EQ(decoding.loss(), finished.loss());
  EXPECT_EQ(decoding.gradients(), finished.gradients());
}

class StepLearns : public testing::TestWithParam<OptimKind> {};

// Four batches repeat; after each hundred passes over them the loss is lower than before.
TEST_P(StepLearns, ItsFewBatches) {
  const ShapeCase shape = {"", 2, 16, 4, {}};
  const auto device = make_reference_device(3);
  const StepPlan plan = plan_of(knobs_of(shape, GetParam()));
  const auto step = device->load(plan);
  std::vector<double> means;
  for (int period = 0; period < 6; ++period) {
    const std::vector<float> losses = step->run({0, 400}).losses;
    means.push_back(std::accumulate(losses.begin(), losses.end(), 0.0) / 400);
    if (period == 0) continue;
    EXPECT_LT(means[period], means[period - 1]) << "period " << period;
  }
  EXPECT_LT(means.back(), 0.75 * means.front());
  std::printf("mean loss %.3f, then %.3f\n", means.front(), means.back());
}

INSTANTIATE_TEST_SUITE_P(Every, StepLearns,
                         testing::Values(OptimKind::sgd, OptimKind::adamw, OptimKind::lion,
                                         OptimKind::momentum),
                         [](const auto& optimizer) { return name_of(optimizer.param); });

}  // namespace
}  // namespace stepgate
