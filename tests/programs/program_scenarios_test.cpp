// SPDX-License-Identifier: MIT
// `stepgate run` on scenarios of programs, whose CUDA and PyTorch are faked: counts are known by
// construction, and steps take as long as they are told to.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/command_line.h"
#include "tests/cli/validate_json.h"

namespace stepgate {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

class ProgramScenarios : public CommandLine {
 protected:
  // Variants of the fake program, one line each: name and further words.
  void write_counted(const std::string& variants, const std::string& expect) const {
    write("counted.toml", "claim = \"counts are known\"\n[program]\ncommand = [\"" FAKE_PROGRAM
                          "\", \"40\", \"launch\"]\n" +
                              variants + "[expect]\n" + expect);
  }
  Finished run(const Words& more) const {
    const EnvironmentVariable cupti("STEPGATE_CUPTI", FAKE_CUDA);
    Words words{"run"};
    words.insert(words.end(), more.begin(), more.end());
    return stepgate(words);
  }
#ifdef STEPGATE_PYTHON
  Finished recompute(const std::string& file) const {
    return ChildProcess(STEPGATE_PYTHON, {STEPGATE_SOURCE_DIR "/ci/recompute.py", file}, place())
        .wait();
  }
  // Checks that ci/recompute.py agrees with the run, and not with another count of a rank.
  void expect_recomputed(const std::string& file, const Finished& run) const {
    const Finished same = recompute(file);
    EXPECT_EQ(same.exit_code, 0) << same.out << same.err;
    EXPECT_NE(same.out.find("exit code " + std::to_string(run.exit_code)), std::string::npos);
    Json other = result(file);
    other["program"][1]["counts"]["waits"] = 0.3;
    write("other.json", other.dump() + "\n");
    EXPECT_EQ(recompute("other.json").exit_code, 1);
  }
#endif
  Json result(const std::string& file) const {
    std::ifstream lines(place() / file);
    std::string line;
    std::getline(lines, line);
    return Json::parse(line);
  }
};

const std::string two_counted =
    "[variant.every_step]\nprogram.arguments = [\"wait\"]\n"
    "[variant.every_10]\nprogram.arguments = [\"wait@10\"]\n";

TEST_F(ProgramScenarios, CountsOfVariantsDecideWithoutAPlan) {
  write_counted(two_counted,
                "waits = \"every_10.host_waits_per_step <= 0.1\"\n"
                "fewer = \"every_10.host_waits_per_step < every_step.host_waits_per_step\"\n"
                "launches = \"every_10.launches_per_step == every_step.launches_per_step\"\n");
  const Finished passing = run({"counted.toml", "--json", "r.json", "-v"});
  EXPECT_EQ(passing.exit_code, 0) << passing.out << passing.err;
  EXPECT_EQ(passing.out.find("peak memory"), std::string::npos) << passing.out;
  // Steps of every variant are looked at, and not those of the first alone.
  EXPECT_NE(passing.out.find("not every step is alike: every_10: waits 0; 1 in steps 20, 30"),
            std::string::npos)
      << passing.out;
  const Json line = result("r.json");
  ASSERT_EQ(line["program"].size(), 2U);
  EXPECT_EQ(line["program"][0]["variant"], "every_step");
  EXPECT_EQ(line["program"][0]["counts"]["waits"], 1);
  EXPECT_EQ(line["program"][1]["counts"]["waits"], 0.1);
  // People see what is started before it starts.
  EXPECT_NE(passing.err.find("counted: " FAKE_PROGRAM " 40 launch wait@10"), std::string::npos)
      << passing.err;
}

TEST_F(ProgramScenarios, ACountThatIsTooLargeFailsInEveryReport) {
  write_counted(two_counted, "waits = \"every_step.host_waits_per_step <= 0.5\"\n");
  const Finished failing =
      run({"counted.toml", "--junit", "j.xml", "--summary", "s.md", "--report", "p.html"});
  EXPECT_EQ(failing.exit_code, 1) << failing.out << failing.err;
  const std::string reason = "1; the limit is 0.5: cudaStreamSynchronize";
  EXPECT_NE(failing.out.find(reason), std::string::npos) << failing.out;
  EXPECT_NE(text_of(place() / "j.xml").find(reason), std::string::npos);
  EXPECT_NE(text_of(place() / "p.html").find("the limit is 0.5"), std::string::npos);
  EXPECT_NE(text_of(place() / "s.md").find("the limit is 0.5"), std::string::npos);
}

TEST_F(ProgramScenarios, AProgramThatFailsIsNoEvidence) {
  struct Wrong {
    std::string arguments;
    std::string reason;
  };
  for (const Wrong& wrong :
       {Wrong{"\"end=fails\"", "every_10: '" FAKE_PROGRAM " 40 launch end=fails' ended with"},
        Wrong{"\"end=kill\"", "was ended by signal 9"}}) {
    write_counted(
        "[variant.every_step]\n[variant.every_10]\nprogram = { skip_steps = 1000, "
        "arguments = [" +
            wrong.arguments + "] }\n",
        "waits = \"every_10.host_waits_per_step <= 0.1\"\n");
    const Finished failing = run({"counted.toml", "--json", "r.json", "--report", "r.html"});
    EXPECT_EQ(failing.exit_code, 3) << failing.out << failing.err;
    EXPECT_NE(failing.out.find("program failed"), std::string::npos) << failing.out;
    EXPECT_NE(failing.out.find(wrong.reason), std::string::npos) << failing.out;
#ifdef STEPGATE_PYTHON
    EXPECT_EQ(recompute("r.json").out,
              "1 scenario: 1 program failed; exit code 3 unless --undecided says otherwise\n");
#endif
    EXPECT_NE(text_of(place() / "r.html").find("The program failed"), std::string::npos);
    EXPECT_EQ(text_of(place() / "r.html").find("The device failed"), std::string::npos);
  }
  // The reason names a key of the scenario, and no option that `run` has not.
  write_counted("[variant.every_step]\n[variant.every_10]\nprogram = { skip_steps = 1000 }\n",
                "waits = \"every_10.host_waits_per_step <= 0.1\"\n");
  const Finished short_run = run({"counted.toml"});
  EXPECT_NE(short_run.out.find("or say program.skip_steps and program.steps"), std::string::npos)
      << short_run.out;
  // A variant that was never started is not said to be without CUDA.
  write_counted(
      "[variant.every_step]\nprogram = { skip_steps = 1000, arguments = [\"end=fails\"] }\n"
      "[variant.every_10]\n",
      "waits = \"every_10.host_waits_per_step <= 0.1\"\n");
  const Finished first = run({"counted.toml", "--junit", "j.xml"});
  EXPECT_EQ(first.exit_code, 3) << first.out << first.err;
  EXPECT_NE(first.out.find("nothing was counted of every_10: it was not started, since another"),
            std::string::npos)
      << first.out;
  EXPECT_EQ(text_of(place() / "j.xml")
                .find("<testsuite name=\"counted\" tests=\"1\" failures=\"0\" "
                      "errors=\"1\" skipped=\"0\" time=\"0.000\""),
            std::string::npos)
      << "starts take time";
}

TEST_F(ProgramScenarios, AProgramWithoutCudaFailsAndOneThatCannotStartIsAWrongRequest) {
  write("none.toml",
        "claim = \"no CUDA\"\n[variant.a]\nprogram.command = [\"true\"]\n"
        "[expect]\nwaits = \"a.host_waits_per_step == 0\"\n");
  const Finished without = run({"none.toml"});
  EXPECT_EQ(without.exit_code, 3) << without.out;
  EXPECT_NE(without.out.find("a: 'true': no process used CUDA"), std::string::npos) << without.out;
  const Finished missing = run({"none.toml", "--set", "program.command=[\"./not_there\"]"});
  EXPECT_EQ(missing.exit_code, 2) << missing.out;
  EXPECT_NE(missing.err.find("'./not_there' cannot be started"), std::string::npos) << missing.err;
  const Finished nowhere = run({"none.toml", "--set", "program.cwd=not_there"});
  EXPECT_EQ(nowhere.exit_code, 2) << nowhere.out;
  EXPECT_NE(nowhere.err.find("check its path, and the folder 'not_there'"), std::string::npos)
      << nowhere.err;
}

// A launcher that starts its ranks in the given order, of which rank 1 alone waits in every step.
const std::string rank_1_waits = "for rank in $0; do RANK=$rank WORLD_SIZE=2 " FAKE_PROGRAM
                                 " 40 launch wait@$(( rank ? 1 : 10 )) & done; wait";

TEST_F(ProgramScenarios, OfRanksTheWorstDecidesAndIsComparedWithItsNamesake) {
  write("ranks.toml", "claim = \"rank 1 waits\"\n[program]\ncommand = [\"sh\", \"-c\", \"" +
                          rank_1_waits +
                          "\"]\n"
                          "[variant.a]\nprogram.arguments = [\"0 1\"]\n"
                          "[variant.b]\nprogram.arguments = [\"1 0\"]\n"
                          "[variant.one]\nprogram.command = [\"" FAKE_PROGRAM
                          "\", \"40\", \"launch\"]\nprogram.arguments = [\"wait@10\"]\n[expect]\n"
                          "few = \"a.host_waits_per_step <= 0.5\"\n"
                          "same = \"a.host_waits_per_step == b.host_waits_per_step\"\n"
                          "fewer = \"a.host_waits_per_step <= one.host_waits_per_step\"\n"
                          "both_too_many = \"a.host_waits_per_step <= 0.05\"\n"
                          "nearly = \"a.host_waits_per_step <= 1.5\"\n");
  const Finished failing = run({"ranks.toml", "--json", "r.json"});
  EXPECT_EQ(failing.exit_code, 1) << failing.out;
  // A variant has a column, and not each of five processes.
  EXPECT_NE(failing.out.find("  a         b  one  lines\n"), std::string::npos) << failing.out;
  EXPECT_NE(failing.out.find("\n  waits               0.1 to 1  0.1 to 1  0.1  cuda"),
            std::string::npos)
      << failing.out;
  const Json line = result("r.json");
  EXPECT_EQ(line["expect"][0]["reason"], "1; the limit is 0.5 (rank 1): cudaStreamSynchronize");
  EXPECT_EQ(line["expect"][1]["outcome"], "passes") << failing.out;
  EXPECT_EQ(line["expect"][1]["reason"], "0.1; it must be 0.1 (rank 0)") << failing.out;
  EXPECT_EQ(line["expect"][2]["outcome"], "fails") << failing.out;
  EXPECT_EQ(line["expect"][3]["left"], 1) << "the rank that is further from the limit";
  EXPECT_EQ(line["expect"][4]["reason"], "1; the limit is 1.5 (rank 1)");
#ifdef STEPGATE_PYTHON
  expect_recomputed("r.json", failing);
#endif
}

TEST_F(ProgramScenarios, SecretsOfSettingsAreMaskedWhereTheyAreRefused) {
  write_counted(two_counted, "waits = \"every_10.host_waits_per_step <= 0.1\"\n");
  const Finished refused = run({"counted.toml", "--junit", "j.xml", "--set",
                                "program.env={API_TOKEN=\"unspeakable\", STEPGATE_X=\"1\"}"});
  EXPECT_EQ(refused.exit_code, 2) << refused.out;
  EXPECT_NE(refused.err.find("--set program.env={API_TOKEN=***"), std::string::npos) << refused.err;
  EXPECT_EQ((refused.err + text_of(place() / "j.xml")).find("unspeakable"), std::string::npos);
}

TEST_F(ProgramScenarios, ALedgerKeepsNothingAndSaysSo) {
  write_counted(two_counted, "waits = \"every_10.host_waits_per_step <= 0.1\"\n");
  const Finished passing = run({"counted.toml", "-v", "--ledger", "kept", "--subject", "s"});
  EXPECT_EQ(passing.exit_code, 0) << passing.out << passing.err;
  EXPECT_NE(passing.out.find("note: a ledger keeps no runs of programs"), std::string::npos)
      << passing.out;
}

TEST_F(ProgramScenarios, ACountThatIsMissingIsUndecidedAndNeverZero) {
  const std::string pageable = "waits = \"a.pageable_copies_per_step == 0\"\n";
  write_counted("[variant.a]\nprogram.arguments = [\"copy.unknown\"]\n", pageable);
  const Finished unknown = run({"counted.toml"});
  EXPECT_EQ(unknown.exit_code, 77) << unknown.out;
  write_counted("[variant.a]\nprogram = { step_range = \"other\", timeout_s = 60 }\n", pageable);
  const Finished stepless = run({"counted.toml"});
  EXPECT_EQ(stepless.exit_code, 77) << stepless.out;
  EXPECT_NE(stepless.out.find("nothing was counted of a"), std::string::npos) << stepless.out;
}

TEST_F(ProgramScenarios, VerbsThatNeedAPlanRefuseThemAndOthersStartNothing) {
  write("none.toml",
        "claim = \"starts nothing\"\n[variant.a]\n[variant.b]\n"
        "[program]\ncommand = [\"touch\", \"started\"]\n"
        "[expect]\nwaits = \"a.host_waits_per_step == 0\"\n");
  for (const std::string verb : {"plan", "mutate", "accept"}) {
    const Finished refused = stepgate({verb, "none.toml"});
    EXPECT_EQ(refused.exit_code, 2) << verb << refused.out;
    EXPECT_NE(refused.err.find("'none' runs a program, of which there is no plan"),
              std::string::npos)
        << verb << refused.err;
  }
  const Finished gated = stepgate({"gate", "none.toml", "--base", STEPGATE_PROGRAM, "--head",
                                   STEPGATE_PROGRAM, "--only", "counts"});
  EXPECT_EQ(gated.exit_code, 2) << gated.out;
  EXPECT_NE(gated.err.find("compare two checkouts of it"), std::string::npos) << gated.err;
  EXPECT_EQ(stepgate({"check", "none.toml"}).exit_code, 0);
  const Finished strict = stepgate({"check", "--strict", "none.toml"});
  EXPECT_EQ(strict.exit_code, 2);
  EXPECT_NE(strict.err.find("variant 'b' is the same step as 'a'"), std::string::npos)
      << strict.err;
  EXPECT_EQ(stepgate({"list", "none.toml"}).exit_code, 0);
  const Finished simulated = stepgate({"run", "none.toml", "--device", "simulated"});
  EXPECT_EQ(simulated.exit_code, 77) << simulated.out;
  EXPECT_FALSE(std::filesystem::exists(place() / "started"));
}

TEST_F(ProgramScenarios, StandBesideScenariosOfSteps) {
  write_counted(two_counted, "waits = \"every_10.host_waits_per_step <= 0.1\"\n");
  write("steps.toml", holding);
  const EnvironmentVariable cupti("STEPGATE_CUPTI", FAKE_CUDA);
  // A simulated device is the one of the steps; programs would need the GPU.
  const Finished both = stepgate(
      {"run", "counted.toml", "steps.toml", "--device", "simulated", "--report", "p.html"});
  EXPECT_EQ(both.exit_code, 77) << both.out << both.err;
  EXPECT_NE(both.out.find("1 skipped (counted)"), std::string::npos) << both.out;
}

#ifdef STEPGATE_PYTHON
class HeldScenarios : public ProgramScenarios {
 protected:
  // Steps of so many milliseconds, with a wait in each.
  void write_timed(const std::string& a, const std::string& b, const std::string& expect) const {
    write("timed.toml", "claim = \"times are known\"\n[program]\ncommand = [\"" STEPGATE_PYTHON
                        "\", \"" STEPGATE_SOURCE_DIR "/tests/programs/fake_train.py\", \"" FAKE_CUDA
                        "\"]\nenv = { PYTHONPATH = \"" STEPGATE_SOURCE_DIR
                        "/tests/programs/fake_torch\" }\nsteps = 5\nskip_steps = 2\n"
                        "[variant.a]\nprogram.arguments = [\"" +
                            a + "\", \"1\", \"100000\"]\n[variant.b]\nprogram.arguments = [\"" + b +
                            "\", \"1\", \"100000\"]\n[measure]\nmax_seconds = 40\n[expect]\n" +
                            expect);
  }
};

TEST_F(HeldScenarios, ASlowerProgramFailsAndCountsAreKnownBesideTimes) {
  write_timed("4", "8",
              "waits = \"b.host_waits_per_step == 1\"\n"
              "memory = \"b.peak_live == 123 B\"\n"
              "slower = \"a.steps_per_s >= 1.1 * b.steps_per_s\"\n"
              "as_fast = \"b.step_ms_mean <= 1.1 * a.step_ms_mean\"\n");
  const Finished failing = run({"timed.toml", "--json", "r.json", "-v"});
  EXPECT_EQ(failing.exit_code, 1) << failing.out << failing.err;
  const Json line = result("r.json");
  EXPECT_EQ(line["expect"][0]["outcome"], "passes") << failing.out;
  EXPECT_EQ(line["expect"][1]["outcome"], "passes") << failing.out;
  EXPECT_EQ(line["expect"][2]["outcome"], "passes") << failing.out;
  EXPECT_EQ(line["expect"][3]["outcome"], "fails") << failing.out;
  std::map<std::string, std::int64_t> last;  // scored step of a variant, counted from its start
  for (const Json& round : line["measurement"]["rounds"]) {
    for (const Json& segment : round) {
      std::int64_t& of_variant = last[segment["variant"]];
      of_variant = std::max(of_variant, segment["first_step"].get<std::int64_t>() +
                                            segment["steps"].get<std::int64_t>());
    }
  }
  EXPECT_NE(
      failing.out.find(", or happens after step " + std::to_string(std::min(last["a"], last["b"])) +
                       " of a launch, may not have shown"),
      std::string::npos)
      << failing.out;
  expect_recomputed("r.json", failing);
  const Finished valid =
      ChildProcess(STEPGATE_PYTHON,
                   {"-c", validate_json, STEPGATE_SOURCE_DIR "/docs/json_schema.json", "r.json"},
                   place())
          .wait();
  EXPECT_EQ(valid.exit_code, 0) << valid.out << valid.err;
}

// A loader that filled its queue while its program was held would hide how slow it is.
TEST_F(HeldScenarios, ASlowLoaderIsNotHiddenByItsQueue) {
  write("loads.py",
        "import queue, sys, threading, time\nfrom torch.optim.optimizer import AdamW\n"
        "from torch.tensors import launch\nbatches = queue.Queue(8)\n\n\ndef load():\n"
        "    while True:\n        time.sleep(float(sys.argv[1]))\n        batches.put(1)\n\n\n"
        "threading.Thread(target=load, daemon=True).start()\noptimizer = AdamW()\nwhile True:\n"
        "    batches.get()\n    launch()\n    time.sleep(0.005)\n    optimizer.step()\n");
  write("loads.toml",
        "claim = \"a loader is fast enough\"\n[program]\ncommand = [\"" STEPGATE_PYTHON
        "\", \"loads.py\"]\nenv = { FAKE_CUDA = \"" FAKE_CUDA
        "\", PYTHONPATH = \"" STEPGATE_SOURCE_DIR
        "/tests/programs/fake_torch\" }\nsteps = 5\n[variant.a]\nprogram.arguments = "
        "[\"0.003\"]\n[variant.b]\nprogram.arguments = [\"0.012\"]\n[measure]\n"
        "max_seconds = 40\n[expect]\nas_fast = \"b.step_ms_mean <= 1.1 * a.step_ms_mean\"\n");
  const Finished slower = run({"loads.toml"});
  EXPECT_EQ(slower.exit_code, 1) << slower.out << slower.err;
}

TEST_F(HeldScenarios, ProgramsWithoutPyTorchNameTheirStepsThemselves) {
  const std::string command = "[\"" STEPGATE_PYTHON "\", \"" STEPGATE_SOURCE_DIR
                              "/tests/programs/fake_steps.py\", \"" FAKE_CUDA "\"]";
  write("own.toml", "claim = \"a step is a call\"\n[program]\ncommand = " + command +
                        "\nenv = { PYTHONPATH = \"" STEPGATE_SOURCE_DIR
                        "/python\" }\nsteps = 5\nskip_steps = 2\n"
                        "[variant.a]\nprogram.arguments = [\"2\", \"100000\"]\n"
                        "[variant.b]\nprogram.arguments = [\"4\", \"100000\"]\n"
                        "[measure]\nmax_seconds = 40\n[expect]\n"
                        "launches = \"b.launches_per_step == 1\"\n"
                        "slower = \"a.steps_per_s >= 1.5 * b.steps_per_s\"\n");
  const Finished passing = run({"own.toml", "-v"});
  EXPECT_EQ(passing.exit_code, 0) << passing.out << passing.err;
}

// Rank 0 is within the regime, and rank 1 is not.
TEST_F(HeldScenarios, TimesAreSkippedWhereARankIsOutsideTheRegime) {
  const std::string ranks =
      "for rank in 0 1; do RANK=$rank WORLD_SIZE=2 " STEPGATE_PYTHON " " STEPGATE_SOURCE_DIR
      "/tests/programs/fake_train.py " FAKE_CUDA " $0 $(( rank ? 1 : 10 )) 1000000 & done; wait";
  write("regime.toml", "claim = \"rank 1 waits\"\n[program]\ncommand = [\"sh\", \"-c\", \"" +
                           ranks +
                           "\"]\nenv = { PYTHONPATH = \"" STEPGATE_SOURCE_DIR
                           "/tests/programs/fake_torch\" }\nsteps = 10\nskip_steps = 2\n"
                           "[variant.a]\nprogram.arguments = [\"2\"]\n"
                           "[variant.b]\nprogram.arguments = [\"8\"]\n"
                           "[measure]\nmax_seconds = 20\n[regime]\n"
                           "few = \"a.host_waits_per_step <= 0.5\"\n[expect]\n"
                           "slower = \"b.steps_per_s >= a.steps_per_s\"\n");
  const Finished skipped = run({"regime.toml", "--json", "r.json"});
  EXPECT_EQ(skipped.exit_code, 77) << skipped.out << skipped.err;
  const Json line = result("r.json");
  EXPECT_EQ(line["regime"][0]["outcome"], "fails") << skipped.out;
  EXPECT_EQ(line["expect"][0]["outcome"], "skipped") << skipped.out;
  expect_recomputed("r.json", skipped);
}

TEST_F(HeldScenarios, ATimeThatCannotBeMeasuredIsAFailureOfTheProgram) {
  write_timed("1", "1", "as_fast = \"b.step_ms_mean <= 1.1 * a.step_ms_mean\"\n");
  const Finished failing =
      run({"timed.toml", "--set",
           "program.arguments=[\"1\", \"1\", \"20\"]"});  // it ends while it is held
  EXPECT_EQ(failing.exit_code, 3) << failing.out << failing.err;
  EXPECT_NE(failing.out.find("let it run more steps"), std::string::npos) << failing.out;
  EXPECT_NE(failing.out.find("the program failed: a: '"), std::string::npos) << failing.out;
}
#endif

}  // namespace
}  // namespace stepgate
