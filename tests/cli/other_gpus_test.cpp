// SPDX-License-Identifier: MIT
// Runs the suite on other GPUs than those for which its limits were written: one is measured, the
// others are guessed from data sheets. Lists by name what does not pass there, to reveal limits
// that only one GPU satisfies.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/command_line.h"
#include "tests/golden.h"

namespace stepgate {
namespace {

const std::string source = STEPGATE_SOURCE_DIR;

using OtherGpus = CommandLine;

struct Profile {
  const char* folder;  // of profiles, in the sources
  const char* name;
};

// Returns "scenario.assertion outcome" per line; skipped assertions are counted by scenario.
std::string what_does_not_hold(std::istream& results) {
  std::string text;
  std::string skipped;
  for (std::string line; std::getline(results, line);) {
    const nlohmann::json result = nlohmann::json::parse(line);
    if (!result.contains("expect")) continue;
    const std::string scenario = result["scenario"];
    if (result["outcome"] == "skipped") skipped += ' ' + scenario;
    for (const nlohmann::json& assertion : result["expect"]) {
      const std::string outcome = assertion["outcome"];
      if (outcome == "passes" || outcome == "skipped") continue;
      text += scenario + '.' + std::string(assertion["name"]) + ' ' + outcome + '\n';
    }
  }
  return text + "skipped:" + skipped + '\n';
}

TEST_F(OtherGpus, RefuteWhatIsWrittenDownAndNothingElse) {
  constexpr Profile profiles[] = {{"baselines", "nvidia-h100-80gb-hbm3"},
                                  {"tests/profiles", "a100"},
                                  {"tests/profiles", "b200"},
                                  {"tests/profiles", "l4"},
                                  {"tests/profiles", "rtx4090"},
                                  {"tests/profiles", "rtx5060"}};
  for (const auto& [folder, gpu] : profiles) {
    const Finished run =
        stepgate({"--baselines", source + "/" + folder, "run", source + "/scenarios",
                  source + "/scenarios/ranks", "--device", std::string("simulated:") + gpu,
                  "--seed", "1", "--json", "r.json"});
    EXPECT_NE(run.exit_code, 1) << gpu << ": something fails";
    EXPECT_NE(run.exit_code, 3) << gpu << run.err;
    std::ifstream results(place() / "r.json");
    expect_golden(std::filesystem::path(source) / "tests" / "golden" / "other_gpus" /
                      (std::string(gpu) + ".txt"),
                  what_does_not_hold(results));
  }
}

}  // namespace
}  // namespace stepgate
