// SPDX-License-Identifier: MIT
// Tests stepgate.toml from outside: where it is found, what wins over it, and that no change of a
// repository loosens the gate by it.
#include <gtest/gtest.h>

#include <fstream>

#include "tests/cli/command_line.h"

namespace stepgate {
namespace {

const std::string program = STEPGATE_PROGRAM;
// Waits in every step, so that host work shows.
const std::string waits =
    "claim = \"c\"\nmodel = { kind = \"spin\", kernels = 10, kernel_us = 20 }\n"
    "sync = { where = \"step\", how = \"device\" }\n"
    "[variant.step]\n[expect]\none_wait = \"step.host_waits_per_step == 1\"\n";

class SettingsFile : public CommandLine {
 protected:
  // A checkout of HEAD, in which stepgate runs, with one of BASE below it, and programs of both of
  // which HEAD's is about a tenth slower.
  void SetUp() override {
    write(".git/HEAD", "");
    write("base/.git/HEAD", "");
    write("base/scenarios/waits.toml", waits);
    script("build_of_base", "exec " + program + " \"$@\"\n");
    script("build_of_head", adding("--set host.step_us=30") + "exec " + program + " \"$@\"\n");
  }

  void script(const std::string& name, const std::string& text) const {
    write(name, "#!/bin/sh\n" + text);
    std::filesystem::permissions(place() / name, std::filesystem::perms::owner_all);
  }

  Finished gate(const std::vector<std::string>& more) const {
    std::vector<std::string> words{
        "gate", "--head", "./build_of_head", "--device", "simulated:round-numbers", "--seed", "1"};
    words.insert(words.end(), more.begin(), more.end());
    return stepgate(words);
  }
  Finished gate_of_builds(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"--base", "./build_of_base", "--only", "time", "--baselines",
                               STEPGATE_SOURCE_DIR "/tests/baselines", "base/scenarios"});
    return gate(more);
  }

  std::string margin_in_help() const {
    const std::string help = stepgate({"gate", "--help"}).out;
    const std::size_t at = help.find("[default: ", help.find("how much slower head may be"));
    return help.substr(at, help.find(']', at) + 1 - at);
  }
};

TEST_F(SettingsFile, IsFoundUpToTheRootOfTheRepositoryAndNoFurther) {
  const std::string built_in = "[default: 2%]";
  EXPECT_EQ(margin_in_help(), built_in);
  write("stepgate.toml", "margin = \"3%\"\n");
  EXPECT_EQ(margin_in_help(), "[default: 3% by stepgate.toml:1]");
  std::filesystem::remove(place() / "stepgate.toml");
  write("../stepgate.toml", "\nmargin = \"4%\"\n");
  EXPECT_EQ(margin_in_help(), built_in) << "that is no file of this repository";
  std::filesystem::remove_all(place() / ".git");
  EXPECT_EQ(margin_in_help(), built_in) << "this is no repository";
  write("../.git", "");
  EXPECT_EQ(margin_in_help(), "[default: 4% by ../stepgate.toml:2]");
  write("stepgate.toml", "margin = \"5%\"\n");
  EXPECT_EQ(margin_in_help(), "[default: 5% by stepgate.toml:1]");
  const EnvironmentVariable none("STEPGATE_SETTINGS", "none");
  EXPECT_EQ(margin_in_help(), built_in);
}

TEST_F(SettingsFile, GivesWayToTheEnvironmentAndThatToTheCommandLine) {
  for (const char* folder : {"by_file", "by_variable", "by_option"}) {
    std::filesystem::create_directory(place() / folder);
    std::filesystem::copy(STEPGATE_SOURCE_DIR "/tests/baselines/round-numbers",
                          place() / folder / folder, std::filesystem::copy_options::recursive);
  }
  write("stepgate.toml", "baselines = \"by_file\"\n");
  const EnvironmentVariable unset("STEPGATE_BASELINES", "");
  const Finished by_file = stepgate({"devices"});
  EXPECT_TRUE(contains(by_file.out, "simulated:by_file")) << by_file.out << by_file.err;
  const EnvironmentVariable variable("STEPGATE_BASELINES", "by_variable");
  EXPECT_TRUE(contains(stepgate({"devices"}).out, "simulated:by_variable"));
  EXPECT_FALSE(contains(stepgate({"devices"}).out, "simulated:by_file"));
  const std::string by_option = stepgate({"devices", "--baselines", "by_option"}).out;
  EXPECT_TRUE(contains(by_option, "simulated:by_option"));
  EXPECT_FALSE(contains(by_option, "simulated:by_variable"));
}

TEST_F(SettingsFile, SaysWhichDeviceAndWhatUndecidedIs) {
  write("a.toml", undecided);
  write("stepgate.toml", "undecided = \"fail\"\n");
  EXPECT_EQ(simulate({"a.toml"}).exit_code, 1);
  EXPECT_EQ(simulate({"a.toml", "--undecided", "skip"}).exit_code, 77);
  write("stepgate.toml", "device = \"cuda:77\"\n");
  const Finished run = stepgate({"run", "a.toml"});
  EXPECT_EQ(run.exit_code, 3) << run.out << run.err;
  EXPECT_EQ(simulate({"a.toml"}).exit_code, 77) << "the command line names a device";
}

TEST_F(SettingsFile, IsRefusedWithEveryFaultAtItsPlace) {
  write("a.toml", undecided);
  write("stepgate.toml",
        "margin = \"50\"\ndevise = \"cuda\"\ndevice = \"simulated\"\nbaselines = \"../x\"\n"
        "undecided = 3\n");
  const Finished run = stepgate({"run", "a.toml"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.err,
            "stepgate.toml:1:10: 'margin' must be from 0.01% to 100%, but is '50'; did you mean "
            "'50%'?\n"
            "stepgate.toml:2:1: unknown key 'devise' in a file of settings; did you mean "
            "'device'?\n"
            "stepgate.toml:3:10: 'device' must be a GPU, \"cuda\" or \"cuda:1\", but is "
            "'simulated'; ask for any other with --device\n"
            "stepgate.toml:4:13: 'baselines' must be a folder below that of the file, but is "
            "'../x'; name any other with --baselines\n"
            "stepgate.toml:5:13: 'undecided' must be a string; docs/ci.md has an example\n");
  EXPECT_EQ(stepgate({"--help"}).exit_code, 0) << "help needs no settings";
  std::filesystem::remove(place() / "stepgate.toml");
  write("secret", "password = \"abc\"\n");
  std::filesystem::create_symlink("secret", place() / "stepgate.toml");
  const Finished link = stepgate({"run", "a.toml"});
  EXPECT_EQ(link.exit_code, 2);
  EXPECT_EQ(link.err,
            "stepgate.toml: is a link, and settings are a file; put the file itself there\n");
}

TEST_F(SettingsFile, OfHeadDoesNotLoosenAGate) {
  write("stepgate.toml", "margin = \"60%\"\nundecided = \"pass\"\n");
  const Finished blocked = gate_of_builds();
  EXPECT_EQ(blocked.exit_code, 1) << blocked.out << blocked.err;
  EXPECT_TRUE(contains(blocked.out, "; margin 2 %,")) << blocked.out;
  // BASE's own counts, so the file is seen and this HEAD is within it.
  write("base/stepgate.toml", "margin = \"60%\"\n");
  const Finished passes = gate_of_builds();
  EXPECT_EQ(passes.exit_code, 0) << passes.out << passes.err;
  EXPECT_TRUE(contains(passes.out, "; margin 60 % by base/stepgate.toml:1,")) << passes.out;
  EXPECT_EQ(gate_of_builds({"--margin", "2%"}).exit_code, 1);
}

TEST_F(SettingsFile, OfStoredRunsLiesBesideThem) {
  std::filesystem::copy(STEPGATE_SOURCE_DIR "/tests/baselines", place() / "base/baselines",
                        std::filesystem::copy_options::recursive);
  write("stepgate.toml", "margin = \"60%\"\n");
  write("base/stepgate.toml", "margin = \"3%\"\n");
  const Finished run = gate({"--stored", "--baselines", "base/baselines", "base/scenarios"});
  EXPECT_TRUE(contains(run.out, "; margin 3 % by base/stepgate.toml:1")) << run.out << run.err;
}

}  // namespace
}  // namespace stepgate
