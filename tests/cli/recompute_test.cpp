// SPDX-License-Identifier: MIT
// Tests that the JSON of `stepgate run --json` suffices to recompute all decisions: ci/recompute.py
// agrees with simulated suites, exit code included, and detects every changed number.
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "tests/cli/command_line.h"

namespace stepgate {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::ptrdiff_t most_lines = 210;  // so that the script stays readable

// Every way to decide an assertion: counts with sizes, two bounds, medians, totals, levels, and
// traced ones.
const std::string all_ways =
    "claim = \"lines of every kind\"\n"
    "model = { layers = 2, hidden = 64 }\n"
    "measure = { rounds = 12 }\n"
    "transfer = { host = \"pinned\" }\n"
    "[variant.baseline]\n[variant.fix]\n[variant.slow]\nsync = { where = \"op\" }\n"
    "[expect]\n"
    "bytes = \"fix.copy_bytes_per_step == 0.5 * batch_bytes + 0.5 * batch_bytes\"\n"
    "sizes = \"param_bytes >= 2 * fix.copy_bytes_per_step + 1 KiB\"\n"
    "waits = \"fix.host_waits_per_step == 0\"\n"
    "same = \"fix.step_ms_mean ~= 1 * baseline.step_ms_mean within 1e+1 %\"\n"
    "median = \"1.0 * slow.step_ms_p50 <= fix.step_ms_p50\"\n"
    "even = \"fix.samples_per_s >= 1 * baseline.samples_per_s\"\n"
    "longest = \"slow.step_ms_max >= 0.5 * fix.step_ms_max\"\n"
    "seldom = \"fix.slow_step_share <= 0.5\"\n"
    "alone = \"fix.all_reduces_per_step == 0\"\n"
    "level = \"fix.step_ms_mean + 10 * slow.step_ms_mean <= 1 s\"\n"
    "idle = \"fix.gpu_idle <= 99 %\"\n";
// No step is as short as this regime demands, so the assertion is skipped.
const std::string outside_its_regime =
    two_variants("fix.samples_per_s >= 1.5 * baseline.samples_per_s") +
    "[regime]\nshort = \"fix.step_ms_mean <= 1 ns\"\n";

class Recompute : public CommandLine {
 protected:
  void SetUp() override {
    ASSERT_TRUE(std::filesystem::exists(STEPGATE_PYTHON))
        << "no python3 here: install it and configure again, or configure with "
           "-DSTEPGATE_PYTHON_TESTS=OFF";
  }

  Finished recompute(const std::string& file) const {
    return ChildProcess(STEPGATE_PYTHON, {STEPGATE_SOURCE_DIR "/ci/recompute.py", file}, place())
        .wait();
  }

  // Checks that the script agrees with the unchanged file and with how the run ended.
  void expect_agreement(const std::string& file, const Finished& run) const {
    const Finished same = recompute(file);
    EXPECT_EQ(same.exit_code, 0) << same.out << same.err;
    EXPECT_EQ(std::count(same.out.begin(), same.out.end(), '\n'), 1) << same.out;
    EXPECT_TRUE(contains(same.out, "exit code " + std::to_string(run.exit_code))) << same.out;
  }

  // Runs a suite with assertions of every outcome.
  Finished run_mixed() const {
    write("mixed/all_ways.toml", all_ways);
    write("mixed/holding.toml", holding);
    write("mixed/outside.toml", outside_its_regime);
    write("mixed/fails.toml", fails);
    write("mixed/undecided.toml", undecided);
    return simulate({"mixed", "--json", "mixed.json"});
  }

  std::vector<Json> reports(const std::string& file) const {
    std::ifstream stream(place() / file);
    std::vector<Json> all;
    for (std::string line; std::getline(stream, line);) all.push_back(Json::parse(line));
    return all;
  }

  void write_reports(const std::string& file, const std::vector<Json>& all) const {
    std::string text;
    for (const Json& report : all) text += report.dump() + "\n";
    write(file, text);
  }
};

Json& named(Json& items, const std::string& name, const char* key = "name") {
  return *std::find_if(items.begin(), items.end(),
                       [&](const Json& item) { return item.at(key) == name; });
}

Json& scenario(std::vector<Json>& all, const std::string& name) {
  return *std::find_if(all.begin(), all.end(),
                       [&](const Json& one) { return one.value("scenario", "") == name; });
}

Json& line(std::vector<Json>& all, const std::string& of, const std::string& name) {
  return named(scenario(all, of).at("expect"), name);
}

TEST_F(Recompute, IsShortEnoughToBeRead) {
  std::ifstream script(STEPGATE_SOURCE_DIR "/ci/recompute.py");
  EXPECT_LE(std::count(std::istreambuf_iterator<char>(script), {}, '\n'), most_lines);
}

TEST_F(Recompute, AgreesWithTheWholeSuite) {
  const Finished run = simulate({STEPGATE_SOURCE_DIR "/scenarios", "--json", "suite.json"});
  ASSERT_GT(lines_of("suite.json"), 40) << run.err;
  expect_agreement("suite.json", run);
}

// Checks the stored runs of the whole suite on a GPU.
TEST_F(Recompute, AgreesWithTheRunsThatTheRepositoryKeeps) {
  int runs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(STEPGATE_SOURCE_DIR) / "baselines/nvidia-h200/suite")) {
    if (entry.path().extension() != ".json") continue;
    const Finished recomputed = recompute(entry.path().string());
    EXPECT_EQ(recomputed.exit_code, 0) << recomputed.err;
    EXPECT_TRUE(contains(recomputed.out, "86 scenarios: 86 pass")) << recomputed.out;
    ++runs;
  }
  EXPECT_GT(runs, 0);
}

// Tests rates, phases, one kernel and the class of a step, each passing and failing.
TEST_F(Recompute, AgreesOnRatesPhasesKernelsAndClasses) {
  write("metrics.toml",
        "claim = \"lines about a transformer\"\n"
        "model = { kind = \"transformer\", layers = 2, hidden = 64, heads = 4, seq = 64 }\n"
        "batch = { size = 4 }\noptim = { kind = \"adamw\" }\n"
        "measure = { rounds = 12 }\n"
        "[variant.baseline]\n[variant.slow]\nsync = { where = \"op\" }\n"
        "[expect]\n"
        "tokens = \"slow.tokens_per_s <= 0.95 * baseline.tokens_per_s\"\n"
        "rate = \"baseline.tokens_per_s <= 1000\"\n"
        "mfu = \"slow.mfu <= 0.95 * baseline.mfu\"\n"
        "low = \"baseline.mfu >= 90 %\"\n"
        "spins = \"slow.host_cpu_us >= 1.5 * baseline.host_cpu_us\"\n"
        "forward = \"slow.forward_us + slow.backward_us >= 1 us\"\n"
        "kernel = \"slow.kernel_us(matmul) <= 0.5 * baseline.kernel_us(matmul)\"\n"
        "waits = \"slow.bound == host\"\n"
        "computes = \"slow.bound == compute\"\n");
  // A GPU whose peak rate is known.
  const Finished run =
      stepgate({"--baselines", STEPGATE_SOURCE_DIR "/baselines", "run", "metrics.toml", "--json",
                "metrics.json", "--device", "simulated:nvidia-h200", "--seed", "1"});
  std::vector<Json> all = reports("metrics.json");
  const auto outcome = [&](const char* name) { return line(all, "metrics", name).at("outcome"); };
  EXPECT_EQ(outcome("tokens"), "passes") << run.out;
  EXPECT_EQ(outcome("rate"), "fails");
  EXPECT_EQ(outcome("mfu"), "passes");
  EXPECT_EQ(outcome("low"), "fails");
  EXPECT_EQ(outcome("spins"), "passes");
  EXPECT_EQ(outcome("forward"), "passes");
  EXPECT_EQ(outcome("kernel"), "fails");
  EXPECT_EQ(outcome("waits"), "passes");
  EXPECT_EQ(outcome("computes"), "fails");
  expect_agreement("metrics.json", run);
  Json& subject = named(scenario(all, "metrics").at("measurement").at("variants"), "baseline");
  subject.at("model_flops") = 1e6 * subject.at("model_flops").get<double>();
  write_reports("changed.json", all);
  EXPECT_EQ(recompute("changed.json").exit_code, 1) << "an mfu of other FLOPs";
}

TEST_F(Recompute, AgreesOnTheRatesOfSeveralRanksAndOfEach) {
  write("two.toml",
        "claim = \"two ranks\"\n"
        "model = { kind = \"mlp\", layers = 4, hidden = 256 }\n"
        "[variant.baseline]\n[variant.two]\nranks.count = 2\n[expect]\n"
        "all = \"two.samples_per_s >= 1.2 * baseline.samples_per_s\"\n"
        "each = \"two.samples_per_s_per_rank >= 1.2 * baseline.samples_per_s_per_rank\"\n"
        "level = \"two.samples_per_s_per_rank >= 1000\"\n");
  const Finished run =
      stepgate({"--baselines", STEPGATE_SOURCE_DIR "/tests/baselines", "run", "two.toml", "--json",
                "two.json", "--device", "simulated:round-numbers", "--seed", "1"});
  std::vector<Json> all = reports("two.json");
  EXPECT_EQ(line(all, "two", "all").at("outcome"), "passes") << run.out;
  EXPECT_EQ(line(all, "two", "each").at("outcome"), "fails");
  EXPECT_EQ(line(all, "two", "level").at("outcome"), "passes");
  expect_agreement("two.json", run);
  named(scenario(all, "two").at("measurement").at("variants"), "two").at("ranks") = 1;
  write_reports("changed.json", all);
  EXPECT_EQ(recompute("changed.json").exit_code, 1) << "two ranks counted as one";
}

TEST_F(Recompute, AgreesWithEveryOutcomeAndTallies) {
  const Finished run = run_mixed();
  std::vector<Json> all = reports("mixed.json");
  EXPECT_EQ(line(all, "fails", "line").at("outcome"), "fails");
  EXPECT_EQ(line(all, "undecided", "line").at("outcome"), "undecided");
  EXPECT_EQ(line(all, "outside", "line").at("outcome"), "skipped");
  EXPECT_EQ(line(all, "all_ways", "bytes").at("outcome"), "passes");
  EXPECT_EQ(line(all, "all_ways", "same").at("outcome"), "passes");
  EXPECT_EQ(line(all, "all_ways", "median").at("outcome"), "fails");
  EXPECT_EQ(line(all, "all_ways", "level").at("not_randomised").at("contrasts").size(),
            scenario(all, "all_ways").at("measurement").at("rounds").size());
  expect_agreement("mixed.json", run);
  EXPECT_TRUE(contains(recompute("mixed.json").out,
                       "5 scenarios: 2 fail, 1 undecided, 1 skipped, 1 passes"))
      << recompute("mixed.json").out;
}

// Tests a level near its limit with an outlier: program and script allow equally many.
TEST_F(Recompute, AgreesWhereALevelHasOutliers) {
  write("beside.toml",
        "claim = \"a step's time beside its limit\"\n"
        "model = { layers = 2, hidden = 64 }\n"
        "[variant.only]\n[expect]\nlevel = \"only.step_ms_mean <= 53.1 us\"\n");
  int held_with_outliers = 0, open_with_outliers = 0;
  for (int seed = 1; seed <= 20; ++seed) {
    const Finished run = stepgate({"--baselines", STEPGATE_SOURCE_DIR "/tests/baselines", "run",
                                   "beside.toml", "--device", "simulated:round-numbers", "--seed",
                                   std::to_string(seed), "--json", "beside.json"});
    std::vector<Json> all = reports("beside.json");
    const Json& level = line(all, "beside", "level");
    const std::string reason = level.at("reason");
    held_with_outliers += level.at("outcome") == "passes" && contains(reason, "on its other side");
    open_with_outliers += level.at("outcome") == "undecided";
    expect_agreement("beside.json", run);
  }
  EXPECT_GT(held_with_outliers, 0);
  EXPECT_GT(open_with_outliers, 0);
}

// No other error, and no failed device, hides a failed assertion.
TEST_F(Recompute, AgreesWhereADeviceFailsAndWhereNothingIsGated) {
  write("holding.toml", holding);
  write("big.toml",
        "claim = \"too big\"\nmodel = { hidden = 65536, layers = 64 }\n"
        "[variant.only]\n[expect]\nline = \"only.host_waits_per_step == 0\"\n");
  const Finished failed = simulate({"big.toml", "holding.toml", "--json", "failed.json"});
  EXPECT_EQ(failed.exit_code, 3);
  expect_agreement("failed.json", failed);
  EXPECT_TRUE(contains(recompute("failed.json").out, "2 scenarios: 1 device failed, 1 passes"));
  const Finished one = simulate({"big.toml", "--json", "one.json"});
  expect_agreement("one.json", one);
  write("fails.toml", fails);
  const Finished both = simulate({"big.toml", "fails.toml", "--json", "both.json"});
  EXPECT_EQ(both.exit_code, 1);
  expect_agreement("both.json", both);
  if (const Finished none = stepgate({"run", "holding.toml", "--json", "none.json"});
      contains(none.out, "SIMULATED")) {
    EXPECT_EQ(none.exit_code, 4);
    expect_agreement("none.json", none);
    std::vector<Json> gated = reports("none.json");
    for (Json& one : gated) one["run"]["gated"] = true;
    write_reports("gated.json", gated);
    EXPECT_EQ(recompute("gated.json").exit_code, 1) << "nobody asked for a simulation";
  }
}

// The second run continues from the contrasts of the first.
TEST_F(Recompute, AgreesWithOneScenarioAndWithEarlierRuns) {
  write("holding.toml", holding);
  write("undecided.toml", undecided);
  for (const char* file : {"holding.toml", "undecided.toml"}) {
    for (int seed = 1; seed <= 2; ++seed) {
      const Finished run =
          stepgate({"--baselines", STEPGATE_SOURCE_DIR "/tests/baselines", "run", file, "--device",
                    "simulated:round-numbers", "--seed", std::to_string(seed), "--ledger", "ledger",
                    "--json", "one.json"});
      expect_agreement("one.json", run);
    }
  }
  std::vector<Json> all = reports("one.json");
  EXPECT_EQ(line(all, "undecided", "line").at("timed").at("earlier_rounds"), 12);
}

TEST_F(Recompute, FindsWhatSomebodyChanged) {
  run_mixed();
  const std::vector<Json> written = reports("mixed.json");
  struct Fault {
    std::string found;  // the expected place of the difference
    std::function<void(std::vector<Json>&)> plant;
  };
  const auto grows = [](Json& number, double factor) { number = factor * number.get<double>(); };
  const std::vector<Fault> faults = {
      {"fails: expect: line: contrasts 3: ",
       [](std::vector<Json>& all) {
         Json& segment = scenario(all, "fails")["measurement"]["rounds"][2][0];
         for (Json& time : segment["step_times_ns"]) time = time.get<std::int64_t>() + 1;
       }},
      {"fails: expect: line: total_ratio: ",
       [](std::vector<Json>& all) {
         Json& elapsed = scenario(all, "fails")["measurement"]["rounds"][2][0]["elapsed_ns"];
         elapsed = elapsed.get<std::int64_t>() + 10;
       }},
      {"undecided: expect: line: contrasts ",
       [](std::vector<Json>& all) {
         for (Json& segment : scenario(all, "undecided")["measurement"]["rounds"][1])
           segment["slot"] = 1 - segment["slot"].get<int>();
       }},
      {"undecided: expect: line: evidence_against: ",
       [&](std::vector<Json>& all) {
         grows(line(all, "undecided", "line")["timed"]["evidence_against"], 1.000001);
       }},
      {"holding: expect: line: evidence_for: ",
       [&](std::vector<Json>& all) {
         grows(line(all, "holding", "line")["timed"]["evidence_for"], 1.000001);
       }},
      {"undecided: expect: line: total_ratio: ",
       [&](std::vector<Json>& all) {
         grows(line(all, "undecided", "line")["timed"]["total_ratio"], 1.000001);
       }},
      {"fails: expect: line: outcome: passes in the file, fails recomputed",
       [](std::vector<Json>& all) { line(all, "fails", "line")["outcome"] = "passes"; }},
      {"undecided: expect: line: outcome: passes in the file, undecided recomputed",
       [](std::vector<Json>& all) { line(all, "undecided", "line")["outcome"] = "passes"; }},
      {"outside: expect: line: outcome: passes in the file, skipped recomputed",
       [](std::vector<Json>& all) { line(all, "outside", "line")["outcome"] = "passes"; }},
      {"fails: outcome: passes in the file, fails recomputed",
       [](std::vector<Json>& all) { scenario(all, "fails")["outcome"] = "passes"; }},
      {"all_ways: expect: level: contrasts 1: ",
       [](std::vector<Json>& all) {
         line(all, "all_ways", "level")["not_randomised"]["contrasts"][0] = -0.5;
       }},
      {"all_ways: expect: bytes: right: ",
       [&](std::vector<Json>& all) { grows(scenario(all, "all_ways")["batch_bytes"], 2); }},
      {"all_ways: expect: bytes: outcome: passes in the file, fails recomputed",
       [](std::vector<Json>& all) {
         Json& counts = named(scenario(all, "all_ways")["variants"], "fix")["counts"];
         counts["copy_bytes_per_step"] = counts["copy_bytes_per_step"].get<double>() + 4;
       }},
      {"all_ways: expect: bytes: left: ",
       [&](std::vector<Json>& all) { grows(line(all, "all_ways", "bytes")["left"], 2); }},
      {"all_ways: expect: sizes: left: ",
       [&](std::vector<Json>& all) { grows(scenario(all, "all_ways")["param_bytes"], 2); }},
      {"all_ways: expect: idle: contrasts 1: ",
       [](std::vector<Json>& all) {
         scenario(all, "all_ways")["measurement"]["traced_rounds"][0]["fix"]["values"]["gpu_idle"] =
             0.123;
       }},
      {"suite: alpha: 0.05 in the file, 0.01 recomputed",
       [](std::vector<Json>& all) { all.back()["suite"]["alpha"] = 0.05; }},
      {"fails: suite_alpha: ",
       [](std::vector<Json>& all) { scenario(all, "fails")["suite_alpha"] = 0.05; }},
      {"run: gated: False in the file, True recomputed",
       [](std::vector<Json>& all) {
         for (Json& one : all) one["run"]["gated"] = false;
       }},
      {"run: simulated: ",
       [](std::vector<Json>& all) {
         for (Json& one : all) one["run"]["simulated"] = false;
       }},
      {"run: asked_for: ", [](std::vector<Json>& all) { all[1]["run"]["asked_for"] = ""; }},
      {"holding: alpha: ",
       [&](std::vector<Json>& all) { grows(scenario(all, "holding")["alpha"], 2); }},
      {"suite: evidence: ",
       [&](std::vector<Json>& all) { grows(all.back()["suite"]["evidence"], 1.000001); }},
      {"suite: product_evidence: ",
       [&](std::vector<Json>& all) { grows(all.back()["suite"]["product_evidence"], 0.9); }},
      {"suite: fails: ",
       [](std::vector<Json>& all) {
         all.back()["suite"]["fails"] = !all.back()["suite"]["fails"].get<bool>();
       }},
      {"suite: failed_among_others: ",
       [](std::vector<Json>& all) {
         all.back()["suite"]["failed_among_others"].push_back("undecided.line");
       }},
  };
  for (const Fault& fault : faults) {
    SCOPED_TRACE(fault.found);
    std::vector<Json> changed = written;
    fault.plant(changed);
    write_reports("changed.json", changed);
    const Finished different = recompute("changed.json");
    EXPECT_EQ(different.exit_code, 1) << different.out << different.err;
    EXPECT_TRUE(contains("\n" + different.out, "\n" + fault.found)) << different.out;
  }
  // Reading and writing the file alone changes nothing.
  write_reports("changed.json", written);
  EXPECT_EQ(recompute("changed.json").exit_code, 0);
}

TEST_F(Recompute, SaysWhereAFileCannotBeRead) {
  run_mixed();
  const std::vector<Json> written = reports("mixed.json");
  std::vector<Json> lacking = written;
  lacking[1]["measurement"].erase("rounds");
  std::vector<Json> newer = written;
  newer[0]["schema"] = 5;
  write_reports("lacking.json", lacking);
  write_reports("newer.json", newer);
  write_reports("short.json", {written.begin(), written.end() - 1});
  write_reports("first.json", {written.front()});
  write("cut.json", written[0].dump() + "\n" + written[1].dump().substr(0, 1000));
  write("empty.json", "");
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"cut.json", "cut.json:2: not the JSON of a run: JSONDecodeError("},
      {"lacking.json", "lacking.json:2: not the JSON of a run: KeyError('rounds')"},
      {"newer.json", "newer.json:1: not the JSON of a run: ValueError('schema 5, not 4')"},
      {"short.json", "short.json:5: not the JSON of a run: ValueError('it ends before the suite')"},
      {"first.json", "first.json:1: not the JSON of a run: ValueError('it ends before the suite')"},
      {"empty.json", "empty.json:0: not the JSON of a run: "},
      {"none.json", "none.json:0: not the JSON of a run: FileNotFoundError("},
  };
  for (const auto& [file, words] : expected) {
    const Finished unread = recompute(file);
    EXPECT_EQ(unread.exit_code, 2) << file << unread.out;
    EXPECT_EQ(unread.err.find(words), 0u) << unread.err;
    EXPECT_TRUE(contains(unread.err, "write it anew: stepgate run ... --json")) << unread.err;
    EXPECT_EQ(unread.out, "");
  }
}

}  // namespace
}  // namespace stepgate
