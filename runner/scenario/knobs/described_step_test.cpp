// SPDX-License-Identifier: MIT
#include "scenario/knobs/described_step.h"

#include <gtest/gtest.h>

#include "scenario/knobs/fields.h"
#include "scenario/knobs/other_values.h"

namespace stepgate {
namespace {

Variant variant_named(const std::string& name, const Knobs& knobs = {}) {
  return {.name = name, .knobs = knobs, .place = {}};
}

TEST(DescribedStep, FiveThingsAreSaidEvenAtTheirDefaults) {
  const DescribedStep step = described_steps({variant_named("fix")}).front();
  EXPECT_EQ(step.variant, "fix");
  EXPECT_EQ(step.words[0], "mlp, layers 4, hidden 1024, fp32");
  EXPECT_EQ(step.words[1], "size 64");
  EXPECT_EQ(step.words[2], "pinned");
  EXPECT_EQ(step.words[3], "none");
  EXPECT_EQ(step.words[4], "static");
  EXPECT_EQ(step.other, "");
}

TEST(DescribedStep, HowLongSpinKernelsTakeIsSaidEvenAtItsDefault) {
  Knobs knobs;
  knobs.model.kind = ModelKind::spin;
  const DescribedStep step = described_steps({variant_named("a", knobs)}).front();
  EXPECT_EQ(step.words[0], "spin, hidden 1024, kernels 10, kernel_us 10, fp32");
}

TEST(DescribedStep, WhatHasNoEffectIsNotSaid) {
  Knobs knobs;
  knobs.model.kind = ModelKind::spin;  // spin has neither layers nor tokens
  knobs.batch.sizes = {16, 24};        // replaces batch.size
  knobs.host.step_us = 100;
  const DescribedStep step = described_steps({variant_named("a", knobs)}).front();
  EXPECT_EQ(step.words[0].find("layers"), std::string::npos) << step.words[0];
  EXPECT_EQ(step.words[0].find("seq"), std::string::npos) << step.words[0];
  EXPECT_EQ(step.words[1].find("size 64"), std::string::npos) << step.words[1];
  EXPECT_EQ(step.other, "host.step_us 100");
}

// A set of steps in which every knob has an effect on at least one.
std::vector<Knobs> steps_of_every_kind() {
  std::vector<Knobs> steps(1);
  for (const ModelKind kind : {ModelKind::transformer, ModelKind::spin, ModelKind::elementwise,
                               ModelKind::chase, ModelKind::recommender, ModelKind::resnet})
    steps.emplace_back().model.kind = kind;
  for (const Allocator with : {Allocator::caching, Allocator::expandable, Allocator::cuda_async})
    steps.emplace_back().alloc = {.with = with, .when = AllocWhen::op};
  for (const HostMemory host : {HostMemory::pinned, HostMemory::managed})
    steps.emplace_back().transfer.host = host;
  steps.emplace_back().batch.sizes = {16, 24};
  steps.emplace_back().loader = {.wait_us = 100, .depth = 2};
  steps.emplace_back().eval.every = 1;
  steps.emplace_back().save.every = 1;
  steps.emplace_back().host = {.step_us = 100, .pause_us = 100};
  steps.emplace_back().memory.offload = Offload::activations;
  Knobs& mixed = steps.emplace_back();
  mixed.model = {.kind = ModelKind::transformer, .dtype = DType::bf16};
  mixed.optim.master = true;
  Knobs& lengths = steps.emplace_back();
  lengths.model.kind = ModelKind::transformer;
  lengths.batch.lengths = {8, 24};
  Knobs& ranks = steps.emplace_back();
  ranks.model.kind = ModelKind::transformer;
  ranks.batch.accumulate = 2;
  ranks.ranks = {.count = 4, .broadcast_bytes = 1 << 20, .slow_us = 200};
  steps.emplace_back(ranks).ranks.shard = Shard::parameters;
  steps.emplace_back().kernels = {{"layer_norm", {"m.so", "norm"}}};
  steps.emplace_back().program.command = {"train"};
  return steps;
}

// Changing any knob changes the description of the step.
TEST(DescribedStep, EveryKnobThatHasAnEffectShows) {
  for (const Field& field : field_table()) {
    if (!is_built(field) || field.scope != FieldScope::variant) continue;
    if (field.name.starts_with("gate.")) continue;  // not part of the step
    bool turned = false;
    for (const Knobs& knobs : steps_of_every_kind()) {
      Settings settings{.knobs = knobs, .measure = {}, .requirements = {}, .gate = {}};
      if (field.condition != nullptr && !field.condition->holds(knobs)) continue;
      if (!knobs.program.command.empty() && group_of(field) != "program") continue;
      const std::vector<FieldValue> others = other_values(field, field.get(settings));
      if (others.empty()) continue;
      field.set(settings, others.front());
      if (field.condition != nullptr && !field.condition->holds(settings.knobs)) continue;
      const DescribedStep before = described_steps({variant_named("v", knobs)}).front();
      const DescribedStep after = described_steps({variant_named("v", settings.knobs)}).front();
      EXPECT_TRUE(after.words != before.words || after.other != before.other) << field.name;
      turned = true;
    }
    EXPECT_TRUE(turned) << field.name << " has an effect beside none of these steps: add one";
  }
}

TEST(DescribedStep, VariantsThatAreAlikeStandTogether) {
  Knobs waits;
  waits.sync.where = SyncWhere::step;
  const std::vector<ComparedThing> things = compared_things(described_steps(
      {variant_named("baseline", waits), variant_named("fix"), variant_named("again", waits)}));
  ASSERT_EQ(things.size(), five_things.size());  // no variant sets other knobs
  for (const ComparedThing& thing : things)
    EXPECT_EQ(thing.differs(), thing.thing == "sync") << thing.thing;
  const ComparedThing& sync = things[3];
  ASSERT_EQ(sync.groups.size(), 2u);
  EXPECT_EQ(sync.groups[0].variants, (std::vector<std::string>{"baseline", "again"}));
  EXPECT_EQ(sync.groups[0].words, "step");
  EXPECT_EQ(sync.groups[1].variants, (std::vector<std::string>{"fix"}));
  EXPECT_EQ(sync.groups[1].words, "none");
}

TEST(DescribedStep, AProgramIsItsCommandLineWithoutSecrets) {
  Knobs knobs;
  knobs.program = {.command = {"python3", "a b.py"},
                   .arguments = {"--token", "s3cret", "--lr=1"},
                   .env = {{"API_KEY", "s3cret"}, {"SEED", "1"}}};
  const std::vector<ComparedThing> things =
      compared_things(described_steps({variant_named("a", knobs)}));
  ASSERT_EQ(things.size(), 1U);
  EXPECT_EQ(things.front().thing, program_thing);
  EXPECT_EQ(things.front().groups.front().words,
            "API_KEY=*** SEED=1 python3 'a b.py' --token '***' --lr=1");
}

TEST(DescribedStep, OthersAreComparedOnceAnyVariantTurnsThem) {
  Knobs busy;
  busy.host.step_us = 50;
  const auto things =
      compared_things(described_steps({variant_named("baseline"), variant_named("fix", busy)}));
  ASSERT_EQ(things.size(), five_things.size() + 1);
  EXPECT_EQ(things.back().thing, other_things);
  EXPECT_TRUE(things.back().differs());
  EXPECT_TRUE(compared_things({}).empty());
}

}  // namespace
}  // namespace stepgate
