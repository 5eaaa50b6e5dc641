// SPDX-License-Identifier: MIT
// Kernels that are right pass on a played device; of the wrong ones, each is refused by the look
// that it is planted for.
#include "plugin/check_kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/norm/norm.h"
#include "plugin/testing/contains.h"
#include "plugin/testing/fake_trial_device.h"
#include "plugin/testing/published_cheats.h"

namespace stepgate {
namespace {

const OpenLibrary& library() {
  static const OpenLibrary one(read_library(STEPGATE_FAKE_KERNELS));
  return one;
}

const LaunchOfStep of_step{.shape = MatrixShape{64, 520},
                           .dtype = DType::bf16,
                           .attributes = NormAttributes{.epsilon = 1e-5}};

KernelCheck checked(const std::string& function, std::string_view kernel_name = "layer_norm",
                    std::vector<LaunchOfStep> launches = {}) {
  const auto device = make_fake_trial_device();
  return check_kernel(*device, {.loaded = library().loaded(function),
                                .kernel = kernel(kernel_name),
                                .of_step = std::move(launches),
                                .seed = 7});
}

std::vector<std::string> checks_of(const KernelCheck& check) {
  std::vector<std::string> names;
  for (const KernelFault& fault : check.faults) names.push_back(fault.check);
  return names;
}

TEST(KernelCheck, RightKernelsPass) {
  const KernelCheck norm = checked("layer_norm", "layer_norm", {of_step});
  EXPECT_EQ(checks_of(norm), std::vector<std::string>()) << norm.faults.front().first;
  EXPECT_TRUE(norm.is_it());
  EXPECT_EQ(norm.unsupported, 0);
  EXPECT_EQ(norm.kernel, "layer_norm");
  EXPECT_EQ(checks_of(checked("add", "add")), std::vector<std::string>());
}

TEST(KernelCheck, OnlyWhatIsSupportedIsTried) {
  const KernelCheck narrow = checked("narrow");
  EXPECT_TRUE(narrow.is_it());
  EXPECT_EQ(narrow.unsupported, 3 * narrow.trials);
  EXPECT_TRUE(contains(narrow.first_unsupported, "does not support layer_norm of"));
  EXPECT_TRUE(contains(narrow.first_unsupported, ": only bf16"));
  // A kernel that supports nothing is none, and a shape of a step must be supported.
  const KernelCheck none = checked("none", "layer_norm", {of_step});
  EXPECT_FALSE(none.is_it());
  EXPECT_EQ(none.trials, 0);
  EXPECT_EQ(checks_of(none), std::vector<std::string>{"supported"});
  // Unless our kernel launches it where the library does not.
  LaunchOfStep single = of_step;
  single.dtype = DType::fp32;
  EXPECT_EQ(checks_of(checked("narrow", "layer_norm", {single})),
            std::vector<std::string>{"supported"});
  single.otherwise = Otherwise::ours;
  const KernelCheck ours = checked("narrow", "layer_norm", {single});
  EXPECT_TRUE(ours.is_it());
  EXPECT_EQ(ours.unsupported, narrow.unsupported + 1);
}

struct Planted {
  const char* function;
  const char* check;
  const char* words;
  const char* kernel = "layer_norm";
};

constexpr Planted planted_kernels[] = {
    Planted{"does_nothing", "numbers", "of them NaN, as before the launch"},
    Planted{"half_of_the_rows", "step shape", "'y': 16640 of 33280 numbers are off"},
    Planted{"forgets_odd_columns", "numbers", "'y':"},
    Planted{"forgets_the_last", "step shape", "'y':"},
    Planted{"nudges_an_input", "inputs", "it changed an input, 'weight'"},
    Planted{"needs_an_aligned_output", "alignment", "its work failed: misaligned address"},
    Planted{"rare_and_elsewhere", "after its stream", "it ran before the work"},
    Planted{"throws", "numbers", "threw an exception; return STEPGATE_FAILED"},
    Planted{"wrong_epsilon", "numbers", "'statistics':"},
    Planted{"needs_16_bytes", "alignment", "its work failed: misaligned address"},
    Planted{"writes_beside", "guard zones", "it wrote beside its operands"},
    Planted{"changes_an_input", "inputs", "it changed an input, 'x'"},
    Planted{"differs", "same bits", "'statistics' differs between two launches"},
    Planted{"clears_first", "in place", "'sum' in the buffer of 'x'", "add"},
    Planted{"waits", "does not wait", "a launch behind 20 ms of work kept the host for"},
    Planted{"waits", "capture", "it cannot be captured as a graph: it waits"},
    Planted{"launches_twice", "launches",
            "a call enqueues 2 kernels, copies or fills, and its "
            "'launches' is 1"},
    Planted{"tells_two", "launches", "a call enqueues 1 kernels"},
    Planted{"allocates", "memory", "50 launches left 52428800 bytes"},
    Planted{"sets_a_limit", "leaves the device alone", "it was stack 1024 B and is stack 4096"},
    Planted{"cannot_prepare", "prepares", "it returned -2 without a message"},
    Planted{"names_no_launch", "prepares", "set no 'launch'"},
    Planted{"takes_too_much", "prepares", "bytes of workspace for layer_norm of"},
    Planted{"fails_to_launch", "numbers", "failed to launch: error 209"}};

std::vector<Planted> published() {
  std::vector<Planted> all;
  for (const PublishedCheat& cheat : published_cheats)
    all.push_back({cheat.function, cheat.check, cheat.words});
  return all;
}

class PlantedKernel : public testing::TestWithParam<Planted> {};

TEST_P(PlantedKernel, IsRefusedByTheLookForIt) {
  const KernelCheck check =
      checked(GetParam().function, GetParam().kernel,
              GetParam().kernel == kernels::LayerNorm::name ? std::vector{of_step}
                                                            : std::vector<LaunchOfStep>());
  EXPECT_FALSE(check.is_it());
  const auto found = std::ranges::find(check.faults, GetParam().check, &KernelFault::check);
  ASSERT_NE(found, check.faults.end()) << testing::PrintToString(checks_of(check));
  EXPECT_TRUE(contains(found->first, GetParam().words));
  // The trial is named.
  EXPECT_TRUE(contains(found->first, std::string("(") + GetParam().kernel + " "));
  EXPECT_GT(found->trials, 0);
}

std::string name_of(const testing::TestParamInfo<Planted>& planted) {
  std::string name = std::string(planted.param.function) + "_" + planted.param.check;
  std::ranges::replace(name, ' ', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Kernels, PlantedKernel, testing::ValuesIn(planted_kernels), name_of);
INSTANTIATE_TEST_SUITE_P(Published, PlantedKernel, testing::ValuesIn(published()), name_of);

// Every look has a kernel that it refuses.
TEST(KernelCheck, EveryLookCanRefuse) {
  std::vector<std::string> refused{"supported"};  // OnlyWhatIsSupportedIsTried
  for (const Planted& planted : planted_kernels) refused.emplace_back(planted.check);
  for (const PublishedCheat& cheat : published_cheats) refused.emplace_back(cheat.check);
  for (const std::string& name : names_of_kernel_checks()) EXPECT_TRUE(contains(refused, name));
}

std::string page() {
  std::ifstream in(STEPGATE_SOURCE_DIR "/docs/kernels.md");
  return {std::istreambuf_iterator<char>(in), {}};
}

// The page has a row for each.
TEST(KernelCheck, EveryLookIsOnThePage) {
  for (const std::string& name : names_of_kernel_checks())
    EXPECT_TRUE(contains(page(), "\n| `" + name + "` | "));
  EXPECT_FALSE(contains(page(), "\n| `no look` | "));
}

TEST(KernelCheck, EveryPublishedCheatIsOnThePage) {
  for (const PublishedCheat& cheat : published_cheats)
    EXPECT_TRUE(
        contains(page(), std::string(" | ") + cheat.source + " | `" + cheat.check + "` |\n"));
}

TEST(KernelCheck, TellsWhatItIsAt) {
  std::vector<std::string> places;
  const auto device = make_fake_trial_device();
  (void)check_kernel(*device,
                     {.loaded = library().loaded("none"),
                      .kernel = kernel("layer_norm"),
                      .at_trial = [&](const std::string& place) { places.push_back(place); }});
  ASSERT_FALSE(places.empty());
  EXPECT_TRUE(contains(places.front(), "layer_norm "));
  EXPECT_THROW((void)library().loaded("layernorm"), KernelLibraryError);
}

}  // namespace
}  // namespace stepgate
