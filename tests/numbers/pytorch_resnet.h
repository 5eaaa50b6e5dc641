// SPDX-License-Identifier: MIT
// The ResNets that ci/pytorch_resnet.py trained, of golden/pytorch_resnet.json and
// pytorch_resnet_224.json: their plans, and comparisons with what PyTorch computed.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/files/read_file.h"
#include "plan/compose/build_step_plan.h"
#include "plan/compose/resnet/resnet_shape.h"
#include "tests/numbers/pytorch_summary.h"

namespace stepgate {

// The cases of a golden file.
inline nlohmann::json golden_cases(const std::string& name) {
  const auto text =
      read_file(STEPGATE_SOURCE_DIR "/tests/golden/" + name + ".json", "a golden file");
  return nlohmann::json::parse(std::get<std::string>(text)).at("cases");
}

inline const nlohmann::json& resnet_goldens() {
  static const nlohmann::json cases = golden_cases("pytorch_resnet");
  return cases;
}

inline Knobs knobs_of(const nlohmann::json& golden) {
  Knobs knobs;
  knobs.transfer.host = HostMemory::resident;
  knobs.model.kind = ModelKind::resnet;
  knobs.model.layers = golden.at("layers");
  knobs.model.width = golden.at("width");
  knobs.model.image = golden.at("image");
  knobs.model.classes = golden.at("classes");
  knobs.model.stem = golden.at("stem") == "cifar" ? ModelStem::cifar : ModelStem::imagenet;
  knobs.batch.size = golden.at("batch");
  knobs.optim.kind = OptimKind::momentum;
  return knobs;
}

// Norms begin with equal numbers, which could be taken from one another, so they are drawn, as
// PyTorch's are.
inline StepPlan plan_with_drawn_norms(const Knobs& knobs, std::uint64_t seed) {
  Scenario scenario;
  scenario.name = "resnet";
  scenario.variants = {{.name = "only", .knobs = knobs, .place = {}}};
  StepPlan plan = build_step_plans(scenario, seed).front();
  for (Buffer& buffer : plan.buffers) {
    if (buffer.purpose != Purpose::weights && buffer.numbers_of != "weights") continue;
    for (ContentPart& part : buffer.parts) {
      if (part.scale == 0) part.scale = 0.1;
    }
  }
  return plan;
}

inline StepPlan plan_of(const nlohmann::json& golden, const Knobs& knobs) {
  return plan_with_drawn_norms(knobs, golden.at("seed").get<std::uint64_t>());
}

// nullptr where the step has no such launch.
inline LaunchKernel* launch_named(StepPlan& plan, std::string_view name) {
  const auto found = std::ranges::find(plan.operations, name, &Operation::name);
  return found == plan.operations.end() ? nullptr : std::get_if<LaunchKernel>(&found->action);
}

// The largest error of the summaries of all parameters.
template <class Number>
double largest_error(const nlohmann::json& golden, std::span<const Number> flat,
                     const nlohmann::json& expected) {
  const ResnetParameters parameters(knobs_of(golden));
  EXPECT_EQ(expected.size(), parameters.tensors().size());
  double largest = 0;
  for (const ParameterTensor& tensor : parameters.tensors()) {
    const auto part = flat.subspan(static_cast<std::size_t>(tensor.first),
                                   static_cast<std::size_t>(tensor.elements));
    largest = std::max(largest, error_of_summary(tensor.name, part, 1, expected.at(tensor.name)));
  }
  return largest;
}

}  // namespace stepgate
