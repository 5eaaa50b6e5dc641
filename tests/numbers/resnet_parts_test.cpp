// SPDX-License-Identifier: MIT
// Compares a ResNet's step whose batch has parts with steps of the parts alone: gradients add up,
// and every part has its own batch statistics.
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <vector>

#include "plan/testing/plan_by_hand.h"
#include "tests/numbers/relative_error.h"
#include "tests/numbers/step_by_hand.h"

namespace stepgate {
namespace {

constexpr std::int64_t samples_of_part = 2;

Knobs resnet_of(std::int64_t parts, ZeroGrad zero = ZeroGrad::none) {
  Knobs knobs;
  knobs.transfer.host = HostMemory::resident;
  knobs.model.kind = ModelKind::resnet;
  knobs.model.layers = 14;
  knobs.model.width = 8;
  knobs.model.image = 32;
  knobs.model.classes = 10;
  knobs.optim.kind = OptimKind::momentum;
  knobs.memory.zero_grad = zero;
  knobs.batch.size = parts * samples_of_part;
  knobs.batch.accumulate = parts;
  return knobs;
}

std::vector<float> all_of(std::span<const float> numbers) {
  return {numbers.begin(), numbers.end()};
}

struct Errors {
  double gradients = 0, running = 0, losses = 0;
};

Errors errors_of_parts(const StepPlan& plan, std::int64_t parts) {
  StepByHand step(plan);
  const StepPlan of_part = plan_of(resnet_of(1));
  StepByHand alone(of_part);
  std::ranges::copy(step.numbers("weights"), alone.numbers("weights").begin());
  const std::span<const float> batch = step.numbers("device batch");
  std::vector<float> mean(step.numbers("gradients").size()), losses;
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::span<float> own = alone.numbers("device batch");
    std::ranges::copy(batch.subspan(static_cast<std::size_t>(part) * own.size(), own.size()),
                      own.begin());
    const std::vector<float> gradients = alone.gradients();
    for (std::size_t i = 0; i < mean.size(); ++i)
      mean[i] += gradients[i] / static_cast<float>(parts);
    losses.insert(losses.end(), alone.numbers("row losses").begin(),
                  alone.numbers("row losses").end());
  }
  return {.gradients = relative_error(step.gradients(), mean),
          .running = relative_error(all_of(step.numbers("running statistics")),
                                    all_of(alone.numbers("running statistics"))),
          .losses = relative_error(all_of(step.numbers("row losses")), losses)};
}

TEST(ResnetParts, AreStepsOfTheirOwnWhoseGradientsAddUp) {
  for (const ZeroGrad zero : {ZeroGrad::none, ZeroGrad::memset}) {
    const Errors errors = errors_of_parts(plan_of(resnet_of(3, zero)), 3);
    EXPECT_LT(errors.gradients, 1e-6);
    EXPECT_EQ(errors.running, 0);
    EXPECT_EQ(errors.losses, 0);
  }
}

// The plan of the unsplit batch has other gradients and other statistics, since its norms see it
// whole.
TEST(ResnetParts, AreNotTheWholeBatch) {
  Knobs whole = resnet_of(3);
  whole.batch.accumulate = 1;
  const Errors errors = errors_of_parts(plan_of(whole), 3);
  EXPECT_GT(errors.gradients, 1e-2);
  EXPECT_GT(errors.running, 1e-2);
  EXPECT_GT(errors.losses, 1e-3);
}

}  // namespace
}  // namespace stepgate
