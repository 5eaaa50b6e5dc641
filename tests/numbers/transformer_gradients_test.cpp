// SPDX-License-Identifier: MIT
// Compares a transformer's gradients with finite differences of its own loss. Its blocks are those
// of a GPT or of a Llama, also with tied embeddings. pytorch_transformer_test.cpp compares its
// numbers with those of PyTorch.
#include <cmath>
#include <cstdio>
#include <functional>
#include <ostream>
#include <random>

#include "base/random.h"
#include "device/reference/reference_device.h"
#include "plan/compose/transformer/transformer_shape.h"
#include "tests/contract/device_contract.h"
#include "tests/numbers/step_by_hand.h"

namespace stepgate {

struct BlockCase {
  std::string name;
  void (*set)(Knobs&);
};

// Prints the case in GoogleTest's messages.
void PrintTo(const BlockCase& block, std::ostream* out) {
  *out << block.name;
}

namespace {

Knobs small_gpt() {
  Knobs knobs;
  knobs.transfer.host = HostMemory::resident;
  knobs.model = {.kind = ModelKind::transformer, .layers = 2, .hidden = 16};
  knobs.model.heads = 2;
  knobs.model.seq = 6;
  knobs.model.vocab = 13;
  knobs.batch.size = 3;
  knobs.optim.kind = OptimKind::adamw;
  return knobs;
}

void make_llama(Knobs& knobs) {
  knobs.model.norm = ModelNorm::rms;
  knobs.model.mlp = ModelMlp::swiglu;
  knobs.model.ffn = 40;
  knobs.model.position = ModelPosition::rope;
  knobs.model.tied = true;
  knobs.model.heads = 2;
  knobs.model.kv_heads = 1;
}

void pack(Knobs& knobs) {
  knobs.batch.lengths = {2, 6, 4};
  knobs.batch.packed = true;
}

const BlockCase blocks[] = {
    {"gpt", [](Knobs&) {}},
    {"gpt_padded",
     [](Knobs& knobs) {
       knobs.batch.lengths = {2, 6, 4};
     }},
    {"gpt_padded_unfused",
     [](Knobs& knobs) {
       knobs.batch.lengths = {2, 6, 4};
       knobs.launch.fuse = Fuse::none;
     }},
    {"gpt_packed", pack},
    {"llama_packed_recomputed",
     [](Knobs& knobs) {
       make_llama(knobs);
       pack(knobs);
       knobs.memory.checkpoint_every = 1;
     }},
    {"narrow_mlp", [](Knobs& knobs) { knobs.model.ffn = 24; }},
    {"swiglu", [](Knobs& knobs) { knobs.model.mlp = ModelMlp::swiglu; }},
    {"rope", [](Knobs& knobs) { knobs.model.position = ModelPosition::rope; }},
    {"tied", [](Knobs& knobs) { knobs.model.tied = true; }},
    {"grouped_queries",
     [](Knobs& knobs) {
       knobs.model.heads = 4;
       knobs.model.kv_heads = 2;
     }},
    {"llama", make_llama},
    {"llama_without_biases",
     [](Knobs& knobs) {
       make_llama(knobs);
       knobs.model.bias = false;
     }},
    {"gpt_without_biases_unfused",
     [](Knobs& knobs) {
       knobs.model.bias = false;
       knobs.launch.fuse = Fuse::none;
     }},
    {"gpt_without_biases_in_parts",
     [](Knobs& knobs) {
       knobs.model.bias = false;
       knobs.memory.checkpoint_every = 1;
       knobs.batch.accumulate = 3;
     }},
    {"llama_pointwise",
     [](Knobs& knobs) {
       make_llama(knobs);
       knobs.launch.fuse = Fuse::pointwise;
     }},
    {"llama_unfused",
     [](Knobs& knobs) {
       make_llama(knobs);
       knobs.launch.fuse = Fuse::none;
     }},
    {"llama_recomputed_in_parts",
     [](Knobs& knobs) {
       make_llama(knobs);
       knobs.memory.checkpoint_every = 1;
       knobs.batch.accumulate = 3;
     }},
};

class TransformerGradients : public testing::TestWithParam<BlockCase> {};

// Returns the slope of the loss along a direction in the weights of one tensor.
double slope_along(StepByHand& step, const ParameterTensor& tensor,
                   const std::vector<double>& direction, double distance) {
  const std::span<float> weights = step.numbers("weights").subspan(
      static_cast<std::size_t>(tensor.first), static_cast<std::size_t>(tensor.elements));
  const std::vector<float> middle(weights.begin(), weights.end());
  const auto loss_at = [&](double way) {
    for (std::size_t i = 0; i < weights.size(); ++i)
      weights[i] = static_cast<float>(middle[i] + way * direction[i]);
    return step.loss();
  };
  // The difference is of fourth order: the embedding's numbers are small and normalised, so the
  // loss is strongly curved there.
  const double near = loss_at(distance) - loss_at(-distance);
  const double far = loss_at(2 * distance) - loss_at(-2 * distance);
  std::copy(middle.begin(), middle.end(), weights.begin());
  return (8 * near - far) / (12 * distance);
}

void scale_to_one(std::vector<double>& direction) {
  double squares = 0;
  for (const double value : direction) squares += value * value;
  for (double& value : direction) value /= std::sqrt(squares);
}

// Along the gradient, the difference quotient must be the gradient's norm; along a random
// direction, it must be the gradient's component in that direction. A loss of about 3 has an error
// of some 2^-23 of itself from stored intermediate numbers; the quotient has this error divided by
// the distance. The distance is a fraction of the spacing of a tensor's numbers, so that the error
// from the curvature of the loss is as small.
TEST_P(TransformerGradients, AgreeWithFiniteDifferencesOfTheLossInEveryTensor) {
  constexpr double off = 1e-6, relative = 1e-3;
  Knobs knobs = small_gpt();
  GetParam().set(knobs);
  const StepPlan plan = plan_of(knobs);
  const std::vector<float> gradients =
      make_reference_device(1)->load(plan)->run({0, 1, true}).tensors.at(1).values;
  StepByHand step(plan);
  EXPECT_EQ(step.gradients(), gradients) << "on the device, and one operation after the other";
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  double largest_error = 0, smallest_norm = 1;
  const ParameterTable table(transformer_shape(knobs));
  for (const ParameterTensor& tensor : table.tensors()) {
    SCOPED_TRACE(tensor.name);
    const double distance = tensor.scale / 32;
    const std::vector<double> gradient(gradients.begin() + tensor.first,
                                       gradients.begin() + tensor.first + tensor.elements);
    for (const bool is_random : {false, true, true}) {
      std::vector<double> direction = gradient;
      if (is_random) {
        for (double& value : direction) value = static_cast<double>(random.below(2001)) / 1000 - 1;
      }
      scale_to_one(direction);
      const double expected =
          std::inner_product(gradient.begin(), gradient.end(), direction.begin(), 0.0);
      if (!is_random) smallest_norm = std::min(smallest_norm, expected);
      const double slope = slope_along(step, tensor, direction, distance);
      EXPECT_NEAR(slope, expected, off / distance + relative * std::abs(expected));
      largest_error = std::max(largest_error, std::abs(slope - expected));
    }
  }
  std::printf("largest error %.1e, smallest gradient of a tensor %.1e\n", largest_error,
              smallest_norm);
}

INSTANTIATE_TEST_SUITE_P(Every, TransformerGradients, testing::ValuesIn(blocks),
                         [](const auto& block) { return block.param.name; });

// Compares with an untied head that has the embedding's weights: its gradient plus the embedding's
// gradient must equal the tied gradient.
TEST(TiedHead, HasTheSumOfBothGradients) {
  Knobs knobs = small_gpt();
  const StepPlan apart = plan_of(knobs);
  const ParameterTable table(transformer_shape(knobs));
  knobs.model.tied = true;
  const StepPlan tied = plan_of(knobs);
  const ParameterTable tied_table(transformer_shape(knobs));
  ASSERT_EQ(tied_table.tensors().size() + 1, table.tensors().size());
  StepByHand step_apart(apart), step_tied(tied);
  const auto place = [](const ParameterTable& of, std::size_t tensor) {
    return static_cast<std::size_t>(of.first_of(tensor));
  };
  for (std::size_t tensor = 0; tensor < tied_table.tensors().size(); ++tensor) {
    ASSERT_EQ(tied_table.tensors()[tensor].name, table.tensors()[tensor].name);
    for (std::size_t i = 0; i < static_cast<std::size_t>(table.tensors()[tensor].elements); ++i)
      step_apart.weight(place(table, tensor) + i) = step_tied.weight(place(tied_table, tensor) + i);
  }
  const auto elements = static_cast<std::size_t>(table.tensors()[table.embedding()].elements);
  for (std::size_t i = 0; i < elements; ++i) {
    step_apart.weight(place(table, table.head()) + i) =
        step_tied.weight(place(tied_table, tied_table.embedding()) + i);
  }
  const std::vector<float> d_apart = step_apart.gradients(), d_tied = step_tied.gradients();
  for (std::size_t i = 0; i < elements; ++i) {
    const double sum = static_cast<double>(d_apart[place(table, table.embedding()) + i]) +
                       d_apart[place(table, table.head()) + i];
    ASSERT_NEAR(d_tied[place(tied_table, tied_table.embedding()) + i], sum, 1e-7) << i;
  }
  for (std::size_t tensor = 1; tensor < tied_table.tensors().size(); ++tensor) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(table.tensors()[tensor].elements); ++i)
      ASSERT_EQ(d_tied[place(tied_table, tensor) + i], d_apart[place(table, tensor) + i]);
  }
}

class PaddedTable : public testing::TestWithParam<BlockCase> {};

// Padding rows of the table have nonzero numbers here, and must not affect the results.
TEST_P(PaddedTable, HasTheLossAndTheGradientsOfTheTableAlone) {
  Knobs knobs = small_gpt();
  GetParam().set(knobs);
  const StepPlan plain = plan_of(knobs);
  const ParameterTable plain_table(transformer_shape(knobs));
  knobs.model.vocab_multiple = 8;
  const StepPlan padded = plan_of(knobs);
  const ParameterTable padded_table(transformer_shape(knobs));
  StepByHand step_plain(plain), step_padded(padded);
  ASSERT_EQ(padded_table.tensors().size(), plain_table.tensors().size());
  const auto first_of = [](const ParameterTable& table, std::size_t tensor) {
    return static_cast<std::size_t>(table.tensors()[tensor].first);
  };
  const auto elements_of = [](const ParameterTable& table, std::size_t tensor) {
    return static_cast<std::size_t>(table.tensors()[tensor].elements);
  };
  for (std::size_t tensor = 0; tensor < plain_table.tensors().size(); ++tensor) {
    for (std::size_t i = 0; i < elements_of(plain_table, tensor); ++i) {
      step_padded.weight(first_of(padded_table, tensor) + i) =
          step_plain.weight(first_of(plain_table, tensor) + i);
    }
  }
  EXPECT_EQ(step_padded.loss(), step_plain.loss());
  const std::vector<float> d_padded = step_padded.gradients(), d_plain = step_plain.gradients();
  std::size_t beyond = 0;
  for (std::size_t tensor = 0; tensor < plain_table.tensors().size(); ++tensor) {
    SCOPED_TRACE(plain_table.tensors()[tensor].name);
    const std::size_t shared = elements_of(plain_table, tensor);
    for (std::size_t i = 0; i < elements_of(padded_table, tensor); ++i) {
      const float expected = i < shared ? d_plain[first_of(plain_table, tensor) + i] : 0.0f;
      ASSERT_EQ(d_padded[first_of(padded_table, tensor) + i], expected) << i;
    }
    beyond += elements_of(padded_table, tensor) - shared;
  }
  const std::size_t tables = knobs.model.tied ? 1 : 2;
  EXPECT_EQ(beyond, tables * (16 - 13) * static_cast<std::size_t>(knobs.model.hidden));
}

INSTANTIATE_TEST_SUITE_P(Every, PaddedTable, testing::ValuesIn(blocks),
                         [](const auto& block) { return block.param.name; });

}  // namespace
}  // namespace stepgate
