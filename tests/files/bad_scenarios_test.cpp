// SPDX-License-Identifier: MIT
// Every file of bad_scenarios/ is refused with exactly the messages beside it.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <vector>

#include "scenario/read/read_scenario.h"
#include "tests/golden.h"

namespace stepgate {
namespace {

const std::filesystem::path folder =
    std::filesystem::path(STEPGATE_SOURCE_DIR) / "tests/files/bad_scenarios";

std::vector<std::string> bad_files() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".toml") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string refusal_of(const std::filesystem::path& file) {
  try {
    read_scenario(file);
  } catch (const RequestError& error) {
    return std::string(error.what()) + '\n';
  }
  return "accepted\n";
}

class BadScenario : public testing::TestWithParam<std::string> {};

TEST_P(BadScenario, IsRefusedWithTheMessagesBesideIt) {
  std::filesystem::current_path(folder);
  const std::string refusal = refusal_of(GetParam() + ".toml");
  EXPECT_NE(refusal, "accepted\n");
  expect_golden(folder / (GetParam() + ".expected"), refusal);
}

INSTANTIATE_TEST_SUITE_P(Files, BadScenario, testing::ValuesIn(bad_files()),
                         [](const auto& file) { return file.param; });

class UnreadableScenario : public testing::Test {
 protected:
  UnreadableScenario() {
    std::filesystem::create_directories(place);
    std::filesystem::current_path(place);
  }
  ~UnreadableScenario() override {
    std::filesystem::current_path(folder);
    std::filesystem::remove_all(place);
  }

  const std::filesystem::path place = std::filesystem::path(testing::TempDir()) /
                                      testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(UnreadableScenario, IsRefusedWhenItHasTenMegabytes) {
  std::ofstream("large.toml") << std::string(10'000'000, '#');
  EXPECT_EQ(refusal_of("large.toml"), "large.toml: is 9.54 MiB; a scenario is at most 1 MiB\n");
}

TEST_F(UnreadableScenario, IsRefusedWhenItIsAFolder) {
  std::filesystem::create_directory("folder.toml");
  EXPECT_EQ(refusal_of("folder.toml"),
            "folder.toml: is a folder; name the file of a scenario in it\n");
}

TEST_F(UnreadableScenario, IsRefusedWhenItIsNotThere) {
  EXPECT_EQ(refusal_of("none.toml"), "none.toml: no such file; check the path\n");
}

}  // namespace
}  // namespace stepgate
