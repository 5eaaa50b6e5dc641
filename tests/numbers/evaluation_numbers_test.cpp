// SPDX-License-Identifier: MIT
// Tests that an evaluation computes what the next step's forward pass would compute on the same
// batch, and does not change the training. Uses the host reference of every kernel, without a
// device.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <ostream>

#include "device/contents.h"
#include "kernels/catalogue.h"
#include "tests/contract/device_contract.h"

namespace stepgate {

// Prints the knobs in GoogleTest's messages.
void PrintTo(const EvalKnobs& eval, std::ostream* out) {
  *out << eval.batches << " batches, store " << static_cast<int>(eval.store) << ", saves "
       << eval.save_for_backward;
}

namespace {

using Bytes = std::vector<std::byte>;

// Runs step 0 of a plan, one operation after the other, on separate buffers.
class Steps {
 public:
  explicit Steps(const StepPlan& plan) : plan_(plan) {
    for (const Buffer& buffer : plan.buffers) {
      Bytes& memory = memory_.emplace_back();
      if (buffer.purpose == Purpose::workspace) continue;
      memory.resize(static_cast<std::size_t>(buffer.bytes));
      fill_contents(buffer, 0, plan.seed, memory);
    }
  }

  void run(std::initializer_list<Phase> phases) {
    for (const Operation& operation : plan_.operations) {
      if (std::find(phases.begin(), phases.end(), operation.phase) == phases.end()) continue;
      if (const auto* launch = std::get_if<LaunchKernel>(&operation.action)) carry_out(*launch);
      if (const auto* copy = std::get_if<CopyBytes>(&operation.action))
        std::memcpy(at(copy->to), at(copy->from), static_cast<std::size_t>(copy->to.bytes));
    }
  }

  const Bytes& content(const std::string& name) const {
    for (std::size_t index = 0; index < plan_.buffers.size(); ++index) {
      if (plan_.buffers[index].name == name) return memory_[index];
    }
    ADD_FAILURE() << "no buffer is called " << name;
    return memory_.front();
  }

  std::map<std::string, Bytes> of_training() const {
    std::map<std::string, Bytes> contents;
    for (std::size_t index = 0; index < plan_.buffers.size(); ++index) {
      const std::string& name = plan_.buffers[index].name;
      if (!name.starts_with("evaluation")) contents[name] = memory_[index];
    }
    return contents;
  }

 private:
  std::byte* at(const BufferUse& use) {
    return memory_[static_cast<std::size_t>(use.buffer)].data() + use.offset_bytes;
  }
  void carry_out(const LaunchKernel& launch) {
    std::vector<void*> operands;
    for (const BufferUse& use : launch.operands) operands.push_back(at(use));
    kernel(launch.kernel).reference({launch.shape, launch.dtype, launch.attributes, operands});
  }

  const StepPlan& plan_;
  std::vector<Bytes> memory_;
};

Bytes part_of(const Bytes& bytes, std::size_t part, std::size_t parts) {
  const auto size = static_cast<std::ptrdiff_t>(bytes.size() / parts);
  const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(part) * size;
  return {first, first + size};
}

class EvaluationNumbers : public testing::TestWithParam<EvalKnobs> {};

TEST_P(EvaluationNumbers, AreThoseOfTheNextForwardPassOnTheSameBatch) {
  for (const bool inplace : {true, false}) {
    for (const std::int64_t layers : {1, 2, 3}) {
      SCOPED_TRACE(testing::Message() << layers << " layers, inplace " << inplace);
      Knobs knobs = model_knobs(inplace ? "fp32_adamw" : "uint8_sgd");
      knobs.model.layers = layers;
      knobs.model.inplace = inplace;
      knobs.eval = GetParam();
      const StepPlan plan = plan_of(knobs);
      Steps steps(plan);
      steps.run({Phase::forward});
      const Bytes before = steps.content("row losses");
      steps.run({Phase::backward, Phase::optimizer});
      const auto trained = steps.of_training();
      steps.run({Phase::evaluation});
      EXPECT_EQ(steps.of_training(), trained);
      const Bytes evaluated = steps.content("evaluation row losses");
      steps.run({Phase::forward});
      EXPECT_EQ(evaluated, steps.content("row losses"));
      EXPECT_NE(evaluated, before) << "the optimizer has changed the weights";
      const auto batches = static_cast<std::size_t>(knobs.eval.batches);
      for (std::size_t batch = 0; batch < batches; ++batch) {
        if (knobs.eval.store == EvalStore::host) {
          EXPECT_EQ(part_of(steps.content("evaluation outputs"), batch, batches),
                    steps.content("logits"));
        } else if (knobs.eval.store == EvalStore::device) {
          EXPECT_EQ(steps.content("evaluation outputs " + std::to_string(batch)),
                    steps.content("logits"));
        }
      }
    }
  }
}

std::vector<EvalKnobs> evaluations() {
  std::vector<EvalKnobs> all;
  for (const std::int64_t batches : {1, 3})
    for (const EvalStore store : {EvalStore::none, EvalStore::host, EvalStore::device})
      for (const bool saves : {false, true}) all.push_back({1, batches, store, saves});
  return all;
}

std::string name_of(const EvalKnobs& eval) {
  constexpr const char* stores[] = {"drops", "copies", "keeps"};
  return "of_" + std::to_string(eval.batches) + "_batches_" + stores[static_cast<int>(eval.store)] +
         (eval.save_for_backward ? "_and_saves" : "");
}

INSTANTIATE_TEST_SUITE_P(Every, EvaluationNumbers, testing::ValuesIn(evaluations()),
                         [](const auto& test) { return name_of(test.param); });

}  // namespace
}  // namespace stepgate
