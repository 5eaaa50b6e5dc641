// SPDX-License-Identifier: MIT
// `stepgate duel` from outside: verdicts and wrong calls. hostile_workers_test.cpp has the workers
// that do not behave.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/cli/duels.h"

namespace stepgate {
namespace {

using Json = nlohmann::json;

// --- verdicts ---

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
  // The work that was open for longest had a contrast of every pair.
  std::size_t most = 0;
  for (const Json& work : report.at("works"))
    most = std::max(most, work.at("timed").at("contrasts").size());
  EXPECT_EQ(most, report.at("pairs").size());
}

TEST_F(Duels, WriteNothingOverAProgramOrAScenario) {
  write("a.toml", holding);
  std::filesystem::create_symlink(STEPGATE_PROGRAM, place() / "head");
  for (const std::string input : {"a.toml", "head"}) {
    const Finished run =
        stepgate({"--baselines", STEPGATE_SOURCE_DIR "/tests/baselines", "duel", STEPGATE_PROGRAM,
                  "./head", "a.toml", "--device", "simulated:round-numbers", "--json", input});
    EXPECT_EQ(run.exit_code, 2) << run.out;
    EXPECT_TRUE(contains(run.err, "would be written over what is read")) << run.err;
  }
  EXPECT_EQ(text_of(place() / "a.toml"), holding);
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

// --- wrong calls ---

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
     "6 pairs of launches can never decide 1 work: 5 are needed before one can hold, 7 before one "
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

}  // namespace
}  // namespace stepgate
