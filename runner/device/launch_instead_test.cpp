// SPDX-License-Identifier: MIT
// Tests who launches a kernel that a user's library stands for, where it does not support a shape.
#include "device/launch_instead.h"

#include <gtest/gtest.h>

#include <string>

#include "device/device.h"
#include "kernels/catalogue.h"
#include "kernels/norm/norm.h"
#include "plan/testing/counted.h"
#include "plan/testing/plan_by_hand.h"

namespace stepgate {
namespace {

// A library that supports so many columns at most, and says that a call makes two launches of wide
// rows.
LoadedKernel narrow(std::int64_t most) {
  return {.identity = "m.so 1f0a33c2e0d94b55",
          .prepare = [most](const KernelRequest& asked, const DeviceFacts&) -> PreparedKernel {
            const std::int64_t columns = asked.shape.as<kernels::LayerNorm>().columns;
            if (columns > most) throw KernelUnsupported("'norm' of 'm.so' has few columns");
            return {.launch = [](void* const*, CUstream_st*) {}, .launches = columns == 1 ? 2 : 1};
          }};
}

class LaunchesInstead : public testing::Test {
 protected:
  explicit LaunchesInstead() { row_.replacement = {"m.so", "norm"}; }

  LaunchInstead launch(std::int64_t columns) {
    return launch_instead(narrow(64),
                          {.kernel = row_,
                           .shape = MatrixShape{8, columns},
                           .dtype = DType::bf16,
                           .attributes = NormAttributes{.epsilon = 1e-5}},
                          {}, [&] {
                            ++own_;
                            return [](void* const*, CUstream_st*) {};
                          });
  }

  Kernel row_ = kernel("layer_norm");
  int own_ = 0;
};

TEST_F(LaunchesInstead, AreRefusedWhereNobodySaysOtherwise) {
  EXPECT_EQ(launch(64).unsupported, "");
  EXPECT_THROW((void)launch(65), KernelUnsupported);
  EXPECT_EQ(own_, 0);
}

TEST_F(LaunchesInstead, AreOursOnlyWhereTheLibraryDoesNotSupportTheShape) {
  row_.replacement->otherwise = Otherwise::ours;
  EXPECT_EQ(launch(64).unsupported, "");
  EXPECT_EQ(own_, 0);
  const LaunchInstead made = launch(65);
  EXPECT_EQ(made.unsupported, "'norm' of 'm.so' has few columns");
  EXPECT_TRUE(made.launch != nullptr);
  EXPECT_EQ(own_, 1);
}

TEST_F(LaunchesInstead, MustBeAsManyAsThePlanCounts) {
  EXPECT_THROW((void)launch(1), DeviceError);
  row_.replacement->launches = 2;
  EXPECT_EQ(launch(1).unsupported, "");
}

TEST_F(LaunchesInstead, AreCountedByKernel) {
  Knobs knobs = small_transformer();
  knobs.launch.fuse = Fuse::none;
  knobs.kernels.emplace("layer_norm", KernelReplacement{"m.so", "norm"});
  knobs.kernels.emplace("gelu", KernelReplacement{"m.so", "gelu"});
  const StepPlan plan = plan_of(knobs);
  std::vector<int> norms;
  for (int index = 0; index < std::ssize(plan.operations); ++index) {
    const auto* launch = std::get_if<LaunchKernel>(&operation_at(plan, index).action);
    if (launch != nullptr && launch->kernel == "layer_norm") norms.push_back(index);
  }
  ASSERT_GE(norms.size(), 3U);
  const auto identity = [](const Kernel& row) { return std::string(row.name) + "'s"; };
  const KernelChoice gelu{.kernel = "gelu", .library = "gelu's", .reason = {}};
  const KernelChoice norm{.kernel = "layer_norm", .library = "layer_norm's", .reason = {}};
  EXPECT_EQ(choices_instead(plan, identity, {}), (std::vector{gelu, norm}));
  KernelChoice own{.kernel = "layer_norm", .library = {}, .reason = "first"};
  own.own_launches = 2;
  own.launches = std::ssize(norms);
  EXPECT_EQ(choices_instead(plan, identity, {{norms[0], "first"}, {norms[2], "second"}}),
            (std::vector{gelu, norm, own}));
  std::map<int, std::string> all;
  for (const int index : norms) all.emplace(index, "first");
  own.own_launches = own.launches;
  EXPECT_EQ(choices_instead(plan, identity, all), (std::vector{gelu, own}));
}

}  // namespace
}  // namespace stepgate
