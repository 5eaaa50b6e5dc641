// SPDX-License-Identifier: MIT
// Tests that stepgate ends soon after a signal, and says what it leaves.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <thread>

#include "base/files/folder_lock.h"
#include "tests/cli/command_line.h"

namespace stepgate {
namespace {

using namespace std::chrono_literals;

class Signals : public CommandLine {
 protected:
  Signals() {
    write("a.toml", holding);
    write("b.toml", endless);
    write("open.toml", endless);  // alone, with the seed of these tests
    // The reference device computes for minutes here without checking for signals.
    write("deaf.toml",
          "claim = \"long\"\nmodel = { layers = 32, hidden = 1024 }\nbatch.size = 1024\n"
          "[variant.only]\n[expect]\nline = \"only.host_waits_per_step == 0\"\n");
  }

  const std::string ledger = "l/simulated/gpu-of-round-numbers";

  static void wait_until(const std::function<bool()>& is_true) {
    for (int tries = 0; tries < 3000 && !is_true(); ++tries) std::this_thread::sleep_for(20ms);
  }
  static bool says_on_error(const ChildProcess&, const std::filesystem::path& place,
                            const std::string& words) {
    wait_until([&] { return contains(text_of(place.string() + ".err"), words); });
    return contains(text_of(place.string() + ".err"), words);
  }
};

// The verb waits for the reader of a pipe and has nothing to complete, so the default action of the
// signal ends it.
TEST_F(Signals, EndAtOnceAVerbThatFinishesNothing) {
  ASSERT_EQ(::mkfifo((place() / "pipe").c_str(), 0600), 0);
  for (const int signal : {SIGINT, SIGTERM}) {
    ChildProcess plan(STEPGATE_PROGRAM, {"plan", "a.toml", "--memory", "--picture", "pipe"},
                      place());
    EXPECT_FALSE(plan.ends(500ms));
    plan.send(signal);
    EXPECT_TRUE(plan.ends(1s));
    EXPECT_EQ(plan.wait().exit_code, 128 + signal);
  }
}

TEST_F(Signals, EndARunThatNeverAsksWithinTwoSeconds) {
  const auto err_of = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"run", "a.toml", "deaf.toml", "--device", "reference"});
    ChildProcess run(STEPGATE_PROGRAM, more, place());
    EXPECT_TRUE(run.says("a: undecided", 60s));
    std::this_thread::sleep_for(300ms);
    run.send(SIGTERM);
    EXPECT_TRUE(run.ends(2s));
    const Finished finished = run.wait();
    EXPECT_EQ(finished.exit_code, 128 + SIGTERM);
    return finished.err;
  };
  const std::string said = "interrupted: ended in the middle of its work; ";
  EXPECT_EQ(err_of({}), said + "nothing was written\n");
  EXPECT_EQ(err_of({"--json", "r.json", "--junit", "j.xml"}), said + "written: j.xml, r.json\n");
}

TEST_F(Signals, EndARunAtOnceWhenTheSecondIsAnotherOne) {
  ChildProcess run(STEPGATE_PROGRAM, {"run", "a.toml", "deaf.toml", "--device", "reference"},
                   place());
  ASSERT_TRUE(run.says("a: undecided", 60s));
  std::this_thread::sleep_for(300ms);
  run.send(SIGTERM);
  EXPECT_FALSE(run.ends(300ms));
  run.send(SIGINT);
  EXPECT_TRUE(run.ends(500ms));
  EXPECT_EQ(run.wait().exit_code, 128 + SIGINT);
}

TEST_F(Signals, EndARunInItsWarmUp) {
  ChildProcess run(STEPGATE_PROGRAM, simulating({"open.toml"}), place());
  std::this_thread::sleep_for(200ms);
  run.send(SIGINT);
  EXPECT_TRUE(run.ends(2s));
  EXPECT_EQ(run.wait().exit_code, 128 + SIGINT);
}

// The message names exactly the files that exist.
TEST_F(Signals, LeaveWhatTheRunSays) {
  ChildProcess run(STEPGATE_PROGRAM,
                   simulating({"a.toml", "b.toml", "--trace", "t.json", "--picture", "p.svg",
                               "--ledger", "l", "--json", "r.json", "--junit", "j.xml"}),
                   place());
  ASSERT_TRUE(run.says("a: passes", 60s));
  wait_until([&] { return contains(text_of(place() / ledger / "b.toml"), "[run.expect]"); });
  run.send(SIGINT);
  ASSERT_TRUE(run.ends(2s));
  const Finished finished = run.wait();
  EXPECT_EQ(finished.exit_code, 128 + SIGINT);
  const std::string before = "interrupted: 'b' is not decided; written: ";
  ASSERT_EQ(finished.err.find(before), 0U) << finished.err;
  std::set<std::string> said;
  std::istringstream words(finished.err.substr(before.size()));
  for (std::string word; words >> word;) said.insert(word.substr(0, word.find(',')));
  std::set<std::string> there;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(place())) {
    if (entry.is_regular_file())
      there.insert(std::filesystem::relative(entry.path(), place()).string());
  }
  for (const char* given : {"a.toml", "b.toml", "deaf.toml", "open.toml"}) there.erase(given);
  EXPECT_EQ(said, there);
  EXPECT_EQ(there.size(), 10U);  // four timelines, two pictures, two of the ledger, two reports
}

TEST_F(Signals, LeaveNothingWhereNothingWasAskedFor) {
  ChildProcess run(STEPGATE_PROGRAM, simulating({"open.toml"}), place());
  ASSERT_TRUE(run.says("open: can pass", 60s));  // before its first round
  run.send(SIGTERM);
  ASSERT_TRUE(run.ends(2s));
  EXPECT_EQ(run.wait().err, "interrupted: 'open' is not decided; nothing was written\n");
}

TEST_F(Signals, SayThatWhatStoodInAnOutputIsGone) {
  write("old.json", "old\n");
  ChildProcess run(STEPGATE_PROGRAM, simulating({"open.toml", "--json", "old.json"}), place());
  ASSERT_TRUE(run.says("open: can pass", 60s));
  run.send(SIGTERM);
  ASSERT_TRUE(run.ends(2s));
  EXPECT_TRUE(contains(run.wait().err, "; written: old.json"));
}

TEST_F(Signals, EndTheWaitForALockThatIsTold) {
  const FolderLock held(place() / ledger);
  for (const int signal : {SIGINT, SIGTERM}) {
    ChildProcess run(STEPGATE_PROGRAM, simulating({"a.toml", "--ledger", "l"}), place());
    ASSERT_TRUE(says_on_error(run, place(), "waiting for "));
    run.send(signal);
    EXPECT_TRUE(run.ends(2s));
    const Finished finished = run.wait();
    EXPECT_EQ(finished.exit_code, 128 + signal);
    EXPECT_EQ(finished.err, "waiting for " + ledger + ", which process " +
                                std::to_string(::getpid()) +
                                " has locked\n"
                                "interrupted: 'a' is not decided; nothing was written\n");
  }
}

class AcceptedRuns : public Signals {
 protected:
  AcceptedRuns() {
    write("small.toml",
          "claim = \"as fast as it was\"\nmodel = { kind = \"spin\", kernels = 10 }\n"
          "[variant.fix]\n[expect]\n"
          "no_slide = \"fix.samples_per_s >= 0.97 * stored.fix.samples_per_s\"\n");
    std::filesystem::create_directories(place() / "b");
    std::filesystem::copy(STEPGATE_SOURCE_DIR "/tests/baselines", place() / "b",
                          std::filesystem::copy_options::recursive);
  }
};

// Signals only the parent, which forwards it to the child.
TEST_F(AcceptedRuns, AreCountedWhenASignalEndsTheRest) {
  ChildProcess accept(STEPGATE_PROGRAM,
                      {"--baselines", "b", "accept", "small.toml", "--runs", "200", "--device",
                       "simulated:round-numbers"},
                      place());
  ASSERT_TRUE(accept.says("run 1 stored in", 60s));
  accept.send(SIGTERM);
  EXPECT_TRUE(accept.ends(2s));
  const Finished finished = accept.wait();
  EXPECT_EQ(finished.exit_code, 128 + SIGTERM);
  const std::string file = text_of(place() / "b/simulated/gpu-of-round-numbers/small.toml");
  int stored = 0;
  for (auto at = file.find("[[run]]"); at != std::string::npos; at = file.find("[[run]]", at + 1))
    ++stored;
  EXPECT_TRUE(contains(finished.err, "interrupted: " + std::to_string(stored) + " of 200 runs " +
                                         (stored == 1 ? "was" : "were") + " stored\n"))
      << finished.err << stored;
  std::this_thread::sleep_for(1s);
  EXPECT_EQ(text_of(place() / "b/simulated/gpu-of-round-numbers/small.toml"), file)
      << "a child went on";
}

// Returns the state of a process; 'T' means stopped.
char state_of(int process) {
  const std::string text = text_of("/proc/" + std::to_string(process) + "/stat");
  const auto after_name = text.rfind(") ");
  return after_name == std::string::npos ? ' ' : text[after_name + 2];
}

std::vector<int> children_of(int process) {
  std::istringstream numbers(text_of("/proc/" + std::to_string(process) + "/task/" +
                                     std::to_string(process) + "/children"));
  return {std::istream_iterator<int>(numbers), {}};
}

// Signals the parent's process group, as a terminal does; the child is in another group.
TEST_F(AcceptedRuns, StopAndGoOnWithWhoeverWaitsForThem) {
  ChildProcess accept(STEPGATE_PROGRAM,
                      {"--baselines", "b", "accept", "open.toml", "--runs", "2", "--device",
                       "simulated:round-numbers"},
                      place());
  const auto child = [&] {
    const std::vector<int> children = children_of(accept.number());
    return children.empty() ? 0 : children.front();
  };
  wait_until([&] { return child() != 0; });
  std::this_thread::sleep_for(300ms);
  const int run = child();
  accept.send(SIGTSTP);
  // A process on another processor stops slightly after the signal.
  wait_until([&] { return state_of(accept.number()) == 'T' && state_of(run) == 'T'; });
  EXPECT_EQ(state_of(accept.number()), 'T');
  EXPECT_EQ(state_of(run), 'T');
  accept.send(SIGCONT);
  wait_until([&] { return state_of(run) != 'T'; });
  EXPECT_NE(state_of(run), 'T');
  EXPECT_NE(state_of(accept.number()), 'T');
  accept.send(SIGTERM);
  EXPECT_TRUE(accept.ends(2s));
}

}  // namespace
}  // namespace stepgate
