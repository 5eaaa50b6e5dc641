// SPDX-License-Identifier: MIT
// Compares the transformer with PyTorch: equal weights and batches, ten steps of AdamW, every
// dtype. ci/pytorch_transformer.py wrote golden/pytorch_transformer.json, in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>

#include "base/files/read_file.h"
#include "device/contents.h"
#include "kernels/number_format.h"
#include "plan/compose/build_step_plan.h"
#include "plan/compose/transformer/transformer_shape.h"
#include "tests/contract/device_contract.h"
#include "tests/numbers/pytorch_summary.h"

namespace stepgate {
namespace {

using Json = nlohmann::json;

// The largest allowed relative errors of the numbers, by norm. The largest errors of all cases and
// tensors, measured on the reference and on an H200, are in brackets.
struct Precision {
  std::string name;
  DType dtype;
  bool master;
  double loss, gradient, weight;
  bool trains_alike = true;  // whether later losses can be compared
};

// fp32  Sums of up to 96 products that are each off by 2^-24.
// tf32  The factors of products are off by 2^-11 each.
// bf16  Every number is off by 2^-9 once it is stored. Without a master the weights are stored so
//       too, and an update of 1e-4 is mostly lost in the rounding.
// fp16  As bf16 with 2^-11, but a gradient that the loss scale makes too large skips an update.
const Precision precisions[] = {
    {"fp32", DType::fp32, false, 1e-6, 2e-5, 1e-5},
    {"tf32", DType::tf32, false, 1e-3, 1e-2, 1e-3},
    {"bf16_master", DType::bf16, true, 1e-2, 5e-2, 1e-2},
    {"bf16", DType::bf16, false, 1e-2, 5e-2, 2e-2, false},
    {"fp16_master", DType::fp16, true, 2e-3, 1e-2, 3e-3, false},
};

// The bias of the keys shifts all scores of a query equally. So its gradient is only rounding
// error, which AdamW scales to the size of any other gradient.
constexpr double bound_of_key_bias = 2e-3;

// A variation that computes the same numbers.
struct Way {
  std::string name;
  void (*set)(Knobs&);
};

const Way ways[] = {
    {"as_it_is", [](Knobs&) {}},
    {"pointwise", [](Knobs& knobs) { knobs.launch.fuse = Fuse::pointwise; }},
    {"unfused", [](Knobs& knobs) { knobs.launch.fuse = Fuse::none; }},
    {"epilogue", [](Knobs& knobs) { knobs.launch.fuse = Fuse::epilogue; }},
    {"foreach",
     [](Knobs& knobs) {
       if (!knobs.optim.master) knobs.optim.impl = OptimImpl::foreach;
     }},
    {"one_sample_at_a_time", [](Knobs& knobs) { knobs.batch.accumulate = knobs.batch.size; }},
    {"recomputed", [](Knobs& knobs) { knobs.memory.checkpoint_every = 2; }},
};

Knobs knobs_of(const Json& golden, const Precision& precision, const Way& way) {
  Knobs knobs;
  knobs.transfer.host = HostMemory::resident;
  knobs.model = {.kind = ModelKind::transformer,
                 .layers = golden.at("layers"),
                 .hidden = golden.at("hidden"),
                 .dtype = precision.dtype};
  knobs.model.heads = golden.at("heads");
  knobs.model.seq = golden.at("seq");
  knobs.model.vocab = golden.at("vocab");
  knobs.model.norm = golden.at("norm") == "rms" ? ModelNorm::rms : ModelNorm::layer;
  // Only some cases set these knobs, by name.
  if (golden.value("mlp", "gelu") == "swiglu") knobs.model.mlp = ModelMlp::swiglu;
  if (golden.contains("ffn")) knobs.model.ffn = golden.at("ffn").get<std::int64_t>();
  if (golden.value("position", "learned") == "rope") knobs.model.position = ModelPosition::rope;
  knobs.model.tied = golden.value("tied", false);
  if (golden.contains("kv_heads")) knobs.model.kv_heads = golden.at("kv_heads").get<std::int64_t>();
  knobs.batch.size = golden.at("batch");
  knobs.optim.kind = OptimKind::adamw;
  knobs.optim.clip = golden.at("clip");
  knobs.optim.master = precision.master;
  way.set(knobs);
  return knobs;
}

StepPlan plan_of(const Json& golden, const Knobs& knobs) {
  Scenario scenario;
  scenario.name = golden.at("name");
  scenario.variants = {{.name = "only", .knobs = knobs, .place = {}}};
  return build_step_plans(scenario, golden.at("seed").get<std::uint64_t>()).front();
}

const Tensor& tensor_named(const StepResult& result, std::string_view name) {
  for (const Tensor& tensor : result.tensors) {
    if (tensor.name == name) return tensor;
  }
  ADD_FAILURE() << "no tensor is called " << name;
  return result.tensors.front();
}

void expect_tensors(const StepResult& result, std::string_view buffer, double scale,
                    const ParameterTable& table, const Json& expected, double bound) {
  const std::vector<float>& flat = tensor_named(result, buffer).values;
  ASSERT_EQ(expected.size(), table.tensors().size());
  for (const ParameterTensor& tensor : table.tensors()) {
    const std::span<const float> part(flat.data() + tensor.first,
                                      static_cast<std::size_t>(tensor.elements));
    const bool has_keys = tensor.name.ends_with("qkv bias") && buffer == "weights";
    expect_summary(tensor.name, part, scale, expected.at(tensor.name),
                   has_keys ? std::max(bound, bound_of_key_bias) : bound);
  }
}

Json golden_file() {
  const auto text =
      read_file(STEPGATE_SOURCE_DIR "/tests/golden/pytorch_transformer.json", "a golden file");
  return Json::parse(std::get<std::string>(text));
}

constexpr double first_loss_scale = 65536;

bool is_finite(const Tensor& tensor) {
  return std::all_of(tensor.values.begin(), tensor.values.end(),
                     [](float value) { return std::isfinite(value); });
}

// Gradients that overflow fp16 change no weight, and the next loss scale is smaller.
void expect_skipped_update(const StepPlan& plan, const Precision& precision,
                           const Tensor& weights) {
  EXPECT_EQ(precision.dtype, DType::fp16);
  const auto buffer = std::find_if(plan.buffers.begin(), plan.buffers.end(),
                                   [](const Buffer& one) { return one.name == "weights"; });
  std::vector<std::byte> bytes(static_cast<std::size_t>(buffer->bytes));
  fill_contents(*buffer, 0, plan.seed, bytes);
  EXPECT_EQ(weights.values, floats_of(bytes.data(), precision.dtype, std::ssize(weights.values)));
}

class PyTorchTransformer : public testing::TestWithParam<DeviceCase> {};

void expect_as_in_pytorch(Device& device, const Json& golden, const Precision& precision,
                          const Way& way) {
  SCOPED_TRACE(golden.at("name").get<std::string>() + ", " + precision.name + ", " + way.name);
  const Knobs knobs = knobs_of(golden, precision, way);
  const StepPlan plan = plan_of(golden, knobs);
  const auto step = device.load(plan);
  const StepResult first = step->run({.steps = 1, .tensors = true});
  const StepResult rest = step->run({.steps = 9, .tensors = true});
  std::vector<float> losses = first.losses;
  losses.insert(losses.end(), rest.losses.begin(), rest.losses.end());
  const Json& expected = golden.at("losses");
  ASSERT_EQ(losses.size(), expected.size());
  for (std::size_t i = 0; i < (precision.trains_alike ? losses.size() : 1); ++i) {
    const double loss = expected.at(i);
    EXPECT_NEAR(losses[i], loss, precision.loss * loss) << "step " << i;
  }
  if (!is_finite(tensor_named(first, "gradients")))
    return expect_skipped_update(plan, precision, tensor_named(first, "weights"));
  const double scale = precision.dtype == DType::fp16 ? first_loss_scale : 1;
  const ParameterTable table(transformer_shape(knobs));
  // foreach leaves clipped gradients in the buffer.
  if (knobs.optim.impl != OptimImpl::foreach || knobs.optim.clip == 0)
    expect_tensors(first, "gradients", scale, table, golden.at("gradients"), precision.gradient);
  if (precision.dtype != DType::fp16)
    expect_tensors(rest, "weights", 1, table, golden.at("weights"), precision.weight);
}

// The list CASES of the script must match the golden file.
TEST(PyTorchGoldens, AreOfEveryCaseOfTheScript) {
  const auto read = read_file(STEPGATE_SOURCE_DIR "/ci/pytorch_transformer.py", "a script");
  const std::string script = std::get<std::string>(read);
  const Json goldens = golden_file();
  std::set<std::string> computed;
  for (const Json& golden : goldens.at("cases")) computed.insert(golden.at("name"));
  constexpr std::string_view before = "dict(name=\"";
  for (std::size_t at = script.find(before); at != script.npos; at = script.find(before, at)) {
    at += before.size();
    const std::string name = script.substr(at, script.find('"', at) - at);
    EXPECT_EQ(computed.erase(name), 1U) << "case \"" << name
                                        << "\" is missing in the golden file: run "
                                           "ci/pytorch_transformer.py where there is PyTorch";
  }
  for (const std::string& name : computed)
    ADD_FAILURE() << "the golden file has a case that the script has not: " << name;
}

TEST_P(PyTorchTransformer, HasTheSameLossesGradientsAndWeights) {
  const Json goldens = golden_file();
  const auto device = GetParam().make();
  for (const Json& golden : goldens.at("cases"))
    for (const Precision& precision : precisions)
      for (const Way& way : ways) expect_as_in_pytorch(*device, golden, precision, way);
}

// Four batches repeat, so the model only needs to memorise them.
TEST_P(PyTorchTransformer, LearnsATinyTask) {
  if (sanitized) GTEST_SKIP() << "learns as released; its numbers are compared here too";
  const auto device = GetParam().make();
  const Json tiny = {{"name", "tiny"}, {"layers", 2}, {"hidden", 32},    {"heads", 2}, {"seq", 8},
                     {"vocab", 16},    {"batch", 4},  {"norm", "layer"}, {"clip", 1},  {"seed", 3}};
  for (const Precision& precision : precisions) {
    if (!precision.trains_alike && precision.dtype == DType::bf16) continue;  // see above
    SCOPED_TRACE(precision.name);
    const StepPlan plan = plan_of(tiny, knobs_of(tiny, precision, ways[0]));
    const std::vector<float> losses = device->load(plan)->run({.steps = 200}).losses;
    double first = 0, last = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      first += losses[i] / 4;
      last += losses[losses.size() - 1 - i] / 4;
    }
    EXPECT_LT(last, 0.8 * first) << first << " then " << last;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, PyTorchTransformer, testing::ValuesIn(devices_with_numbers()),
                         [](const auto& device) { return device.param.name; });

}  // namespace
}  // namespace stepgate
