// SPDX-License-Identifier: MIT
// Tests files from an untrusted author, such as a pull request: their text reaches no terminal or
// CI system as a command, and no program runs because of files beside them.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <list>

#include "tests/cli/command_line.h"

namespace stepgate {
namespace {

using HostileFiles = CommandLine;

// Finds control characters and commands that a terminal, GitHub, Azure or TeamCity would interpret.
std::string fault_of(const std::string& output) {
  std::string line;
  for (const char letter : output + "\n") {
    const auto code = static_cast<unsigned char>(letter);
    if (letter != '\n' && (code < ' ' || code == 0x7f)) return "a control character in: " + line;
    if (letter != '\n') {
      line += letter;
      continue;
    }
    const std::size_t first = line.find_first_not_of(' ');
    if (first != std::string::npos && line.compare(first, 2, "::") == 0)
      return "a command to GitHub: " + line;
    for (const char* command : {"##[", "##vso[", "##teamcity[", "\u009b", "\u202e"}) {
      if (contains(line, command)) return "a command: " + line;
    }
    line.clear();
  }
  return "";
}

// Files with hostile text, each valid or invalid in its own way.
std::vector<std::pair<std::string, std::string>> hostile_scenarios() {
  const std::string good = two_variants("fix.samples_per_s >= 1.5 * baseline.samples_per_s");
  const auto claimed = [&](const std::string& claim) {
    return "claim = \"" + claim + "\"\n" + good.substr(good.find('\n') + 1);
  };
  const std::string evil = "\\u001b[31m\\u0007\\n::error file=x::injected\\u009b\\u202e";
  return {
      {"claim_of_controls.toml", claimed("red" + evil)},
      {"claim_of_a_command.toml", claimed("::error file=x::injected")},
      {"claim_of_another.toml",
       claimed("  ::warning::a ##[error]b ##vso[task.x]c ##teamcity[d e]")},
      {"claim_of_lines.toml", claimed("a\\n::error file=x::injected\\n::stop-commands::x")},
      {"source.toml", "source = \"a" + evil + "\"\n" + good},
      {"tag.toml", "tags = [\"a" + evil + "\"]\n" + good},
      {"key.toml", "\"a" + evil + "\" = 1\n" + good},
      {"inner_key.toml", good + "[transfer]\n\"a" + evil + "\" = 1\n"},
      {"knob.toml", good + "[batch]\nsize = \"a" + evil + "\"\n"},
      {"variant.toml", "[variant.\"a" + evil + "\"]\n" + good},
      {"like.toml", good + "[variant.other]\nlike = \"a" + evil + "\"\n"},
      {"line.toml", good + "\"a" + evil + "\" = \"fix.peak_live <= 1 GiB\"\n"},
      {"assertion.toml", good + "other = \"a" + evil + "\"\n"},
      {"command_assertion.toml", good + "other = \"::error file=x::injected\"\n"},
      {"base.toml", "extends = \"a" + evil + "\"\n" + good},
      {"command_base.toml", "extends = \"::error file=x::injected.toml\"\n" + good},
      {"name\x1b[31m.toml", good},
      {"name\n::error file=x::injected.toml", good},
      {"::error file=x::injected.toml", good},
      {"name ##[error]injected.toml", good},
  };
}

// HEAD writes to the folder in a gate.
TEST_F(HostileFiles, OfALedgerTakeNoMemory) {
  constexpr std::int64_t bytes = std::int64_t{1} << 30;
  write("a.toml", two_variants("fix.samples_per_s >= 1.5 * baseline.samples_per_s"));
  write("l/simulated/other/a.toml", "");
  std::filesystem::resize_file(place() / "l/simulated/other/a.toml", bytes);
  ASSERT_EQ(::mkfifo((place() / "l/simulated/other/b.toml").c_str(), 0600), 0);
  const Finished run = simulate({"a.toml", "--ledger", "l", "--no-trace"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_LT(run.peak_bytes, bytes / 2);
}

TEST_F(HostileFiles, ReachNoTerminalAndNoCiSystem) {
  std::vector<std::string> files;
  for (const auto& [file, text] : hostile_scenarios()) {
    write(file, text);
    files.push_back(file);
  }
  for (const std::string& file : files) {
    for (const char* verb : {"check", "list", "plan", "run", "accept"}) {
      const Finished finished =
          std::string(verb) == "run" || std::string(verb) == "accept"
              ? stepgate({"--baselines", STEPGATE_SOURCE_DIR "/tests/baselines", verb, file,
                          "--device", "simulated:round-numbers", "--budget", "0.01"})
              : stepgate({verb, file});
      EXPECT_EQ(fault_of(finished.out), "") << verb << " " << file;
      EXPECT_EQ(fault_of(finished.err), "") << verb << " " << file;
      EXPECT_NE(finished.out + finished.err, "") << verb << " " << file;
    }
  }
  // The verbs read the whole folder.
  for (const char* verb : {"check", "list", "plan"}) {
    const Finished finished = stepgate({verb, "."});
    EXPECT_EQ(fault_of(finished.out), "") << verb;
    EXPECT_EQ(fault_of(finished.err), "") << verb;
  }
}

class Checkout : public CommandLine {
 protected:
  Checkout() {
    // Ignores the git configuration of the machine and of the user.
    names_.emplace_back("GIT_CONFIG_GLOBAL", "/dev/null");
    names_.emplace_back("GIT_CONFIG_SYSTEM", "/dev/null");
    program("mark.sh", "touch '" + marker().string() + "'\ncat\n");
  }

  // Runs git in the test's folder with a fixed author.
  void git(const std::string& arguments, const std::string& folder = ".") const {
    const std::string command =
        "cd '" + (place() / folder).string() +
        "' && git -c user.name=a -c user.email=a@b -c init.defaultBranch=m " + arguments +
        " > /dev/null 2>&1";
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
  }
  void program(const std::string& file, const std::string& text) const {
    write(file, "#!/bin/sh\n" + text);
    std::filesystem::permissions(place() / file, std::filesystem::perms::owner_all);
  }
  std::string mark() const { return (place() / "mark.sh").string(); }
  std::filesystem::path marker() const { return place() / "marker"; }

  void run_scenario(const std::string& file) const {
    (void)stepgate({"--baselines", STEPGATE_SOURCE_DIR "/tests/baselines", "run", file, "--device",
                    "simulated:round-numbers", "--seed", "1"});
  }

 private:
  std::list<EnvironmentVariable> names_;
};

// The bare repository consists of ordinary files, which anybody may commit.
TEST_F(Checkout, RunsNothingThatABareRepositoryAmongItsFilesNames) {
  write("scenarios/a.toml", holding);
  git("init");
  git("init --bare inside");
  for (const auto& entry : std::filesystem::directory_iterator(place() / "inside"))
    std::filesystem::rename(entry.path(), place() / "scenarios" / entry.path().filename());
  write("scenarios/config", "[core]\nrepositoryformatversion = 0\nbare = false\nworktree = " +
                                (place() / "scenarios").string() + "\nfsmonitor = " + mark() +
                                "\n");
  git("add .", "scenarios");  // git runs the filter here, so the trap works
  git("commit -m m", "scenarios");
  ASSERT_TRUE(std::filesystem::exists(marker()));
  std::filesystem::remove(marker());
  run_scenario("scenarios/a.toml");
  EXPECT_FALSE(std::filesystem::exists(marker()));
}

TEST_F(Checkout, RunsNothingThatItsOwnRepositoryNames) {
  write("scenarios/a.toml", holding);
  write("scenarios/.gitattributes", "* filter=marks\n");
  git("init");
  git("add .");
  git("commit -m m");
  for (const std::string& setting :
       {"core.fsmonitor '" + mark() + "'", "core.hooksPath '" + (place() / "hooks").string() + "'",
        "filter.marks.clean '" + mark() + "'"}) {
    program("hooks/post-index-change", "touch '" + marker().string() + "'\n");
    git("config " + setting);
    // A changed modification time makes git read the file.
    std::filesystem::last_write_time(place() / "scenarios/a.toml",
                                     std::filesystem::file_time_type::clock::now());
    write("scenarios/a.toml", holding);
    std::filesystem::remove(marker());
    (void)std::system(("cd '" + place().string() + "' && git status > /dev/null 2>&1").c_str());
    EXPECT_TRUE(std::filesystem::exists(marker())) << "the trap is none: " << setting;
    std::filesystem::remove(marker());
    write("scenarios/a.toml", holding);
    std::filesystem::last_write_time(
        place() / "scenarios/a.toml",
        std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
    run_scenario("scenarios/a.toml");
    EXPECT_FALSE(std::filesystem::exists(marker())) << setting;
  }
}

TEST_F(Checkout, RunsNothingThatAWorkingTreeOrASubmoduleNames) {
  write("scenarios/a.toml", holding);
  write("sub/.gitattributes", "* filter=marks\n");
  write("sub/file", "text");
  git("init", "sub");
  git("add .", "sub");
  git("commit -m m", "sub");
  git("init");
  git("-c protocol.file.allow=always submodule add ./sub scenarios/sub");
  git("add scenarios");
  git("commit -m m");
  git("config filter.marks.clean '" + mark() + "'", "scenarios/sub");
  const auto touch = [&](const std::string& file) {
    std::filesystem::last_write_time(
        place() / file, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  };
  touch("scenarios/sub/file");
  run_scenario("scenarios/a.toml");
  EXPECT_FALSE(std::filesystem::exists(marker())) << "of the submodule";

  write("scenarios/.gitattributes", "*.toml filter=marks\n");
  git("config extensions.worktreeConfig true");
  git("config --worktree filter.marks.clean '" + mark() + "'");
  touch("scenarios/a.toml");
  run_scenario("scenarios/a.toml");
  EXPECT_FALSE(std::filesystem::exists(marker())) << "of the working tree";
  (void)std::system(("cd '" + place().string() + "' && git status > /dev/null 2>&1").c_str());
  EXPECT_TRUE(std::filesystem::exists(marker())) << "the traps are none";
}

TEST_F(HostileFiles, AreNeededForASimulatedReportToDifferFromItself) {
  write("a.toml", holding);
  write("b.toml", undecided);
  const auto report = [&] {
    const Finished run = simulate({"a.toml", "b.toml", "--no-trace"});
    return run.out + without_clock(run.err);
  };
  const std::string first = report();
  for (int again = 0; again < 3; ++again) EXPECT_EQ(report(), first);
}

}  // namespace
}  // namespace stepgate
