// SPDX-License-Identifier: MIT
// Tests `stepgate gate` with command lines of workers, and `stepgate worker`, from outside: workers
// that stall, die, flood or lie, and early ends. No process of a worker may survive.
#include <gtest/gtest.h>

#include <csignal>
#include <thread>

#include "tests/cli/processes.h"
#include "tests/cli/worker_gates.h"

namespace stepgate {
namespace {

using std::chrono::seconds;

struct Hostile {
  const char* trick;
  const char* request;
  std::string says;
};
void PrintTo(const Hostile& hostile, std::ostream* out) {
  *out << hostile.trick;
}

class HostileWorkers : public WorkerGates, public testing::WithParamInterface<Hostile> {};

TEST_P(HostileWorkers, EndTheGateWithCodeThreeOneFindingAndNoProcess) {
  const std::string command = hostile(GetParam().trick, GetParam().request);
  const Finished run =
      gate(hostile("behave", "run"), command, {"--stall-seconds", "4", "--pairs", "7"});
  EXPECT_EQ(run.exit_code, 3) << run.out << run.err;
  EXPECT_TRUE(contains(run.out, "HEAD, `" + command.substr(0, 80))) << run.out;
  EXPECT_TRUE(contains(run.out, GetParam().says)) << run.out;
  EXPECT_EQ(run.out.find_first_of("\x1b\x07"), std::string::npos) << run.out;
  EXPECT_LT(run.out.size(), 5000u);
  EXPECT_EQ(run.err, "");
  ASSERT_GE(processes().size(), 2u);
  for (const int process : processes()) EXPECT_FALSE(is_alive(process)) << process;
}

const std::string hello = R"({"do":"hello","protocol":1})";
const std::vector<Hostile> hostile_workers{
    {"stall", "hello", "did not answer " + hello + " within 4 s"},
    {"stall", "run", R"(did not answer {"do":"run","steps":1,"wash_out":1} within 4 s)"},
    {"stall", "quit", R"(did not end within 4 s of {"do":"quit"})"},
    {"exit", "hello", "ended with exit code 7 instead of answering " + hello},
    {"exit", "load", R"(ended with exit code 7 instead of answering {"do":"load","work":"w"})"},
    {"exit", "quit", R"(ended with exit code 7 when asked to {"do":"quit"})"},
    {"crash", "run", "was ended by signal 11 (Segmentation fault) instead of answering"},
    {"complain", "run", "the tail of its standard error:\\n  the dog ate the kernel"},
    {"flood", "run", "with more than 1 MiB without an end of line"},
    // Which line is seen first is random.
    {"flood_lines", "run", "; it wrote nothing to standard error\n"},
    {"flood_errors", "run", "ended with exit code 7"},
    {"close_output", "run", "closed its standard output instead of answering"},
    {"ignore_the_end", "run", "did not answer"},
    {"nest", "run", "did not answer"},
    {"leave_children", "run", "ended with exit code 0 instead of answering"},
    {"kill_the_supervisor", "run", "was ended by signal 9 (Killed) instead of answering"},
    {"stop_the_supervisor", "run", "did not answer"},
    {"not_json", "run", "with `steps: 3`, which is not JSON"},
    {"escape", "run", "with `?[2J?`, which is not JSON"},
    {"binary", "run", "which is not JSON"},
    {"list", "run", "with `[]`, which is not a JSON object"},
    {"deep", "run", "which nests deeper than 32 levels"},
    {"deep_value", "hello", "which nests deeper than 32 levels"},
    {"deep_value", "load", "which nests deeper than 32 levels"},
    {"deep_value", "run", "which nests deeper than 32 levels"},
    {"deep_object", "hello", "which nests deeper than 32 levels"},
    {"deep_object", "load", "which nests deeper than 32 levels"},
    {"deep_object", "run", "which nests deeper than 32 levels"},
    {"empty", "run", "with ``, which is not JSON"},
    {"no_fields", "run", "which has no 'steps'"},
    {"error", "load", R"(answered {"do":"load","work":"w"} with an error: out of coffee)"},
    {"wrong_steps", "run", "ran 12345 steps when asked for 1"},
    {"zero", "run", "has 'elapsed_ns' 0, which is not a whole number from 1 to"},
    {"negative", "run", "has 'elapsed_ns' -5, which is not"},
    {"nan", "run", "which is not JSON"},
    {"fraction", "run", "has 'elapsed_ns' 1.5, which is not"},
    {"text", "run", R"(has 'elapsed_ns' "fast", which is not)"},
    {"absurd", "run", "has 'elapsed_ns' 1000000000000000000, which is not"},
    {"astronomic", "run", "has 'elapsed_ns' 1e+30, which is not"},
    {"longer_than_it_took", "run", "says that its steps took 10 s, but answered within"},
    {"twice", "run", "before it was asked for anything"},
    {"future", "hello", "speaks version 2 of the worker protocol; this stepgate speaks 1"},
    {"no_works", "hello", "has 'works' [], which is not a list of 1 to 10000 names"},
    {"same_works", "hello", "has 'works[1]' \"w\", which is there twice"},
    {"bad_works", "hello", "which is not a text of 1 to 200 printable characters"},
};

INSTANTIATE_TEST_SUITE_P(Tricks, HostileWorkers, testing::ValuesIn(hostile_workers),
                         [](const auto& hostile) {
                           return std::string(hostile.param.trick) + "_at_" + hostile.param.request;
                         });

// A shell may start a process and then become stepgate by exec: that process is also a child of
// stepgate.
TEST_F(WorkerGates, EndNobodyElseForASupervisorThatIsKilled) {
  ChildProcess run("/bin/sh",
                   {"-c",
                    "sleep 60 & echo $! >kept; exec " STEPGATE_PROGRAM
                    " gate --only time --pairs 7 --base-command \"$0\" --head-command \"$1\"",
                    hostile("behave", "run"), hostile("kill_the_supervisor", "run")},
                   place());
  EXPECT_EQ(run.wait().exit_code, 3);
  const std::vector<int> kept = noted_processes(place() / "kept");
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_TRUE(is_alive(kept.front()));
  ::kill(kept.front(), SIGKILL);
  EXPECT_TRUE(all_end(processes(), seconds(2)));
}

TEST_F(WorkerGates, ShowAProgramWhatItNeedsOfTheEnvironmentAndNoSecret) {
  const EnvironmentVariable token("GITHUB_TOKEN", "secret"), key("AWS_SECRET_ACCESS_KEY", "secret");
  const EnvironmentVariable cuda("CUDA_OF_A_TEST", "1"), data("DATA_ROOT", "/data");
  const std::string tells = hostile("tell_environment", "hello");
  const Finished plain = gate(tells, tells);
  EXPECT_TRUE(contains(plain.out, "error: sees CUDA_OF_A_TEST PATH;")) << plain.out;
  EXPECT_TRUE(contains(gate(tells, tells, {"--pass-env", "DATA_*"}).out,
                       "error: sees CUDA_OF_A_TEST DATA_ROOT PATH;"));
}

TEST_F(WorkerGates, SayWhyAProgramCannotBeStarted) {
  write("not_executable", "echo");
  for (const auto& [program, reason] :
       std::vector<std::pair<std::string, std::string>>{{"./none", "No such file or directory"},
                                                        {"./not_executable", "Permission denied"},
                                                        {".", "Permission denied"}}) {
    const Finished run = gate(program, STEPGATE_PROGRAM);
    EXPECT_EQ(run.exit_code, 3);
    EXPECT_TRUE(contains(run.out, "cannot be started: " + reason + "; check its path\n"))
        << run.out;
  }
}

TEST_F(WorkerGates, SayWhatAProgramThatIsNoWorkerSaid) {
  const Finished run = gate("/bin/ls", STEPGATE_PROGRAM);
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_TRUE(contains(run.out, "BASE, `/bin/ls`, ")) << run.out;
}

TEST_F(WorkerGates, EndWithNothingLeftWhenInterrupted) {
  for (const int signal : {SIGINT, SIGTERM}) {
    std::filesystem::remove(ids());
    const std::string stalls = hostile("nest", "run");
    ChildProcess run(STEPGATE_PROGRAM, call_of(stalls, stalls), place());
    ASSERT_TRUE(run.says("of timing", seconds(60)));
    run.send(signal);
    ASSERT_TRUE(run.ends(seconds(10)));
    const Finished finished = run.wait();
    EXPECT_EQ(finished.exit_code, 128 + signal);
    EXPECT_EQ(finished.err, "interrupted: HEAD is not gated; nothing was written\n");
    for (const int process : processes()) EXPECT_FALSE(is_alive(process)) << process;
  }
}

TEST_F(WorkerGates, EndWithNothingLeftWhenKilled) {
  // The processes are the introductions of both sides, a pair, and two children of the side that
  // was asked first; one child is in a session of its own. All ignore SIGTERM.
  const std::string nests = hostile("nest", "run");
  ChildProcess run(STEPGATE_PROGRAM, call_of(nests, nests), place());
  ASSERT_TRUE(run.says("of timing", seconds(60)));
  const auto deadline = std::chrono::steady_clock::now() + seconds(10);
  while (processes().size() < 6 && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ASSERT_EQ(processes().size(), 6u);
  run.send(SIGKILL);
  EXPECT_EQ(run.wait().exit_code, 128 + SIGKILL);
  EXPECT_TRUE(all_end(processes(), seconds(10)));
}

// Runs the example of ci/WORKER.md with the real clock.
TEST_F(WorkerGates, TheExampleIsNotFailedAgainstItself) {
  // At most one gate in a hundred may block; another machine's noise may leave it undecided.
  const Finished run = gate(example, example, {"--margin", "20%", "--workload", "sort*"});
  EXPECT_TRUE(run.exit_code == 0 || run.exit_code == 77) << run.out << run.err;
}

TEST_F(WorkerGates, TheExampleFailsAgainstItselfWithMoreToDo) {
  const Finished run =
      gate(example, example + " --slower 100", {"--margin", "10%", "--workload", "hash_blocks"});
  EXPECT_EQ(run.exit_code, 1) << run.out << run.err;
  EXPECT_FALSE(contains(run.out, "sort_numbers")) << run.out;
}

TEST_F(WorkerGates, AWorkerEndsWithItsInput) {
  write("a.toml", holding);
  // The test's standard input is empty.
  EXPECT_EQ(stepgate({"worker", "a.toml", "--device", "simulated"}).exit_code, 0);
}

}  // namespace
}  // namespace stepgate
