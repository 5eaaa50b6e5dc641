// SPDX-License-Identifier: MIT
// Tests `stepgate run` from outside: its JSON file, a machine without a GPU, and the state after an
// interruption. tests/scripts/cli/run.txt tests exit codes and printed output.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/command_line.h"

namespace stepgate {
namespace {

using Json = nlohmann::json;
using RunVerb = CommandLine;

Json parsed(const std::filesystem::path& file) {
  std::ifstream stream(file);
  return Json::parse(stream);
}

std::vector<Json> lines(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::vector<Json> all;
  for (std::string line; std::getline(stream, line);) all.push_back(Json::parse(line));
  return all;
}

TEST_F(RunVerb, SaysInOneSentenceThatAStepDoesNotFitAndKeepsWhatWasDecided) {
  write("a.toml", holding);
  write("big.toml",
        "claim = \"too big\"\nmodel = { hidden = 65536, layers = 64 }\n"
        "[variant.only]\n[expect]\nline = \"only.host_waits_per_step == 0\"\n");
  write("c.toml", undecided);
  const Finished run = simulate({"a.toml", "big.toml", "c.toml", "--json", "report.json"});
  EXPECT_EQ(run.exit_code, 3);
  for (const char* words :
       {"a: passes", "big: the device failed: variant 'only' needs ", " of device memory",
        "c: undecided", "3 scenarios, 1 device failed (big), "})
    EXPECT_TRUE(contains(run.out, words)) << words << '\n' << run.out;
  EXPECT_EQ(without_clock(run.err), "");
  const std::vector<Json> reports = lines(place() / "report.json");
  ASSERT_EQ(reports.size(), 4U);  // the last one is the suite
  EXPECT_TRUE(reports[0].at("failed").is_null());
  EXPECT_TRUE(reports[1].at("failed").get<std::string>().starts_with("variant 'only' needs "));
  EXPECT_EQ(reports[1].at("outcome"), "undecided");
  EXPECT_EQ(reports[2].at("outcome"), "undecided");
  EXPECT_EQ(reports[3].at("suite").at("simulated"), true);
  // Exit codes have an order: a failed assertion is reported, whatever else went wrong.
  write("failed.toml", fails);
  EXPECT_EQ(simulate({"big.toml", "failed.toml"}).exit_code, 1);
}

std::string widest_line(const std::string& text) {
  std::istringstream lines(text);
  std::string widest;
  for (std::string line; std::getline(lines, line);) {
    const bool is_one_word = line.find(' ', line.find_first_not_of(' ')) == std::string::npos;
    if (line.size() > widest.size() && !is_one_word) widest = line;
  }
  return widest;
}

// The suite has scenarios of two to eight variants.
TEST_F(RunVerb, FitsATerminalOf80Columns) {
  const auto widest_of = [&](const std::string& environment) {
    const Finished run =
        ChildProcess(
            "/usr/bin/env",
            {environment, STEPGATE_PROGRAM, "--baselines", STEPGATE_SOURCE_DIR "/baselines", "run",
             STEPGATE_SOURCE_DIR "/scenarios", "--device", "simulated", "--seed", "1", "--verbose"},
            place())
            .wait();
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return widest_line(run.out + run.err);
  };
  const std::string fitted = widest_of("COLUMNS=80");
  EXPECT_LE(fitted.size(), 80U) << fitted;
  EXPECT_GT(fitted.size(), 70U) << fitted;
  EXPECT_GT(widest_of("NO_COLOR=1").size(), 100U) << "what is no terminal is not fitted";
}

TEST_F(RunVerb, FitsATerminalOf80ColumnsAsDoTheVerbsThatRunNothing) {
  const std::vector<std::vector<std::string>> verbs{
      {"list"}, {"plan"}, {"plan", "--memory"}, {"history"}};
  for (const std::vector<std::string>& verb : verbs) {
    std::vector<std::string> words{"COLUMNS=80", STEPGATE_PROGRAM, "--baselines",
                                   STEPGATE_SOURCE_DIR "/baselines"};
    words.insert(words.end(), verb.begin(), verb.end());
    for (const auto& file : std::filesystem::directory_iterator(STEPGATE_SOURCE_DIR "/scenarios")) {
      const bool needs_a_device = file.path().stem() == "capped_share" && verb.front() == "plan";
      if (file.path().extension() == ".toml" && !needs_a_device)
        words.push_back(file.path().string());
    }
    const auto widest_of = [&](const std::string& environment) {
      words.front() = environment;
      const Finished shown = ChildProcess("/usr/bin/env", words, place()).wait();
      EXPECT_FALSE(shown.out.empty()) << shown.err;
      return widest_line(shown.out);
    };
    const std::string fitted = widest_of("COLUMNS=80");
    EXPECT_LE(fitted.size(), 80U) << fitted;
    EXPECT_GT(widest_of("NO_COLOR=1").size(), 80U) << verb.back() << ": nothing had to be fitted";
  }
}

// The name makes the table of times wider than 80 columns.
TEST_F(RunVerb, FitsATerminalOf80ColumnsWhereTwoResultsAreCompared) {
  write("a_scenario_with_a_name_of_forty_letters.toml",
        "claim = \"one\"\nmodel = { kind = \"spin\", kernels = 10 }\n[variant." +
            std::string(30, 'v') + "]\n[expect]\nnone = \"" + std::string(30, 'v') +
            ".step_ms_mean <= 1 s\"\n");
  for (const std::string kernels : {"10", "20"}) {
    const Finished run =
        stepgate({"--baselines", STEPGATE_SOURCE_DIR "/baselines", "run",
                  "a_scenario_with_a_name_of_forty_letters.toml", "--device", "simulated", "--seed",
                  "1", "--json", kernels + ".json", "--set", "model.kernels=" + kernels});
    ASSERT_EQ(run.exit_code, 0) << run.err;
  }
  const auto compared = [&](const std::string& environment) {
    return ChildProcess("/usr/bin/env",
                        {environment, STEPGATE_PROGRAM, "compare", "10.json", "20.json"}, place())
        .wait()
        .out;
  };
  const std::string fitted = compared("COLUMNS=80");
  EXPECT_LE(widest_line(fitted).size(), 80U) << fitted;
  EXPECT_TRUE(contains(fitted, "launches_per_step")) << fitted;
  std::istringstream lines(compared("NO_COLOR=1"));
  std::string table;
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with(']')) table = line;
  }
  EXPECT_GT(table.size(), 80U) << "nothing of the table had to be fitted";
}

#ifndef STEPGATE_WITH_CUDA
TEST_F(RunVerb, SaysThatNothingIsMeasuredWhereThereIsNoGpu) {
  write("holding.toml", holding);
  const Finished run = stepgate({"run", "holding.toml", "--json", "report.json"});
  EXPECT_EQ(run.exit_code, 4);
  EXPECT_EQ(run.out.find("no GPU (this build has no CUDA device): simulating nvidia-h200, nothing"),
            0u)
      << run.out;
  EXPECT_TRUE(contains(run.out, "\nSIMULATED holding: passes after ")) << run.out;
  EXPECT_TRUE(
      run.out.ends_with("\nSIMULATED 1 scenario, 1 passes; not gated: nothing was measured\n"))
      << run.out;
  const Json info = parsed(place() / "report.json").at("run");
  EXPECT_EQ(info.at("simulated"), true);
  EXPECT_EQ(info.at("gated"), false);
  // A policy for undecided assertions gates nothing, but a failed assertion is still reported.
  EXPECT_EQ(stepgate({"run", "holding.toml", "--undecided", "pass"}).exit_code, 4);
  write("failed.toml", fails);
  EXPECT_EQ(stepgate({"run", "holding.toml", "failed.toml"}).exit_code, 1);
}

TEST_F(RunVerb, DoesNotEvenSimulateInCiUnlessAskedTo) {
  write("holding.toml", holding);
  write("planned.toml",
        "claim = \"by its plan\"\ntags = [\"no_gpu\"]\n[variant.fix]\n"
        "[expect]\nline = \"fix.host_waits_per_step == 0\"\n");
  for (const char* value : {"true", "1"}) {
    const EnvironmentVariable ci("CI", value);
    const std::vector<std::vector<std::string>> calls{
        {"run", "holding.toml"},
        {"run", "holding.toml", "planned.toml"},
        {"gate", "--base", STEPGATE_PROGRAM, "--head", STEPGATE_PROGRAM, "holding.toml"},
        {"accept", "holding.toml"},
        {"gate", "--self-test", "holding.toml"}};
    for (const std::vector<std::string>& call : calls) {
      const Finished refused = stepgate(call);
      EXPECT_EQ(refused.exit_code, 4) << call.front();
      EXPECT_EQ(refused.out, "") << call.front();
      EXPECT_EQ(refused.err.find("not gated: there is no GPU (this build has no CUDA device), "),
                0U)
          << refused.err;
      EXPECT_TRUE(refused.err.ends_with(", or say --device simulated\n")) << refused.err;
      EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
    }
    EXPECT_EQ(simulate({"holding.toml"}).exit_code, 0);
    EXPECT_EQ(stepgate({"run", "planned.toml"}).exit_code, 0);  // uses no device
  }
  for (const char* value : {"", "0", "false"}) {
    const EnvironmentVariable ci("CI", value);
    EXPECT_TRUE(contains(stepgate({"run", "holding.toml"}).out, "SIMULATED")) << value;
  }
}

TEST_F(RunVerb, TellsAGpuThatIsHiddenOrAskedForFromAMachineWithoutOne) {
  write("holding.toml", holding);
  const Finished asked = stepgate({"run", "holding.toml", "--device", "cuda"});
  EXPECT_EQ(asked.exit_code, 3);
  EXPECT_EQ(asked.out, "");
  EXPECT_EQ(asked.err,
            "the device failed: this build has no CUDA device; build with the preset 'cuda', or "
            "say --device simulated\n");
  const EnvironmentVariable hidden("CUDA_VISIBLE_DEVICES", "");
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--device", "cuda"}}) {
    std::vector<std::string> call{"run", "holding.toml"};
    call.insert(call.end(), more.begin(), more.end());
    const Finished refused = stepgate(call);
    EXPECT_EQ(refused.exit_code, 3);
    EXPECT_EQ(refused.out, "");
    EXPECT_EQ(refused.err,
              "the device failed: CUDA_VISIBLE_DEVICES is empty, which hides every GPU; unset "
              "CUDA_VISIBLE_DEVICES, or say --device simulated\n");
  }
  EXPECT_EQ(simulate({"holding.toml"}).exit_code, 0);
}

TEST_F(RunVerb, TellsWhatTheSystemRefusesAndThatNoDeviceFailed) {
  write("holding.toml", holding);
  const Finished refused =
      ChildProcess("/bin/sh",
                   {"-c", "ulimit -n 12; exec " STEPGATE_PROGRAM
                          " run holding.toml --device simulated --baselines " STEPGATE_SOURCE_DIR
                          "/baselines"},
                   place())
          .wait();
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_EQ(refused.err,
            "the system refused: copy a descriptor: Too many open files; look at its limits, such "
            "as `ulimit -a` and `df`\n");
}

TEST_F(RunVerb, StoresNothingThatIsSimulatedUnasked) {
  write("holding.toml", holding);
  const Finished refused = stepgate({"--baselines", "b", "accept", "holding.toml"});
  EXPECT_EQ(refused.exit_code, 4);
  EXPECT_TRUE(contains(refused.err, "nothing simulated is stored unasked")) << refused.err;
  EXPECT_FALSE(exists("b"));
}

TEST_F(RunVerb, GatesNoWorkersThatSimulateUnasked) {
  write("holding.toml", holding);
  const std::string worker = std::string(STEPGATE_PROGRAM) + " worker holding.toml";
  const auto gate = [&](const std::string& command) {
    return stepgate({"gate", "--base-command", command, "--head-command", command, "--only", "time",
                     "--seed", "1"});
  };
  const Finished unasked = gate(worker);
  EXPECT_EQ(unasked.exit_code, 4) << unasked.out << unasked.err;
  EXPECT_TRUE(contains(unasked.out, "\nSIMULATED, nothing was measured: NOT GATED: "))
      << unasked.out;
  const Finished asked = gate(worker + " --device simulated:nvidia-h200 --seed 5");
  EXPECT_EQ(asked.exit_code, 0) << asked.out << asked.err;
}
#endif

// Every part takes some time, and no time is counted twice.
TEST_F(RunVerb, SaysWhereItsWallTimeWent) {
  write("a.toml", holding);
  write("c.toml", calibrated);
  const Finished run = simulate({"a.toml", "c.toml", "--json", "report.json"});
  EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
  EXPECT_TRUE(contains(run.err, " s on the clock: planning 0.")) << run.err;
  const std::vector<Json> reports = lines(place() / "report.json");
  ASSERT_EQ(reports.size(), 3U);
  const Json& whole = reports[2];
  std::int64_t sum = 0;
  for (const auto& [part, time] : whole.at("wall_times").items()) {
    const auto nanoseconds = time.get<std::int64_t>();
    sum += nanoseconds;
    // A simulated device has no records to collect.
    EXPECT_TRUE(nanoseconds > 0 || (nanoseconds == 0 && part == "trace_records_ns")) << part;
    const bool of_the_run = part == "planning_ns" || part == "opening_ns";
    std::int64_t of_scenarios = 0;
    for (std::size_t scenario = 0; scenario < 2; ++scenario)
      of_scenarios += reports[scenario].at("wall_times").at(part).get<std::int64_t>();
    EXPECT_EQ(of_scenarios, of_the_run ? 0 : nanoseconds) << part;
  }
  EXPECT_LE(sum, whole.at("wall_ns").get<std::int64_t>());
}

TEST_F(RunVerb, WritesWhatARunMeasuredAndDecidedAsJson) {
  write("failed.toml", fails);
  EXPECT_EQ(simulate({"failed.toml", "--json", "out/report.json"}).exit_code, 1);
  const Json report = parsed(place() / "out" / "report.json");
  EXPECT_EQ(report.at("scenario"), "failed");
  EXPECT_EQ(report.at("outcome"), "fails");
  EXPECT_EQ(report.at("device").at("kind"), "simulated");
  EXPECT_EQ(report.at("expect").size(), 1u);
  EXPECT_EQ(report.at("expect")[0].at("timed").at("contrasts").size(),
            report.at("measurement").at("rounds").size());
}

TEST_F(RunVerb, DecidesTheSameAgainFromTheSeedInItsReport) {
  write("a.toml", holding);
  ASSERT_EQ(stepgate({"run", "a.toml", "--device", "simulated", "--json", "first"}).exit_code, 0);
  const Json first = parsed(place() / "first");
  const std::string seed = "0x" + first.at("run").at("seed").get<std::string>();
  SCOPED_TRACE("the seed was " + seed);
  ASSERT_EQ(stepgate({"run", "a.toml", "--device", "simulated", "--json", "again", "--seed", seed})
                .exit_code,
            0);
  const Json again = parsed(place() / "again");
  EXPECT_EQ(first.at("expect"), again.at("expect"));
  EXPECT_EQ(first.at("measurement").at("rounds"), again.at("measurement").at("rounds"));
}

TEST_F(RunVerb, EndsWhenInterruptedAndKeepsWhatWasDecided) {
  for (const int signal : {SIGINT, SIGTERM}) {
    write("a.toml", holding);
    write("b.toml", endless);
    write("report.json", "of yesterday");
    ChildProcess run(STEPGATE_PROGRAM, simulating({"a.toml", "b.toml", "--json", "report.json"}),
                     place());
    // The first verdict is printed as soon as it is reached; signals are handled by then.
    ASSERT_TRUE(run.says("a: passes", std::chrono::seconds(60)));
    run.send(signal);
    const Finished finished = run.wait();
    EXPECT_EQ(finished.exit_code, 128 + signal);
    for (const char* outcome : {"b: passes", "b: fails", "b: undecided"}) {
      EXPECT_FALSE(contains(finished.out, outcome)) << finished.out;
    }
    EXPECT_EQ(finished.err, "interrupted: 'b' is not decided; written: report.json\n");
    EXPECT_EQ(lines_of("report.json"), 1);
    EXPECT_EQ(parsed(place() / "report.json").at("scenario"), "a");
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(place()), {}), 3);
  }
}

// The reference device computes for minutes here without checking for signals.
TEST_F(RunVerb, EndsAtOnceWhenInterruptedTwice) {
  write("a.toml", holding);
  write("b.toml",
        "claim = \"long\"\nmodel = { layers = 32, hidden = 1024 }\nbatch.size = 1024\n"
        "[variant.only]\n[expect]\nline = \"only.host_waits_per_step == 0\"\n");
  ChildProcess run(STEPGATE_PROGRAM, {"run", "a.toml", "b.toml", "--device", "reference"}, place());
  ASSERT_TRUE(run.says("a: undecided", std::chrono::seconds(60)));
  // Two signals in quick succession may arrive as one.
  int sent = 0;
  while (!run.ends(std::chrono::milliseconds(50)) && sent < 100) {
    run.send(SIGINT);
    ++sent;
  }
  EXPECT_GE(sent, 2);
  EXPECT_LT(sent, 100);
  EXPECT_EQ(run.wait().exit_code, 128 + SIGINT);
}

}  // namespace
}  // namespace stepgate
