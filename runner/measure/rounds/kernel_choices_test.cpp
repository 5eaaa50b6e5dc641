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

}  // namespace
}  // namespace stepgate
