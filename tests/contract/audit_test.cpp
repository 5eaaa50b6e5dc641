// SPDX-License-Identifier: MIT
// Tests that an audit of one launch finds a faulty kernel for every seed, and that audits of honest
// kernels find nothing. Only one kernel of the step is replaced.
#include "device/audit.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

#include "kernels/kernels.h"
#include "kernels/number_format.h"
#include "measure/planned_subject.h"
#include "plan/compose/build_step_plan.h"
#include "plan/count/facts_of.h"
#include "tests/contract/device_contract.h"

namespace stepgate {
namespace {

using LayerNormCall = const KernelCall&;

struct Replacement {
  const char* name;
  void (*reference)(LayerNormCall);
  KernelAttributes (*attributes)(const KernelAttributes&);  // that a GPU launches with
  KernelShape (*shape)(const KernelShape&);                 // likewise
  bool on_gpus = true;
};
const Replacement* replacement = nullptr;  // of the only one
std::int64_t honest_calls = 0;             // before the replacement begins
std::int64_t calls = 0;                    // of the replaced kernel in this process

const Kernel& layer_norm() {
  return kernel(kernels::LayerNorm::name);
}

KernelAttributes same_attributes(const KernelAttributes& attributes) {
  return attributes;
}
KernelShape same_shape(const KernelShape& shape) {
  return shape;
}
KernelAttributes other_epsilon(const KernelAttributes& attributes) {
  return kernels::LayerNorm::Attributes{.epsilon =
                                            100 * attributes.as<kernels::LayerNorm>().epsilon};
}
KernelShape without_last_row(const KernelShape& shape) {
  auto less = shape.as<kernels::LayerNorm>();
  less.rows -= 1;
  return less;
}

// A norm whose sums are rounded by `rounds` after each addition, from the last column to the first.
template <double (*rounds)(double)>
void norm_with_sums(LayerNormCall call) {
  const auto shape = call.shape.as<kernels::LayerNorm>();
  const std::int64_t columns = shape.columns;
  const auto count = static_cast<double>(columns);
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    const auto x = [&](std::int64_t column) {
      return number_at(call.buffers[0], call.dtype, row * columns + column);
    };
    double sum = 0, squares = 0;
    for (std::int64_t column = columns - 1; column >= 0; --column) sum = rounds(sum + x(column));
    const double mean = sum / count;
    for (std::int64_t column = columns - 1; column >= 0; --column)
      squares = rounds(squares + rounds((x(column) - mean) * (x(column) - mean)));
    const double scale =
        1 / std::sqrt(squares / count + call.attributes.as<kernels::LayerNorm>().epsilon);
    auto* const statistics = static_cast<float*>(call.buffers[4]) + 2 * row;
    statistics[0] = static_cast<float>(mean);
    statistics[1] = static_cast<float>(scale);
    for (std::int64_t column = 0; column < columns; ++column) {
      set_number(call.buffers[3], call.dtype, row * columns + column,
                 (x(column) - mean) * scale * number_at(call.buffers[1], call.dtype, column) +
                     number_at(call.buffers[2], call.dtype, column));
    }
  }
}
double in_half(double value) {
  return stored_number(DType::fp16, value);
}
double in_single(double value) {
  return static_cast<float>(value);
}

constexpr Replacement wrong_epsilon{
    .name = "wrong epsilon",
    .reference =
        [](LayerNormCall call) {
          layer_norm().reference(
              {call.shape, call.dtype, other_epsilon(call.attributes), call.buffers});
        },
    .attributes = other_epsilon,
    .shape = same_shape};
constexpr Replacement missing_row{
    .name = "missing row",
    .reference =
        [](LayerNormCall call) {
          layer_norm().reference(
              {without_last_row(call.shape), call.dtype, call.attributes, call.buffers});
        },
    .attributes = same_attributes,
    .shape = without_last_row};
constexpr Replacement half_sums{.name = "sums in half precision",
                                .reference = norm_with_sums<in_half>,
                                .attributes = same_attributes,
                                .shape = same_shape,
                                .on_gpus = false};
constexpr Replacement honest{.name = "honest sums in another order",
                             .reference = norm_with_sums<in_single>,
                             .attributes = same_attributes,
                             .shape = same_shape};

void replaced_reference(LayerNormCall call) {
  (calls++ < honest_calls ? layer_norm().reference : replacement->reference)(call);
}

Launch replaced_launch(const KernelShape& shape, DType dtype, const KernelAttributes& attributes,
                       const LaunchContext& context) {
  const Launch right = layer_norm().prepare(shape, dtype, attributes, context);
  const Launch other = layer_norm().prepare(replacement->shape(shape), dtype,
                                            replacement->attributes(attributes), context);
  return [right, other](void* const* buffers, CUstream_st* stream) {
    (calls++ < honest_calls ? right : other)(buffers, stream);
  };
}

// Replaces the layer norms of the plan.
StepPlan with(StepPlan plan, const Replacement& by, std::int64_t honest_for = 0) {
  static Kernel replaced;
  replacement = &by;
  honest_calls = honest_for;
  calls = 0;
  replaced = layer_norm();
  replaced.reference = replaced_reference;
  if (replaced.prepare != nullptr) replaced.prepare = replaced_launch;
  plan.variant = "fix";
  for (Operation& operation : plan.operations) {
    auto* const launch = std::get_if<LaunchKernel>(&operation.action);
    if (launch && launch->kernel == kernels::LayerNorm::name) launch->kernel = KernelRef(replaced);
  }
  return plan;
}

// A step whose norms have so many rows.
Knobs transformer(std::int64_t rows, DType dtype) {
  Knobs knobs;
  knobs.transfer.host = HostMemory::resident;
  knobs.model = {.kind = ModelKind::transformer, .layers = 1, .hidden = 16, .dtype = dtype};
  knobs.model.heads = 2;
  knobs.model.seq = 16;
  knobs.model.vocab = 72;
  knobs.batch.size = rows / 16;
  knobs.optim.kind = OptimKind::adamw;
  knobs.launch.fuse = Fuse::none;
  return knobs;
}

StepPlan plan_with_seed(const Knobs& knobs, std::uint64_t seed) {
  Scenario scenario;
  scenario.name = "by_hand";
  scenario.variants.push_back({.name = "baseline", .knobs = knobs, .place = {}});
  return build_step_plans(scenario, seed).front();
}

std::vector<LaunchAudit> audits_of(Device& device, const StepPlan& plan, std::uint64_t seed) {
  const auto wash_out = static_cast<std::int64_t>(seed % 2);
  return device.load(plan)
      ->run({.wash_out_steps = wash_out, .steps = 1, .audit = random_bits(seed, 17) | 1})
      .audits;
}

class Audits : public testing::TestWithParam<DType> {};

TEST_P(Audits, FindAFaultyKernelForEverySeed) {
  for (const DeviceCase& test : devices_with_numbers()) {
    const auto device = test.make();
    for (const Replacement* const fault : {&wrong_epsilon, &missing_row, &half_sums}) {
      if (test.kind == DeviceKind::cuda && !fault->on_gpus) continue;
      for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        const StepPlan plan = with(plan_with_seed(transformer(1024, GetParam()), seed), *fault);
        const auto audits = audits_of(*device, plan, seed);
        ASSERT_EQ(audits.size(), 1U) << "one launch of the only replaced kernel";
        EXPECT_EQ(audits[0].kernel, kernels::LayerNorm::name);
        EXPECT_NE(audits[0].difference, "") << test.name << ' ' << fault->name << ' ' << seed;
        if (seed == 1) fmt::print("{}, {}: {}\n", test.name, fault->name, audits[0].difference);
      }
    }
  }
}

TEST_P(Audits, FindNothingInHonestKernels) {
  for (const DeviceCase& test : devices_with_numbers()) {
    const auto device = test.make();
    std::size_t audited = 0;
    for (std::uint64_t seed = 1; audited < 200; ++seed) {
      const StepPlan plan = with(plan_with_seed(transformer(64, GetParam()), seed), honest);
      for (const LaunchAudit& audit : audits_of(*device, plan, seed)) {
        EXPECT_EQ(audit.difference, "") << test.name << ' ' << audit.operation << ' ' << seed;
        ++audited;
      }
    }
  }
}

// An audit of a launch that the catalogue's kernel makes would say nothing of the other one.
TEST(Audits, ChooseNoLaunchThatIsOursAfterAll) {
  const StepPlan plan = with(plan_with_seed(transformer(64, DType::bf16), 1), honest);
  std::vector<int> replaced;
  for (int index = 0; index < std::ssize(plan.operations); ++index) {
    const auto* launch = std::get_if<LaunchKernel>(&operation_at(plan, index).action);
    if (launch != nullptr && is_replaced(*launch)) replaced.push_back(index);
  }
  ASSERT_GE(replaced.size(), 2U);
  const std::vector<int> theirs{replaced.back()};
  replaced.pop_back();
  for (std::uint64_t seed = 1; seed <= 20; ++seed)
    EXPECT_EQ(launches_to_audit(plan, 0, seed, replaced), theirs);
}

// Each kernel of the steps is audited against itself, in steps that are issued in several ways.
TEST_P(Audits, FindNothingInTheCataloguesOwnKernels) {
  Knobs unfused = transformer(64, GetParam()), pointwise = unfused;
  pointwise.launch.fuse = Fuse::pointwise;
  const bool is_short = GetParam() == DType::bf16;
  for (const DeviceCase& test : devices_with_numbers()) {
    const auto device = test.make();
    std::set<std::string> kernels;
    for (Knobs knobs :
         {unfused, pointwise, model_knobs(is_short ? "bf16_resnet" : "fp32_resnet")}) {
      for (const LaunchVia via : {LaunchVia::stream, LaunchVia::graph}) {
        for (const Allocator allocator : {Allocator::fixed, Allocator::cuda_async}) {
          knobs.launch.via = via;
          knobs.alloc.with = allocator;
          const auto plan = accepted_plan(knobs);
          if (!plan) continue;
          for (std::uint64_t seed = 1; seed <= 3; ++seed) {
            for (const LaunchAudit& audit : audits_of(*device, *plan, seed)) {
              EXPECT_EQ(audit.difference, "") << test.name << ' ' << audit.operation;
              kernels.insert(audit.kernel);
            }
          }
        }
      }
    }
    EXPECT_GT(kernels.size(), 35U) << test.name;
  }
}

TEST_P(Audits, ChangeNoNumberOfTheStep) {
  for (const DeviceCase& test : devices_with_numbers()) {
    const auto device = test.make();
    const StepPlan plan = plan_with_seed(transformer(64, GetParam()), 5);
    const auto losses = [&](std::uint64_t audit) {
      const auto loaded = device->load(plan);
      std::vector<float> all = loaded->run({.steps = 2, .audit = audit}).losses;
      const auto more = loaded->run({.steps = 3}).losses;
      all.insert(all.end(), more.begin(), more.end());
      return all;
    };
    EXPECT_EQ(losses(77), losses(0)) << test.name;
  }
}

INSTANTIATE_TEST_SUITE_P(EveryDType, Audits, testing::Values(DType::fp32, DType::bf16));

Measurement measured(Device& device, const StepPlan& plan) {
  MeasureRequest request{
      .knobs = {},
      .enough = [](const Measurement& so_far) { return so_far.rounds.size() >= 5; },
      .progress = {}};
  request.knobs.max_seconds = 5;
  const std::vector<PlannedStep> plans{with_facts(plan)};
  return measure(device, plans, request);
}

// A kernel that is right while the first steps are compared, and a variant that is compared with
// none: nothing but an audit can tell.
TEST(AuditsOfARun, FindAKernelThatIsHonestForSoManyCalls) {
  for (const DeviceCase& test : devices_with_numbers()) {
    const auto device = test.make();
    const StepPlan plan = plan_with_seed(transformer(64, DType::bf16), 3);
    const Measurement right = measured(*device, with(plan, honest));
    EXPECT_EQ(right.broken, "") << test.name;
    EXPECT_EQ(right.variants.front().audits.size(), 2U);
    EXPECT_TRUE(measured(*device, plan).variants.front().audits.empty()) << "nothing is replaced";
    const Measurement wrong = measured(*device, with(plan, missing_row, 12));
    EXPECT_TRUE(wrong.broken.starts_with("variant 'fix' does not compute its step: in step "))
        << test.name << ": " << wrong.broken;
    EXPECT_NE(wrong.broken.find("leaves other numbers than stepgate's own layer_norm: 'y': "),
              std::string::npos)
        << wrong.broken;
  }
}

}  // namespace
}  // namespace stepgate
