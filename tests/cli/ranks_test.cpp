// SPDX-License-Identifier: MIT
// Tests a run on several ranks with every launcher: the same verdict, printed once, and no
// processes left. It also runs the commands of docs/ranks.md.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <map>
#include <sstream>
#include <thread>
#include <vector>

#include "tests/cli/command_line.h"

namespace stepgate {
namespace {

using namespace std::chrono_literals;

using Set = std::map<std::string, std::string>;

class Ranks : public CommandLine {
 protected:
  Ranks() {
    for (const char* name :
         {"RANK", "LOCAL_RANK", "WORLD_SIZE", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"})
      ::unsetenv(name);
    write("two.toml",
          "claim = \"two ranks compute twice as much\"\n"
          "model = { kind = \"mlp\", layers = 4, hidden = 256 }\nbatch.size = 32\n"
          "[variant.baseline]\n[variant.two]\nranks.count = 2\n"
          "[expect]\nline = \"two.samples_per_s >= 1.2 * baseline.samples_per_s\"\n");
    for (const char* folder : {"r0", "r1", "alone"})
      std::filesystem::create_directory(place() / folder);
  }

  // Uses a folder below the scenarios' folder, so that each process has its own output.
  static std::vector<std::string> running(const std::string& file,
                                          const std::vector<std::string>& more) {
    std::vector<std::string> words = simulating({"../" + file});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  Finished run(const std::string& file, const std::vector<std::string>& more) const {
    return ChildProcess(STEPGATE_PROGRAM, running(file, more), place() / "alone").wait();
  }

  std::unique_ptr<ChildProcess> start(int rank, const Set& variables,
                                      const std::vector<std::string>& words) const {
    std::vector<std::unique_ptr<EnvironmentVariable>> set;
    for (const auto& [name, value] : variables)
      set.push_back(std::make_unique<EnvironmentVariable>(name, value));
    return std::make_unique<ChildProcess>(STEPGATE_PROGRAM, words,
                                          place() / ("r" + std::to_string(rank)));
  }

  // Sets the variables as torchrun does.
  Set torchrun(int rank) const {
    return {{"RANK", std::to_string(rank)},
            {"LOCAL_RANK", std::to_string(rank)},
            {"WORLD_SIZE", "2"},
            {"LOCAL_WORLD_SIZE", "2"},
            {"MASTER_ADDR", "127.0.0.1"},
            {"MASTER_PORT", "29500"},
            {"XDG_RUNTIME_DIR", place().string()}};
  }
  Set slurm(int rank) const {
    return {{"SLURM_PROCID", std::to_string(rank)},
            {"SLURM_LOCALID", std::to_string(rank)},
            {"SLURM_NTASKS", "2"},
            {"SLURM_JOB_ID", "4711"},
            {"SLURM_STEP_ID", "0"},
            {"XDG_RUNTIME_DIR", place().string()}};
  }
  std::array<Finished, 2> launched(const std::array<Set, 2>& variables,
                                   const std::array<std::vector<std::string>, 2>& words) const {
    const auto second = start(1, variables[1], words[1]);
    const auto first = start(0, variables[0], words[0]);
    EXPECT_TRUE(first->ends(30s));
    EXPECT_TRUE(second->ends(10s));
    return {first->wait(), second->wait()};
  }
  std::array<Finished, 2> launched(const std::array<Set, 2>& variables,
                                   const std::vector<std::string>& words) const {
    return launched(variables, {words, words});
  }

  // Processes that work below this test's folder.
  std::vector<int> left_over() const {
    std::vector<int> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const std::string name = entry.path().filename();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      std::error_code gone;
      const auto folder = std::filesystem::read_symlink(entry.path() / "cwd", gone).string();
      if (!gone && folder.starts_with(place().string())) found.push_back(std::stoi(name));
    }
    return found;
  }
  void expect_nothing_left_over() const {
    for (int look = 0; look < 100 && !left_over().empty(); ++look)
      std::this_thread::sleep_for(20ms);
    EXPECT_EQ(left_over(), std::vector<int>());
  }

  const std::vector<std::string> untraced{"--no-trace"};
};

// No run of it ends by itself.
const std::string endless_of_two =
    "claim = \"two ranks are as fast as two\"\n"
    "model = { kind = \"mlp\", layers = 32, hidden = 64 }\nranks.count = 2\n"
    "measure = { rounds = 1000000, max_seconds = 36000 }\n"
    "[variant.baseline]\n[variant.fix]\n"
    "[expect]\nline = \"fix.samples_per_s >= 1 * baseline.samples_per_s\"\n";

int times_in(const std::string& text, const std::string& words) {
  int times = 0;
  for (std::size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1))
    ++times;
  return times;
}

TEST_F(Ranks, SayWhatOneProcessSays) {
  const Finished alone = run("two.toml", untraced);
  EXPECT_EQ(alone.exit_code, 0) << alone.out << alone.err;
  EXPECT_EQ(times_in(alone.out, "1 scenario, 1 passes"), 1) << alone.out;
  const Finished ranks = run("two.toml", {"--no-trace", "--ranks", "2"});
  EXPECT_EQ(ranks.exit_code, 0);
  EXPECT_EQ(ranks.out, alone.out);
  EXPECT_EQ(without_clock(ranks.err), "");
  expect_nothing_left_over();
}

TEST_F(Ranks, TraceAsOneProcessDoes) {
  const Finished alone = run("two.toml", {"--verbose"});
  const Finished ranks = run("two.toml", {"--verbose", "--ranks", "3"});
  EXPECT_EQ(alone.exit_code, 0);
  EXPECT_EQ(ranks.out, alone.out) << ranks.err;
  EXPECT_TRUE(contains(alone.out, "2 traced rounds")) << alone.out;
}

TEST_F(Ranks, OfTorchrunAndOfSlurmSayItOnceAndEndAlike) {
  const Finished alone = run("two.toml", untraced);
  for (const auto& variables :
       {std::array{torchrun(0), torchrun(1)}, std::array{slurm(0), slurm(1)}}) {
    const auto [first, second] = launched(variables, running("two.toml", untraced));
    EXPECT_EQ(first.exit_code, 0);
    EXPECT_EQ(second.exit_code, 0);
    EXPECT_EQ(first.out, alone.out);
    EXPECT_EQ(without_clock(first.err) + second.out + second.err, "");
  }
  for (const auto& entry : std::filesystem::directory_iterator(place()))
    EXPECT_FALSE(contains(entry.path().filename(), "stepgate")) << "the folder is taken away";
  expect_nothing_left_over();
}

TEST_F(Ranks, OfAnotherVerdictEndAlike) {
  write("two.toml", fails);
  const auto ends = [&](const std::vector<std::string>& more) {
    const auto [first, second] = launched({torchrun(0), torchrun(1)}, running("two.toml", more));
    EXPECT_EQ(first.exit_code, second.exit_code);
    EXPECT_EQ(second.out + second.err, "");
    return first.exit_code;
  };
  EXPECT_EQ(ends({"--no-trace"}), 1);
  EXPECT_EQ(ends({"--set", "batch.sise=3"}), 2);
}

#ifdef STEPGATE_MPIRUN
TEST_F(Ranks, OfOpenMpiSayItOnceAndEndAlike) {
  const EnvironmentVariable plain("NO_COLOR", "1");  // mpirun has a terminal for its processes
  for (const std::string& content : {text_of(place() / "two.toml"), fails}) {
    write("two.toml", content);
    const Finished alone = run("two.toml", untraced);
    std::vector<std::string> words{"-n", "2", "--allow-run-as-root", "--oversubscribe",
                                   STEPGATE_PROGRAM};
    const auto stepgate = running("two.toml", untraced);
    words.insert(words.end(), stepgate.begin(), stepgate.end());
    const Finished finished = ChildProcess(STEPGATE_MPIRUN, words, place() / "r0").wait();
    EXPECT_EQ(finished.exit_code, alone.exit_code) << finished.err;
    // mpirun also reports a failed rank itself.
    EXPECT_TRUE(contains(finished.out, alone.out)) << finished.out << alone.out;
    EXPECT_EQ(times_in(finished.out, "1 scenario"), 1);
  }
}
#endif

// In a mixed run, this process calibrates and times scenarios of one rank itself. Scenarios of
// several ranks come first.
TEST_F(Ranks, LeaveWhatHasOneRankToTheRunItself) {
  write("share.toml", calibrated);
  const auto mixed = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"../two.toml"});
    return run("share.toml", more);
  };
  const Finished finished = mixed({"--ranks", "2"});
  EXPECT_EQ(finished.exit_code, 0) << finished.out << finished.err;
  EXPECT_TRUE(contains(finished.out, "2 scenarios, 2 pass")) << finished.out;
  EXPECT_LT(finished.out.find("two: passes"), finished.out.find("share: passes")) << finished.out;
  const auto [first, second] =
      launched({torchrun(0), torchrun(1)}, running("share.toml", {"../two.toml"}));
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(first.out, finished.out);
  EXPECT_EQ(second.exit_code, 0);
  EXPECT_EQ(second.out + second.err, "");
  expect_nothing_left_over();
  const Finished in_detail = mixed({"--ranks", "2", "--verbose"});
  EXPECT_TRUE(contains(in_detail.out, "calibrated: batch.sample_bytes = ")) << in_detail.out;
  // The fault applies to ranks only, so it does not happen here.
  const Finished own = run("share.toml", {"--ranks", "2", "--rank-fault", "1:load:KILL"});
  EXPECT_EQ(own.exit_code, 0) << own.out << own.err;
  // All refusals by ranks come before this process times anything.
  const Finished died = mixed({"--ranks", "2", "--rank-fault", "1:load:KILL"});
  EXPECT_EQ(died.exit_code, 3);
  EXPECT_EQ(times_in(died.out + died.err, "share"), 0) << died.out << died.err;
}

// A program would find the launcher's variables, and wait for ranks that are busy with stepgate.
TEST_F(Ranks, OfALauncherRefuseScenariosOfPrograms) {
  write("program.toml",
        "claim = \"starts nothing\"\n[program]\ncommand = [\"touch\", \"started\"]\n[variant.a]\n"
        "[expect]\nwaits = \"a.host_waits_per_step == 0\"\n");
  const std::vector<std::string> words{"run", "../program.toml"};
  const auto [first, second] = launched({torchrun(0), torchrun(1)}, words);
  EXPECT_EQ(first.exit_code, 2) << first.out << first.err;
  EXPECT_EQ(second.exit_code, 2) << second.out << second.err;
  EXPECT_TRUE(contains(first.err, "'program' runs a program, and a launcher")) << first.err;
  EXPECT_FALSE(std::filesystem::exists(place() / "r0" / "started"));
}

// Variants of 1, 2 and 4 ranks take turns.
TEST_F(Ranks, OfSeveralCountsAreVariantsOfOneScenario) {
  write("counts.toml",
        "claim = \"more ranks compute more\"\n"
        "model = { kind = \"mlp\", layers = 4, hidden = 256 }\nbatch.size = 32\n"
        "[variant.one]\n[variant.two]\nranks.count = 2\n[variant.four]\nranks.count = 4\n"
        "[expect]\n"
        "two = \"two.samples_per_s >= 1.2 * one.samples_per_s\"\n"
        "four = \"four.samples_per_s >= 1.2 * two.samples_per_s\"\n");
  const Finished alone = run("counts.toml", {});
  const Finished ranks = run("counts.toml", {"--ranks", "4"});
  EXPECT_EQ(alone.exit_code, 0) << alone.out << alone.err;
  EXPECT_EQ(ranks.exit_code, 0) << ranks.out << ranks.err;
  EXPECT_EQ(ranks.out, alone.out);
  EXPECT_EQ(run("counts.toml", {"--ranks", "2"}).exit_code, 77);
}

// Without tracing the fault ends the run, with tracing the trace; both at loading and at running.
TEST_F(Ranks, ThatDieOrHangEndTheRunInOneSentence) {
  for (const char* at : {"load", "run"}) {
    for (const char* rank : {"0", "1"}) {
      for (const char* signal : {"KILL", "SEGV", "STOP"}) {
        const std::string fault = std::string(rank) + ":" + at + ":" + signal;
        SCOPED_TRACE(fault);
        const bool traced = std::string(signal) == "SEGV";
        std::vector<std::string> more{"--ranks",      "2",  "--stall-seconds", "1",
                                      "--rank-fault", fault};
        if (!traced) more.emplace_back("--no-trace");
        const auto start = std::chrono::steady_clock::now();
        const Finished finished = run("two.toml", more);
        EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);
        EXPECT_EQ(finished.exit_code, 3) << finished.out << finished.err;
        const std::string said = traced ? finished.err : finished.out;
        const std::string name = std::string("rank ") + rank + " (process ";
        EXPECT_EQ(times_in(said, name), 1) << said;
        EXPECT_TRUE(contains(said, std::string("'") + at + "'")) << said;
        EXPECT_EQ(times_in(finished.out + finished.err, "(process "), 1);
        expect_nothing_left_over();
      }
    }
  }
}

TEST_F(Ranks, OfALauncherThatDieOrHangEndAll) {
  for (const char* fault : {"0:load:KILL", "1:run:KILL", "0:run:STOP", "1:load:STOP"}) {
    SCOPED_TRACE(fault);
    const auto [first, second] = launched(
        {torchrun(0), torchrun(1)},
        running("two.toml", {"--no-trace", "--stall-seconds", "1", "--rank-fault", fault}));
    EXPECT_EQ(first.exit_code, 3) << first.err;
    EXPECT_EQ(second.exit_code, 3);
    const std::string name = std::string("rank ") + fault[0] + " (process ";
    EXPECT_EQ(times_in(first.out + first.err, name), 1) << first.out << first.err;
    EXPECT_EQ(second.out + second.err, "");
    expect_nothing_left_over();
  }
}

// Two ranks train on twice as many samples, so their losses differ from those of one rank.
TEST_F(Ranks, MayBeMoreInOneVariantThanInAnotherWhereNumbersAreComputed) {
  const Finished finished = stepgate({"run", "two.toml", "--device", "reference", "--no-trace"});
  EXPECT_NE(finished.exit_code, 2) << finished.out << finished.err;
  EXPECT_FALSE(contains(finished.out, "does not train what")) << finished.out;
}

TEST_F(Ranks, AreRefusedForWhatIsWrongWithAnotherPartOfTheRunBeforeAnythingIsTimed) {
  write("alone.toml",
        "claim = \"as fast as it was\"\nmodel = { kind = \"mlp\", layers = 4, hidden = 256 }\n"
        "[variant.baseline]\n"
        "[expect]\nline = \"baseline.samples_per_s >= 0.9 * stored.baseline.samples_per_s\"\n");
  std::filesystem::create_directories(place() / "baselines/nvidia-h200");
  std::filesystem::copy_file(
      std::filesystem::path(STEPGATE_SOURCE_DIR) / "baselines/nvidia-h200/device.toml",
      place() / "baselines/nvidia-h200/device.toml");
  std::filesystem::create_directories(place() / "baselines/simulated/nvidia-h200");
  write("baselines/simulated/nvidia-h200/alone.toml", "format = what\n");
  const Finished finished =
      stepgate({"--baselines", "baselines", "run", "two.toml", "alone.toml", "--device",
                "simulated:nvidia-h200", "--ranks", "2", "--no-trace"});
  EXPECT_EQ(finished.exit_code, 2) << finished.out;
  EXPECT_FALSE(contains(finished.out, "passes")) << finished.out;
}

TEST_F(Ranks, UnderAGateDoNotCalibrateAndSayWhy) {
  write("cal.toml",
        "claim = \"calibrated\"\nmodel = { kind = \"mlp\", layers = 4, hidden = 256 }\nranks.count "
        "= 2\n"
        "[calibrate]\nbatch.size = \"baseline.gpu_idle ~= 50% within 30%\"\n"
        "[variant.baseline]\n[variant.fix]\nsync = { where = \"step\", how = \"device\" }\n"
        "[expect]\nline = \"baseline.samples_per_s >= 1 * fix.samples_per_s\"\n");
  const Finished finished =
      stepgate({"gate", "--base", STEPGATE_PROGRAM, "--head", STEPGATE_PROGRAM, "cal.toml",
                "--device", "simulated:nvidia-h200", "--ranks", "2"});
  const std::string said = finished.out + finished.err;
  EXPECT_FALSE(contains(said, "knows no --counts")) << said;
  EXPECT_TRUE(contains(said, "ranks that run in processes of their own do not calibrate")) << said;
}

// Uses the default time limits.
TEST_F(Ranks, ThatHangEndAllWithinTenSeconds) {
  const auto begin = std::chrono::steady_clock::now();
  const Finished finished =
      run("two.toml", {"--ranks", "2", "--no-trace", "--rank-fault", "1:run:STOP"});
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
  EXPECT_EQ(finished.exit_code, 3);
  const std::string said = finished.out + finished.err;
  EXPECT_TRUE(contains(said, "rank 1 (process ")) << said;
  EXPECT_TRUE(contains(said, ") gave no sign of life for 6 s instead of answering 'run'; "))
      << said;
  expect_nothing_left_over();
}

TEST_F(Ranks, ThatDisagreeEndTheRun) {
  for (const auto& more : {untraced, {}}) {
    std::vector<std::string> words{"--ranks", "3", "--rank-fault", "2:run:LIE"};
    words.insert(words.end(), more.begin(), more.end());
    const Finished finished = run("two.toml", words);
    EXPECT_EQ(finished.exit_code, 3);
    const std::string said = finished.out + finished.err;
    EXPECT_EQ(times_in(said, "rank 2 (process "), 1) << said;
    EXPECT_TRUE(contains(said, "does not agree with rank 0: its times of '")) << said;
  }
}

// Kills processes of the launcher itself, not their children.
TEST_F(Ranks, WhoseLauncherKillsOneLeaveNothing) {
  write("two.toml", endless_of_two);
  for (const int killed : {0, 1}) {
    SCOPED_TRACE(killed);
    const std::vector<std::string> words = running("two.toml", untraced);
    const std::array processes{start(0, torchrun(0), words), start(1, torchrun(1), words)};
    for (int look = 0; look < 500 && left_over().size() < 6; ++look)
      std::this_thread::sleep_for(10ms);  // two launcher processes, two ranks and their supervisors
    EXPECT_EQ(left_over().size(), 6U);
    processes[static_cast<std::size_t>(killed)]->send(SIGKILL);
    ChildProcess& other = *processes[static_cast<std::size_t>(1 - killed)];
    EXPECT_TRUE(other.ends(10s));
    const Finished finished = other.wait();
    EXPECT_EQ(finished.exit_code, 3);
    EXPECT_EQ(times_in(finished.out + finished.err, " closed its connection instead of answering "),
              killed)
        << finished.out << finished.err;
    EXPECT_TRUE(processes[static_cast<std::size_t>(killed)]->ends(1s));
    expect_nothing_left_over();
  }
}

// Returns a socket that is connected to the port of a meeting, and says nothing; negative where
// nobody listens.
int connected_to(const std::string& meeting) {
  const std::size_t colon = meeting.find(':');
  if (colon == std::string::npos) return -1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(meeting.substr(colon + 1))));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto* any = reinterpret_cast<const sockaddr*>(&address);
  if (::connect(socket, any, sizeof address) == 0) return socket;
  ::close(socket);
  return -1;
}

// Each of the strangers could be heard for two seconds; together they must not take more.
TEST_F(Ranks, OfALauncherMeetThoughStrangersConnect) {
  const auto words = running("two.toml", {"--no-trace", "--rendezvous", "../meet"});
  const auto first = start(0, torchrun(0), words);
  for (int look = 0; look < 500 && !exists("meet"); ++look) std::this_thread::sleep_for(10ms);
  std::vector<int> strangers;
  for (int each = 0; each < 40; ++each) {
    strangers.push_back(connected_to(text_of(place() / "meet")));
    EXPECT_GE(strangers.back(), 0);
  }
  const auto second = start(1, torchrun(1), words);
  EXPECT_TRUE(first->ends(20s));
  EXPECT_TRUE(second->ends(10s));
  EXPECT_EQ(first->wait().exit_code, 0);
  EXPECT_EQ(second->wait().exit_code, 0);
  for (const int stranger : strangers) ::close(stranger);
}

// A signal to a whole job reaches its processes one after the other, in any order and at any
// moment.
TEST_F(Ranks, ThatAreInterruptedSayThatAndNotThatTheDeviceFailed) {
  write("two.toml", endless_of_two);
  int wait = 0;
  for (const bool by_launcher : {false, true}) {
    for (const int signal : {SIGINT, SIGTERM}) {
      for (const bool is_traced : {false, true}) {
        for (const bool first_to_rank_0 : {false, true}) {
          wait = (wait + 70) % 300;
          SCOPED_TRACE(std::to_string(signal) + " after " + std::to_string(wait) + " ms");
          std::vector<std::string> words =
              running("two.toml", is_traced ? std::vector<std::string>() : untraced);
          std::vector<std::unique_ptr<ChildProcess>> all;
          if (by_launcher) {
            for (const int rank : {0, 1}) all.push_back(start(rank, torchrun(rank), words));
          } else {
            words.insert(words.end(), {"--ranks", "2"});
            all.push_back(start(0, {}, words));
          }
          std::this_thread::sleep_for(std::chrono::milliseconds(wait));
          if (!first_to_rank_0) std::ranges::reverse(all);
          for (const auto& one : all) {
            one->send(signal);
            std::this_thread::sleep_for(5ms);
          }
          for (const auto& one : all) {
            EXPECT_TRUE(one->ends(4s));
            const Finished finished = one->wait();
            EXPECT_EQ(finished.exit_code, 128 + signal) << finished.out << finished.err;
            EXPECT_FALSE(contains(finished.out + finished.err, "failed"))
                << finished.out << finished.err;
          }
          expect_nothing_left_over();
        }
      }
    }
  }
}

TEST_F(Ranks, OfALauncherListenNoLongerOnceAllAreThere) {
  write("two.toml", endless_of_two);
  const auto words = running("two.toml", {"--no-trace", "--rendezvous", "../meet"});
  const auto first = start(0, torchrun(0), words);
  for (int look = 0; look < 500 && !exists("meet"); ++look) std::this_thread::sleep_for(10ms);
  const std::string meeting = text_of(place() / "meet");
  const auto second = start(1, torchrun(1), words);
  for (int look = 0; look < 1000 && exists("meet"); ++look) std::this_thread::sleep_for(10ms);
  EXPECT_FALSE(exists("meet"));
  EXPECT_FALSE(first->ends(0ms));
  EXPECT_LT(connected_to(meeting), 0);
  for (const auto* one : {&first, &second}) (*one)->send(SIGTERM);
  for (const auto* one : {&first, &second}) EXPECT_TRUE((*one)->ends(4s));
}

// Files and folders that earlier starts have left, or that others have made.
TEST_F(Ranks, OfALauncherMeetThoughNamesAreTaken) {
  write("meet", "stepgate-ranks localhost:9 0123456789abcdef\n");  // as of another host
  const auto named = launched({torchrun(0), torchrun(1)},
                              running("two.toml", {"--no-trace", "--rendezvous", "../meet"}));
  for (const Finished& one : named) EXPECT_EQ(one.exit_code, 0) << one.err;
  const std::string old = "stepgate-ranks-" + std::to_string(::geteuid()) + "-29500";
  std::filesystem::create_directory(place() / old);
  for (const char* taken : {"stepgate.", "stepgate.000000", "stepgate.aaaaaa"}) {
    std::filesystem::create_directory(place() / taken);
    std::filesystem::permissions(place() / taken, std::filesystem::perms::all);
  }
  write("stepgate.bbbbbb", "a file");
  for (const Finished& one : launched({torchrun(0), torchrun(1)}, running("two.toml", untraced)))
    EXPECT_EQ(one.exit_code, 0) << one.err;
}

// The kernel lists who listens on a port of this host.
TEST_F(Ranks, OfOneHostListenOnNoPort) {
  const auto sockets_of = [](int process) {
    std::vector<std::string> found;
    const auto folder = std::filesystem::path("/proc") / std::to_string(process) / "fd";
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      std::error_code gone;
      const std::string target = std::filesystem::read_symlink(entry.path(), gone);
      if (target.starts_with("socket:[")) found.push_back(target.substr(8, target.size() - 9));
    }
    return found;
  };
  const auto listens_on_port = [&](int process) {
    const std::vector<std::string> sockets = sockets_of(process);
    std::ifstream table("/proc/net/tcp");
    for (std::string line; std::getline(table, line);) {
      for (const std::string& socket : sockets) {
        if (contains(line, " 0A ") && contains(line, " " + socket + " ")) return true;
      }
    }
    return false;
  };
  const auto waits = [&](const std::vector<std::string>& words) {
    const auto alone = start(0, torchrun(0), words);
    for (int look = 0; look < 500 && sockets_of(alone->number()).empty(); ++look)
      std::this_thread::sleep_for(10ms);
    std::this_thread::sleep_for(100ms);
    EXPECT_FALSE(sockets_of(alone->number()).empty());
    const bool on_port = listens_on_port(alone->number());
    alone->send(SIGTERM);
    EXPECT_TRUE(alone->ends(3s));
    EXPECT_EQ(alone->wait().exit_code, 128 + SIGTERM);
    return on_port;
  };
  EXPECT_FALSE(waits(running("two.toml", untraced)));
  EXPECT_TRUE(waits(running("two.toml", {"--no-trace", "--rendezvous", "../meet"})));
}

TEST_F(Ranks, OfALauncherMeetInTheFileThatIsNamed) {
  const auto words = running("two.toml", {"--no-trace", "--rendezvous", "../meet/here"});
  std::array variables{slurm(0), slurm(1)};
  for (Set& set : variables) {
    set.erase("SLURM_JOB_ID");
    set.erase("SLURM_STEP_ID");
  }
  const auto [first, second] = launched(variables, words);
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_TRUE(exists("meet"));
  EXPECT_FALSE(exists("meet/here"));
  const auto [without, other] = launched(variables, running("two.toml", untraced));
  EXPECT_EQ(without.exit_code, 2);
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_TRUE(contains(without.err, "--rendezvous FILE")) << without.err;
  EXPECT_EQ(other.err, "");
}

TEST_F(Ranks, ThatPlannedSomethingElseAreRefusedByName) {
  std::array words{running("two.toml", untraced), running("two.toml", untraced)};
  words[1].insert(words[1].end(), {"--set", "batch.size=64"});
  const auto [first, second] = launched({torchrun(0), torchrun(1)}, words);
  EXPECT_EQ(first.exit_code, 3);
  EXPECT_EQ(second.exit_code, 3);
  EXPECT_EQ(times_in(first.err, "rank 1 (process "), 1) << first.err;
  EXPECT_TRUE(contains(first.err, "has planned another step for 'baseline' of 'two'")) << first.err;
}

TEST_F(Ranks, ThatAreFewerThanAScenarioNeedsSkipIt) {
  const Finished finished =
      run("two.toml", {"--no-trace", "--ranks", "2", "--set", "ranks.count=4"});
  EXPECT_EQ(finished.exit_code, 77);
  EXPECT_TRUE(contains(finished.out, "needs 4 GPUs, there are 2 for a step")) << finished.out;
}

TEST_F(Ranks, AreStartedOnce) {
  const auto [first, second] =
      launched({torchrun(0), torchrun(1)}, running("two.toml", {"--ranks", "2"}));
  EXPECT_EQ(first.exit_code, 2);
  EXPECT_EQ(second.exit_code, 2);
  EXPECT_TRUE(contains(first.err, "--ranks 2 starts ranks, and torchrun has started 2 already"))
      << first.err;
  EXPECT_EQ(second.err, "");
  const Finished shared = stepgate({"run", "two.toml", "--ranks", "2", "--device", "cuda:0"});
  EXPECT_EQ(shared.exit_code, 2);
  EXPECT_TRUE(contains(shared.err, "--device cuda:0 is one GPU")) << shared.err;
}

TEST_F(Ranks, AreStoredByAcceptAsOneProcessIs) {
  const auto accept = [&](std::vector<std::string> more) {
    std::filesystem::remove_all(place() / "b");
    std::filesystem::copy(STEPGATE_SOURCE_DIR "/tests/baselines", place() / "b",
                          std::filesystem::copy_options::recursive);
    more.insert(more.begin(), {"--baselines", "b", "accept", "two.toml", "--device",
                               "simulated:round-numbers", "--seed", "1", "--commit", "c"});
    const Finished finished = stepgate(more);
    EXPECT_EQ(finished.exit_code, 0) << finished.out << finished.err;
    return finished.out;
  };
  EXPECT_EQ(accept({"--ranks", "2"}), accept({}));
  const auto process = start(0, torchrun(0), {"accept", "../two.toml", "--device", "simulated"});
  const Finished launched = process->wait();
  EXPECT_EQ(launched.exit_code, 2);
  EXPECT_TRUE(contains(launched.err, "one of 2 processes of torchrun")) << launched.err;
}

class RanksUnderAGate : public Ranks {
 protected:
  // Writes a HEAD whose workers are started with one more option.
  void head_with(const std::string& option) const {
    const std::string program = STEPGATE_PROGRAM;
    write("head", "#!/bin/sh\nif [ \"$3\" = worker ]; then " + adding(option) + "fi\nexec " +
                      program + " \"$@\"\n");
    std::filesystem::permissions(place() / "head", std::filesystem::perms::owner_all);
  }
  Finished gate() const {
    return stepgate({"--baselines", STEPGATE_SOURCE_DIR "/tests/baselines", "gate", "--base",
                     STEPGATE_PROGRAM, "--head", "./head", "--device", "simulated:round-numbers",
                     "--seed", "7", "--ranks", "2", "two.toml"});
  }
};

TEST_F(RanksUnderAGate, PassWhereNothingChanged) {
  head_with("");
  const Finished run = gate();
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_TRUE(contains(run.out, "comparison 2 workloads, 0 slower")) << run.out;
  expect_nothing_left_over();
}

// The injected work is in the step of a rank, so each rank process gets the option.
TEST_F(RanksUnderAGate, AreBlockedWhereTheyAreSlower) {
  head_with("--injected device_spin:100");
  const Finished run = gate();
  EXPECT_EQ(run.exit_code, 1) << run.out << run.err;
  EXPECT_TRUE(contains(run.out, "blocks     time") &&
              contains(run.out, "all workloads together are slower than the margin"))
      << run.out;
  expect_nothing_left_over();
}

TEST_F(RanksUnderAGate, ThatDieFailItByName) {
  head_with("--rank-fault 1:run:KILL");
  const Finished run = gate();
  EXPECT_EQ(run.exit_code, 3) << run.out << run.err;
  // Whether rank 0 has answered by then is random.
  EXPECT_TRUE(contains(run.out, "rank 1 (process ") &&
              contains(run.out, "was ended by signal 9 (Killed) instead of answering 'run'"))
      << run.out;
  expect_nothing_left_over();
}

// Returns the numbers of a key in the n-th table of a profile.
std::vector<double> numbers_of(const std::string& profile, const std::string& key, int table) {
  std::size_t at = 0;
  for (int tables = 0; tables <= table; ++tables)
    at = profile.find("[[collectives]]\n", tables == 0 ? 0 : at + 1);
  if (at == std::string::npos) return {};
  at = profile.find(key + " = [", at) + key.size() + 4;
  std::string list = profile.substr(at, profile.find(']', at) - at);
  std::ranges::replace(list, ',', ' ');
  std::istringstream words(list);
  std::vector<double> numbers;
  for (double number = 0; words >> number;) numbers.push_back(number);
  return numbers;
}

// Measures in rank processes, as on GPUs; here the true costs are known.
TEST_F(Ranks, MeasureWhatCollectivesTakeForAProfile) {
  const Finished measured =
      stepgate({"devices", "--measure", "device.toml", "--device", "simulated:nvidia-h200",
                "--seed", "1", "--date", "2026-11-26"});
  EXPECT_EQ(measured.exit_code, 0) << measured.err;
  EXPECT_EQ(measured.err, "");
  const std::string profile = text_of(place() / "device.toml");
  EXPECT_TRUE(contains(profile, "measured = \"2026-11-26\""));
  EXPECT_TRUE(contains(profile, "link = \"NVLink\"")) << profile;
  EXPECT_TRUE(contains(profile, "[[collectives]]\nranks = 2\n")) << profile;
  EXPECT_TRUE(contains(profile, "[[collectives]]\nranks = 4\n"));
  const std::vector<double> bytes = numbers_of(profile, "bytes", 1);
  const std::vector<double> times = numbers_of(profile, "all_reduce_ns", 1);
  ASSERT_EQ(bytes.size(), times.size());
  const std::map<double, double> known{
      {65536, 13e3}, {1048576, 20e3}, {67108864, 330e3}, {1073741824, 4558e3}};
  std::size_t found = 0;
  for (std::size_t index = 0; index < bytes.size(); ++index) {
    const auto expected = known.find(bytes[index]);
    if (expected == known.end()) continue;
    ++found;
    EXPECT_NEAR(times[index], expected->second, 0.15 * expected->second) << bytes[index];
  }
  EXPECT_EQ(found, known.size());
  expect_nothing_left_over();
}

// Stretch factors are not measured.
TEST_F(Ranks, KeepTheStretchesOfAProfileThatIsMeasuredAgain) {
  const auto measure = [this] {
    const Finished measured = stepgate({"devices", "--measure", "device.toml", "--device",
                                        "simulated:nvidia-h200", "--seed", "1"});
    EXPECT_EQ(measured.exit_code, 0) << measured.err;
    return text_of(place() / "device.toml");
  };
  std::string profile = measure();
  EXPECT_FALSE(contains(profile, "kernel_stretch")) << profile;
  const std::string of_two = "[[collectives]]\nranks = 2\n";
  profile.insert(profile.find(of_two) + of_two.size(), "kernel_stretch = 1.25\n");
  write("device.toml", profile);
  const std::string again = measure();
  const std::size_t kept = again.find("kernel_stretch = 1.25\n");
  ASSERT_NE(kept, std::string::npos) << again;
  EXPECT_LT(again.find(of_two), kept);
  EXPECT_LT(kept, again.find("[[collectives]]\nranks = 4\n"));
}

TEST_F(Ranks, MeasureTheProfileOfNothingElse) {
  const Finished other = stepgate({"devices", "--measure", "d.toml", "--device", "reference"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_TRUE(contains(other.err, "nothing measures the profile of 'reference'")) << other.err;
}

}  // namespace
}  // namespace stepgate
