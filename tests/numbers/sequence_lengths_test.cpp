// SPDX-License-Identifier: MIT
// Tests that samples of several lengths have the same losses and gradients as each sample alone,
// whether padded to the longest or packed: padding has no effect, and samples do not affect each
// other.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "plan/testing/plan_by_hand.h"
#include "tests/numbers/step_by_hand.h"

namespace stepgate {
namespace {

constexpr std::int64_t seq = 7;

Knobs small_model(ModelPosition position) {
  Knobs knobs;
  knobs.transfer.host = HostMemory::resident;
  knobs.model = {.kind = ModelKind::transformer, .layers = 2, .hidden = 16};
  knobs.model.heads = 2;
  knobs.model.seq = seq;
  knobs.model.vocab = 13;
  knobs.model.position = position;
  knobs.model.positions =
      position == ModelPosition::learned ? std::optional<std::int64_t>(seq) : std::nullopt;
  knobs.optim.kind = OptimKind::adamw;
  return knobs;
}

// The lengths of a batch's samples, in its order: the longest first.
const std::vector<std::int64_t> lengths = {7, 3, 3, 2, 2, 1};
constexpr std::int64_t tokens = 18;

Knobs padded(ModelPosition position) {
  Knobs knobs = small_model(position);
  knobs.batch.size = std::ssize(lengths);
  knobs.batch.lengths = {3, 7, 2, 3, 1, 2};
  return knobs;
}

Knobs packed(ModelPosition position) {
  Knobs knobs = padded(position);
  knobs.batch.packed = true;
  return knobs;
}

Knobs alone(ModelPosition position, std::int64_t length) {
  Knobs knobs = small_model(position);
  knobs.batch.size = 1;
  knobs.model.seq = length;
  return knobs;
}

// Returns a word of a sample, which has one word per token and one for the token after the last.
float word(std::size_t sample, std::int64_t place) {
  return static_cast<float>(sample * 100 + static_cast<std::size_t>(place)) + 0.25f;
}

// Writes the samples into the batch; padded samples have `words_of_padded` words each.
void fill_batch(StepByHand& step, std::int64_t words_of_padded) {
  const std::span<float> batch = step.numbers("device batch");
  std::size_t next = 0;
  for (std::size_t sample = 0; sample < lengths.size(); ++sample) {
    const std::int64_t words = words_of_padded > 0 ? words_of_padded : lengths[sample] + 1;
    for (std::int64_t place = 0; place < words; ++place)
      batch[next++] = word(place <= lengths[sample] ? sample : 50 + sample, place);
  }
  EXPECT_LE(next, batch.size());
}

class SequenceLengths : public testing::TestWithParam<ModelPosition> {};

struct Numbers {
  double loss = 0;
  std::vector<float> gradients;
};

Numbers of_batch(const Knobs& knobs, std::int64_t words_of_padded) {
  const StepPlan plan = plan_of(knobs);
  StepByHand step(plan);
  fill_batch(step, words_of_padded);
  const double loss = step.loss();
  return {loss, step.gradients()};
}

TEST_P(SequenceLengths, PackedHaveTheNumbersOfPadded) {
  const Numbers with_padding = of_batch(padded(GetParam()), seq + 1);
  const Numbers without = of_batch(packed(GetParam()), 0);
  EXPECT_EQ(without.loss, with_padding.loss);
  // Without padding, rows are added in other groups.
  ASSERT_EQ(without.gradients.size(), with_padding.gradients.size());
  for (std::size_t i = 0; i < without.gradients.size(); ++i)
    ASSERT_NEAR(without.gradients[i], with_padding.gradients[i], 1e-6) << i;
}

TEST_P(SequenceLengths, HaveTheLossAndTheGradientsOfEachAloneByItsTokens) {
  const Numbers together = of_batch(packed(GetParam()), 0);
  double loss = 0;
  std::vector<double> gradients(together.gradients.size());
  for (std::size_t sample = 0; sample < lengths.size(); ++sample) {
    const StepPlan plan = plan_of(alone(GetParam(), lengths[sample]));
    StepByHand step(plan);
    const std::span<float> batch = step.numbers("device batch");
    for (std::int64_t place = 0; place <= lengths[sample]; ++place)
      batch[static_cast<std::size_t>(place)] = word(sample, place);
    const double share = static_cast<double>(lengths[sample]) / static_cast<double>(tokens);
    loss += share * step.loss();
    const std::vector<float> own = step.gradients();
    ASSERT_EQ(own.size(), gradients.size());
    for (std::size_t i = 0; i < own.size(); ++i) gradients[i] += share * own[i];
  }
  EXPECT_NEAR(together.loss, loss, 1e-6);
  for (std::size_t i = 0; i < gradients.size(); ++i)
    ASSERT_NEAR(together.gradients[i], gradients[i], 1e-6) << i;
}

TEST_P(SequenceLengths, OfOneLengthAreAPlainBatch) {
  Knobs plain = small_model(GetParam());
  plain.batch.size = 4;
  const StepPlan plain_plan = plan_of(plain);
  StepByHand expected(plain_plan);
  for (const bool is_packed : {false, true}) {
    Knobs knobs = plain;
    knobs.batch.lengths = {seq, seq};
    knobs.batch.packed = is_packed;
    const StepPlan plan = plan_of(knobs);
    StepByHand step(plan);
    EXPECT_EQ(step.loss(), expected.loss());
    EXPECT_EQ(step.gradients(), expected.gradients());
  }
}

INSTANTIATE_TEST_SUITE_P(Every, SequenceLengths,
                         testing::Values(ModelPosition::learned, ModelPosition::rope),
                         [](const auto& position) {
                           return position.param == ModelPosition::rope ? "rope" : "learned";
                         });

}  // namespace
}  // namespace stepgate
