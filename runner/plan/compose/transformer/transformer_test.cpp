// SPDX-License-Identifier: MIT
// Tests the operations of a transformer's step, by how it is fused, split and recomputed.
// tests/numbers/pytorch_transformer_test.cpp checks its numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "kernels/kernels.h"
#include "plan/analyse/find_races.h"
#include "plan/compose/transformer/transformer_shape.h"
#include "plan/testing/counted.h"
#include "plan/testing/plan_by_hand.h"

namespace stepgate {
namespace {

template <class Set>
StepPlan transformer_with(Set set) {
  Knobs knobs = small_transformer();
  set(knobs);
  return plan_of(knobs);
}

// Sets all knobs in which a Llama differs from a GPT.
void make_llama(Knobs& knobs) {
  knobs.model.norm = ModelNorm::rms;
  knobs.model.mlp = ModelMlp::swiglu;
  knobs.model.position = ModelPosition::rope;
  knobs.model.tied = true;
}

std::int64_t activation_bytes(const StepPlan& plan) {
  std::int64_t bytes = 0;
  for (const Buffer& buffer : plan.buffers) {
    if (buffer.purpose == Purpose::activations) bytes += buffer.bytes;
  }
  return bytes;
}

TEST(Transformer, HasTheParametersOfAGpt) {
  const TransformerShape shape = transformer_shape(small_transformer());
  std::int64_t parameters = 0;
  const ParameterTable table(shape);
  for (const ParameterTensor& tensor : table.tensors()) parameters += tensor.elements;
  const std::int64_t c = 32, of_a_block = 12 * c * c + 13 * c;
  EXPECT_EQ(parameters, 4 * of_a_block + (50 + 128) * c + 2 * c + 50 * c);
}

TEST(Transformer, HasTheParametersOfALlamaWithBiases) {
  Knobs knobs = small_transformer();
  make_llama(knobs);
  const ParameterTable table(transformer_shape(knobs));
  std::int64_t parameters = 0;
  for (const ParameterTensor& tensor : table.tensors()) parameters += tensor.elements;
  const std::int64_t c = 32, f = 128;  // 8/3 of 32 up to a multiple of 64
  const std::int64_t attention = 4 * c * c + 4 * c, mlp = 3 * c * f + 2 * f + c;
  EXPECT_EQ(parameters, 4 * (attention + mlp + 2 * c) + 50 * c + c) << "no positions, no head";
  EXPECT_EQ(table.head(), table.embedding());
}

TEST(Transformer, HasNeitherBiasesNorWhatTheyTakeWhereGemmsHaveNone) {
  const auto parameters = [](const Knobs& knobs) {
    std::int64_t elements = 0;
    const ParameterTable table(transformer_shape(knobs));
    for (const ParameterTensor& tensor : table.tensors()) elements += tensor.elements;
    return elements;
  };
  for (const bool llama : {false, true}) {
    for (const Fuse fuse : {Fuse::none, Fuse::pointwise, Fuse::attention}) {
      Knobs with = small_transformer();
      if (llama) make_llama(with);
      with.launch.fuse = fuse;
      Knobs without = with;
      without.model.bias = false;
      const TransformerShape shape = transformer_shape(with);
      EXPECT_EQ(parameters(with) - parameters(without),
                4 * (shape.qkv() + shape.up() + 2 * shape.hidden));
      const StepPlan plan = plan_of(without);
      for (const std::string_view kernel :
           {kernels::BiasActivation::name, kernels::Linear::name, kernels::BiasGelu::name,
            kernels::ColumnParts::name, kernels::ResidualBiasLayerNorm::name,
            kernels::ResidualBiasRmsNorm::name})
        EXPECT_EQ(launches_of(plan, kernel), 0) << kernel;
      for (const Buffer& buffer : plan.buffers) EXPECT_NE(buffer.name, "bias partials");
      const std::int64_t sums = launches_of(plan_of(with), kernels::SumParts::name);
      EXPECT_EQ(launches_of(plan, kernels::SumParts::name), sums - 4 * 4) << "a block's biases";
      EXPECT_LT(activation_bytes(plan), activation_bytes(plan_of(with)));
    }
  }
}

// Each factor of a GEMM is written once: a weight in a step, its input and the gradient of its
// result in each part of a batch, and an input also where a block is computed again.
TEST(Transformer, WritesEachFactorOfAGemmInFp8Once) {
  constexpr std::int64_t gemms = 4 * 4;
  for (const ModelFp8 fp8 : {ModelFp8::current, ModelFp8::delayed}) {
    for (const auto& [parts, every] : {std::pair{1, 0}, {2, 0}, {1, 1}, {2, 3}}) {
      const auto plan_with = [&, parts = parts, every = every](ModelFp8 scales) {
        return transformer_with([&](Knobs& knobs) {
          knobs.batch.accumulate = parts;
          knobs.memory.checkpoint_every = every;
          knobs.model.fp8 = scales;
        });
      };
      const StepPlan bf16 = plan_with(ModelFp8::none), plan = plan_with(fp8);
      const bool delayed = fp8 == ModelFp8::delayed;
      const std::int64_t written = gemms + parts * gemms * (every > 0 ? 3 : 2);
      EXPECT_EQ(launches_of(plan, "quantize_fp8"), delayed ? 0 : written);
      EXPECT_EQ(launches_of(plan, "amax_parts"), delayed ? 0 : written);
      EXPECT_EQ(launches_of(plan, "quantize_fp8_delayed"), delayed ? written : 0);
      EXPECT_EQ(launches_of(plan, "move_amax_histories"), delayed ? 1 : 0);
      // The head's three GEMMs stay in bf16.
      EXPECT_EQ(launches_of(plan, "matmul"), 3 * parts);
      EXPECT_EQ(launches_of(plan, "linear"), 0);
      EXPECT_EQ(launches_of(plan, "matmul_fp8") + launches_of(plan, "linear_fp8"),
                launches_of(bf16, "matmul") + launches_of(bf16, "linear") - 3 * parts);
      EXPECT_NEAR(facts_of(plan).model_flops / facts_of(bf16).model_flops, 1, 1e-12);
      EXPECT_EQ(find_race(plan), std::nullopt);
    }
  }
}

// A block keeps its inputs in 8 bits instead of 16, and its weights are there three times.
TEST(Transformer, KeepsLessForTheBackwardPassInFp8) {
  const auto growth_by_a_block = [](ModelFp8 fp8) {
    const auto bytes = [&](std::int64_t layers) {
      return activation_bytes(transformer_with([&](Knobs& knobs) {
        knobs.model.layers = layers;
        knobs.model.fp8 = fp8;
      }));
    };
    return bytes(5) - bytes(4);
  };
  constexpr std::int64_t rows = 8 * 128, c = 32;
  EXPECT_EQ(growth_by_a_block(ModelFp8::none) - growth_by_a_block(ModelFp8::current),
            rows * (2 * 6 * c - 7 * c) - 2 * 12 * c * c - 12 * 16);
}

TEST(Transformer, HasAnMlpAsWideAsItIsTold) {
  const auto ffn = [](ModelMlp mlp, std::int64_t hidden, std::optional<std::int64_t> told) {
    Knobs knobs = small_transformer();
    knobs.model.mlp = mlp;
    knobs.model.hidden = hidden;
    knobs.model.ffn = told;
    const TransformerShape shape = transformer_shape(knobs);
    return std::pair(static_cast<std::int64_t>(shape.ffn), static_cast<std::int64_t>(shape.up()));
  };
  using Widths = std::pair<std::int64_t, std::int64_t>;
  EXPECT_EQ(ffn(ModelMlp::gelu, 768, {}), Widths(3072, 3072));
  EXPECT_EQ(ffn(ModelMlp::gelu, 768, 1000), Widths(1000, 1000));
  EXPECT_EQ(ffn(ModelMlp::swiglu, 768, {}), Widths(2048, 4096));
  EXPECT_EQ(ffn(ModelMlp::swiglu, 2048, {}), Widths(5504, 11008));
  EXPECT_EQ(ffn(ModelMlp::swiglu, 4096, 11008), Widths(11008, 22016));
}

TEST(Transformer, FillsItsFlatBuffersWithTensorsThatDoNotOverlap) {
  for (const bool llama : {false, true}) {
    Knobs knobs = small_transformer();
    if (llama) make_llama(knobs);
    const ParameterTable table(transformer_shape(knobs));
    std::int64_t end = 0, described = 0;
    for (const ParameterTensor& tensor : table.tensors()) {
      EXPECT_GE(tensor.first, end) << tensor.name;
      end = tensor.first + tensor.elements;
    }
    EXPECT_LE(end, table.elements());
    for (const ContentPart& part : table.contents()) described += part.elements;
    EXPECT_EQ(described, table.elements());
  }
}

TEST(Transformer, FusesMoreStepByStep) {
  const auto fused = [](Fuse fuse) {
    return transformer_with([=](Knobs& knobs) { knobs.launch.fuse = fuse; });
  };
  const StepPlan none = fused(Fuse::none);
  const StepPlan pointwise = fused(Fuse::pointwise);
  const StepPlan attention = fused(Fuse::attention);
  const StepPlan epilogue = fused(Fuse::epilogue);
  const auto launches = [](const StepPlan& plan) {
    return counted(plan, Metric::launches_per_step).value();
  };
  EXPECT_GT(launches(none), launches(pointwise));
  EXPECT_GT(launches(pointwise), launches(attention));
  EXPECT_EQ(launches_of(none, "linear"), 0);
  EXPECT_EQ(launches_of(none, "add"), 8);
  EXPECT_EQ(launches_of(pointwise, "add"), 0);
  EXPECT_EQ(launches_of(pointwise, "bias_activation"), 0);
  EXPECT_EQ(launches_of(pointwise, "linear"), 4);  // qkv: other biases are added by later kernels
  EXPECT_EQ(launches_of(pointwise, "residual_bias_layer_norm"), 8);
  EXPECT_EQ(launches_of(none, "column_parts"), 16);
  EXPECT_EQ(launches_of(pointwise, "column_parts"), 8);  // qkv and up
  EXPECT_EQ(launches_of(pointwise, "causal_softmax"), 4);
  EXPECT_EQ(launches_of(attention, "causal_softmax"), 0);
  EXPECT_EQ(launches_of(attention, "attention"), 4);
  EXPECT_EQ(launches_of(epilogue, "attention"), 4);
}

TEST(Transformer, HasItsGeluInTheEpiloguesOfGemms) {
  const StepPlan kernels = plan_of(small_transformer());
  const auto with_epilogues = [](std::int64_t every) {
    return transformer_with([=](Knobs& knobs) {
      knobs.launch.fuse = Fuse::epilogue;
      knobs.memory.checkpoint_every = every;
    });
  };
  const StepPlan epilogues = with_epilogues(0);
  EXPECT_EQ(launches_of(epilogues, "linear_gelu"), 4);
  EXPECT_EQ(launches_of(epilogues, "matmul_gelu_gradient"), 4);
  EXPECT_EQ(launches_of(epilogues, "bias_gelu") + launches_of(epilogues, "gelu_gradient"), 0);
  EXPECT_EQ(launches_of(epilogues, "matmul"), launches_of(kernels, "matmul") - 2 * 4);
  EXPECT_EQ(counted(epilogues, Metric::launches_per_step).value(),
            counted(kernels, Metric::launches_per_step).value() - 2 * 4);
  EXPECT_EQ(activation_bytes(epilogues), activation_bytes(kernels));
  EXPECT_EQ(launches_of(with_epilogues(1), "linear_gelu"), 8) << "every block twice";
}

TEST(Transformer, HasNoScoresInMemoryWithTiledAttention) {
  const auto held = [](Fuse fuse, std::int64_t seq) {
    return transformer_with([=](Knobs& knobs) {
      knobs.launch.fuse = fuse;
      knobs.model.attention_workspace_bytes = 0;
      knobs.model.seq = seq;
      knobs.batch.size = 1024 / seq;  // as many tokens
    });
  };
  const std::int64_t tiled =
      activation_bytes(held(Fuse::attention, 512)) - activation_bytes(held(Fuse::attention, 128));
  const std::int64_t materialised =
      activation_bytes(held(Fuse::pointwise, 512)) - activation_bytes(held(Fuse::pointwise, 128));
  // The difference is the scores of four blocks and the gradient of one, with 2 heads and 1024
  // tokens.
  EXPECT_EQ(materialised - tiled, 5 * 2 * 1024 * (512 - 128) * 2);
}

// The gradient keeps a sum for each number of q instead of the scores.
TEST(Transformer, HasNoScoresInMemoryWhereSumsOfAttentionHaveAnyOrder) {
  const auto held = [](AttentionSums sums, std::int64_t workspace) {
    return activation_bytes(transformer_with([=](Knobs& knobs) {
      knobs.launch.attention_sums = sums;
      knobs.model.attention_workspace_bytes = workspace;
      knobs.model.seq = 512;
      knobs.batch.size = 2;
    }));
  };
  constexpr std::int64_t scores = 2 * 2 * 512 * 512 * 2, sums = 2 * 512 * 32 * 4;
  EXPECT_EQ(held(AttentionSums::fixed, scores << 4) - held(AttentionSums::any, scores << 4),
            scores - sums);
  EXPECT_EQ(held(AttentionSums::fixed, 0), held(AttentionSums::any, 0)) << "it is our own kernel";
}

TEST(Transformer, TurnsQueriesAndKeysOnceForwardAndBackHoweverMuchIsFused) {
  for (const Fuse fuse : {Fuse::none, Fuse::pointwise, Fuse::attention}) {
    const StepPlan plan = transformer_with([=](Knobs& knobs) {
      make_llama(knobs);
      knobs.launch.fuse = fuse;
    });
    EXPECT_EQ(launches_of(plan, "rope"), 2 * 4);
    EXPECT_EQ(launches_of(plan, "swiglu"), 4);
    EXPECT_EQ(launches_of(plan, "swiglu_gradient"), 4);
    EXPECT_EQ(launches_of(plan, "gelu") + launches_of(plan, "bias_gelu"), 0);
    EXPECT_EQ(launches_of(plan, "embedding"), 0);
    EXPECT_EQ(launches_of(plan, "token_embedding"), 1);
    EXPECT_EQ(launches_of(plan, "bias_gradient"), 0) << "no positions learn";
  }
  const StepPlan recomputed = transformer_with([](Knobs& knobs) {
    make_llama(knobs);
    knobs.memory.checkpoint_every = 1;
  });
  EXPECT_EQ(launches_of(recomputed, "rope"), 3 * 4);
}

TEST(Transformer, SharesHeadsOfKeysAndValues) {
  const auto of_heads = [](std::optional<std::int64_t> kv_heads) {
    Knobs knobs = small_transformer();
    knobs.model.heads = 4;
    knobs.model.kv_heads = kv_heads;
    return knobs;
  };
  const auto qkv = [&](std::optional<std::int64_t> kv_heads) {
    const ParameterTable table(transformer_shape(of_heads(kv_heads)));
    return table.tensors()[table.block(0).qkv].elements;
  };
  EXPECT_EQ(qkv({}), 3 * 32 * 32);
  EXPECT_EQ(qkv(1), (32 + 2 * 8) * 32);
  EXPECT_EQ(qkv(2), (32 + 2 * 16) * 32);
  // The bytes of q, k and v and of their gradients. Heads are 8 wide.
  const auto qkv_bytes = [](const StepPlan& plan) {
    std::int64_t bytes = 0;
    for (const Buffer& buffer : plan.buffers)
      if (buffer.name.find("qkv") != std::string::npos) bytes += buffer.bytes;
    return bytes;
  };
  constexpr std::int64_t rows_of_bf16 = 8 * 128 * 2;
  for (const Fuse fuse : {Fuse::none, Fuse::pointwise, Fuse::attention, Fuse::epilogue}) {
    Knobs knobs = of_heads(1);
    knobs.launch.fuse = fuse;
    const StepPlan plan = plan_of(knobs);
    knobs.model.kv_heads = 4;
    const StepPlan unshared = plan_of(knobs);
    const bool repeats = fuse < Fuse::attention;  // GEMMs need keys and values of every head
    EXPECT_EQ(launches_of(plan, "repeat_heads"), repeats ? 4 : 0);
    EXPECT_EQ(launches_of(plan, "repeat_heads_gradient"), repeats ? 4 : 0);
    EXPECT_EQ(launches_of(unshared, "repeat_heads"), 0) << "nothing is shared";
    EXPECT_EQ(qkv_bytes(unshared), (4 + 1) * rows_of_bf16 * 3 * 32) << "4 blocks and gradients";
    EXPECT_EQ(qkv_bytes(plan), repeats ? qkv_bytes(unshared) + rows_of_bf16 * (32 + 2 * 8)
                                       : (4 + 1) * rows_of_bf16 * (32 + 2 * 8));
  }
}

TEST(Transformer, AttendsToTheHeadsThatAreShared) {
  const StepPlan plan = transformer_with([](Knobs& knobs) {
    knobs.model.heads = 4;
    knobs.model.kv_heads = 2;
  });
  for (const Operation& operation : plan.operations) {
    const auto* launch = std::get_if<LaunchKernel>(&operation.action);
    if (launch == nullptr || !kernel(launch->kernel).library.is_attention) continue;
    const auto shape = launch->shape.as<kernels::Attention>();
    EXPECT_EQ(shape.heads, 4);
    EXPECT_EQ(shape.kv_heads, 2);
    EXPECT_EQ(launch->operands.front().bytes, 8 * 128 * (32 + 2 * 16) * 2);
    EXPECT_EQ(launch->operands.back().bytes,
              operation.phase == Phase::backward ? 8 * 128 * (32 + 2 * 16) * 2 : 8 * 128 * 4 * 4);
  }
}

TEST(Transformer, RoundsItsTableUpToRowsThatAreNoTokens) {
  Knobs knobs = small_transformer();
  knobs.model.vocab = 50;
  const StepPlan plain = plan_of(knobs);
  knobs.model.vocab_multiple = 16;
  const StepPlan padded = plan_of(knobs);
  int losses = 0;
  for (const Operation& operation : padded.operations) {
    const auto* launch = std::get_if<LaunchKernel>(&operation.action);
    if (launch == nullptr) continue;
    if (launch->kernel.name() == kernels::IngestTokens::name) {
      EXPECT_EQ(launch->attributes.as<kernels::IngestTokens>().vocabulary, 50);
    }
    if (launch->kernel.name() != kernels::CrossEntropy::name) continue;
    ++losses;
    EXPECT_EQ(launch->shape.as<kernels::CrossEntropy>().columns, 64);
    EXPECT_EQ(launch->attributes.as<kernels::CrossEntropy>().classes, 50);
  }
  EXPECT_EQ(losses, 1);
  EXPECT_GE(padded.param_bytes - plain.param_bytes,
            2 * 14 * knobs.model.hidden * bytes_of(knobs.model.dtype));
  knobs.model.vocab_multiple = 50;  // nothing to round
  EXPECT_EQ(plan_of(knobs).operations.size(), plain.operations.size());
  EXPECT_EQ(plan_of(knobs).param_bytes, plain.param_bytes);
}

// The order of writers is fixed: the head's gradient overwrites the table's, and the embedding's is
// added to it.
TEST(Transformer, AddsTheEmbeddingsGradientToThatOfATiedHead) {
  const auto writers = [](std::int64_t parts, ZeroGrad zero) {
    const StepPlan plan = transformer_with([=](Knobs& knobs) {
      knobs.model.tied = true;
      knobs.batch.accumulate = parts;
      knobs.memory.zero_grad = zero;
    });
    const ParameterTable table(transformer_shape([] {
      Knobs knobs = small_transformer();
      knobs.model.tied = true;
      return knobs;
    }()));
    std::string names;
    for (const Operation& operation : plan.operations) {
      if (operation.phase != Phase::backward) continue;
      const auto* launch = std::get_if<LaunchKernel>(&operation.action);
      const BufferUse use =
          launch ? launch->operands.back() : std::get_if<FillZero>(&operation.action)->what;
      const bool is_gradient =
          plan.buffers[static_cast<std::size_t>(use.buffer)].purpose == Purpose::gradients;
      if (is_gradient && use.offset_bytes == table.first_of(table.embedding()) * 2)
        names += operation.name + "; ";
    }
    return names;
  };
  EXPECT_EQ(writers(1, ZeroGrad::none), "head weight gradient; embedding gradient; ");
  EXPECT_EQ(writers(1, ZeroGrad::memset),
            "zero the gradients; head weight gradient; embedding gradient; ");
  EXPECT_EQ(writers(2, ZeroGrad::none),
            "part 0: head weight gradient; part 0: embedding gradient; "
            "part 1: head weight gradient; part 1: embedding gradient; ");
}

TEST(Transformer, ComputesEveryBlockTwiceWhenNoneIsKept) {
  const StepPlan kept = plan_of(small_transformer());
  const StepPlan recomputed =
      transformer_with([](Knobs& knobs) { knobs.memory.checkpoint_every = 1; });
  EXPECT_EQ(launches_of(kept, "attention"), 4);
  EXPECT_EQ(launches_of(recomputed, "attention"), 8);
  EXPECT_EQ(launches_of(recomputed, "attention_gradient"), 4);
  EXPECT_LT(activation_bytes(recomputed), activation_bytes(kept));
}

TEST(Transformer, KeepsTheInputsOfSegmentsAndTheInsideOfOne) {
  std::vector<std::int64_t> bytes;
  for (const std::int64_t every : {1, 2, 3, 0}) {
    bytes.push_back(activation_bytes(
        transformer_with([=](Knobs& knobs) { knobs.memory.checkpoint_every = every; })));
  }
  EXPECT_TRUE(std::is_sorted(bytes.begin(), bytes.end()));
  // Without checkpoints the step keeps all inner buffers of three more blocks, with checkpoints
  // only their inputs.
  EXPECT_LT(bytes.front() * 2, bytes.back());
}

TEST(Transformer, SplitsABatchIntoPartsWhoseGradientsAddUp) {
  const StepPlan whole = plan_of(small_transformer());
  const StepPlan parts = transformer_with([](Knobs& knobs) { knobs.batch.accumulate = 4; });
  EXPECT_EQ(launches_of(parts, "attention"), 4 * launches_of(whole, "attention"));
  EXPECT_EQ(launches_of(parts, "square_sums"), 1);
  EXPECT_LT(activation_bytes(parts), activation_bytes(whole) / 2);
  std::int64_t overwriting = 0, adding = 0;
  for (const Operation& operation : parts.operations) {
    const auto* launch = std::get_if<LaunchKernel>(&operation.action);
    if (launch == nullptr || launch->kernel != "sum_parts") continue;
    (launch->attributes.as<kernels::SumParts>().accumulate ? adding : overwriting) += 1;
  }
  EXPECT_EQ(adding, 3 * overwriting);
}

// The launches for all lengths cover every row once, the longest first.
TEST(Transformer, AttendsToSamplesOfEachLengthByThemselvesWhereTheyArePacked) {
  const StepPlan plan = transformer_with([](Knobs& knobs) {
    knobs.batch.lengths = {64, 128, 32, 32};
    knobs.batch.packed = true;
  });
  EXPECT_EQ(plan.batch_bytes, 2 * (129 + 65 + 2 * 33) * 4);
  EXPECT_EQ(mean_tokens(plan), 2 * (128 + 64 + 2 * 32));
  for (const char* kernel : {"attention", "attention_gradient"}) {
    EXPECT_EQ(launches_of(plan, kernel), 4 * 3);
    std::vector<std::pair<std::int64_t, std::int64_t>> rows_and_tokens;
    std::int64_t next = 0;
    for (const Operation& operation : plan.operations) {
      const auto* launch = std::get_if<LaunchKernel>(&operation.action);
      if (launch == nullptr || launch->kernel != kernel || rows_and_tokens.size() == 3) continue;
      const auto shape = launch->shape.as<kernels::Attention>();
      rows_and_tokens.emplace_back(shape.rows, shape.tokens);
      EXPECT_EQ(launch->operands.front().offset_bytes, next);
      next += launch->operands.front().bytes;
    }
    EXPECT_EQ(rows_and_tokens, (std::vector<std::pair<std::int64_t, std::int64_t>>{
                                   {256, 128}, {128, 64}, {128, 32}}));
    EXPECT_EQ(next, 512 * 3 * 32 * 2);
  }
}

TEST(Transformer, OnlyLabelsSamplesOtherwiseWhereTheyArePadded) {
  const StepPlan plain = plan_of(small_transformer());
  const StepPlan padded = transformer_with([](Knobs& knobs) {
    knobs.batch.lengths = {64, 128, 32, 32};
  });
  EXPECT_EQ(padded.batch_bytes, plain.batch_bytes);
  EXPECT_EQ(launches_of(padded, "attention"), launches_of(plain, "attention"));
  EXPECT_EQ(launches_of(padded, "ingest_tokens"), 3);
  EXPECT_EQ(mean_tokens(padded), 8 * 64);
}

TEST(Transformer, UpdatesAllParametersAtOnceOrOneByOneOrOperationByOperation) {
  const auto updated = [](OptimImpl impl) {
    return transformer_with([=](Knobs& knobs) { knobs.optim.impl = impl; });
  };
  const auto tensors = static_cast<std::int64_t>(
      ParameterTable(transformer_shape(small_transformer())).tensors().size());
  EXPECT_EQ(launches_of(updated(OptimImpl::fused), "adamw_clipped"), 1);
  EXPECT_EQ(launches_of(updated(OptimImpl::per_tensor), "adamw_clipped"), tensors);
  EXPECT_EQ(launches_of(updated(OptimImpl::foreach), "adamw_clipped"), 0);
  EXPECT_EQ(launches_of(updated(OptimImpl::foreach), "foreach_addcdiv"), 1);
  EXPECT_EQ(launches_of(updated(OptimImpl::operations), "adamw_clipped"), 0);
  EXPECT_EQ(launches_of(updated(OptimImpl::operations), "foreach_addcdiv"), tensors);
}

TEST(Transformer, HasAMovingAverageInFp32ThatAsManyLaunchesFollowAsUpdate) {
  const auto averaged = [](OptimImpl impl) {
    return transformer_with([=](Knobs& knobs) {
      knobs.optim.impl = impl;
      knobs.optim.average = 0.999;
    });
  };
  const ParameterTable table(transformer_shape(small_transformer()));
  const auto tensors = std::ssize(table.tensors());
  const StepPlan without = plan_of(small_transformer());
  EXPECT_EQ(launches_of(without, "moving_average"), 0);
  const StepPlan fused = averaged(OptimImpl::fused);
  EXPECT_EQ(launches_of(fused, "moving_average"), 1);
  EXPECT_EQ(launches_of(averaged(OptimImpl::foreach), "moving_average"), 1);
  EXPECT_EQ(launches_of(averaged(OptimImpl::per_tensor), "moving_average"), tensors);
  EXPECT_EQ(launches_of(averaged(OptimImpl::operations), "moving_average"), tensors);
  EXPECT_EQ(
      counted(fused, Metric::peak_live).value(),
      counted(without, Metric::peak_live).value() + 4 * static_cast<double>(table.elements()));
}

// The name of the buffer that the average follows, if that is updated before.
std::string followed(const StepPlan& plan) {
  bool is_updated = false;
  for (const Operation& operation : plan.operations) {
    const auto* launch = std::get_if<LaunchKernel>(&operation.action);
    if (launch == nullptr) continue;
    if (launch->kernel.name() == "moving_average")
      return is_updated ? buffer_at(plan, launch->operands[1].buffer).name : "the old weights";
    is_updated = is_updated || launch->kernel.name().starts_with("adamw");
  }
  return "nothing";
}

TEST(Transformer, AveragesTheNewWeightsOrTheirMaster) {
  Knobs knobs = small_transformer();
  knobs.model.dtype = DType::bf16;
  EXPECT_EQ(followed(plan_of(knobs)), "nothing");
  knobs.optim.average = 0.999;
  EXPECT_EQ(followed(plan_of(knobs)), "weights");
  knobs.optim.master = true;
  EXPECT_EQ(followed(plan_of(knobs)), "master weights");
}

TEST(Transformer, CastsEveryTensorBeforeTheForwardPassOfEveryPart) {
  const auto cast = [](std::int64_t parts, MasterCast when) {
    return transformer_with([=](Knobs& knobs) {
      knobs.optim.master = true;
      knobs.optim.cast = when;
      knobs.batch.accumulate = parts;
    });
  };
  const auto tensors = std::ssize(ParameterTable(transformer_shape(small_transformer())).tensors());
  EXPECT_EQ(launches_of(cast(2, MasterCast::update), "narrow"), 0);
  EXPECT_EQ(launches_of(cast(1, MasterCast::forward), "narrow"), tensors);
  EXPECT_EQ(launches_of(cast(2, MasterCast::forward), "narrow"), 2 * tensors);
}

TEST(Transformer, WithAMasterPassesSixteenBytesAParameter) {
  const StepPlan plan = transformer_with([](Knobs& knobs) { knobs.optim.master = true; });
  std::int64_t bytes = 0;
  for (const Buffer& buffer : plan.buffers) {
    const bool lasts = buffer.purpose == Purpose::weights || buffer.purpose == Purpose::gradients ||
                       buffer.purpose == Purpose::optimizer_state;
    if (lasts) bytes += buffer.bytes;
  }
  EXPECT_EQ(bytes, 16 * ParameterTable(transformer_shape(small_transformer())).elements());
}

TEST(Transformer, ScalesTheLossInFp16Only) {
  const StepPlan narrow = transformer_with([](Knobs& knobs) { knobs.model.dtype = DType::fp16; });
  EXPECT_EQ(launches_of(narrow, "scaled_cross_entropy"), 1);
  EXPECT_EQ(launches_of(plan_of(small_transformer()), "scaled_cross_entropy"), 0);
  // No host wait reads a norm in this step.
  EXPECT_EQ(counted(narrow, Metric::host_waits_per_step), 0);
}

}  // namespace
}  // namespace stepgate
