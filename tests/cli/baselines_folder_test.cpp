// SPDX-License-Identifier: MIT
// Where the program looks for profiles and baselines, from outside: never where it was built.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/cli/command_line.h"

namespace stepgate {
namespace {

class BaselinesFolder : public CommandLine {
 protected:
  BaselinesFolder() { set(""); }
  ~BaselinesFolder() override { ::unsetenv(variable); }

  static void set(const std::string& folder) { ::setenv(variable, folder.c_str(), 1); }

  // With one profile of that name.
  void add(const std::string& folder, const std::string& profile) const {
    write(folder + "/" + profile + "/device.toml",
          text_of(STEPGATE_SOURCE_DIR "/tests/baselines/round-numbers/device.toml"));
  }
  bool knows(const std::string& profile, std::vector<std::string> words = {}) const {
    words.emplace_back("devices");
    const Finished devices = stepgate(words);
    EXPECT_EQ(devices.exit_code, 0) << devices.err;
    return contains(devices.out, "simulated:" + profile);
  }

 private:
  static constexpr const char* variable = "STEPGATE_BASELINES";
};

TEST_F(BaselinesFolder, IsTheOptionsThenTheVariablesThenTheOneHere) {
  EXPECT_FALSE(knows("here"));
  add("baselines", "here");
  EXPECT_TRUE(knows("here"));
  add("elsewhere", "named");
  set("elsewhere");
  EXPECT_TRUE(knows("named"));
  EXPECT_FALSE(knows("here"));
  add("given", "typed");
  EXPECT_TRUE(knows("typed", {"--baselines", "given"}));
  EXPECT_FALSE(knows("named", {"--baselines", "given"}));
}

TEST_F(BaselinesFolder, IsNotWhereTheProgramWasBuilt) {
  EXPECT_FALSE(knows("nvidia-h200"));
  write("a.toml", holding);
  const Finished run = stepgate({"run", "a.toml", "--device", "simulated"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_TRUE(contains(run.err,
                       "there is no device profile 'nvidia-h200' in baselines; name a folder that "
                       "has some: --baselines DIR, or STEPGATE_BASELINES"))
      << run.err;
}

TEST_F(BaselinesFolder, IsTheOneInstalledWithAProgramThatWasMoved) {
  const std::filesystem::path prefix = place() / "prefix";
  std::filesystem::create_directories(prefix / "bin");
  std::filesystem::copy_file(STEPGATE_PROGRAM, prefix / "bin" / "stepgate");
  add("prefix/share/stepgate/baselines", "installed");
  const auto devices = [&] {
    return ChildProcess(prefix / "bin" / "stepgate", {"devices"}, place()).wait().out;
  };
  EXPECT_TRUE(contains(devices(), "simulated:installed"));
  add("baselines", "here");
  EXPECT_TRUE(contains(devices(), "simulated:here"));
}

}  // namespace
}  // namespace stepgate
