// SPDX-License-Identifier: MIT
// Tests that knobs that are each in range give either a plan with right sizes or no plan, even if
// their combination is too large. Also tests that the cost of making a plan is not quadratic in its
// operations.
#include <gtest/gtest.h>

#include <ctime>
#include <iostream>
#include <map>
#include <random>

#include "plan/testing/plan_by_hand.h"
#include "scenario/knobs/check_knobs.h"
#include "scenario/knobs/fields.h"

namespace stepgate {
namespace {

// Attention with its scores in memory.
Knobs transformer_with_scores() {
  Knobs knobs = small_transformer();
  knobs.launch.fuse = Fuse::none;
  return knobs;
}

TEST(PlanSizes, RefusesABufferThatNoNumberOfBytesDescribes) {
  Knobs knobs = transformer_with_scores();
  knobs.model.hidden = 8192;
  knobs.model.heads = 1024;
  knobs.model.seq = 1048576;
  knobs.batch.size = 1048576;
  EXPECT_EQ(refusal_of(knobs),
            "by_hand.toml:3:1: variant 'only': buffer 'block 0 probabilities' takes more bytes "
            "than 63 bits count, and a plan has room for 1073741824 GiB; make the step smaller; "
            "what is largest in it: batch.size = 1048576, model.seq = 1048576, model.heads = 1024, "
            "model.hidden = 8192");
}

// 2^64 bytes of scores, which was the size of nothing.
TEST(PlanSizes, RefusesABufferWhoseBytesWouldWrapToZero) {
  Knobs knobs = transformer_with_scores();
  knobs.model.dtype = DType::fp32;
  knobs.model.hidden = 512;
  knobs.model.heads = 64;
  knobs.model.seq = 1048576;
  knobs.batch.size = 65536;
  EXPECT_NE(refusal_of(knobs).find("buffer 'block 0 probabilities' takes"), std::string::npos)
      << refusal_of(knobs);
}

TEST(PlanSizes, RefusesAStepThatComputesMoreThanNumbersCount) {
  Knobs knobs = small_transformer();
  knobs.model.hidden = 65536;
  knobs.model.heads = 1024;
  knobs.model.seq = 32768;
  knobs.model.vocab = 1048576;
  knobs.batch.size = 4096;
  EXPECT_NE(refusal_of(knobs).find("operation 'logits' computes more than a plan counts"),
            std::string::npos)
      << refusal_of(knobs);
}

TEST(PlanSizes, RefusesMoreOperationsThanAPlanHasRoomFor) {
  Knobs knobs = transformer_with_scores();
  knobs.model.layers = 512;
  knobs.batch.size = 64;
  knobs.batch.accumulate = 64;
  EXPECT_NE(refusal_of(knobs).find("a step has more than 500000 operations"), std::string::npos)
      << refusal_of(knobs);
}

TEST(PlanSizes, RefusesMoreAllocationsThanAPlanHasRoomFor) {
  Knobs knobs = small_mlp();
  knobs.model.layers = 512;
  knobs.alloc = {.with = Allocator::caching, .when = AllocWhen::step, .temps = 64};
  EXPECT_NE(refusal_of(knobs).find(" allocations, and a plan has room for 20000; make the step "
                                   "smaller; what is largest in it: model.layers = 512"),
            std::string::npos)
      << refusal_of(knobs);
}

TEST(PlanSizes, RefusesMemoryOfWhichEachPieceWouldFit) {
  Knobs knobs = small_transformer();
  knobs.model.layers = 512;
  knobs.model.hidden = 32768;
  knobs.model.heads = 512;
  knobs.model.seq = 1048576;
  knobs.batch.size = 65536;
  EXPECT_NE(refusal_of(knobs).find("memory up to and with buffer 'block "), std::string::npos)
      << refusal_of(knobs);
}

// Knobs that only make a step longer.
const std::map<std::string_view, std::int64_t> lengths = {
    {"model.layers", 3},  {"model.kernels", 3},
    {"batch.tensors", 3}, {"batch.accumulate", 2},
    {"eval.batches", 2},  {"alloc.temps", 2},
    {"eval.every", 3},    {"sync.every", 3},
    {"log.every", 3},     {"alloc.empty_cache_every", 3}};

class DrawnKnobs {
 public:
  explicit DrawnKnobs(std::uint64_t seed) : random_(seed) {}

  // Draws random knobs; nullopt where they are refused.
  std::optional<Knobs> draw() {
    Settings settings;
    SettingPlaces written;
    for (const Field& field : field_table()) {
      if (!is_built(field) || field.scope != FieldScope::variant || below(3) != 0) continue;
      if (field.condition != nullptr && !field.condition->holds(settings.knobs)) continue;
      const auto value = value_of(field);
      if (!value) continue;
      field.set(settings, *value);
      written[field.name] = {};
    }
    if (settings.knobs.model.kind == ModelKind::transformer)
      settings.knobs.optim.kind = OptimKind::adamw;
    std::vector<Diagnostic> wrong;
    check_knobs(settings.knobs, written, {}, wrong);
    return wrong.empty() ? std::optional(settings.knobs) : std::nullopt;
  }

 private:
  std::int64_t below(std::int64_t end) {
    return std::uniform_int_distribution<std::int64_t>(0, end - 1)(random_);
  }

  // Draws a number, often the maximum or a power of two near it.
  std::int64_t whole(const FieldValues& values) {
    const auto most = static_cast<std::int64_t>(values.most);
    const std::int64_t value = std::max(static_cast<std::int64_t>(values.least), most >> below(20));
    return value / values.multiple_of * values.multiple_of;
  }

  std::optional<FieldValue> value_of(const Field& field) {
    if (const auto length = lengths.find(field.name); length != lengths.end())
      return 1 + below(length->second);
    switch (field.values.kind) {
      case FieldKind::integer:
      case FieldKind::bytes:
        return whole(field.values);
      case FieldKind::number:
        return field.values.least;
      case FieldKind::boolean:
        return below(2) == 1;
      case FieldKind::choice: {
        const auto& choices = field.values.choices;
        const Choice& choice = choices[static_cast<std::size_t>(below(std::ssize(choices)))];
        return choice.value ? std::optional<FieldValue>(*choice.value) : std::nullopt;
      }
      default:
        return std::nullopt;
    }
  }

  std::mt19937_64 random_;
};

// Under the sanitizers nothing that is computed on the way may wrap either.
TEST(PlanSizes, AreCountedRightlyOrRefusedWhateverTheKnobs) {
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  DrawnKnobs knobs(seed);
  constexpr double most = 1152921504606846976;  // 2^60
  int planned = 0, refused = 0;
  for (int drawn = 0; planned + refused < 2000 && drawn < 400000; ++drawn) {
    const auto together = knobs.draw();
    if (!together) continue;
    Scenario scenario = scenario_of(*together);
    scenario.measure.steps = 20;
    try {
      for (const StepPlan& plan : build_step_plans(scenario, 1)) {
        for (const Metric metric : {Metric::peak_live, Metric::need, Metric::arena_bytes}) {
          const auto bytes = counted(plan, metric);
          ASSERT_TRUE(bytes && *bytes >= 0 && *bytes <= most);
        }
        ASSERT_GE(counted(plan, Metric::flops_per_step).value_or(0), 0);
      }
      ++planned;
    } catch (const RequestError&) {
      ++refused;
    }
  }
  std::cout << planned << " planned, " << refused << " refused\n";
  EXPECT_GE(planned, 100);
  EXPECT_GE(refused, 100);
}

double seconds_to_plan(std::int64_t parts) {
  Knobs knobs = transformer_with_scores();
  knobs.model.layers = 64;
  knobs.model.seq = 16;
  knobs.batch.size = 64;
  knobs.batch.accumulate = parts;
  knobs.optim.impl = OptimImpl::foreach;
  const std::clock_t before = std::clock();
  (void)value(knobs, Metric::peak_live);
  return static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
}

// 16 times the operations; their square would be 256 times the time.
TEST(PlanSizes, CostTimeByTheirOperations) {
  EXPECT_LT(seconds_to_plan(16), 64 * std::max(seconds_to_plan(1), 0.002));
}

}  // namespace
}  // namespace stepgate
