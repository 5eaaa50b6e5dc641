// SPDX-License-Identifier: MIT
// Tests `stepgate history` from outside. Stored runs with an added drift are reported as wandering
// and raise an alarm by the fifteenth run; runs of unchanged code do neither. Unreadable and
// incomparable runs are reported. `accept` makes the runs on a simulated device whose processes
// differ. Only dates, commits and drift are added, with the library's own reader and writer.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <regex>

#include "ledger/baseline/baseline_record.h"
#include "tests/cli/command_line.h"
#include "tests/cli/validate_json.h"

namespace stepgate {
namespace {

using Json = nlohmann::json;

const std::string small =
    "claim = \"as fast as it was\"\n"
    "model = { kind = \"spin\", kernels = 10, kernel_us = 20 }\n"
    "transfer.host = \"resident\"\n"
    "[variant.fix]\n[expect]\n"
    "no_slide = \"fix.samples_per_s >= 0.97 * stored.fix.samples_per_s\"\n";
const std::string stored = "b/simulated/gpu-of-round-numbers/small.toml";

std::string monday(std::size_t week) {
  using namespace std::chrono;
  const year_month_day day(sys_days(year(2026) / 1 / 5) + days(7 * week));
  return fmt::format("{:04}-{:02}-{:02}T10:00:00Z", static_cast<int>(day.year()),
                     static_cast<unsigned>(day.month()), static_cast<unsigned>(day.day()));
}

class HistoryVerb : public CommandLine {
 protected:
  HistoryVerb() {
    std::string profile = text_of(STEPGATE_SOURCE_DIR "/tests/baselines/round-numbers/device.toml");
    const std::string key = "between_processes = ";
    profile.replace(profile.find(key), key.size() + 1, key + "0.0025");
    write("b/usual/device.toml", profile);
    write("small.toml", small);
  }

  // Accepts this number of runs, all with the current date.
  void accept(int runs) const {
    const Finished accepted =
        stepgate({"--baselines", "b", "accept", "small.toml", "--runs", std::to_string(runs),
                  "--device", "simulated:usual", "--seed", "1", "--commit", "0123abc"});
    ASSERT_EQ(accepted.exit_code, 0) << accepted.out << accepted.err;
  }

  Baseline baseline() const { return read_baseline(place() / stored, "small"); }
  void store(const Baseline& baseline) const { write(stored, baseline_text(baseline)); }

  // Spreads the runs over weeks, each slower than the one before by `a_week`.
  Baseline spread_over_weeks(double a_week) const {
    Baseline spread = baseline();
    for (std::size_t run = 0; run < spread.runs.size(); ++run) {
      spread.runs[run].provenance.date = monday(run);
      spread.runs[run].provenance.commit = fmt::format("c{}", run + 1);
      for (StoredTime& time : spread.runs[run].variants[0].times) {
        for (double& contrast : time.contrasts) contrast += a_week * static_cast<double>(run);
      }
    }
    store(spread);
    return spread;
  }

  Finished history(std::vector<std::string> words = {"small.toml"}) const {
    words.insert(words.begin(), {"--baselines", "b", "history"});
    return stepgate(words);
  }

  std::vector<Json> lines_in(const std::string& file) const {
    std::ifstream text(place() / file);
    std::vector<Json> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(Json::parse(line));
    return lines;
  }
};

TEST_F(HistoryVerb, IsOnThePageOfARunThatComparesWithStoredRuns) {
  accept(16);
  spread_over_weeks(0.003);
  const Finished run = stepgate({"--baselines", "b", "run", "small.toml", "--device",
                                 "simulated:usual", "--seed", "3", "--report", "r.html"});
  const std::string page = text_of(place() / "r.html");
  EXPECT_TRUE(contains(page, "Stored runs of fix")) << run.out << run.err;
  EXPECT_TRUE(contains(page, "changed over the weeks: drifts")) << run.out;
}

TEST_F(HistoryVerb, AlarmsAtADriftOfThreeTenthsOfAPercentAWeekAndSaysBeforeThatItRises) {
  accept(16);
  spread_over_weeks(0.003);
  const Finished all = history({"small.toml", "--json", "h.json"});
  EXPECT_EQ(all.exit_code, 1) << all.out << all.err;
  EXPECT_TRUE(std::regex_search(
      all.out,
      std::regex(R"(^small/fix on a simulated GPU of round numbers: 16 runs since )"
                 R"(2026-01-05, \+0\.\d\d % a week \[\+0\.\d\d, \+0\.\d\d\]; ALARM at run )"
                 R"(1\d, 2026-0[34]-\d\d \(commit c1 -> c1\d\)\n)")))
      << all.out;
  EXPECT_TRUE(contains(all.out, "1 watched of 1 variant, 1 drifts; DRIFT: ")) << all.out;
  const Json line = lines_in("h.json").front();
  EXPECT_EQ(line["outcome"], "drifts");
  EXPECT_LE(line["alarm"]["unit"], 14);
  EXPECT_EQ(lines_in("h.json").back()["exit_code"], 1);
  Baseline before = baseline();
  before.runs.resize(line["alarm"]["unit"].get<std::size_t>() - 1);
  store(before);
  const Finished early = history();
  EXPECT_EQ(early.exit_code, 4) << early.out;
  EXPECT_TRUE(contains(early.out, "; it wanders, no further than a season or ")) << early.out;
}

TEST_F(HistoryVerb, DoesNotAlarmAtUnchangedCode) {
  accept(24);
  spread_over_weeks(0);
  const Finished run = history();
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_TRUE(contains(run.out, "; no drift is shown\n")) << run.out;
  EXPECT_TRUE(contains(run.out, "STEADY")) << run.out;
}

TEST_F(HistoryVerb, BeginsAnewInAnotherEnvironment) {
  accept(14);
  Baseline updated = spread_over_weeks(0.03);
  for (std::size_t run = 7; run < 14; ++run) updated.runs[run].environment.driver = "2.0";
  store(updated);
  const Finished run = history();
  EXPECT_EQ(run.exit_code, 1) << "of the new period alone\n" << run.out;
  EXPECT_TRUE(contains(run.out, ": 7 runs since 2026-02-23")) << run.out;
  EXPECT_TRUE(contains(run.out, "  not compared: 7 runs\n")) << run.out;
  EXPECT_TRUE(contains(
      run.out, "  a period of 7 runs: the driver branch is '2', the stored runs have '1'\n"))
      << run.out;
  updated.runs.pop_back();
  updated.runs.pop_back();
  store(updated);
  EXPECT_EQ(history().exit_code, 4) << "five runs of it say nothing yet";
}

TEST_F(HistoryVerb, IsNotGatedWithoutRunsOrWithFewOrOfOneDay) {
  const Finished none = history();
  EXPECT_EQ(none.exit_code, 4) << none.out << none.err;
  EXPECT_TRUE(contains(none.out, "small/fix: no run is stored; `stepgate accept` stores one\n"));
  EXPECT_TRUE(contains(none.out, "0 watched of 1 variant, 0 drift; NOT GATED: ")) << none.out;
  accept(8);
  const Finished of_one_day = history();
  EXPECT_EQ(of_one_day.exit_code, 4) << of_one_day.out;
  EXPECT_TRUE(contains(of_one_day.out, "; not gated: a drift takes 6 runs over at least 1 week"))
      << of_one_day.out;
}

TEST_F(HistoryVerb, RefusesWhatWasEditedWithItsPlace) {
  accept(7);
  spread_over_weeks(0);
  const std::string text = text_of(place() / stored);
  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string edited = text;
    edited.replace(edited.find(from), from.size(), to);
    write(stored, edited);
    const Finished run = history();
    EXPECT_EQ(run.exit_code, 2) << run.out;
    EXPECT_TRUE(run.err.starts_with(stored + ":")) << run.err;
    return run.err;
  };
  Baseline undated = baseline();
  EXPECT_TRUE(contains(refused("step_us = 2", "step_us = 1"), "its digest does not fit"));
  EXPECT_TRUE(contains(refused("commit = \"c3\"", "comit = \"c3\""), "'comit'"));
  undated.runs[2].provenance.date = "last week";
  store(undated);
  const Finished run = history();
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_TRUE(contains(run.err, stored + ": a run has the date 'last week'")) << run.err;
}

TEST_F(HistoryVerb, RefusesAWrongRequest) {
  for (const std::string option : {"--json", "--plot"}) {
    const Finished over = history({"small.toml", option, "./small.toml"});
    EXPECT_EQ(over.exit_code, 2) << over.out;
    EXPECT_TRUE(contains(over.err, "would be written over what is read")) << over.err;
    EXPECT_EQ(text_of(place() / "small.toml"), small);
  }
  EXPECT_EQ(history({"smal.toml"}).exit_code, 2);
  EXPECT_EQ(history({"small.toml", "--plot"}).exit_code, 2);
  const Finished nowhere = stepgate({"--baselines", "nowhere", "history", "small.toml"});
  EXPECT_EQ(nowhere.exit_code, 2);
  EXPECT_TRUE(contains(nowhere.err, "there is no folder of stored runs 'nowhere'")) << nowhere.err;
  write("planned.toml", "tags = [\"no_gpu\"]\n" + two_variants("fix.launches_per_step <= 100"));
  EXPECT_EQ(history({"planned.toml"}).exit_code, 2);
}

TEST_F(HistoryVerb, DrawsAFileOrAFolder) {
  accept(7);
  spread_over_weeks(0.03);
  EXPECT_EQ(history({"small.toml", "--plot", "p.svg"}).exit_code, 1);
  EXPECT_TRUE(contains(text_of(place() / "p.svg"), "class=\"history-alarm\""));
  EXPECT_EQ(history({"small.toml", "--plot", "plots"}).exit_code, 1);
  EXPECT_EQ(history({"small.toml", "--json", "/dev/full"}).exit_code, 1)
      << "an alarm is not hidden";
  EXPECT_EQ(text_of(place() / "plots/gpu-of-round-numbers/small.fix.svg"),
            text_of(place() / "p.svg"));
  write("b/other/small.toml", text_of(place() / stored));
  const Finished two = history({"small.toml", "--plot", "two.svg"});
  EXPECT_EQ(two.exit_code, 2) << two.out;
  EXPECT_TRUE(contains(two.err, "is one file, and there are 2 variants to draw")) << two.err;
  EXPECT_FALSE(exists("two.svg"));
}

TEST_F(HistoryVerb, TakesTheFolderOfTheEnvironment) {
  accept(7);
  spread_over_weeks(0);
  const EnvironmentVariable elsewhere("STEPGATE_BASELINES", "b");
  EXPECT_EQ(stepgate({"history", "small.toml"}).exit_code, 0);
}

#ifdef STEPGATE_PYTHON
TEST_F(HistoryVerb, WritesTheJsonThatItsSchemaDescribes) {
  accept(16);
  write("validate.py", validate_json);
  const auto validated = [&](const std::string& file) {
    return ChildProcess(STEPGATE_PYTHON,
                        {"validate.py", STEPGATE_SOURCE_DIR "/docs/json_schema.json", file},
                        place())
        .wait();
  };
  history({"small.toml", "--json", "few.json"});
  spread_over_weeks(0.003);
  history({"small.toml", "--json", "drift.json"});
  Baseline stepped = spread_over_weeks(-0.003);  // undoes the drift
  for (std::size_t run = 6; run < 12; ++run) {
    for (double& contrast : stepped.runs[run].variants[0].times[0].contrasts) contrast += 0.05;
  }
  store(stepped);
  history({"small.toml", "--json", "step.json"});
  EXPECT_FALSE(lines_in("step.json").front()["changes"].empty());
  for (const char* file : {"few.json", "drift.json", "step.json"}) {
    ASSERT_EQ(lines_of(file), 2) << file;
    const Finished found = validated(file);
    EXPECT_EQ(found.exit_code, 0) << file << found.out << found.err;
  }
  Json changed = lines_in("drift.json").front();
  changed["normalised"].erase("interval");
  write("changed.json", changed.dump() + "\n");
  EXPECT_EQ(validated("changed.json").exit_code, 1) << "a schema that refuses nothing says nothing";
}
#endif

}  // namespace
}  // namespace stepgate
