// SPDX-License-Identifier: MIT
// Opening cuDNN, and choosing it, on a library that the tests play: no GPU takes part. What the
// real one computes is cudnn_attention_test.cpp's.
#include <gtest/gtest.h>

#include <cstdlib>

#include "kernels/attention/cudnn/choose_cudnn.h"
#include "kernels/attention/cudnn/cudnn.h"

namespace stepgate {
namespace {

// Two samples of 256 tokens, 4 heads of 64 columns.
constexpr KernelShape suitable{.rows = 512, .columns = 256, .depth = 256, .groups = 4};
constexpr std::int64_t plenty = std::int64_t{1} << 40;

class OpenCudnn : public testing::Test {
 protected:
  void SetUp() override {
    say("STEPGATE_CUDNN", STEPGATE_PLAYED_CUDNN);
    say("VERSION", "91400");
  }
  void TearDown() override {
    for (const char* name : {"STEPGATE_CUDNN", "PLAYED_CUDNN_VERSION", "PLAYED_CUDNN_NO_HANDLE",
                             "PLAYED_CUDNN_NO_DESCRIPTOR"}) {
      (void)unsetenv(name);
    }
  }
  static void say(const std::string& name, const char* value) {
    const std::string whole = name == "STEPGATE_CUDNN" ? name : "PLAYED_CUDNN_" + name;
    ASSERT_EQ(setenv(whole.c_str(), value, 1), 0);
  }
  // Why there is none; empty where there is one.
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

TEST_F(OpenCudnn, SaysWhichVariableHelpsWhereNothingIsNamed) {
  EXPECT_EQ(not_found_text(nullptr, "libcudnn.so.9: no such file"),
            "no cuDNN was found (libcudnn.so.9: no such file; STEPGATE_CUDNN may name another "
            "library)");
}

TEST_F(OpenCudnn, SaysWhatALibraryLacksThatIsNone) {
  say("STEPGATE_CUDNN", "libc.so.6");
  const std::string reason = refusal();
  EXPECT_NE(reason.find("STEPGATE_CUDNN names 'libc.so.6'"), std::string::npos) << reason;
  EXPECT_NE(reason.find("cudnnGetVersion"), std::string::npos) << reason;
}

TEST_F(OpenCudnn, SaysThatALibraryMakesNoHandle) {
  say("NO_HANDLE", "1");
  EXPECT_EQ(refusal(), "cuDNN 9.14.0 makes no handle: PLAYED_ERROR");
}

TEST_F(OpenCudnn, IsChosenWhereItSuitsAndNamedWithItsVersion) {
  std::string reason;
  const auto cudnn = open_cudnn(&reason);
  ASSERT_NE(cudnn, nullptr) << reason;
  std::vector<KernelChoice> choices;
  const LaunchContext context{.dnn = cudnn.get(), .choices = &choices};
  EXPECT_TRUE(attention_by_cudnn(suitable, DType::bf16, context));
  EXPECT_TRUE(attention_gradient_by_cudnn(suitable, DType::bf16, plenty, context));
  EXPECT_FALSE(attention_gradient_by_cudnn(suitable, DType::bf16, 0, context));
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
  EXPECT_FALSE(attention_gradient_by_cudnn(suitable, DType::bf16, plenty, context));
  ASSERT_EQ(choices.size(), 2U);
  for (const KernelChoice& choice : choices) {
    EXPECT_EQ(choice.library, "");
    EXPECT_EQ(choice.reason.find("cuDNN 9.14.0: "), 0U) << choice.reason;
    EXPECT_NE(choice.reason.find("PLAYED_NOT_SUPPORTED"), std::string::npos) << choice.reason;
  }
}

}  // namespace
}  // namespace stepgate
