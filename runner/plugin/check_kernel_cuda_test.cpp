// SPDX-License-Identifier: MIT
// On a GPU: stepgate's own examples are layer_norm, and each wrong one is refused by the look for
// it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/toml/toml.h"
#include "kernels/norm/norm.h"
#include "plugin/check_kernel.h"
#include "plugin/cuda_trial_device.h"
#include "plugin/tables/cubin.h"
#include "plugin/tables/open_cubin.h"
#include "plugin/testing/contains.h"
#include "plugin/testing/published_cheats.h"

namespace stepgate {
namespace {

const OpenLibrary& wrong_kernels() {
  static const OpenLibrary library(read_library(STEPGATE_WRONG_KERNELS));
  return library;
}

KernelCheck checked(const std::string& function, const OpenLibrary& library = wrong_kernels()) {
  const auto device = make_cuda_trial_device(0);
  return check_kernel(*device, {.loaded = library.loaded(function),
                                .kernel = kernel("layer_norm"),
                                .of_step = {{.shape = MatrixShape{4096, 768},
                                             .dtype = DType::bf16,
                                             .attributes = NormAttributes{.epsilon = 1e-5}}},
                                .seed = 7});
}

TEST(KernelCheckOnAGpu, TheExampleIsLayerNorm) {
  const auto begin = std::chrono::steady_clock::now();
  const KernelCheck check = checked("layer_norm");
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_TRUE(check.is_it()) << (check.faults.empty() ? ""
                                                      : check.faults.front().check + ": " +
                                                            check.faults.front().first);
  EXPECT_EQ(check.unsupported, 0);
  RecordProperty("seconds", std::to_string(took.count()));
}

// It supports rows of packs that fit into registers, also where they are aligned to 8 bytes alone.
TEST(KernelCheckOnAGpu, TheFastExampleIsLayerNorm) {
  const OpenLibrary library(read_library(STEPGATE_FAST_KERNELS));
  const KernelCheck check = checked("layer_norm", library);
  EXPECT_TRUE(check.is_it()) << (check.faults.empty() ? "no trial is supported"
                                                      : check.faults.front().check + ": " +
                                                            check.faults.front().first);
  EXPECT_GT(check.unsupported, 0);
  EXPECT_TRUE(contains(check.first_unsupported, ": columns must be a multiple of "));
}

// The example of a cubin, with a line of its table changed.
class CubinOnAGpu : public testing::Test {
 protected:
  void SetUp() override {
    const auto capability = make_cuda_trial_device(0)->facts().capability;
    cubin_ = fmt::format("{}/sm_{}.cubin", STEPGATE_CUBINS, capability);
    if (!std::filesystem::exists(cubin_)) cubin_ = STEPGATE_CUBINS "/native.cubin";
    ASSERT_TRUE(std::filesystem::exists(cubin_))
        << "this build has no cubin for compute capability " << capability;
  }

  KernelCheck checked(const std::function<void(CubinLaunch&)>& change) const {
    std::vector<Diagnostic> faults;
    auto launch = read_cubin_launch(
        read_toml(STEPGATE_CUBINS "/layer_norm_bf16.toml", "a launch of a cubin"), {}, faults);
    if (!launch) throw RequestError(faults);
    change(*launch);
    Cubin cubin(std::move(*launch), read_cubin(cubin_), kernel("layer_norm"));
    const auto of_columns = [](std::int64_t columns) {
      return LaunchOfStep{.shape = MatrixShape{64, columns},
                          .dtype = DType::bf16,
                          .attributes = NormAttributes{.epsilon = 1e-5}};
    };
    const auto device = make_cuda_trial_device(0);
    // The second row takes more shared memory than a launch has without asking.
    return check_kernel(
        *device, {.loaded = {.identity = "ln.cubin", .prepare = loaded_on_gpu(std::move(cubin))},
                  .kernel = kernel("layer_norm"),
                  .of_step = {of_columns(768), of_columns(16384)},
                  .seed = 7});
  }

  static std::vector<std::string> checks_of(const KernelCheck& check) {
    std::vector<std::string> names;
    for (const KernelFault& fault : check.faults) names.push_back(fault.check);
    return names;
  }

  std::string cubin_;
};

TEST_F(CubinOnAGpu, TheExampleIsLayerNorm) {
  const KernelCheck check = checked([](CubinLaunch&) {});
  EXPECT_TRUE(check.is_it()) << (check.faults.empty() ? "no trial is supported"
                                                      : check.faults.front().check + ": " +
                                                            check.faults.front().first);
  EXPECT_GT(check.unsupported, 0);
  EXPECT_TRUE(contains(check.first_unsupported, ": its table says bf16"));
}

TEST_F(CubinOnAGpu, AWrongLaunchIsRefused) {
  EXPECT_TRUE(
      contains(checks_of(checked([](CubinLaunch& launch) { launch.grid = {"max(rows - 1, 1)"}; })),
               "numbers"));
  EXPECT_TRUE(contains(checks_of(checked([](CubinLaunch& launch) {
                         std::swap(launch.arguments[1], launch.arguments[2]);
                       })),
                       "numbers"));
  EXPECT_TRUE(contains(checks_of(checked([](CubinLaunch& launch) { launch.block = {"256"}; })),
                       "prepares"));
}

struct Planted {
  const char* function;
  const char* check;
  const char* words = "";
};

std::vector<Planted> published() {
  std::vector<Planted> all;
  for (const PublishedCheat& cheat : published_cheats)
    all.push_back({cheat.function, cheat.check, cheat.words});
  return all;
}

class PlantedKernelOnAGpu : public testing::TestWithParam<Planted> {};

TEST_P(PlantedKernelOnAGpu, IsRefusedByTheLookForIt) {
  const KernelCheck check = checked(GetParam().function);
  std::vector<std::string> found;
  for (const KernelFault& fault : check.faults) {
    found.push_back(fault.check);
    if (fault.check != GetParam().check) continue;
    EXPECT_TRUE(contains(fault.first, GetParam().words));
  }
  EXPECT_TRUE(contains(found, GetParam().check));
}

std::string name_of(const testing::TestParamInfo<Planted>& planted) {
  std::string name = std::string(planted.param.function) + "_" + planted.param.check;
  std::ranges::replace(name, ' ', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    Kernels, PlantedKernelOnAGpu,
    testing::Values(Planted{"does_nothing", "numbers"}, Planted{"half_of_the_rows", "step shape"},
                    Planted{"waits", "does not wait"}, Planted{"allocates", "memory"},
                    Planted{"allocates", "capture"}, Planted{"allocates_in_order", "memory"},
                    Planted{"legacy_stream", "after its stream"},
                    Planted{"launches_twice", "launches"}, Planted{"needs_16_bytes", "alignment"},
                    Planted{"sets_a_limit", "leaves the device alone"},
                    Planted{"writes_beside", "guard zones"}),
    name_of);
INSTANTIATE_TEST_SUITE_P(Published, PlantedKernelOnAGpu, testing::ValuesIn(published()), name_of);

}  // namespace
}  // namespace stepgate
