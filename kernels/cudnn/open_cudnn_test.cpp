// SPDX-License-Identifier: MIT
// Tests opening cuDNN, choosing it, and caching its plans, with a fake library and without a GPU.
// cudnn_attention_test.cpp tests the results of the real library.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "kernels/attention/cudnn/choose_cudnn.h"
#include "kernels/convolution/cudnn/cudnn_convolution.h"
#include "kernels/cudnn/cudnn_library.h"
#include "kernels/cudnn/open_cudnn.h"

namespace stepgate {
namespace {

// Two samples of 256 tokens, 4 heads of 64 columns.
constexpr AttentionShape suitable{.rows = 512, .columns = 256, .tokens = 256, .heads = 4};
// One sample of 2048 tokens, whose scores take more than its sums.
constexpr AttentionShape long_samples{.rows = 2048, .columns = 256, .tokens = 2048, .heads = 4};
constexpr std::int64_t plenty = std::int64_t{1} << 40;

class OpenCudnn : public testing::Test {
 protected:
  void SetUp() override {
    say("STEPGATE_CUDNN", STEPGATE_FAKE_CUDNN);
    say("VERSION", "91400");
  }
  void TearDown() override {
    for (const char* name : {"STEPGATE_CUDNN", "FAKE_CUDNN_VERSION", "FAKE_CUDNN_NO_HANDLE",
                             "FAKE_CUDNN_NO_DESCRIPTOR", "FAKE_CUDNN_NOTE", "FAKE_CUDNN_WORKSPACE",
                             "FAKE_CUDNN_FALLBACKS_TOO", "FAKE_CUDNN_ENGINES"}) {
      (void)unsetenv(name);
    }
  }
  static void say(const std::string& name, const char* value) {
    const std::string whole = name == "STEPGATE_CUDNN" ? name : "FAKE_CUDNN_" + name;
    ASSERT_EQ(setenv(whole.c_str(), value, 1), 0);
  }
  // The reason why cuDNN cannot be opened; empty where it can.
  static std::string refusal() {
    std::string reason;
    const auto cudnn = open_cudnn(&reason);
    EXPECT_EQ(cudnn == nullptr, !reason.empty());
    return reason;
  }
};

TEST_F(OpenCudnn, HasTheVersionOfTheLibrary) {
  std::string reason;
  const auto cudnn = open_cudnn(&reason);
  ASSERT_NE(cudnn, nullptr) << reason;
  EXPECT_EQ(version_of(*cudnn), "9.14.0");
  EXPECT_EQ(version_text(91002), "9.10.2");
  EXPECT_EQ(version_text(100100), "10.1.0");
  EXPECT_EQ(version_text(8907), "8.9.7");
}

TEST_F(OpenCudnn, SaysWhatWasNamedWhereNothingCanBeOpened) {
  say("STEPGATE_CUDNN", "/nowhere/libcudnn.so.9");
  const std::string reason = refusal();
  EXPECT_EQ(reason.find("no cuDNN was found where STEPGATE_CUDNN names '/nowhere/libcudnn.so.9' "
                        "(/nowhere/libcudnn.so.9: cannot open"),
            0U)
      << reason;
}

TEST_F(OpenCudnn, SaysWhatALibraryLacksThatIsNone) {
  say("STEPGATE_CUDNN", "libc.so.6");
  const std::string reason = refusal();
  EXPECT_NE(reason.find("STEPGATE_CUDNN names 'libc.so.6'"), std::string::npos) << reason;
  EXPECT_NE(reason.find("cudnnGetVersion"), std::string::npos) << reason;
}

TEST_F(OpenCudnn, SaysThatALibraryMakesNoHandle) {
  say("NO_HANDLE", "1");
  EXPECT_EQ(refusal(), "cuDNN 9.14.0 makes no handle: FAKE_ERROR");
}

TEST_F(OpenCudnn, IsChosenWhereItSuitsAndNamedWithItsVersion) {
  std::string reason;
  const auto cudnn = open_cudnn(&reason);
  ASSERT_NE(cudnn, nullptr) << reason;
  std::vector<KernelChoice> choices;
  const LaunchContext context{.dnn = cudnn.get(), .choices = &choices};
  EXPECT_TRUE(attention_by_cudnn(suitable, DType::bf16, context));
  EXPECT_TRUE(attention_gradient_by_cudnn(suitable, DType::bf16, plenty, SumOrder::fixed, context));
  EXPECT_FALSE(attention_gradient_by_cudnn(suitable, DType::bf16, 0, SumOrder::fixed, context));
  EXPECT_EQ(choices, (std::vector<KernelChoice>{
                         {"attention", "cuDNN 9.14.0", ""},
                         {"attention_gradient", "cuDNN 9.14.0", ""},
                         {"attention_gradient", "", "model.attention_workspace is 0 B"}}));
}

TEST_F(OpenCudnn, SaysInItsOwnWordsWhatItRefuses) {
  std::string reason;
  const auto cudnn = open_cudnn(&reason);
  ASSERT_NE(cudnn, nullptr) << reason;
  say("NO_DESCRIPTOR", "1");
  std::vector<KernelChoice> choices;
  const LaunchContext context{.dnn = cudnn.get(), .choices = &choices};
  EXPECT_FALSE(attention_by_cudnn(suitable, DType::bf16, context));
  EXPECT_FALSE(
      attention_gradient_by_cudnn(suitable, DType::bf16, plenty, SumOrder::fixed, context));
  ASSERT_EQ(choices.size(), 2U);
  for (const KernelChoice& choice : choices) {
    EXPECT_EQ(choice.library, "");
    EXPECT_EQ(choice.reason.find("cuDNN 9.14.0: "), 0U) << choice.reason;
    EXPECT_NE(choice.reason.find("FAKE_NOT_SUPPORTED"), std::string::npos) << choice.reason;
  }
}

class KeptPlans : public OpenCudnn {
 protected:
  void SetUp() override {
    OpenCudnn::SetUp();
    std::string reason;
    cudnn_ = open_cudnn(&reason);
    ASSERT_NE(cudnn_, nullptr) << reason;
    library_ = dlopen(STEPGATE_FAKE_CUDNN, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
  }

  // Counts of the handles and descriptors that exist now, and of the plans made so far.
  int handles() const { return found<int()>("fake_handles")(); }
  int descriptors() const { return found<int()>("fake_descriptors")(); }
  int made(cudnnBackendDescriptorType_t type) const {
    return found<int(cudnnBackendDescriptorType_t)>("fake_descriptors_made")(type);
  }
  int executions() const { return found<int()>("fake_executions")(); }
  // The plan of an execution, and one of its operands.
  void* plan_of(int execution) const { return found<void*(int)>("fake_plan")(execution); }
  void* operand(int execution, int which) const {
    return found<void*(int, int)>("fake_operand")(execution, which);
  }
  // The plan that was executed last.
  void* executed() const { return plan_of(executions() - 1); }
  int plans_made() const { return made(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR); }

  // The number of plans that were made for these launches; each launch must be possible.
  int plans_for(const AttentionShape& shape, DType dtype) {
    const int before = plans_made();
    std::string reason;
    EXPECT_TRUE(cudnn_attention(*cudnn_, shape, dtype, &reason)) << reason;
    for (const SumOrder order : {SumOrder::fixed, SumOrder::any}) {
      EXPECT_TRUE(cudnn_attention_gradient(*cudnn_, shape, shape, dtype, plenty, &reason, order))
          << reason;
    }
    return plans_made() - before;
  }

  std::shared_ptr<Cudnn> cudnn_;

  template <class Function>
  Function* found(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(library_, name));
  }

 private:
  void* library_ = nullptr;
};

TEST_F(KeptPlans, AreMadeOnceForEachPassShapeTypeAndOrder) {
  std::vector<AttentionShape> shapes(5, suitable);
  shapes[1].rows *= 2;
  shapes[2].columns *= 2;
  shapes[3].tokens /= 2;
  shapes[4].heads *= 2;
  for (const AttentionShape& shape : shapes) {
    for (const DType dtype : {DType::bf16, DType::fp16}) EXPECT_EQ(plans_for(shape, dtype), 3);
  }
  for (const AttentionShape& shape : shapes) {
    for (const DType dtype : {DType::bf16, DType::fp16}) EXPECT_EQ(plans_for(shape, dtype), 0);
  }
}

// Sums of any order are kept apart and converted at the end, by one more operation of the graph.
TEST_F(KeptPlans, AddInTheOrderThatTheGradientAsksFor) {
  std::vector<KernelChoice> choices;
  const LaunchContext context{.dnn = cudnn_.get(), .choices = &choices};
  const auto operations_for = [&](SumOrder order, std::int64_t most_scratch) {
    const int before = made(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    EXPECT_EQ(attention_gradient_by_cudnn(long_samples, DType::bf16, most_scratch, order,
                                          context) != std::nullopt,
              most_scratch > 0);
    return made(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR) - before;
  };
  const int in_a_fixed_order = operations_for(SumOrder::fixed, plenty);
  const std::int64_t without_scores = cudnn_attention_gradient_scratch(long_samples, SumOrder::any);
  ASSERT_LT(without_scores, cudnn_attention_gradient_scratch(long_samples));
  EXPECT_EQ(operations_for(SumOrder::any, without_scores), in_a_fixed_order + 1);
  EXPECT_EQ(operations_for(SumOrder::any, 0), 0);
  EXPECT_EQ(choices, (std::vector<KernelChoice>{
                         {"attention_gradient", "cuDNN 9.14.0", ""},
                         {"attention_gradient", "cuDNN 9.14.0", "its sums have any order"},
                         {"attention_gradient", "", "model.attention_workspace is 0 B"}}));
}

TEST_F(KeptPlans, SayTheirSizesWithoutBeingMadeAgain) {
  EXPECT_EQ(plans_for(suitable, DType::bf16), 3);
  const int before = plans_made();
  std::string reason;
  EXPECT_EQ(cudnn_attention_bytes(*cudnn_, suitable, DType::bf16, &reason), 0);
  EXPECT_TRUE(cudnn_attention_gradient_bytes(*cudnn_, suitable, DType::bf16, &reason));
  EXPECT_EQ(plans_made(), before);
}

TEST_F(KeptPlans, AreOfOneLibraryAndHandle) {
  EXPECT_EQ(plans_for(suitable, DType::bf16), 3);
  std::string reason;
  cudnn_ = open_cudnn(&reason);
  ASSERT_NE(cudnn_, nullptr) << reason;
  EXPECT_EQ(plans_for(suitable, DType::bf16), 3);
}

// A plan does not depend on the size of the scratch, so a lack of scratch is not stored as cuDNN's
// refusal.
TEST_F(KeptPlans, DoNotDependOnTheScratch) {
  std::string reason;
  EXPECT_FALSE(cudnn_attention_gradient(*cudnn_, suitable, suitable, DType::bf16, 100, &reason));
  EXPECT_NE(reason.find("bytes of scratch and has 100"), std::string::npos) << reason;
  const int before = plans_made();
  EXPECT_TRUE(cudnn_attention_gradient(*cudnn_, suitable, suitable, DType::bf16, plenty, &reason))
      << reason;
  EXPECT_EQ(plans_made(), before);
}

// A place in one of the operands of a launch, which nobody reads or writes.
void* place(std::uintptr_t buffer, std::int64_t bytes = 0) {
  return reinterpret_cast<void*>((buffer + 1) << 28 | static_cast<std::uintptr_t>(bytes));
}
const std::vector<void*> places = {place(0), place(1), place(2), place(3), place(4), place(5)};

// Two sequences of 8 heads in rows of (8 + 2 * 4) * 64 numbers, half of the heads at a time, or
// three of the four that have keys, and then the last.
TEST_F(KeptPlans, FindTheHeadsOfAShareInItsRows) {
  constexpr AttentionShape whole{
      .rows = 512, .columns = 512, .tokens = 256, .heads = 8, .kv_heads = 4};
  for (const std::int64_t kv_heads : {2, 3}) {
    std::string reason;
    const auto launch = cudnn_attention_gradient(*cudnn_, whole, part_of(whole, 1, kv_heads),
                                                 DType::bf16, plenty, &reason);
    ASSERT_TRUE(launch) << reason;
    const int before = executions();
    (*launch)(places.data(), nullptr);
    ASSERT_EQ(executions() - before, 4);
    for (int share = 0; share < 4; ++share) {
      const std::int64_t row = share / 2 * 256, kv_head = share % 2 * kv_heads, head = 2 * kv_head;
      const std::int64_t q = 2 * (row * 1024 + head * 64);
      const std::int64_t k = 2 * (row * 1024 + (8 + kv_head) * 64), v = k + 2 * 4 * 64;
      const std::int64_t out = 2 * (row * 512 + head * 64), log_sums = 4 * (row * 8 + head * 256);
      const std::vector<void*> expected = {
          place(0, q),        place(0, k), place(0, v), place(1, out), place(2, out),
          place(3, log_sums), place(4),    place(5, q), place(5, k),   place(5, v)};
      for (std::size_t i = 0; i < expected.size(); ++i)
        EXPECT_EQ(operand(before + share, static_cast<int>(i)), expected[i])
            << kv_heads << ", share " << share << ", operand " << i;
      const bool is_rest = kv_heads == 3 && share % 2 == 1;
      EXPECT_EQ(plan_of(before + share) != plan_of(before), is_rest) << share;
    }
  }
}

// Seven sequences in two launches: the last has a plan of its own, for three.
TEST_F(KeptPlans, OfTheLastShareAreForWhatIsLeft) {
  AttentionShape seven = suitable;
  seven.rows = 7 * seven.tokens;
  const auto scratch_of = [&](std::int64_t sequences) {
    return cudnn_attention_gradient_scratch(part_of(seven, sequences, seven.kv_heads));
  };
  const auto execute = [&](const AttentionShape& shape, std::int64_t most_scratch) {
    const int before = executions();
    const auto launch = attention_gradient_by_cudnn(shape, DType::bf16, most_scratch,
                                                    SumOrder::fixed, {.dnn = cudnn_.get()});
    EXPECT_TRUE(launch);
    if (launch) (*launch)(places.data(), nullptr);
    return executions() - before;
  };
  // Room for six, five and four is used alike.
  for (const std::int64_t room : {6, 5, 4}) {
    ASSERT_EQ(execute(seven, scratch_of(room)), 2) << room;
    void* const rest = executed();
    EXPECT_NE(rest, plan_of(executions() - 2));
    EXPECT_EQ(operand(executions() - 1, 0), place(0, 2 * 4 * seven.tokens * qkv_columns(seven)));
    EXPECT_EQ(execute(part_of(seven, 3, seven.kv_heads), scratch_of(3)), 1);
    EXPECT_EQ(executed(), rest);
  }
  EXPECT_EQ(execute(seven, scratch_of(7)), 1);
  EXPECT_EQ(execute(seven, scratch_of(3)), 3);
  EXPECT_EQ(execute(seven, scratch_of(1)), 7);
}

TEST_F(KeptPlans, RememberARefusalAndWhy) {
  std::string first;
  say("NO_DESCRIPTOR", "1");
  EXPECT_FALSE(cudnn_attention(*cudnn_, suitable, DType::bf16, &first));
  EXPECT_NE(first.find("FAKE_NOT_SUPPORTED"), std::string::npos) << first;
  (void)unsetenv("FAKE_CUDNN_NO_DESCRIPTOR");
  const int before = plans_made();
  std::string second;
  EXPECT_FALSE(cudnn_attention(*cudnn_, suitable, DType::bf16, &second));
  EXPECT_EQ(second, first);
  EXPECT_EQ(plans_made(), before);
  // The refusal applies to this graph only.
  EXPECT_EQ(plans_for(suitable, DType::fp16), 3);
}

TEST_F(KeptPlans, LiveAsLongAsTheirLaunchesAndGoWithTheLibrary) {
  std::string reason;
  std::optional<Launch> first = cudnn_attention(*cudnn_, suitable, DType::bf16, &reason);
  std::optional<Launch> second = cudnn_attention(*cudnn_, suitable, DType::bf16, &reason);
  ASSERT_TRUE(first && second) << reason;
  cudnn_.reset();
  first.reset();
  EXPECT_EQ(handles(), 1);
  alignas(16) char memory[16] = {};
  void* const operands[] = {memory, memory, memory};
  (*second)(operands, nullptr);
  second.reset();
  EXPECT_EQ(handles(), 0);
  EXPECT_EQ(descriptors(), 0);
}

// Steps that share a plan set their operands once each, not at every turn.
TEST_F(KeptPlans, HaveTheOperandsOfEachLaunchForThemselves) {
  std::string reason;
  const auto first = cudnn_attention(*cudnn_, suitable, DType::bf16, &reason);
  const auto second = cudnn_attention(*cudnn_, suitable, DType::bf16, &reason);
  ASSERT_TRUE(first && second) << reason;
  alignas(16) char memory[32] = {};
  void* const some[] = {memory, memory, memory};
  void* const others[] = {memory + 16, memory + 16, memory + 16};
  const int before = made(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  for (int turn = 0; turn < 3; ++turn) {
    (*first)(some, nullptr);
    (*second)(others, nullptr);
  }
  EXPECT_EQ(made(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR), before + 2);
}

class Convolutions : public KeptPlans {
 protected:
  // The heuristics that a plan for these launches took: 1 where their first engine served, 2 where
  // a fallback did; 0, and *reason, where none did.
  int heuristics_for(DType dtype, std::int64_t workspace_bytes, std::string* reason) {
    const int before = made(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    const ConvolutionRequest request{
        .kernel = kernels::Convolution::name,
        .shape = {.images = 2, .height = 9, .width = 9, .channels = 8, .outputs = 8, .window = 3},
        .dtype = dtype};
    const auto launch = cudnn_convolution(*cudnn_, request, nullptr, workspace_bytes, reason);
    return launch ? made(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR) - before : 0;
  }
  void say_note(cudnnBackendNumericalNote_t note) {
    say("NOTE", std::to_string(static_cast<int>(note)).c_str());
  }
};

TEST_F(Convolutions, PassOverEnginesThatGiveOtherBitsEveryTime) {
  std::string reason;
  EXPECT_EQ(heuristics_for(DType::bf16, 0, &reason), 1) << reason;
  say_note(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
  say("FALLBACKS_TOO", "1");
  EXPECT_EQ(heuristics_for(DType::fp16, 0, &reason), 0);
  EXPECT_EQ(reason, "its engine gives other bits every time");
}

TEST_F(Convolutions, RoundNoFactorInFp32) {
  std::string reason;
  say_note(CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
  EXPECT_EQ(heuristics_for(DType::fp32, 100, &reason), 2) << reason;
  say("FALLBACKS_TOO", "1");
  for (const auto note : {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_WINOGRAD,
                          CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS, CUDNN_NUMERICAL_NOTE_FFT}) {
    say_note(note);
    EXPECT_EQ(heuristics_for(DType::fp32, note, &reason), 0) << note;
    EXPECT_EQ(reason, "its engine rounds the factors");
    EXPECT_EQ(heuristics_for(DType::tf32, note, &reason), 1) << note << reason;
  }
}

TEST_F(Convolutions, StayWithinTheirWorkspace) {
  std::string reason;
  say("WORKSPACE", "100");
  EXPECT_EQ(heuristics_for(DType::bf16, 100, &reason), 1) << reason;
  EXPECT_EQ(heuristics_for(DType::bf16, 99, &reason), 2) << reason;  // the fallback needs none
  say("FALLBACKS_TOO", "1");
  EXPECT_EQ(heuristics_for(DType::bf16, 98, &reason), 0);
  EXPECT_EQ(reason, "it needs a workspace of 100 B, and has 98");
}

// The engine that is chosen is asked for once and then kept, beside the plan of the first engine.
TEST_F(Convolutions, AreLaunchedByTheEngineThatIsChosen) {
  say("ENGINES", "20");
  const ConvolutionRequest request{
      .kernel = kernels::Convolution::name, .shape = {}, .dtype = DType::bf16};
  alignas(16) char memory[16] = {};
  void* const operands[] = {memory, memory, memory};
  std::vector<void*> plans;
  int asked = 0;
  const auto executed_by = [&](const Launch& launch) {
    launch(operands, nullptr);
    return executed();
  };
  const ChooseLaunch third = [&](const std::vector<Launch>& launches) -> std::size_t {
    ++asked;
    for (const Launch& launch : launches) plans.push_back(executed_by(launch));
    return 2;
  };
  std::string reason;
  for (int again = 0; again < 2; ++again) {
    const auto launch = cudnn_convolution(*cudnn_, request, nullptr, 0, &reason, third);
    ASSERT_TRUE(launch) << reason;
    ASSERT_EQ(plans.size(), 8U) << "as many as are worth their time";
    EXPECT_EQ(executed_by(*launch), plans[2]);
  }
  EXPECT_EQ(asked, 1);
  const int before = plans_made();
  const auto first = cudnn_convolution(*cudnn_, request, nullptr, 0, &reason);
  ASSERT_TRUE(first) << reason;
  EXPECT_EQ(plans_made() - before, 1);
  EXPECT_EQ(std::count(plans.begin(), plans.end(), executed_by(*first)), 0);
}

TEST_F(Convolutions, AreChosenAmongEnginesWithinTheWorkspaceWithEqualBits) {
  std::string reason;
  say("ENGINES", "3");
  std::size_t offered = 0;
  const ChooseLaunch last = [&](const std::vector<Launch>& launches) {
    offered = launches.size();
    return offered - 1;
  };
  const auto offered_within = [&](std::int64_t workspace_bytes) {
    offered = 0;
    const ConvolutionRequest request{
        .kernel = kernels::Convolution::name, .shape = {}, .dtype = DType::bf16};
    EXPECT_TRUE(cudnn_convolution(*cudnn_, request, nullptr, workspace_bytes, &reason, last))
        << reason;
    return offered;
  };
  say("WORKSPACE", "100");
  EXPECT_EQ(offered_within(100), 3U);
  EXPECT_EQ(offered_within(99), 0U) << "one fallback leaves no choice";
  say_note(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
  EXPECT_EQ(offered_within(101), 0U);
}

TEST_F(Convolutions, HaveAPlanOfTheirOwnForEachPass) {
  std::string reason;
  const int before = plans_made();
  for (const bool accumulate : {false, true}) {
    for (const std::string_view kernel :
         {kernels::Convolution::name, kernels::ConvolutionDataGradient::name,
          kernels::ConvolutionWeightGradient::name}) {
      const ConvolutionRequest request{
          .kernel = kernel, .shape = {}, .dtype = DType::bf16, .accumulate = accumulate};
      for (int again = 0; again < 2; ++again)
        EXPECT_TRUE(cudnn_convolution(*cudnn_, request, nullptr, 0, &reason)) << reason;
    }
  }
  EXPECT_EQ(plans_made() - before, 6);
}

}  // namespace
}  // namespace stepgate
