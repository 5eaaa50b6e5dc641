// SPDX-License-Identifier: MIT
// Tests that [sweep] makes a scenario of each value, and that what cannot be swept is refused.
#include "scenario/read/sweep.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/files/temporary_folder.h"
#include "scenario/read/read_scenario.h"

namespace stepgate {
namespace {

std::string file_with(const std::string& sweep, const std::string& expect) {
  return "claim = \"graphs pay for small batches\"\n" + sweep +
         "\n[variant.baseline]\n[variant.fix]\nlaunch.via = \"graph\"\n[expect]\n" + expect + "\n";
}

constexpr const char* faster = "faster = \"fix.samples_per_s >= 1.05 * baseline.samples_per_s\"";
constexpr const char* faster_below =
    "faster = \"fix.samples_per_s >= 1.05 * baseline.samples_per_s when batch.size <= 8\"\n"
    "equal = \"fix.samples_per_s ~= baseline.samples_per_s within 5% when batch.size > 8\"";
constexpr const char* sizes = "[sweep]\nbatch.size = [1, 8, 32]";

std::string fault_in(const std::string& text, std::vector<std::string> overrides = {}) {
  try {
    (void)parse_scenario(text, "s.toml", no_base, overrides);
  } catch (const RequestError& error) {
    return error.what();
  }
  return "";
}

class Sweep : public testing::Test {
 protected:
  std::vector<Scenario> read(const std::string& text, std::vector<std::string> overrides = {}) {
    const auto path = folder_.path() / "graphs.toml";
    std::ofstream(path) << text;
    return read_scenarios(path, overrides);
  }

 private:
  TemporaryFolder folder_;
};

TEST_F(Sweep, MakesAScenarioOfEachValue) {
  const auto scenarios = read(file_with(sizes, faster));
  ASSERT_EQ(scenarios.size(), 3U);
  EXPECT_EQ(scenarios[0].name, "graphs@batch.size=1");
  EXPECT_EQ(scenarios[2].name, "graphs@batch.size=32");
  EXPECT_EQ(name_of_file(scenarios[2]), "graphs");
  for (const Variant& variant : scenarios[1].variants) EXPECT_EQ(variant.knobs.batch.size, 8);
  EXPECT_NE(scenarios[0].fingerprint, scenarios[1].fingerprint);
  EXPECT_EQ(scenarios[1].point->values, (std::vector<std::string>{"1", "8", "32"}));
}

TEST_F(Sweep, OfSizesIsNamedWithoutBlanks) {
  const auto scenarios =
      read(file_with("[sweep]\nmodel.workspace = [\"1 MiB\", \"32 MiB\"]", faster));
  ASSERT_EQ(scenarios.size(), 2U);
  EXPECT_EQ(scenarios[1].name, "graphs@model.workspace=32MiB");
  EXPECT_EQ(scenarios[1].point->number, 32 * 1024 * 1024);
  EXPECT_TRUE(scenarios[1].point->is_whole);
}

TEST_F(Sweep, IsDecidedByTheCommandLine) {
  const auto scenarios = read(file_with(sizes, faster), {"batch.size=100"});
  ASSERT_EQ(scenarios.size(), 1U);
  EXPECT_EQ(scenarios[0].name, "graphs@batch.size=100");
  EXPECT_EQ(scenarios[0].variants[0].knobs.batch.size, 100);
  EXPECT_EQ(read(file_with(sizes, faster), {"batch.tensors=2"}).size(), 3U);
}

TEST_F(Sweep, GivesEachScenarioTheOverridesThatReadItAgain) {
  const auto scenarios = read(file_with(sizes, faster));
  const std::vector<std::string> again = overrides_of(scenarios[1], {});
  EXPECT_EQ(read(file_with(sizes, faster), again)[0].fingerprint, scenarios[1].fingerprint);
  EXPECT_TRUE(overrides_of(read(file_with("", faster))[0], {}).empty());
}

TEST_F(Sweep, AsksAnAssertionWhereItsConditionIsTrue) {
  const auto scenarios = read(file_with(sizes, faster_below));
  ASSERT_EQ(scenarios.size(), 3U);
  ASSERT_EQ(scenarios[0].expect.size(), 1U);
  EXPECT_EQ(scenarios[0].expect[0].name, "faster");
  EXPECT_EQ(scenarios[1].expect[0].name, "faster") << "8 <= 8";
  EXPECT_EQ(scenarios[2].expect[0].name, "equal");
  EXPECT_EQ(scenarios[2].expect[0].within, 0.05);
}

TEST(SweepFaults, AreToldAtTheirPlaces) {
  const auto fault = [](const std::string& sweep, const std::string& expect = faster) {
    return fault_in(file_with(sweep, expect));
  };
  EXPECT_EQ(fault(sizes), "");
  EXPECT_EQ(fault("[sweep]\nbatch.size = 8"),
            "s.toml:3:14: 'sweep.batch.size' is no list of 2 to 16 values; write [sweep] and "
            "batch.size = [1, 8, 32] below it");
  EXPECT_EQ(
      fault("[sweep]\nbatch.size = [8, 1]"),
      "s.toml:3:18: the values of 'sweep.batch.size' do not grow; write numbers or sizes, the "
      "smallest first, each once");
  EXPECT_EQ(fault("[sweep]\nbatch.size = [8, 0]"),
            "s.toml:3:18: 'batch.size' must be between 1 and 1048576, but is 0; make it larger");
  EXPECT_EQ(fault("[sweep]\nbatch.sizes = [8, 16]"),
            "s.toml:3:7: 'batch.sizes' cannot be swept; a knob of the step that is a number or a "
            "size can; others are for variants");
  EXPECT_EQ(fault("[sweep]\nbatch.siez = [8, 16]"),
            "s.toml:3:7: unknown key 'batch.siez'; did you mean 'batch.size'?");
  EXPECT_EQ(fault("[sweep]\nbatch.size = [8, 16]\nmodel.layers = [1, 2]"),
            "s.toml:2:2: [sweep] is not about one knob; write [sweep] and batch.size = [1, 8, 32] "
            "below it");
  EXPECT_EQ(fault(std::string(sizes) + "\n[variant.large]\nbatch.size = 4"),
            "s.toml:5:7: variant 'large' sets 'batch.size', which [sweep] sets for all variants; "
            "remove it, or sweep another knob");
}

TEST(SweepFaults, OfConditionsAreToldAtTheirPlaces) {
  const auto fault = [](const std::string& condition, const std::string& sweep = sizes) {
    return fault_in(
        file_with(sweep, "a = \"fix.step_ms_mean <= 2 ms when " + condition + "\"\n" + faster));
  };
  EXPECT_EQ(fault("batch.size <= 8"), "");
  EXPECT_EQ(fault("batch.size<=8"), "");
  EXPECT_EQ(fault("batch.size <= 8", ""),
            "s.toml:7:5: 'when' without a [sweep]; leave the condition out, or sweep a knob");
  EXPECT_EQ(fault("model.layers <= 8"),
            "s.toml:8:36: 'model.layers' is not what is swept; write when batch.size and a limit");
  EXPECT_EQ(fault("batch.size ~= 8"),
            "s.toml:8:47: a condition without a comparison; write < <= == >= or > there");
  EXPECT_EQ(fault("batch.size <= many"),
            "s.toml:8:50: 'batch.size' must be a whole number, but is a string; write batch.size = "
            "64");
  const char* const words = "[sweep]\nbatch.sample_bytes = [\"1 KiB\", \"1 MiB\"]";
  EXPECT_EQ(fault("batch.sample_bytes <= 64 KiB", words), "");
  EXPECT_EQ(fault("batch.sample_bytes <= auto", words),
            "s.toml:8:58: a condition without a number; compare with a number or a size");
  EXPECT_EQ(fault_in(file_with(words,
                               "a = \"fix.step_ms_mean <= 2 ms when batch.sample_bytes <= 1 "
                               "MiB\""),
                     {"batch.sample_bytes=auto"}),
            "s.toml:8:5: 'when' of a 'batch.sample_bytes' that is no number; give the knob a "
            "number");
  EXPECT_EQ(fault_in(file_with(sizes, "a = \"fix.step_ms_mean <= 2 ms when batch.size <= 8\""),
                     {"batch.size=32"}),
            "s.toml:3:7: no assertion is about batch.size = 32; write one without 'when', or leave "
            "the value out");
}

}  // namespace
}  // namespace stepgate
