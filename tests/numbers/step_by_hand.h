// SPDX-License-Identifier: MIT
// Runs step 0 of a plan on separate buffers, one operation after the other with the kernels'
// references. Tests can change weights and read intermediate numbers, which no device allows.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "device/contents.h"
#include "kernels/catalogue.h"
#include "plan/analyse/operation_uses.h"
#include "plan/step_plan.h"

namespace stepgate {

// The step with numbers of a dtype twice as wide as its own. Buffers of other numbers become twice
// as large as they need to be.
inline StepPlan with_twice_the_bits(StepPlan plan, DType dtype) {
  for (Buffer& buffer : plan.buffers) {
    buffer.bytes *= 2;
    if (buffer.content == Content::weights) buffer.dtype = dtype;
  }
  for (Operation& operation : plan.operations) {
    auto* launch = std::get_if<LaunchKernel>(&operation.action);
    if (launch != nullptr) launch->dtype = dtype;
    for_each_use(operation, [](BufferUse& use) {
      use.offset_bytes *= 2;
      use.bytes *= 2;
    });
  }
  return plan;
}

// The step with every number in double, which only host references compute.
inline StepPlan in_double(StepPlan plan) {
  return with_twice_the_bits(std::move(plan), DType::fp64);
}

// Number is float for steps in fp32 or tf32, and double for those in_double.
template <class Number>
class StepByHandOf {
 public:
  // Keeps the plan, which must live as long.
  explicit StepByHandOf(const StepPlan& plan) : plan_(plan) {
    for (const Buffer& buffer : plan.buffers) {
      std::vector<std::byte>& memory = memory_.emplace_back();
      if (buffer.purpose == Purpose::workspace) continue;
      memory.resize(static_cast<std::size_t>(buffer.bytes));
      fill_contents(buffer, 0, plan.seed, memory);
    }
  }

  // Runs the forward pass. Returns the mean of the row losses without padding, in double: the
  // step's own loss is rounded once more.
  double loss() {
    carry_out([](Phase phase) { return phase == Phase::forward; });
    const std::span<const Number> rows = numbers("row losses");
    const double tokens = mean_tokens(plan_);
    return std::accumulate(rows.begin(), rows.end(), 0.0) /
           (tokens > 0 ? tokens : static_cast<double>(rows.size()));
  }

  // Runs the forward and backward passes and returns the gradients.
  std::vector<Number> gradients() {
    carry_out([](Phase phase) { return phase == Phase::forward || phase == Phase::backward; });
    const std::span<const Number> all = numbers("gradients");
    return {all.begin(), all.end()};
  }

  // Runs all of the step, update included. `launch(operation, launch, operands)` carries out each
  // launch, and may look at its operands before and after.
  template <class Launch>
  void step(Launch launch) {
    const auto is_computed = [](Phase phase) {
      return phase == Phase::forward || phase == Phase::backward || phase == Phase::optimizer;
    };
    carry_out(is_computed, launch);
  }
  void step() { step(&run_reference); }

  static void run_reference(const Operation&, const LaunchKernel& launch,
                            std::span<void* const> operands) {
    kernel(launch.kernel).reference({launch.shape, launch.dtype, launch.attributes, operands});
  }

  Number& weight(std::size_t index) { return numbers("weights")[index]; }

  std::span<Number> numbers(const std::string& buffer) {
    const auto found = std::find_if(plan_.buffers.begin(), plan_.buffers.end(),
                                    [&](const Buffer& one) { return one.name == buffer; });
    if (found == plan_.buffers.end()) {
      ADD_FAILURE() << "no buffer is called " << buffer;
      return {};
    }
    std::vector<std::byte>& bytes =
        memory_[static_cast<std::size_t>(found - plan_.buffers.begin())];
    return {reinterpret_cast<Number*>(bytes.data()), bytes.size() / sizeof(Number)};
  }

 private:
  // Runs operations in the plan's order, in which parts of a batch alternate.
  template <class Chosen>
  void carry_out(Chosen chosen) {
    carry_out(chosen, &run_reference);
  }

  template <class Chosen, class Launch>
  void carry_out(Chosen chosen, Launch launch_one) {
    for (const Operation& operation : plan_.operations) {
      if (!chosen(operation.phase)) continue;
      if (const auto* launch = std::get_if<LaunchKernel>(&operation.action)) {
        std::vector<void*> operands;
        for (const BufferUse& use : launch->operands) operands.push_back(at(use));
        launch_one(operation, *launch, std::span<void* const>(operands));
      } else if (const auto* zero = std::get_if<FillZero>(&operation.action)) {
        std::memset(at(zero->what), 0, static_cast<std::size_t>(zero->what.bytes));
      }
    }
  }

  void* at(const BufferUse& use) {
    return memory_[static_cast<std::size_t>(use.buffer)].data() + use.offset_bytes;
  }

  const StepPlan& plan_;
  std::vector<std::vector<std::byte>> memory_;
};
using StepByHand = StepByHandOf<float>;

}  // namespace stepgate
