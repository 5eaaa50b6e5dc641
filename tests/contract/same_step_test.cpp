// SPDX-License-Identifier: MIT
// Tests that a faulty kernel makes a different step for every seed, and that correct
// implementations never do. Only one kernel of one variant is faulty; everything else is as in a
// run.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "measure/planned_subject.h"
#include "measure/rounds/same_step.h"
#include "plan/compose/build_step_plan.h"
#include "plan/count/facts_of.h"
#include "tests/contract/device_contract.h"

namespace stepgate {
namespace {

// A GPU runs twenty seeds for every dtype, and nightly for two; where the host computes the steps,
// one seed suffices.
#if STEPGATE_SAME_STEP_DTYPES == 4
constexpr std::uint64_t seeds = 20;
const auto dtypes = testing::Values(DType::fp32, DType::tf32, DType::bf16, DType::fp16);
#elif STEPGATE_SAME_STEP_DTYPES == 2
constexpr std::uint64_t seeds = 20;
const auto dtypes = testing::Values(DType::fp32, DType::bf16);
#else
constexpr std::uint64_t seeds = 1;
const auto dtypes = testing::Values(DType::bf16);
#endif

struct Fault {
  const Kernel* kernel = nullptr;               // the kernel to replace
  MatrixShape (*shape)(MatrixShape) = nullptr;  // what is computed instead; null: nothing
  std::int64_t honest_calls = 0;                // calls before the fault begins
};
Fault fault;             // the only one
std::int64_t calls = 0;  // calls of the planted kernel in this process

void faulty_reference(const KernelCall& call) {
  if (calls++ < fault.honest_calls) return fault.kernel->reference(call);
  if (fault.shape == nullptr) return;
  KernelCall other = call;
  other.shape = fault.shape(call.shape.to<MatrixShape>());
  fault.kernel->reference(other);
}

Launch faulty_launch(const KernelShape& shape, DType dtype, const KernelAttributes& attributes,
                     const LaunchContext& context) {
  const Launch right = fault.kernel->prepare(shape, dtype, attributes, context);
  const Launch wrong =
      fault.shape == nullptr
          ? Launch([](void* const*, CUstream_st*) {})
          : fault.kernel->prepare(fault.shape(shape.to<MatrixShape>()), dtype, attributes, context);
  return [right, wrong](void* const* buffers, CUstream_st* stream) {
    (calls++ < fault.honest_calls ? right : wrong)(buffers, stream);
  };
}

MatrixShape half_of_the_rows(MatrixShape shape) {
  shape.rows /= 2;
  return shape;
}
MatrixShape all_rows_but_one(MatrixShape shape) {
  shape.rows -= 1;
  return shape;
}

bool computes_the_model(const Operation& operation) {
  return (operation.phase == Phase::forward || operation.phase == Phase::backward) &&
         std::holds_alternative<LaunchKernel>(operation.action);
}

// Replaces a kernel in all launches of one variant, or in one operation.
StepPlan planted(StepPlan plan, const Fault& with, const std::string& operation = "") {
  static Kernel kernel_with_fault;
  fault = with;
  calls = 0;
  kernel_with_fault = *with.kernel;
  kernel_with_fault.reference = faulty_reference;
  kernel_with_fault.prepare = with.kernel->prepare == nullptr ? nullptr : faulty_launch;
  bool any = false;
  for (Operation& each : plan.operations) {
    auto* const launch = std::get_if<LaunchKernel>(&each.action);
    if (launch == nullptr || launch->kernel.name() != with.kernel->name) continue;
    if (!operation.empty() && each.name != operation) continue;
    launch->kernel = KernelRef(kernel_with_fault);
    any = true;
  }
  EXPECT_TRUE(any) << with.kernel->name << ' ' << operation;
  plan.variant = "fix";
  return plan;
}

// The model has 128 rows. A GPU gets heads and samples that its tensor cores and cuDNN support.
Knobs transformer(DeviceKind kind, DType dtype) {
  const bool large = kind == DeviceKind::cuda;
  Knobs knobs;
  knobs.transfer.host = HostMemory::resident;
  knobs.model = {
      .kind = ModelKind::transformer, .layers = 2, .hidden = large ? 128 : 32, .dtype = dtype};
  knobs.model.heads = 2;
  knobs.model.seq = large ? 128 : 16;
  knobs.model.vocab = large ? 1024 : 72;
  knobs.batch.size = large ? 1 : 8;
  knobs.optim.kind = OptimKind::adamw;
  return knobs;
}

Knobs resnet(DType dtype) {
  Knobs knobs = model_knobs("bf16_resnet");
  knobs.model.dtype = dtype;
  knobs.optim.master = is_16_bit(dtype);
  return knobs;
}

StepPlan plan_with_seed(const Knobs& knobs, std::uint64_t seed) {
  Scenario scenario;
  scenario.name = "by_hand";
  scenario.variants.push_back({.name = "baseline", .knobs = knobs, .place = {}});
  return build_step_plans(scenario, seed).front();
}

// Compares as in a run: before the rounds, and after them where there is time.
Measurement measured(Device& device, const std::vector<PlannedStep>& plans) {
  MeasureRequest request{
      .knobs = {},
      .enough = [](const Measurement& so_far) { return so_far.rounds.size() >= 5; },
      .progress = {}};
  request.knobs.max_seconds = 5;
  return measure(device, plans, request);
}

// Runs the first steps, then `between` other steps, and the first steps again in the same place.
std::optional<AnotherStep> compared_again(Device& device, const std::vector<PlannedStep>& plans,
                                          std::int64_t between) {
  const std::vector<Subject> subjects = subjects_of(plans);
  SameStep same(subjects);
  std::vector<std::unique_ptr<LoadedStep>> loaded;
  for (const PlannedStep& plan : plans) loaded.push_back(device.load(plan));
  const auto first_steps = [&] {
    same.begin(0);
    for (int variant = 0; variant < std::ssize(plans); ++variant) {
      for (int step = 0; step < 2; ++step) {
        same.add(variant,
                 loaded[static_cast<std::size_t>(variant)]->run({.steps = 1, .gradients = true}));
      }
    }
  };
  const auto compared = [&] {
    first_steps();
    const auto from_before = same.difference_from_before();
    same.remember();
    const auto between_variants = same.first_difference();
    return between_variants ? between_variants : from_before;
  };
  EXPECT_FALSE(compared()) << "the kernel is honest so long";
  for (const auto& step : loaded) {
    step->run({.steps = between});
    EXPECT_TRUE(step->restart());
  }
  return compared();
}

class SameSteps : public testing::TestWithParam<DType> {};

TEST_P(SameSteps, AreOthersWhereAKernelLeavesOutRows) {
  for (const DeviceCase& test : devices_with_numbers()) {
    const auto device = test.make();
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      const StepPlan plan = plan_with_seed(transformer(test.kind, GetParam()), seed);
      for (const auto shape : {&half_of_the_rows, &all_rows_but_one}) {
        const auto plans =
            with_facts({plan, planted(plan, {.kernel = &kernel("layer_norm"), .shape = shape})});
        const Measurement measurement = measured(*device, plans);
        EXPECT_TRUE(measurement.another_step)
            << test.name << " seed " << seed << (shape == &half_of_the_rows ? " half" : " one")
            << ": " << measurement.compared.front().gradient;
      }
    }
  }
}

void expect_others_without_any_kernel(const DeviceCase& test, Device& device, const Knobs& knobs) {
  const StepPlan plan = plan_with_seed(knobs, 7);
  std::set<std::string_view> kernels;
  for (const Operation& operation : plan.operations) {
    if (computes_the_model(operation))
      kernels.insert(std::get<LaunchKernel>(operation.action).kernel.name());
  }
  kernels.erase("report_loss");  // its input has the right loss already
  EXPECT_GT(kernels.size(), 8U);
  for (const std::string_view name : kernels) {
    const auto plans = with_facts({plan, planted(plan, {.kernel = &kernel(name)})});
    EXPECT_TRUE(measured(device, plans).another_step) << test.name << ' ' << name;
  }
}

// Tests every kernel of the models. Results of an earlier launch may lie in its output.
TEST_P(SameSteps, AreOthersWhicheverKernelStopsComputing) {
  for (const DeviceCase& test : devices_with_numbers()) {
    const auto device = test.make();
    expect_others_without_any_kernel(test, *device, transformer(test.kind, GetParam()));
    expect_others_without_any_kernel(test, *device, resnet(GetParam()));
  }
}

TEST_P(SameSteps, AreOthersWhereOneParametersGradientIsDropped) {
  for (const DeviceCase& test : devices_with_numbers()) {
    const auto device = test.make();
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      const StepPlan plan = plan_with_seed(transformer(test.kind, GetParam()), seed);
      std::vector<const Operation*> writers;
      for (const Operation& operation : plan.operations) {
        if (!computes_the_model(operation) || operation.phase != Phase::backward) continue;
        const auto& launch = std::get<LaunchKernel>(operation.action);
        const Kernel& row = kernel(launch.kernel);
        for (std::size_t index = 0; index < launch.operands.size(); ++index) {
          const Buffer& buffer = buffer_at(plan, launch.operands[index].buffer);
          const bool writes = row.operands[index].access != Access::read;
          if (writes && buffer.purpose == Purpose::gradients) writers.push_back(&operation);
        }
      }
      ASSERT_GT(writers.size(), 5U);
      const Operation& writer = *writers[seed * 7 % writers.size()];
      const Kernel& row = kernel(std::get<LaunchKernel>(writer.action).kernel);
      const auto plans = with_facts({plan, planted(plan, {.kernel = &row}, writer.name)});
      EXPECT_TRUE(measured(*device, plans).another_step)
          << test.name << " seed " << seed << ": " << writer.name;
    }
  }
}

TEST_P(SameSteps, AreOthersWhereAKernelIsRightForSoManyCalls) {
  for (const DeviceCase& test : devices_with_numbers()) {
    const auto device = test.make();
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      const StepPlan plan = plan_with_seed(transformer(test.kind, GetParam()), seed);
      std::int64_t norms = 0;  // per step
      for (const Operation& operation : plan.operations) {
        const auto* launch = std::get_if<LaunchKernel>(&operation.action);
        norms += launch && launch->kernel.name() == "layer_norm" ? 1 : 0;
      }
      const std::int64_t honest = test.kind == DeviceKind::cuda ? 400 : 3 * norms;
      const auto plans = with_facts(
          {plan, planted(plan, {.kernel = &kernel("layer_norm"), .honest_calls = honest})});
      const auto found = compared_again(*device, plans, honest / norms);
      ASSERT_TRUE(found) << test.name << " seed " << seed;
      const StepPlan with_fault = plans.back();
      const auto in_both = with_facts({with_fault, with_fault});
      calls = -honest;  // twice as many honest calls, as both steps make them
      EXPECT_TRUE(compared_again(*device, in_both, honest / norms)) << test.name << " in both";
      if (test.kind != DeviceKind::cuda || seed % 5 != 1) continue;  // a run takes a second
      calls = 0;
      const auto in_a_run = measured(*device, plans).another_step;
      EXPECT_TRUE(in_a_run) << test.name << " seed " << seed;
    }
  }
}

struct Way {
  std::string name;
  void (*set)(Knobs&);
};

// Returns the largest differences of losses and gradients over the first steps, with any kernels.
ComparedPair differences(Device& device, const std::vector<PlannedStep>& plans) {
  std::vector<std::vector<StepResult>> results;
  for (const PlannedStep& plan : plans) {
    const auto loaded = device.load(plan);
    std::vector<StepResult>& of_plan = results.emplace_back();
    for (int step = 0; step < 2; ++step)
      of_plan.push_back(loaded->run({.steps = 1, .gradients = true}));
    of_plan.push_back(loaded->run({.steps = 6}));
  }
  ComparedPair largest;
  for (std::size_t run = 0; run < results[0].size(); ++run) {
    const StepResult& one = results[0][run];
    const StepResult& other = results[1][run];
    for (std::size_t step = 0; step < one.losses.size(); ++step) {
      const double difference = std::abs(one.losses[step] - other.losses[step]);
      largest.loss = std::max(largest.loss, difference / std::abs(one.losses[step]));
    }
    for (std::size_t index = 0; index < one.gradients.size(); ++index) {
      if (!std::isfinite(one.gradients[index].squares)) continue;
      ++largest.gradients;
      const double difference = relative_difference(one.gradients[index], other.gradients[index]);
      if (difference <= largest.gradient) continue;
      largest.gradient = difference;
      largest.parameter = plans.front()->parameters[index].name;
    }
  }
  return largest;
}

TEST_P(SameSteps, AreTheSameInEveryHonestWay) {
  const std::vector<Way> ways = {
      {"checkpoints", [](Knobs& knobs) { knobs.memory.checkpoint_every = 1; }},
      {"graph", [](Knobs& knobs) { knobs.launch.via = LaunchVia::graph; }},
      {"autotuned", [](Knobs& knobs) { knobs.launch.gemm = GemmChoice::autotune; }},
      {"arena", [](Knobs& knobs) { knobs.alloc.with = Allocator::arena; }},
      {"halves", [](Knobs& knobs) { knobs.batch.accumulate = 2; }},
      {"quarters", [](Knobs& knobs) { knobs.batch.accumulate = 4; }},
      {"pointwise", [](Knobs& knobs) { knobs.launch.fuse = Fuse::pointwise; }},
      {"attention", [](Knobs& knobs) { knobs.launch.fuse = Fuse::attention; }},
      {"epilogue", [](Knobs& knobs) { knobs.launch.fuse = Fuse::epilogue; }},
  };
  for (const DeviceCase& test : devices_with_numbers()) {
    const auto device = test.make();
    for (const Way& way : ways) {
      ComparedPair worst;
      for (std::uint64_t seed = 1; seed <= std::min<std::uint64_t>(seeds, 4); ++seed) {
        Knobs knobs = transformer(test.kind, GetParam());
        knobs.batch.size = 8;
        knobs.launch.fuse = Fuse::none;
        std::vector<StepPlan> plans = {plan_with_seed(knobs, seed)};
        way.set(knobs);
        if (GetParam() == DType::tf32 && knobs.launch.fuse >= Fuse::attention) continue;
        plans.push_back(plan_with_seed(knobs, seed));
        const ComparedPair found = differences(*device, with_facts(plans));
        EXPECT_GT(found.gradients, 0);
        if (found.gradient >= worst.gradient) worst = found;
        worst.loss = std::max(worst.loss, found.loss);
      }
      fmt::print("{}, {}, {}: losses {:.2g}, gradients {:.2g} of '{}'\n", test.name,
                 testing::PrintToString(static_cast<int>(GetParam())), way.name, worst.loss,
                 worst.gradient, worst.parameter);
      // Other kernels round differently; a run compares only variants with equal kernels.
      const bool other_kernels =
          way.name == "pointwise" || way.name == "attention" || way.name == "epilogue";
      EXPECT_LT(worst.loss, loss_bound({GetParam()}, 0) / 2);
      EXPECT_LT(worst.gradient,
                gradient_bound({GetParam()}, ModelLaunches::others) * (other_kernels ? 0.75 : 0.5));
    }
  }
}

// Only a GPU with cuDNN has another order; elsewhere the steps are equal to the bit.
void expect_the_same_in_any_order(DType dtype) {
  for (const DeviceCase& test : devices_with_numbers()) {
    const auto device = test.make();
    Knobs knobs = transformer(test.kind, dtype);
    if (test.kind == DeviceKind::cuda) knobs.model.seq = 512;  // sums of several tiles
    std::vector<StepPlan> plans = {plan_with_seed(knobs, 1)};
    knobs.launch.attention_sums = AttentionSums::any;
    plans.push_back(plan_with_seed(knobs, 1));
    const ComparedPair found = differences(*device, with_facts(plans));
    fmt::print("{}: losses {:.2g}, gradients {:.2g} of '{}'\n", test.name, found.loss,
               found.gradient, found.parameter);
    EXPECT_GT(found.gradients, 0);
    EXPECT_LT(found.loss, loss_bound({dtype}, 0) / 2);
    EXPECT_LT(found.gradient, gradient_bound({dtype}, ModelLaunches::others) / 2);
    if (test.kind == DeviceKind::reference) {
      EXPECT_EQ(found.gradient, 0);
    }
  }
}

TEST(SumsOfAttention, InAnyOrderMakeTheSameStep) {
  for (const DType dtype : {DType::bf16, DType::fp16}) expect_the_same_in_any_order(dtype);
}

// Tests all steps that can begin again.
TEST(BegunAgain, StepsComputeTheSameToTheBit) {
  for (const DeviceCase& test : devices_with_numbers()) {
    const auto device = test.make();
    int tried = 0, in_place = 0, way = 0;
    for (const Knobs& knobs : ways_to_run(model_knobs("bf16_adamw"), 5)) {
      const auto plan = accepted_plan(knobs);
      if (!plan || way++ % (8 * one_way_in) != 0) continue;
      const auto loaded = device->load(*plan);
      const StepResult first = loaded->run({.wash_out_steps = 2, .gradients = true});
      for (std::size_t index = 0; index < first.gradients.size(); ++index)
        EXPECT_EQ(first.gradients[index].elements, plan->parameters[index].elements);
      loaded->run({.steps = 5});
      ++tried;
      if (!loaded->restart()) continue;
      ++in_place;
      const StepResult again = loaded->run({.wash_out_steps = 2, .gradients = true});
      EXPECT_EQ(again.losses, first.losses) << test.name << ' ' << describe(knobs);
      ASSERT_EQ(again.gradients.size(), first.gradients.size());
      for (std::size_t index = 0; index < again.gradients.size(); ++index)
        EXPECT_EQ(relative_difference(again.gradients[index], first.gradients[index]), 0);
    }
    EXPECT_GT(in_place, tried / 2) << test.name << ": of " << tried;
  }
}

// All ranks run in one process on the host reference.
TEST(SharedOut, GradientsAreThoseOfTheWhole) {
  for (const DeviceCase& test : devices_with_numbers()) {
    if (test.kind != DeviceKind::reference) continue;
    const auto device = test.make();
    std::vector<std::vector<GradientSketch>> of_shards;
    for (const Shard shard : {Shard::none, Shard::optimizer, Shard::gradients, Shard::parameters}) {
      Knobs knobs = transformer(test.kind, DType::fp32);
      knobs.ranks.count = 2;
      knobs.ranks.shard = shard;
      const StepPlan plan = plan_with_seed(knobs, 3);
      of_shards.push_back(device->load(plan)->run({.steps = 2, .gradients = true}).gradients);
      ASSERT_EQ(of_shards.back().size(), plan.parameters.size());
      for (std::size_t index = 0; index < plan.parameters.size(); ++index) {
        const GradientSketch& own = of_shards.back()[index];
        EXPECT_EQ(own.elements, plan.parameters[index].elements) << plan.parameters[index].name;
        EXPECT_LT(relative_difference(own, of_shards.front()[index]), 1e-5);
        EXPECT_GT(own.squares, 0) << plan.parameters[index].name;
      }
    }
  }
}

// Makes rank 1 of two keep its unreduced gradient of a parameter.
StepPlan without_reduction(StepPlan plan, std::size_t parameter) {
  BufferUse own;
  for (const Operation& operation : plan.operations) {
    if (!operation.reads_gradients) continue;
    for (const GradientPart& part : gradient_parts(plan, *operation.reads_gradients)) {
      if (part.parameter != parameter) continue;
      own = gradients_of(operation);
      own.offset_bytes += part.in_operand * bytes_of(plan.dtype);
      own.bytes = part.elements * bytes_of(plan.dtype);
    }
  }
  EXPECT_GT(own.bytes, 0);
  // In rank 1 the kept part is copied back to its place; in rank 0 it is copied behind all
  // gradients, where it has no effect.
  Buffer& gradients = plan.buffers[static_cast<std::size_t>(own.buffer)];
  const BufferUse behind{.buffer = own.buffer,
                         .offset_bytes = gradients.bytes,
                         .bytes = own.bytes,
                         .rank_stride_bytes = own.offset_bytes - gradients.bytes};
  gradients.bytes += own.bytes;
  const BufferUse kept{
      .buffer = static_cast<int>(plan.buffers.size()), .offset_bytes = 0, .bytes = own.bytes};
  plan.buffers.push_back({.name = "kept", .bytes = own.bytes});
  const auto reduction = std::ranges::find_if(plan.operations, [&](const Operation& operation) {
    const auto* made = std::get_if<Collective>(&operation.action);
    return made && made->to.buffer == own.buffer && made->to.offset_bytes <= own.offset_bytes &&
           own.offset_bytes < made->to.offset_bytes + made->to.bytes;
  });
  EXPECT_NE(reduction, plan.operations.end());
  Operation keep = *reduction;
  keep.name = "keep";
  keep.action = CopyBytes{.to = kept, .from = own};
  Operation put_back = keep;
  put_back.name = "put back";
  put_back.action = CopyBytes{.to = behind, .from = kept};
  const auto inserted = plan.operations.insert(reduction, keep);
  plan.operations.insert(inserted + 2, put_back);
  plan.variant = "fix";
  return plan;
}

TEST(OtherRanks, AreAnotherStepWhereOneDropsItsReduction) {
  for (const DeviceCase& test : devices_with_numbers()) {
    if (test.kind != DeviceKind::reference) continue;
    const auto device = test.make();
    for (const std::int64_t parts : {1, 2}) {
      Knobs knobs = transformer(test.kind, DType::bf16);
      knobs.ranks.count = 2;
      knobs.batch.accumulate = parts;
      const StepPlan plan = plan_with_seed(knobs, 3);
      EXPECT_FALSE(measured(*device, with_facts({plan, plan})).another_step);
      for (std::size_t parameter = 0; parameter < plan.parameters.size(); parameter += 5) {
        const auto plans = with_facts({plan, without_reduction(plan, parameter)});
        const auto found = measured(*device, plans).another_step;
        ASSERT_TRUE(found) << plan.parameters[parameter].name;
        EXPECT_EQ(found->variant, 1);
        EXPECT_EQ(found->rank, 1);
        EXPECT_EQ(found->step, 0);
        EXPECT_EQ(found->parameter, plan.parameters[parameter].name);
        EXPECT_GT(found->value, 10 * found->bound);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryDType, SameSteps, dtypes);

}  // namespace
}  // namespace stepgate
