// SPDX-License-Identifier: MIT
// Tests `stepgate compare` from outside, with results of runs on the simulated device.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

#include "tests/cli/command_line.h"

namespace stepgate {
namespace {

using Json = nlohmann::json;

class CompareVerb : public CommandLine {
 protected:
  // Runs a scenario of two variants into FILE.
  void run(const std::string& file, const std::vector<std::string>& more = {}) const {
    write("a.toml", holding);
    std::vector<std::string> words{"a.toml", "--json", file};
    words.insert(words.end(), more.begin(), more.end());
    const Finished ended = simulate(words);
    ASSERT_LE(ended.exit_code, 1) << ended.err;
  }
  Finished compare(const std::string& first, const std::string& second) const {
    return stepgate({"compare", first, second, "--json", "c.json"});
  }
  Json compared() const { return Json::parse(text_of(place() / "c.json")); }

  // The names of what differs exactly.
  std::vector<std::string> exact() const {
    std::vector<std::string> names;
    const Json all = compared();
    for (const Json& each : all["exact"]) names.push_back(each["what"]);
    return names;
  }

  void edit(const std::string& file, const std::string& from, const std::string& to) const {
    std::string text = text_of(place() / file);
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    write(file, text.replace(at, from.size(), to));
  }
};

TEST_F(CompareVerb, SaysThatARunDiffersFromItselfInNothing) {
  run("a.json");
  const Finished same = compare("a.json", "a.json");
  EXPECT_EQ(same.exit_code, 0) << same.out << same.err;
  EXPECT_TRUE(contains(same.out,
                       "unpaired: the two runs were not interleaved; drift between them "
                       "is not excluded\n"))
      << same.out;
  EXPECT_TRUE(same.out.ends_with("\nnothing exact differs\n")) << same.out;
  const Json times = compared()["times"]["ratios"];
  EXPECT_EQ(times.size(), 2);
  for (const Json& time : times) {
    EXPECT_EQ(time["ratio"], 1);
    EXPECT_LT(time["interval"][0], 1);
    EXPECT_GT(time["interval"][1], 1);
  }
}

TEST_F(CompareVerb, FindsNothingExactBetweenTwoDrawsOfOneStep) {
  write("a.toml", holding);
  for (const char* seed : {"2", "3"}) {
    const Finished run = stepgate({"--baselines", STEPGATE_SOURCE_DIR "/tests/baselines", "run",
                                   "a.toml", "--device", "simulated:round-numbers", "--seed", seed,
                                   "--json", std::string(seed) + ".json"});
    ASSERT_EQ(run.exit_code, 0) << run.err;
  }
  const Finished both = compare("2.json", "3.json");
  EXPECT_EQ(both.exit_code, 0) << both.out;
}

TEST_F(CompareVerb, SaysCountsExactlyAndTimesAsARatioOfBothRuns) {
  run("a.json");
  run("b.json", {"--set", "sync.where=step", "--set", "model.kernel_us=22"});
  const Finished both = compare("a.json", "b.json");
  EXPECT_EQ(both.exit_code, 1) << both.out << both.err;
  const std::vector<std::string> names = exact();
  EXPECT_NE(std::ranges::find(names, "a/fix.host_waits_per_step"), names.end()) << both.out;
  EXPECT_NE(std::ranges::find(names, "a (step)"), names.end()) << both.out;
  const Json times = compared()["times"]["ratios"];
  EXPECT_EQ(times.size(), 2);
  for (const Json& time : times) {
    EXPECT_GT(time["interval"][0], 1.05) << both.out;
    EXPECT_LT(time["interval"][1], 1.25) << both.out;
  }
}

TEST_F(CompareVerb, NamesAChangedCountAndAnAssertionThatIsGone) {
  run("a.json");
  std::filesystem::copy(place() / "a.json", place() / "b.json");
  edit("b.json", "\"launches_per_step\":22.0", "\"launches_per_step\":23.0");
  edit("b.json", "{\"name\":\"line\",", "{\"name\":\"other\",");
  EXPECT_EQ(compare("a.json", "b.json").exit_code, 1);
  EXPECT_EQ(exact(),
            (std::vector<std::string>{"a.line", "a/baseline.launches_per_step", "a.other"}));
}

// The same facts, whichever result is named first. One of no words is none.
TEST_F(CompareVerb, FindsAsMuchTheOtherWayRound) {
  const std::string first = R"({"schema":"stepgate.gate/2","kind":"gate"})"
                            "\n"
                            R"({"kind":"workload","workload":"a/fix","outcome":"passes"})"
                            "\n";
  write("a.json", first);
  write("b.json", first + R"({"kind":"workload","workload":"a/other"})" + "\n");
  EXPECT_EQ(compare("a.json", "b.json").exit_code, 0);
  EXPECT_EQ(compare("b.json", "a.json").exit_code, 0);
}

// Times whose sum overflows have no ratio, as zero has none.
TEST_F(CompareVerb, LeavesOutTimesThatNoStepTakes) {
  run("a.json");
  std::string text = text_of(place() / "a.json");
  for (std::size_t at = 0; (at = text.find("\"elapsed_ns\":", at)) != std::string::npos; ++at)
    text.replace(at, text.find(',', at) - at, "\"elapsed_ns\":1.7e308");
  for (std::size_t at = 0; (at = text.find("\"step_seconds_mean\":", at)) != std::string::npos;
       ++at)
    text.replace(at, text.find(',', at) - at, "\"step_seconds_mean\":1e-300");
  write("b.json", text);
  const Finished both = compare("a.json", "b.json");
  EXPECT_EQ(both.exit_code, 0) << both.out << both.err;
  EXPECT_EQ(compared()["times"]["ratios"].size(), 0U) << both.out;
  EXPECT_EQ(compare("b.json", "b.json").exit_code, 0);
}

TEST_F(CompareVerb, MatchesPointsOfASweepByTheValueOfTheKnob) {
  for (const auto& [file, values] : {std::pair{"a", "[1, 2, 8]"}, std::pair{"b", "[2, 8, 32]"}}) {
    write("swept.toml",
          std::string("claim = \"c\"\nmodel.kind = \"spin\"\n[sweep]\nbatch.size = ") + values +
              "\n[variant.step]\n[expect]\n"
              "no_waits = \"step.host_waits_per_step == 0\"\n");
    ASSERT_EQ(simulate({"swept.toml", "--json", std::string(file) + ".json"}).exit_code, 0);
  }
  // Another version may spell a value otherwise.
  edit("b.json", "\"swept@batch.size=8\"", "\"swept@batch.size=8.0\"");
  const Finished both = compare("a.json", "b.json");
  EXPECT_EQ(both.exit_code, 1) << both.out << both.err;
  EXPECT_TRUE(contains(both.out, "matched by the value of the knob\n")) << both.out;
  EXPECT_EQ(compared()["points"], Json::parse(R"([{"scenario": "swept", "knob": "batch.size",
      "both": [2, 8], "before": [1], "after": [32]}])"));
  std::set<Json> differ;
  const Json all = compared();
  for (const Json& each : all["exact"]) differ.insert(each.at("point"));
  EXPECT_EQ(differ, (std::set<Json>{{{"batch.size", 1}}, {{"batch.size", 32}}}));
  for (const Json& time : all["times"]["ratios"])
    EXPECT_TRUE(contains(time["workload"].get<std::string>(),
                         "=" + time["point"]["batch.size"].dump() + "/"));
  EXPECT_EQ(all["times"]["ratios"].size(), 2U);
  // A result of an earlier version has names alone.
  std::string old = text_of(place() / "a.json");
  for (std::size_t at; (at = old.find(",\"point\":{")) != std::string::npos;)
    old.erase(at, old.find('}', at) - at + 1);
  write("old.json", old);
  EXPECT_EQ(compare("old.json", "a.json").exit_code, 0);
}

TEST_F(CompareVerb, ComparesNoTwoDevices) {
  run("a.json");
  std::filesystem::copy(place() / "a.json", place() / "b.json");
  edit("b.json", "\"driver\":\"1.0\"", "\"driver\":\"2.0\"");
  const Finished both = compare("a.json", "b.json");
  EXPECT_EQ(both.exit_code, 4) << both.out;
  EXPECT_TRUE(both.out.starts_with("devices and versions that differ\n  device driver  1.0  2.0\n"))
      << both.out;
}

TEST_F(CompareVerb, SaysThatTimesWithoutRoundsHaveNoInterval) {
  const EnvironmentVariable none("STEPGATE_JSON_ROUNDS", "none");
  run("a.json");
  const Finished both = compare("a.json", "a.json");
  EXPECT_EQ(both.exit_code, 0) << both.err;
  EXPECT_TRUE(contains(both.out, "without rounds there is no interval")) << both.out;
}

TEST_F(CompareVerb, ReadsResultsOfGatesAndRefusesWhatIsNone) {
  const std::string recorded = STEPGATE_SOURCE_DIR "/tests/stable/0.2.0/";
  const Finished gates = compare(recorded + "gate.json", recorded + "gate.json");
  EXPECT_EQ(gates.exit_code, 0) << gates.err;
  EXPECT_TRUE(contains(gates.out, "time of HEAD over BASE")) << gates.out;
  EXPECT_EQ(compare(recorded + "run.json", recorded + "gate.json").exit_code, 2);
  write("empty.json", "");
  write("other.json", "{\"schema\": \"stepgate.history/2\"}\n");
  write("deep.json", "{\"schema\": 4, \"run\": {}, \"a\": " + std::string(100'000, '[') + "\n");
  write("half.json", "{\"schema\": 4, \"run\": {}, \"scenario\": \"a\"");
  for (const char* file :
       {"empty.json", "other.json", "deep.json", "half.json", "none.json", "."}) {
    const Finished refused = compare(recorded + "run.json", file);
    EXPECT_EQ(refused.exit_code, 2) << file << refused.out;
    EXPECT_TRUE(contains(refused.err, "is no result of a run or a gate")) << file << refused.err;
  }
}

}  // namespace
}  // namespace stepgate
