// SPDX-License-Identifier: MIT
// Tests that every text in tests/scripts/scenarios is refused with exactly the messages below it.
#include <gtest/gtest.h>

#include <fstream>

#include "base/files/temporary_folder.h"
#include "scenario/read/read_scenario.h"
#include "tests/scripts/script.h"

namespace stepgate {
namespace {

std::string refusal_of(const std::filesystem::path& file) {
  try {
    read_scenario(file);
  } catch (const RequestError& error) {
    return std::string(error.what()) + '\n';
  }
  throw std::logic_error(file.string() + " is accepted");
}

// A test refers to its files without their folder.
class BadScenarios : public testing::Test {
 protected:
  BadScenarios() { std::filesystem::current_path(folder_.path()); }
  ~BadScenarios() override { std::filesystem::current_path(before_); }

 private:
  const std::filesystem::path before_ = std::filesystem::current_path();
  const TemporaryFolder folder_;
};

class ScriptsOfBadScenarios : public BadScenarios,
                              public testing::WithParamInterface<std::filesystem::path> {};

TEST_P(ScriptsOfBadScenarios, AreRefusedWithTheMessagesBelowThem) {
  expect_script(GetParam(), {{"file",
                              [](const Step& step) {
                                const std::filesystem::path file = step.name;
                                if (file.has_parent_path())
                                  std::filesystem::create_directories(file.parent_path());
                                std::ofstream(file) << step.input;
                                return std::string();
                              }},
                             {"refuse", [](const Step& step) {
                                std::ofstream(step.name + ".toml") << step.input;
                                return refusal_of(step.name + ".toml");
                              }}});
}

INSTANTIATE_TEST_SUITE_P(Of, ScriptsOfBadScenarios, testing::ValuesIn(scripts_of("scenarios")),
                         [](const auto& script) { return script.param.stem().string(); });

TEST(GoodScenario, IsNoneThatIsRefused) {
  const auto good = std::filesystem::path(STEPGATE_SOURCE_DIR) / "tests/files/good_scenarios";
  EXPECT_THROW(refusal_of(good / "sync.toml"), std::logic_error);
}

TEST_F(BadScenarios, AreRefusedWithTenMegabytes) {
  std::ofstream("large.toml") << std::string(10'000'000, '#');
  EXPECT_EQ(refusal_of("large.toml"), "large.toml: is 9.54 MiB; a scenario is at most 1 MiB\n");
}

TEST_F(BadScenarios, AreRefusedWhenTheyAreFolders) {
  std::filesystem::create_directory("folder.toml");
  EXPECT_EQ(refusal_of("folder.toml"),
            "folder.toml: is a folder; name the file of a scenario in it\n");
}

TEST_F(BadScenarios, AreRefusedWhenTheyAreNotThere) {
  EXPECT_EQ(refusal_of("none.toml"), "none.toml: no such file; check the path\n");
}

}  // namespace
}  // namespace stepgate
