// SPDX-License-Identifier: MIT
// `stepgate duel` and `stepgate worker` from outside: verdicts, wrong calls, and workers that
// stall, die, flood or lie. Whatever a worker does, nothing of it may be left.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "tests/command_line.h"

namespace stepgate {
namespace {

using Json = nlohmann::json;
using std::chrono::seconds;

const std::string python = "python3 ";
const std::string example = python + STEPGATE_SOURCE_DIR "/ci/worker_example.py";

class Duels : public CommandLine {
 protected:
  // One that is good until the request and then plays the trick.
  std::string hostile(const std::string& trick, const std::string& request) const {
    return python + STEPGATE_SOURCE_DIR "/tests/workers/hostile.py " + trick + " " + request + " " +
           ids().string();
  }
  std::filesystem::path ids() const { return place() / "ids"; }

  Finished duel(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "duel");
    return stepgate(arguments);
  }
  Finished commands(const std::string& base, const std::string& head,
                    std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"--command", base, head});
    return duel(more);
  }

  // `stepgate worker` on a simulated device that no measurement changes.
  static std::string simulating(const std::string& more) {
    return std::string(STEPGATE_PROGRAM) +
           " --baselines " STEPGATE_SOURCE_DIR
           "/tests/baselines worker a.toml "
           "--device simulated:round-numbers " +
           more;
  }

  std::vector<int> processes() const {
    std::vector<int> all;
    std::ifstream file(ids());
    for (int process = 0; file >> process;) all.push_back(process);
    return all;
  }
};

// Neither running nor waiting to be; a dead process that nobody has collected yet runs no more.
bool is_alive(int process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string stat;
  std::getline(file, stat);
  const std::size_t state = stat.rfind(") ");
  return state != std::string::npos && stat[state + 2] != 'Z' && stat[state + 2] != 'X';
}

// Gives a kill from outside a moment to reach everybody.
bool all_end(const std::vector<int>& processes, seconds within) {
  const auto deadline = std::chrono::steady_clock::now() + within;
  const auto alive = [&] { return std::any_of(processes.begin(), processes.end(), is_alive); };
  while (alive() && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return !alive();
}

// --- verdicts
// ---------------------------------------------------------------------------------------------------

TEST_F(Duels, AStepgateHoldsAgainstItself) {
  write("a.toml", holding);
  const Finished run = stepgate({"--baselines", STEPGATE_SOURCE_DIR "/tests/baselines", "duel",
                                 STEPGATE_PROGRAM, STEPGATE_PROGRAM, "a.toml", "--device",
                                 "simulated:round-numbers", "--seed", "1", "--json", "duel.json"});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_TRUE(contains(run.out, "on a simulated GPU of round numbers (no measurement)\n"));
  EXPECT_TRUE(contains(run.out, "unit of evidence: launches of fresh processes (")) << run.out;
  EXPECT_TRUE(contains(run.out, "BASE and HEAD run the same program, byte for byte")) << run.out;
  std::ifstream file(place() / "duel.json");
  const Json report = Json::parse(file);
  EXPECT_EQ(report.at("outcome"), "holds");
  EXPECT_EQ(report.at("works").at(0).at("name"), "a/baseline");
  EXPECT_EQ(report.at("works").at(0).at("timed").at("contrasts").size(), report.at("pairs").size());
}

TEST_F(Duels, AnyoneCanRecomputeTheContrastsOfTheReport) {
  write("a.toml", holding);
  ASSERT_EQ(commands(simulating(""), simulating(""), {"--json", "duel.json"}).exit_code, 0);
  std::ifstream file(place() / "duel.json");
  const Json report = Json::parse(file);
  const Json& contrasts = report.at("works").at(0).at("timed").at("contrasts");
  for (std::size_t pair = 0; pair < contrasts.size(); ++pair) {
    const Json& work = report.at("pairs").at(pair).at("works").at(0);
    double sum = 0;
    for (const Json& block : work.at("superblocks")) {
      for (const Json& segment : block) {
        const double step =
            segment.at("elapsed_ns").get<double>() / segment.at("steps").get<double>();
        sum += (segment.at("side") == "head" ? 0.5 : -0.5) * std::log(step);
      }
    }
    EXPECT_NEAR(sum / static_cast<double>(work.at("superblocks").size()),
                contrasts.at(pair).get<double>(), 1e-12);
  }
}

TEST_F(Duels, AnythingPlantedIntoHeadIsRefutedAndIntoBaseHolds) {
  write("a.toml", holding);
  const std::string slow = simulating("--set host.step_us=300");
  const Finished slower = commands(simulating(""), slow);
  EXPECT_EQ(slower.exit_code, 1) << slower.out << slower.err;
  EXPECT_TRUE(contains(slower.out, "refuted         a/fix")) << slower.out;
  EXPECT_EQ(commands(slow, simulating("")).exit_code, 0);
}

TEST_F(Duels, TheExampleIsNotRefutedAgainstItself) {
  // At most one duel in a hundred may be refuted; another machine's noise may leave it undecided.
  const Finished run = commands(example, example, {"--margin", "20%", "--work", "sort*"});
  EXPECT_TRUE(run.exit_code == 0 || run.exit_code == 77) << run.out << run.err;
}

TEST_F(Duels, TheExampleIsRefutedAgainstItselfWithMoreToDo) {
  const Finished run =
      commands(example, example + " --slower 100", {"--margin", "10%", "--work", "hash_blocks"});
  EXPECT_EQ(run.exit_code, 1) << run.out << run.err;
  EXPECT_FALSE(contains(run.out, "sort_numbers")) << run.out;
}

TEST_F(Duels, OnlyWorksThatBothHaveAreComparedAndTheOthersNamed) {
  write("a.toml", holding);
  write("b.toml", holding);
  const std::string both = simulating("b.toml");
  const Finished run = commands(both, simulating(""));
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_TRUE(contains(run.out, "note: only BASE has b/baseline, b/fix: not compared\n"))
      << run.out;
  EXPECT_FALSE(contains(run.out, "holds           b/fix")) << run.out;
}

TEST_F(Duels, IsUndecidedAsThePolicySays) {
  const std::vector<std::string> few{"--pairs", "7"};
  const auto run = commands(hostile("seesaw", "base"), hostile("seesaw", "head"), few);
  EXPECT_EQ(run.exit_code, 77) << run.out << run.err;
  EXPECT_TRUE(contains(run.out, "over 7 pairs of launches; the limit is +1 %")) << run.out;
  EXPECT_TRUE(contains(run.out, "duel: undecided after")) << run.out;
}

// --- wrong calls
// ------------------------------------------------------------------------------------------------

struct WrongDuel {
  const char* name;
  std::vector<std::string> arguments;
  std::string says;
};
void PrintTo(const WrongDuel& wrong, std::ostream* out) {
  *out << wrong.name;
}

class WrongDuels : public Duels, public testing::WithParamInterface<WrongDuel> {};

TEST_P(WrongDuels, EndWithCodeTwoAndOneAnswer) {
  write("a.toml", holding);
  const Finished refusal = duel(GetParam().arguments);
  EXPECT_EQ(refusal.exit_code, 2) << refusal.err;
  EXPECT_EQ(refusal.out, "");
  EXPECT_TRUE(contains(refusal.err, GetParam().says)) << refusal.err;
}

const std::vector<WrongDuel> wrong_duels{
    {"one_side", {STEPGATE_PROGRAM}, "head is required"},
    {"margin_without_percent",
     {"a", "b", "--margin", "one"},
     "--margin 'one' is not from 0.01% to 100%"},
    {"margin_of_nothing", {"a", "b", "--margin", "0%"}, "--margin '0%'"},
    {"margin_of_time", {"a", "b", "--margin", "3 ms"}, "--margin '3 ms'"},
    {"margin_too_large", {"a", "b", "--margin", "300%"}, "--margin '300%'"},
    {"too_few_pairs",
     {"--command", example, example, "--pairs", "6", "--work", "sort_numbers"},
     "6 pairs of launches can never decide 1 work: 6 are needed before one can hold, 7 before one "
     "can be refuted; give --pairs 7 or more\n"},
    {"no_such_work",
     {"--command", example, example, "--work", "sort_number"},
     "no work is named 'sort_number'; did you mean 'sort_numbers'?\n"},
    {"nothing_in_common",
     {"--command", example, python + STEPGATE_SOURCE_DIR "/tests/workers/hostile.py behave"},
     "BASE runs on this machine's CPU and HEAD on a device without a name: not comparable"},
    {"open_quote", {"--command", "sh -c 'x", "b"}, "has an open quote; close it with '\n"},
    {"empty_command", {"--command", " ", "b"}, "a command line is empty"},
    {"scenarios_beside_commands",
     {"--command", "a", "b", "a.toml"},
     "with --command, scenarios and options belong into the command lines"},
    {"no_patience", {"a", "b", "--stall-seconds", "0"}, "above 0, not '0'"},
    {"json_nowhere", {"a", "b", "--json", "a.toml/x"}, "a.toml/x: cannot be written"},
};

INSTANTIATE_TEST_SUITE_P(Calls, WrongDuels, testing::ValuesIn(wrong_duels),
                         [](const auto& wrong) { return wrong.param.name; });

TEST_F(Duels, ABudgetThatTheFirstPairShowsToBeTooSmallIsRefused) {
  const Finished run = commands(example, example, {"--budget", "0.01"});
  EXPECT_EQ(run.exit_code, 2) << run.out;
  EXPECT_EQ(run.err.find("a budget of 10 ms decides nothing: a pair of launches takes "), 0u)
      << run.err;
}

// --- hostile workers
// ----------------------------------------------------------------------------------------------

struct Hostile {
  const char* trick;
  const char* request;
  std::string says;
};
void PrintTo(const Hostile& hostile, std::ostream* out) {
  *out << hostile.trick;
}

class HostileWorkers : public Duels, public testing::WithParamInterface<Hostile> {};

TEST_P(HostileWorkers, EndTheDuelWithCodeThreeOneErrorAndNoProcess) {
  const std::string command = hostile(GetParam().trick, GetParam().request);
  const Finished run =
      commands(hostile("behave", "run"), command, {"--stall-seconds", "1.5", "--pairs", "7"});
  EXPECT_EQ(run.exit_code, 3) << run.out << run.err;
  EXPECT_EQ(run.err.find("a worker failed: HEAD, `" + command.substr(0, 80)), 0u) << run.err;
  EXPECT_TRUE(contains(run.err, GetParam().says)) << run.err;
  EXPECT_EQ(run.err.find_first_of("\x1b\x07"), std::string::npos) << run.err;
  EXPECT_LT(run.err.size(), 4000u);
  ASSERT_GE(processes().size(), 2u);
  for (const int process : processes()) EXPECT_FALSE(is_alive(process)) << process;
}

const std::string hello = R"({"do":"hello","protocol":1})";
const std::vector<Hostile> hostile_workers{
    {"stall", "hello", "did not answer " + hello + " within 1.5 s"},
    {"stall", "run", R"(did not answer {"do":"run","steps":1,"wash_out":1} within 1.5 s)"},
    {"stall", "quit", R"(did not end within 1.5 s of {"do":"quit"})"},
    {"exit", "hello", "ended with exit code 7 instead of answering " + hello},
    {"exit", "load", R"(ended with exit code 7 instead of answering {"do":"load","work":"w"})"},
    {"exit", "quit", R"(ended with exit code 7 when asked to {"do":"quit"})"},
    {"crash", "run", "was ended by signal 11 (Segmentation fault) instead of answering"},
    {"complain", "run", "its last words on standard error:\n  the dog ate the kernel\n"},
    {"flood", "run", "with more than 1 MiB without an end of line"},
    {"flood_lines", "run", "; it wrote nothing to standard error\n"},  // which line is seen first?
    {"flood_errors", "run", "ended with exit code 7"},
    {"close_output", "run", "closed its standard output instead of answering"},
    {"ignore_the_end", "run", "did not answer"},
    {"nest", "run", "did not answer"},
    {"leave_children", "run", "ended with exit code 0 instead of answering"},
    {"not_json", "run", "with `steps: 3`, which is not JSON"},
    {"escape", "run", "with `?[2J?`, which is not JSON"},
    {"binary", "run", "which is not JSON"},
    {"list", "run", "with `[]`, which is not a JSON object"},
    {"deep", "run", "which is not JSON"},
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
    {"same_works", "hello", "has 'works' with \"w\" twice"},
    {"bad_works", "hello", "which is not a text of 1 to 200 printable characters"},
};

INSTANTIATE_TEST_SUITE_P(Tricks, HostileWorkers, testing::ValuesIn(hostile_workers),
                         [](const auto& hostile) {
                           return std::string(hostile.param.trick) + "_at_" + hostile.param.request;
                         });

TEST_F(Duels, SayWhyAProgramCannotBeStarted) {
  write("not_executable", "echo");
  for (const auto& [program, reason] :
       std::vector<std::pair<std::string, std::string>>{{"./none", "No such file or directory"},
                                                        {"./not_executable", "Permission denied"},
                                                        {".", "Permission denied"}}) {
    const Finished run = duel({program, STEPGATE_PROGRAM});
    EXPECT_EQ(run.exit_code, 3);
    EXPECT_TRUE(contains(run.err, "cannot be started: " + reason + "; check its path\n"))
        << run.err;
  }
}

TEST_F(Duels, SayWhatAProgramThatIsNoWorkerSaid) {
  const Finished run = duel({"/bin/ls", STEPGATE_PROGRAM});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_TRUE(contains(run.err, "a worker failed: BASE, `/bin/ls ")) << run.err;
}

TEST_F(Duels, EndWithNothingLeftWhenInterrupted) {
  for (const int signal : {SIGINT, SIGTERM}) {
    std::filesystem::remove(ids());
    const std::string stalls = hostile("nest", "run");
    ChildProcess run(STEPGATE_PROGRAM, {"duel", "--command", stalls, stalls}, place());
    ASSERT_TRUE(run.says("at most", seconds(60)));
    run.send(signal);
    ASSERT_TRUE(run.ends(seconds(10)));
    const Finished finished = run.wait();
    EXPECT_EQ(finished.exit_code, 128 + signal);
    EXPECT_EQ(finished.err, "interrupted: the duel is not decided, nothing was written\n");
    for (const int process : processes()) EXPECT_FALSE(is_alive(process)) << process;
  }
}

TEST_F(Duels, EndWithNothingLeftWhenKilled) {
  // Introductions of both, a pair, and two children of the side that was asked first, one of them
  // in a session of its own; all of those ignore SIGTERM.
  const std::string nests = hostile("nest", "run");
  ChildProcess run(STEPGATE_PROGRAM, {"duel", "--command", nests, nests}, place());
  ASSERT_TRUE(run.says("at most", seconds(60)));
  const auto deadline = std::chrono::steady_clock::now() + seconds(10);
  while (processes().size() < 6 && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ASSERT_EQ(processes().size(), 6u);
  run.send(SIGKILL);
  EXPECT_EQ(run.wait().exit_code, 128 + SIGKILL);
  EXPECT_TRUE(all_end(processes(), seconds(10)));
}

TEST_F(Duels, AWorkerEndsWithItsInput) {
  write("a.toml", holding);
  // The test's standard input is empty.
  EXPECT_EQ(stepgate({"worker", "a.toml", "--device", "simulated"}).exit_code, 0);
}

}  // namespace
}  // namespace stepgate
