// SPDX-License-Identifier: MIT
// Every file of bad_baselines/ is refused with exactly the messages beside it. good.toml is what
// they were before somebody damaged them.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "history/baseline/baseline_record.h"
#include "support/text/diagnostic.h"
#include "tests/golden.h"

namespace stepgate {
namespace {

const std::filesystem::path folder =
    std::filesystem::path(STEPGATE_SOURCE_DIR) / "tests/files/bad_baselines";

std::vector<std::string> bad_files() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().stem().string();
    if (entry.path().extension() == ".toml" && name != "good") names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

class BadBaseline : public testing::TestWithParam<std::string> {};

TEST_P(BadBaseline, IsRefusedWithTheMessagesBesideIt) {
  std::filesystem::current_path(folder);
  std::string refusal = "accepted\n";
  try {
    (void)read_baseline(GetParam() + ".toml", "small");
  } catch (const RequestError& error) {
    refusal = std::string(error.what()) + '\n';
  }
  EXPECT_NE(refusal, "accepted\n");
  expect_golden(folder / (GetParam() + ".expected"), refusal);
}

INSTANTIATE_TEST_SUITE_P(Files, BadBaseline, testing::ValuesIn(bad_files()),
                         [](const auto& file) { return file.param; });

TEST(GoodBaseline, IsRead) {
  const Baseline baseline = read_baseline(folder / "good.toml", "small");
  ASSERT_EQ(baseline.runs.size(), 2U);
  EXPECT_EQ(baseline.runs[0].variants[0].times[0].contrasts.size(), 12U);
}

}  // namespace
}  // namespace stepgate
