// SPDX-License-Identifier: MIT
// Tests outputs that cannot be written: they hide no outcome, and none is left that is half a
// report. Also tests processes that are started without standard streams, and the page of a step of
// a job on GitHub.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/files/open_file.h"
#include "tests/cli/command_line.h"

namespace stepgate {
namespace {

using Words = std::vector<std::string>;

const Words outputs{"--json", "--junit", "--summary", "--report", "--picture"};

class LostOutputs : public CommandLine {
 protected:
  LostOutputs() {
    write("holding.toml", holding);
    write("fails.toml", fails);
    write("undecided.toml", undecided);
    for (const char* variant : {"baseline", "fix"})
      std::filesystem::create_symlink("/dev/full",
                                      place() / (std::string("t.fails.") + variant + ".json"));
  }

  // Runs stepgate as a step of a job on GitHub that has such a page.
  static ChildProcess step(const std::string& page, Words words,
                           const std::filesystem::path& place) {
    words.insert(words.begin(), {"GITHUB_STEP_SUMMARY=" + page, STEPGATE_PROGRAM});
    return ChildProcess("/usr/bin/env", words, place);
  }

  // Runs a shell's line with `run` in the place of $RUN, on a simulated device.
  Finished shell(const std::string& line) const {
    return ChildProcess("/bin/sh",
                        {"-c", "RUN='" STEPGATE_PROGRAM " --baselines " STEPGATE_SOURCE_DIR
                               "/tests/baselines run --device simulated:round-numbers --seed 1'; " +
                                   line},
                        place())
        .wait();
  }
};

TEST_F(LostOutputs, HideNoOutcomeOfARun) {
  Words all;
  for (const std::string& output : outputs) {
    const Finished run = simulate({"fails.toml", output, "/dev/full"});
    EXPECT_EQ(run.exit_code, 1) << output << run.err;
    EXPECT_TRUE(contains(run.err, "/dev/full: cannot be written: No space left on device"))
        << output << run.err;
    EXPECT_TRUE(contains(run.out, "1 fails")) << output << run.out;
    all.insert(all.end(), {output, "/dev/full"});
  }
  EXPECT_EQ(simulate({"fails.toml", "--trace", "t"}).exit_code, 1);
  for (const auto& [file, code] :
       {std::pair{"fails.toml", 1}, {"undecided.toml", 2}, {"holding.toml", 2}}) {
    Words words{file};
    words.insert(words.end(), all.begin(), all.end());
    const Finished run = step("/dev/full", simulating(words), place()).wait();
    EXPECT_EQ(run.exit_code, code) << file << run.err;
  }
  // The page of the step alone is lost.
  for (const auto& [file, code] : {std::pair{"fails.toml", 1}, {"holding.toml", 2}}) {
    const Finished run = step("/dev/full", simulating({file}), place()).wait();
    EXPECT_EQ(run.exit_code, code) << file << run.err;
  }
}

// The ledger of the second scenario becomes larger than the disk; the first one had failed.
TEST_F(LostOutputs, HideNoOutcomeFromBeforeTheRunEndedEarly) {
  std::string long_one = undecided;
  long_one.replace(long_one.find("rounds = 12"), 11, "rounds = 400");
  write("long.toml", long_one);
  for (const auto& [first, code] : {std::pair{"fails.toml", 1}, {"holding.toml", 2}}) {
    const Finished run = shell(std::string("ulimit -f 8; exec $RUN --no-trace --ledger l ") +
                               first + " long.toml --junit j.xml >/dev/null");
    EXPECT_EQ(run.exit_code, code) << run.err;
    EXPECT_TRUE(contains(run.err, "long.toml: cannot be written: File too large")) << run.err;
    EXPECT_TRUE(contains(text_of(place() / "j.xml"), "stepgate.request"));
    std::filesystem::remove_all(place() / "l");
  }
}

// The other outputs are there, and what is left of a lost one is nobody's report of a passing run.
TEST_F(LostOutputs, AreNoHalfReports) {
  const Finished run = shell(
      "ulimit -f 8; exec $RUN fails.toml --json j.json --report r.html --junit j.xml --summary "
      "s.md >/dev/null");
  EXPECT_EQ(run.exit_code, 1) << run.err;
  EXPECT_TRUE(contains(run.err, "j.json: cannot be written: File too large")) << run.err;
  EXPECT_TRUE(contains(run.err, "r.html: cannot be written: File too large")) << run.err;
  EXPECT_EQ(text_of(place() / "j.json"), "");
  EXPECT_EQ(text_of(place() / "r.html"), "");
  EXPECT_TRUE(contains(text_of(place() / "j.xml"), "<failure"));
  EXPECT_TRUE(contains(text_of(place() / "s.md"), "1 failed"));
  for (const auto& entry : std::filesystem::directory_iterator(place()))
    EXPECT_FALSE(contains(entry.path().string(), "unfinished")) << entry;
  // A report that had been written before the end says that it has not ended.
  const Finished grown =
      shell("ulimit -f 24; exec $RUN fails.toml --no-trace --report r.html >/dev/null");
  EXPECT_EQ(grown.exit_code, 1) << grown.err;
  EXPECT_TRUE(contains(grown.err, "r.html: cannot be written")) << grown.err;
  EXPECT_TRUE(contains(text_of(place() / "r.html"), "Not ended: still at work, or killed"));
}

TEST_F(LostOutputs, HideNoFindingOfAGate) {
  std::ofstream(place() / "head") << "#!/bin/sh\n"
                                  << adding("--set model.kernels=30") + "exec " STEPGATE_PROGRAM
                                                                        " \"$@\"\n";
  std::filesystem::permissions(place() / "head", std::filesystem::perms::owner_all);
  const auto gate = [&](const std::string& head, const Words& more) {
    Words words{"--baselines",
                STEPGATE_SOURCE_DIR "/baselines",
                "gate",
                "--base",
                STEPGATE_PROGRAM,
                "--head",
                head,
                "holding.toml",
                "--device",
                "simulated",
                "--seed",
                "1",
                "--only",
                "counts"};
    words.insert(words.end(), more.begin(), more.end());
    return stepgate(words).exit_code;
  };
  for (const char* output : {"--json", "--junit", "--summary", "--report"})
    EXPECT_EQ(gate("./head", {output, "/dev/full"}), 1) << output;
  // The ledger has the pairs of this seed already, which ends a gate before it times anything.
  const Words again{"--only", "time", "--ledger", "l", "--budget", "5"};
  EXPECT_EQ(gate("./head", again), 1);
  EXPECT_EQ(gate("./head", again), 1);
  std::filesystem::remove_all(place() / "l");
  EXPECT_EQ(gate(STEPGATE_PROGRAM, again), 0);
  EXPECT_EQ(gate(STEPGATE_PROGRAM, again), 2);
  EXPECT_EQ(gate(STEPGATE_PROGRAM, {}), 0);
  EXPECT_EQ(gate(STEPGATE_PROGRAM, {"--json", "/dev/full", "--junit", "/dev/full"}), 2);
}

TEST_F(LostOutputs, AreNoFilesInThePlaceOfStandardStreams) {
  for (const std::string closed : {"<&-", ">&-", "2>&-", "<&- >&-", ">&- 2>&-", "<&- >&- 2>&-"}) {
    const bool is_output_closed = contains(closed, " >&-") || closed.starts_with(">&-");
    const Finished run =
        shell("exec $RUN holding.toml --json j.json --junit j.xml --trace h " + closed);
    EXPECT_EQ(run.exit_code, is_output_closed ? 2 : 0) << closed << run.err;
    EXPECT_TRUE(nlohmann::json::accept(text_of(place() / "j.json"))) << closed;
    EXPECT_TRUE(nlohmann::json::accept(text_of(place() / "h.holding.fix.json"))) << closed;
    EXPECT_TRUE(text_of(place() / "j.xml").starts_with("<?xml")) << closed;
    EXPECT_EQ(shell("exec $RUN fails.toml --json j.json " + closed).exit_code, 1) << closed;
    EXPECT_EQ(nlohmann::json::parse(text_of(place() / "j.json")).at("outcome"), "fails") << closed;
  }
}

// The page of the step is in the list of all outputs.
TEST_F(LostOutputs, OfAStepAreRefusedOverOthersAndOverInputs) {
  std::filesystem::create_hard_link(place() / "holding.toml", place() / "hard.md");
  std::filesystem::create_symlink("holding.toml", place() / "soft.md");
  const std::string over = " would be written over what is read, ";
  const std::string same = " name the same file, ";
  for (const auto& [page, words] : {std::pair{"holding.toml", over},
                                    {"./holding.toml", over},
                                    {"hard.md", over},
                                    {"soft.md", over},
                                    {"x", same},
                                    {"h.holding.fix.json", same}}) {
    const Finished run =
        step(page, simulating({"holding.toml", "--json", "x", "--trace", "h"}), place()).wait();
    EXPECT_EQ(run.exit_code, 2) << page;
    EXPECT_TRUE(contains(run.err, "GITHUB_STEP_SUMMARY") && contains(run.err, words)) << run.err;
    EXPECT_EQ(run.out, "");
    EXPECT_EQ(text_of(place() / "holding.toml"), holding);
  }
  const Finished gate = step("holding.toml",
                             {"gate", "--base", STEPGATE_PROGRAM, "--head", STEPGATE_PROGRAM,
                              "holding.toml", "--device", "simulated"},
                             place())
                            .wait();
  EXPECT_TRUE(contains(gate.err, over)) << gate.err;
  EXPECT_EQ(text_of(place() / "holding.toml"), holding);
  // A verb that reports to no CI system writes no page.
  const Words plan{"plan", "holding.toml", "--memory", "--picture", "p.svg"};
  EXPECT_EQ(step("holding.toml", plan, place()).wait().exit_code, 0);
}

TEST_F(LostOutputs, OfAStepAreNoPipeThatNobodyReads) {
  ASSERT_EQ(::mkfifo((place() / "pipe").c_str(), 0600), 0);
  const OpenFile socket(::socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  const std::string name = (place() / "socket").string();
  ASSERT_LT(name.copy(address.sun_path, sizeof address.sun_path - 1), sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(socket.descriptor(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  std::filesystem::create_symlink("pipe", place() / "link");
  for (const char* page : {"pipe", "socket", "link", ".", "/dev/stdout"}) {
    ChildProcess run = step(page, simulating({"holding.toml"}), place());
    ASSERT_TRUE(run.ends(std::chrono::seconds(20))) << page;
    const Finished finished = run.wait();
    EXPECT_EQ(finished.exit_code, 2) << page;
    EXPECT_TRUE(contains(finished.err, "GITHUB_STEP_SUMMARY ")) << page << finished.err;
  }
}

TEST_F(LostOutputs, OfAStepLeaveWhatOthersWroteThere) {
  write("page.md", "of another step\n");
  const Finished run = shell(
      "ulimit -f 1; GITHUB_STEP_SUMMARY=page.md exec $RUN fails.toml --no-trace >/dev/null 2>&1");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(text_of(place() / "page.md"), "of another step\n");
  EXPECT_EQ(step("page.md", simulating({"fails.toml"}), place()).wait().exit_code, 1);
  EXPECT_TRUE(text_of(place() / "page.md").starts_with("of another step\n## stepgate"));
}

}  // namespace
}  // namespace stepgate
