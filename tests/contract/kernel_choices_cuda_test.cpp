// SPDX-License-Identifier: MIT
// Tests on the GPU that a loaded step reports whether its attention uses cuDNN, and its plan the
// version that it depends on. Passes with cuDNN and without: the report must fit this machine.
// Fails, never skips, where there is no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>

#include "device/cuda/cuda_device.h"
#include "kernels/attention/cudnn/cudnn_attention.h"
#include "kernels/cudnn/open_cudnn.h"
#include "plan/testing/plan_by_hand.h"

namespace stepgate {
namespace {

Knobs transformer() {
  Knobs knobs = small_transformer();
  knobs.model.hidden = 128;  // heads of 64 columns
  return knobs;
}

struct Said {
  std::vector<KernelChoice> choices;
  std::vector<DeviceKey> libraries;

  const KernelChoice& about(const std::string& kernel) const {
    const auto found = std::find_if(choices.begin(), choices.end(),
                                    [&](const auto& choice) { return choice.kernel == kernel; });
    if (found == choices.end()) throw std::runtime_error("nothing is said about " + kernel);
    return *found;
  }
};

Said said_of(const Knobs& knobs) {
  const auto device = make_cuda_device();
  const StepPlan plan = plan_of(knobs);
  const auto step = device->load(plan);
  EXPECT_EQ(step->run({.steps = 2}).losses.size(), 2U);
  for (const KernelChoice& choice : step->choices()) {
    std::cout << choice.kernel << ": " << choice.library << choice.reason << '\n';
  }
  return {step->choices(), device->libraries_for(plan)};
}

bool mentions(const KernelChoice& choice, const std::string& words) {
  return choice.reason.find(words) != std::string::npos;
}

// Restores an environment variable at the end of the test.
class Named {
 public:
  explicit Named(const char* library) {
    if (const char* before = std::getenv("STEPGATE_CUDNN")) before_ = before;
    (void)setenv("STEPGATE_CUDNN", library, 1);
  }
  ~Named() {
    if (before_) {
      (void)setenv("STEPGATE_CUDNN", before_->c_str(), 1);
    } else {
      (void)unsetenv("STEPGATE_CUDNN");
    }
  }
  Named(const Named&) = delete;
  Named& operator=(const Named&) = delete;

 private:
  std::optional<std::string> before_;
};

TEST(CudaKernelChoices, AreCudnnsWithItsVersionWhereItIsFoundAndOursOtherwise) {
  const Said said = said_of(transformer());
  std::string reason;
  const auto cudnn = open_cudnn(&reason);
  ASSERT_EQ(said.libraries.size(), 1U);
  EXPECT_EQ(said.libraries[0].name, "cuDNN");
  EXPECT_EQ(said.libraries[0].value, cudnn ? version_of(*cudnn) : "none");
  EXPECT_EQ(said.choices.size(), 2U) << "all layers say the same";
  for (const char* kernel : {"attention", "attention_gradient"}) {
    EXPECT_EQ(said.about(kernel).library, cudnn ? "cuDNN " + version_of(*cudnn) : "");
    EXPECT_EQ(said.about(kernel).reason, cudnn ? "" : reason);
  }
}

TEST(CudaKernelChoices, SayWhichLibraryCouldNotBeOpened) {
  const Named named("/nowhere/libcudnn.so.9");
  const Said said = said_of(transformer());
  ASSERT_EQ(said.libraries.size(), 1U);
  EXPECT_EQ(said.libraries[0].value, "none");
  for (const char* kernel : {"attention", "attention_gradient"}) {
    EXPECT_EQ(said.about(kernel).library, "");
    EXPECT_TRUE(mentions(said.about(kernel), "STEPGATE_CUDNN names '/nowhere/libcudnn.so.9'"))
        << said.about(kernel).reason;
  }
}

TEST(CudaKernelChoices, RefuseConvolutionsWithoutCudnn) {
  const Named named("/nowhere/libcudnn.so.9");
  Knobs knobs = small_mlp();
  knobs.model = {.kind = ModelKind::resnet, .layers = 14};
  knobs.model.image = 32;
  knobs.optim.kind = OptimKind::momentum;
  const StepPlan plan = plan_of(knobs);
  try {
    (void)make_cuda_device()->load(plan);
    FAIL() << "it was loaded";
  } catch (const DeviceError& error) {
    const std::string words = error.what();
    EXPECT_TRUE(words.starts_with("variant 'only', being loaded: convolutions on a GPU")) << words;
    EXPECT_NE(words.find("STEPGATE_CUDNN names '/nowhere/libcudnn.so.9'"), std::string::npos);
    EXPECT_NE(words.find("install cuDNN 9, or say --device simulated"), std::string::npos);
  }
}

TEST(CudaKernelChoices, SayThatTheGradientHasNoWorkspace) {
  Knobs knobs = transformer();
  knobs.model.attention_workspace_bytes = 0;
  const Said said = said_of(knobs);
  EXPECT_EQ(said.libraries.size(), 1U) << "the forward pass still depends on it";
  EXPECT_EQ(said.about("attention_gradient").library, "");
  EXPECT_EQ(said.about("attention_gradient").reason, "model.attention_workspace is 0 B");
  EXPECT_EQ(said.about("attention").library.empty(), said.libraries[0].value == "none");
}

TEST(CudaKernelChoices, SayThatSumsHaveAnyOrderOnlyWhereTheyAreCudnns) {
  Knobs knobs = transformer();
  knobs.launch.attention_sums = AttentionSums::any;
  const Said said = said_of(knobs);
  const KernelChoice& gradient = said.about("attention_gradient");
  EXPECT_EQ(mentions(gradient, "its sums have any order"), !gradient.library.empty());
  EXPECT_FALSE(mentions(said.about("attention"), "order"));
}

TEST(CudaKernelChoices, SayWhatOfTheShapeDoesNotSuitAndThenDependOnNothing) {
  Knobs knobs = transformer();
  knobs.model.seq = 96;
  const Said said = said_of(knobs);
  EXPECT_TRUE(said.libraries.empty());
  for (const char* kernel : {"attention", "attention_gradient"}) {
    EXPECT_EQ(said.about(kernel).library, "");
    EXPECT_TRUE(mentions(said.about(kernel), "whole tiles of 128 tokens"))
        << said.about(kernel).reason;
  }
}

TEST(CudaKernelChoices, AreNoneWhereThereIsNothingToChoose) {
  Knobs wide = transformer();
  wide.model.dtype = DType::fp32;
  Knobs materialised = transformer();
  materialised.launch.fuse = Fuse::pointwise;
  for (const Knobs& knobs : {wide, materialised, Knobs{}}) {
    const Said said = said_of(knobs);
    EXPECT_TRUE(said.choices.empty());
    EXPECT_TRUE(said.libraries.empty());
  }
}

}  // namespace
}  // namespace stepgate
