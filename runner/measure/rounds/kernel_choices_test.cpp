// SPDX-License-Identifier: MIT
// Checks that a measurement records the libraries that a variant's steps depend on, and the kernels
// that these libraries chose.
#include <gtest/gtest.h>

#include "measure/rounds/measure.h"
#include "measure/testing/fake_device.h"

namespace stepgate {
namespace {

const KernelChoice by_library{.kernel = "attention", .library = "cuDNN 9.14.0", .reason = {}};
const KernelChoice by_us{.kernel = "attention", .library = {}, .reason = "out of memory"};

Measurement measured(Script& script) {
  script.step_time = [](const std::string&, std::int64_t) { return std::chrono::microseconds(10); };
  FakeDevice device(script);
  const std::vector<PlannedStep> plans = steps_named({"plain", "attentive"});
  MeasureRequest request;
  request.knobs.rounds = 2;
  request.knobs.max_seconds = 1e6;
  request.fewest_rounds = 1;
  request.enough = [](const Measurement&) { return false; };
  return measure(device, plans, request);
}

TEST(MeasuredChoices, AreThoseOfTheVariantThatHasSome) {
  Script script;
  script.libraries = [](const std::string& variant) {
    return variant == "plain" ? std::vector<DeviceKey>{}
                              : std::vector<DeviceKey>{{"cuDNN", "9.14.0"}};
  };
  script.choices = [](const std::string& variant, int) {
    return variant == "plain" ? std::vector<KernelChoice>{} : std::vector{by_library};
  };
  const Measurement measurement = measured(script);
  ASSERT_EQ(measurement.rounds.size(), 2U);
  const MeasuredVariant& plain = measurement.variants[0];
  const MeasuredVariant& attentive = measurement.variants[1];
  EXPECT_TRUE(plain.libraries.empty() && plain.choices.empty());
  ASSERT_EQ(attentive.libraries.size(), 1U);
  EXPECT_EQ(attentive.libraries[0].name, "cuDNN");
  EXPECT_EQ(attentive.libraries[0].value, "9.14.0");
  EXPECT_EQ(attentive.choices, std::vector{by_library}) << "of all loads the same, so once";
}

TEST(MeasuredChoices, KeepWhatALaterLoadChoseOtherwise) {
  Script script;
  script.choices = [](const std::string& variant, int load) {
    if (variant == "plain") return std::vector<KernelChoice>{};
    return std::vector{load == 2 ? by_us : by_library};
  };
  const Measurement measurement = measured(script);
  EXPECT_EQ(measurement.variants[1].choices, (std::vector{by_library, by_us}));
}

// "attentive" names a library of two kernels, which makes so many of four launches of the first.
Measurement measured_with_ours(std::int64_t own_launches, bool second_is_theirs) {
  Script script;
  script.libraries = [](const std::string& variant) {
    return variant == "plain"
               ? std::vector<DeviceKey>{}
               : std::vector<DeviceKey>{{"kernel norm", "m.so 1"}, {"kernel add", "m.so 1"}};
  };
  script.choices = [=](const std::string& variant, int) {
    if (variant == "plain") return std::vector<KernelChoice>{};
    std::vector<KernelChoice> choices{{.kernel = "add", .library = {}, .reason = "no odd rows"}};
    choices.front().own_launches = choices.front().launches = 2;
    if (second_is_theirs) choices.front() = {.kernel = "add", .library = "m.so 1", .reason = {}};
    if (own_launches < 4) choices.push_back({.kernel = "norm", .library = "m.so 1", .reason = {}});
    if (own_launches > 0)
      choices.push_back({.kernel = "norm",
                         .library = {},
                         .reason = "no even rows",
                         .own_launches = own_launches,
                         .launches = 4});
    return choices;
  };
  return measured(script);
}

TEST(MeasuredChoices, BreakARunInWhichNoLaunchIsTheLibrarys) {
  EXPECT_EQ(measured_with_ours(4, false).broken,
            "no launch of variant 'attentive' is made by the library that it names: all 2 of add "
            "are ours, since no odd rows; let the library support a shape of the step, or leave "
            "the variant out");
  EXPECT_TRUE(measured_with_ours(4, false).rounds.empty());
  EXPECT_EQ(measured_with_ours(4, true).broken, "");
  EXPECT_EQ(measured_with_ours(3, false).broken, "");
  EXPECT_EQ(measured_with_ours(0, true).broken, "");
}

}  // namespace
}  // namespace stepgate
