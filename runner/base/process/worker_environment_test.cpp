// SPDX-License-Identifier: MIT
#include "base/process/worker_environment.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <fstream>
#include <iterator>

namespace stepgate {
namespace {

class WorkerEnvironment : public testing::Test {
 protected:
  WorkerEnvironment() {
    for (const char* name : names) ::setenv(name, "value", 1);
  }
  ~WorkerEnvironment() override {
    for (const char* name : names) ::unsetenv(name);
  }

  static bool has(const std::vector<std::string>& environment, const std::string& variable) {
    return std::ranges::find(environment, variable) != environment.end();
  }

 private:
  static constexpr const char* names[] = {
      "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "CUDA_OF_A_TEST", "LANG_OF_A_TEST", "DATA_ROOT",
      "DATA_KIND",    "GITHUB_STEP_SUMMARY"};
};

TEST_F(WorkerEnvironment, HasWhatProgramsNeedAndNoSecretOfTheRunner) {
  const std::vector<std::string> seen = worker_environment();
  EXPECT_TRUE(has(seen, "CUDA_OF_A_TEST=value"));
  EXPECT_TRUE(
      std::ranges::any_of(seen, [](const auto& text) { return text.starts_with("PATH="); }));
  for (const char* hidden : {"GITHUB_TOKEN=value", "AWS_SECRET_ACCESS_KEY=value",
                             "LANG_OF_A_TEST=value", "DATA_ROOT=value"})
    EXPECT_FALSE(has(seen, hidden)) << hidden;
}

TEST_F(WorkerEnvironment, HasWhatIsNamedBesides) {
  const std::vector<std::string> one{"DATA_ROOT"}, all{"DATA_*"};
  EXPECT_TRUE(has(worker_environment(one), "DATA_ROOT=value"));
  EXPECT_FALSE(has(worker_environment(one), "DATA_KIND=value"));
  EXPECT_TRUE(has(worker_environment(all), "DATA_KIND=value"));
  EXPECT_FALSE(has(worker_environment(all), "GITHUB_TOKEN=value"));
}

TEST_F(WorkerEnvironment, NeverHasThePageOfWhoeverJudges) {
  const std::vector<std::string> all{"GITHUB_*"};
  EXPECT_TRUE(has(worker_environment(all), "GITHUB_TOKEN=value"));
  EXPECT_FALSE(has(worker_environment(all), "GITHUB_STEP_SUMMARY=value"));
}

TEST_F(WorkerEnvironment, IsWhatItsPageSays) {
  std::ifstream file(STEPGATE_SOURCE_DIR "/ci/WORKER.md");
  const std::string page(std::istreambuf_iterator<char>(file), {});
  for (const std::string_view name : variables_of_workers())
    EXPECT_NE(page.find("`" + std::string(name) + "`"), std::string::npos) << name;
}

}  // namespace
}  // namespace stepgate
