// SPDX-License-Identifier: MIT
// Tests that the repository's stored runs match the current scenarios. A changed default of a knob
// would make them incomparable, since a variant is identified by the fingerprint of its knobs.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "ledger/baseline/baseline_file.h"
#include "scenario/knobs/fingerprint.h"
#include "scenario/read/read_scenario.h"

namespace stepgate {
namespace {

namespace fs = std::filesystem;

TEST(StoredRuns, AreOfTheStepsThatScenariosDescribe) {
  const fs::path source = STEPGATE_SOURCE_DIR;
  int variants = 0;
  for (const auto& entry : fs::directory_iterator(source / "baselines" / "nvidia-h200")) {
    const std::string name = entry.path().stem().string();
    if (entry.path().extension() != ".toml" || name == "device") continue;
    fs::path file = source / "scenarios" / (name + ".toml");
    if (!fs::exists(file)) file = source / "scenarios" / "stored" / (name + ".toml");
    const Scenario scenario = read_scenario(file);
    if (lacks_a_value(scenario)) continue;  // its knobs depend on the measuring machine
    const Baseline baseline = read_baseline_if_any(entry.path(), name).value();
    ASSERT_FALSE(baseline.runs.empty()) << name;
    const std::vector<StoredVariant>& stored = baseline.runs.back().variants;
    for (const Variant& variant : scenario.variants) {
      const auto same = std::ranges::find(stored, variant.name, &StoredVariant::name);
      if (same == stored.end()) continue;
      EXPECT_EQ(same->knobs, fingerprint_of(variant.knobs)) << name << ", " << variant.name;
      ++variants;
    }
  }
  EXPECT_GE(variants, 30);
}

}  // namespace
}  // namespace stepgate
