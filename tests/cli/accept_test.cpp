// SPDX-License-Identifier: MIT
// Tests `stepgate accept` from outside, and `run` against what it stored: what is kept when
// processes store at once or are killed, and machines that became slower.
// tests/scripts/cli/accept.txt tests the rest.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <thread>

#include "base/random.h"
#include "ledger/baseline/baseline_record.h"
#include "tests/cli/command_line.h"

namespace stepgate {
namespace {

using namespace std::chrono_literals;

// Adds profiles of invented machines: one differs slightly in every process, and one differs a lot.
class AcceptVerb : public CommandLine {
 protected:
  AcceptVerb() {
    add_profile("usual", "0.001");
    add_profile("moody", "0.2");
    add_profile("steady", "0");  // equal variants stay undecided
    add_slower("half_as_fast",
               std::regex("((?!spike).*_ns|.*(?:bytes|flops)_per_second) = ([0-9.e+]+)"));
    add_slower("slow_products", std::regex("(tf32_flops_per_second) = ([0-9.e+]+)"));
    write("small.toml", small());
  }

  static std::string small(int kernel_us = 20, const std::string& more = "") {
    return "claim = \"as fast as it was\"\n"
           "model = { kind = \"spin\", kernels = 10, kernel_us = " +
           std::to_string(kernel_us) + " }\n" + more +
           "[variant.fix]\n[expect]\n"
           "no_slide = \"fix.samples_per_s >= 0.97 * stored.fix.samples_per_s\"\n"
           "memory = \"fix.peak_live <= stored.fix.peak_live\"\n";
  }

  static std::vector<std::string> on(const std::string& device, std::vector<std::string> words) {
    words.insert(words.begin(), {"--baselines", "b"});
    words.insert(words.end(), {"--device", "simulated:" + device});
    return words;
  }
  Finished accept(std::vector<std::string> words = {"small.toml"}) const {
    words.insert(words.begin(), "accept");
    return stepgate(on("usual", std::move(words)));
  }
  Finished run(std::vector<std::string> words = {"small.toml"}) const {
    words.insert(words.begin(), {"run", "-v"});
    return stepgate(on("usual", std::move(words)));
  }

  const std::string stored = "b/simulated/gpu-of-round-numbers/small.toml";

  std::string baseline() const {
    std::ostringstream text;
    text << std::ifstream(place() / stored).rdbuf();
    return text.str();
  }
  int stored_runs() const {
    const std::string text = baseline();
    int runs = 0;
    for (auto at = text.find("[[run]]"); at != std::string::npos; at = text.find("[[run]]", at + 1))
      ++runs;
    return runs;
  }
  int files_beside() const {
    const std::filesystem::directory_iterator begin((place() / stored).parent_path());
    return static_cast<int>(std::distance(begin, {}));
  }

 private:
  // Copies the usual profile with twice the times where the key matches.
  void add_slower(const std::string& name, const std::regex& slower) const {
    std::istringstream usual(text_of(place() / "b/usual/device.toml"));
    std::ostringstream text;
    for (std::string line; std::getline(usual, line);) {
      std::smatch found;
      if (!std::regex_match(line, found, slower)) {
        text << line << '\n';
        continue;
      }
      const double factor = found.str(1).ends_with("_per_second") ? 0.5 : 2;
      text << found.str(1) << " = " << std::llround(factor * std::stod(found.str(2))) << '\n';
    }
    std::filesystem::create_directories(place() / "b" / name);
    write("b/" + name + "/device.toml", text.str());
  }

  void add_profile(const std::string& name, const std::string& between_processes) const {
    std::ostringstream text;
    text << std::ifstream(STEPGATE_SOURCE_DIR "/tests/baselines/round-numbers/device.toml").rdbuf();
    std::string profile = text.str();
    const std::string key = "between_processes = ";
    profile.replace(profile.find(key), key.size() + 1, key + between_processes);
    std::filesystem::create_directories(place() / "b" / name);
    write("b/" + name + "/device.toml", profile);
  }
};

TEST_F(AcceptVerb, HasWhatARunWasComparedWithInItsJson) {
  ASSERT_EQ(accept({"small.toml", "--runs", "5"}).exit_code, 0);
  ASSERT_EQ(run({"small.toml", "--json", "report.json"}).exit_code, 0);
  std::ifstream file(place() / "report.json");
  const auto report = nlohmann::json::parse(file);
  const auto& assertion = report["expect"][0]["stored"];
  EXPECT_EQ(assertion["runs"], 5);
  EXPECT_EQ(assertion["stored_contrasts"].size(), 5U);
  EXPECT_EQ(assertion["stored_anchors"].size(), 5U);
  for (const char* value : {"raw", "anchor", "normalised"})
    EXPECT_EQ(assertion[value]["interval"].size(), 2U) << value;
  EXPECT_EQ(report["variants"].size(), 1U);  // anchors are no variants
  EXPECT_EQ(report["measurement"]["variants"][1]["name"], "anchor.launch.1");
}

// GEMMs take a third of the step's time, but no time of its anchor.
const std::string memory_bound =
    "claim = \"as fast as it was\"\n"
    "model = { kind = \"mlp\", layers = 2, hidden = 4096, dtype = \"tf32\" }\n"
    "batch.size = 256\ntransfer.host = \"resident\"\noptim.kind = \"adamw\"\n"
    "[variant.fix]\n[expect]\n"
    "no_slide = \"fix.samples_per_s >= 0.97 * stored.fix.samples_per_s\"\n";

// The assertion does not pass, although the anchor slows down equally, and does not fail either,
// for every value of --undecided.
TEST_F(AcceptVerb, SaysThatTheMachineIsSlowerWhereEverythingTakesTwiceAsLong) {
  write("small.toml", memory_bound);
  ASSERT_EQ(accept({"small.toml", "--runs", "5", "--seed", "1"}).exit_code, 0);
  for (const char* policy : {"skip", "fail", "pass"}) {
    const Finished slow =
        stepgate(on("half_as_fast", {"run", "small.toml", "--undecided", policy, "--seed", "2"}));
    EXPECT_EQ(slow.exit_code, 4) << slow.out << slow.err;
    EXPECT_TRUE(contains(slow.out, "machine slower  no_slide")) << slow.out;
    EXPECT_TRUE(std::regex_search(slow.out, std::regex("  raw 0\\.(49|50|51)x \\("))) << slow.out;
    EXPECT_TRUE(std::regex_search(slow.out, std::regex(", anchor hbm.1 (1.9|2.0)[0-9]x ")))
        << slow.out;
  }
  const Finished kept = stepgate(on("half_as_fast", {"accept", "small.toml", "--seed", "3"}));
  EXPECT_EQ(kept.exit_code, 1) << kept.out;
  EXPECT_TRUE(contains(kept.out, "not accepted: no_slide is machine slower: ")) << kept.out;
  EXPECT_TRUE(contains(kept.out, "; if that is meant, --reset TEXT stores it and says why"));
  EXPECT_EQ(stored_runs(), 5);
}

TEST_F(AcceptVerb, FailsAStepThatIsSlowerBesideAnAnchorThatIsNot) {
  write("small.toml", memory_bound);
  ASSERT_EQ(accept({"small.toml", "--runs", "5", "--seed", "1"}).exit_code, 0);
  const Finished slower = stepgate(on("slow_products", {"run", "small.toml", "--seed", "2"}));
  EXPECT_EQ(slower.exit_code, 1) << slower.out << slower.err;
  EXPECT_TRUE(contains(slower.out, "fails           no_slide")) << slower.out;
  EXPECT_FALSE(contains(slower.out, "this machine is slower")) << slower.out;
}

// Stores a whole folder of shipped scenarios with one command.
TEST_F(AcceptVerb, StoresAFolderWithWhatIsCalibratedShortOfTimeOrDecidedByItsPlans) {
  write("all/calibrated.toml", text_of(STEPGATE_SOURCE_DIR "/scenarios/copy_overlap.toml"));
  write("all/hurried.toml", small(2000, "measure.max_seconds = 0.2\n"));
  write("all/planned.toml",
        "claim = \"it launches\"\ntags = [\"no_gpu\"]\n[variant.fix]\n"
        "[expect]\nline = \"fix.launches_per_step >= 1\"\n");
  const Finished all = accept({"all", "--seed", "1"});
  EXPECT_EQ(all.exit_code, 0) << all.out << all.err;
  EXPECT_TRUE(contains(all.out, "planned: decided by its plans, nothing to store")) << all.out;
  const std::filesystem::path folder = (place() / stored).parent_path();
  for (const char* name : {"calibrated.toml", "hurried.toml"}) {
    const std::string text = text_of(folder / name);
    for (const char* key : {"\ndigest = ", "\ndate = ", "\ncommit = "})
      EXPECT_TRUE(contains(text, key)) << name << text;
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "planned.toml"));
  for (const char* runs : {"1", "2"}) {
    const Finished typed = accept({"all/hurried.toml", "--budget", "0.2", "--runs", runs});
    EXPECT_EQ(typed.exit_code, 1) << "what somebody typed is not stretched";
  }
  // A run that was refused is not hidden by a later one that has no place.
  std::filesystem::create_directories(folder / "no_place.toml");
  write("no_place.toml", small(2000));
  const Finished both =
      accept({"all/hurried.toml", "no_place.toml", "--budget", "0.2", "--runs", "1"});
  EXPECT_EQ(both.exit_code, 1) << both.out << both.err;
  EXPECT_TRUE(contains(both.err, "no_place.toml: cannot be written: Is a directory")) << both.err;
}

TEST_F(AcceptVerb, GoesOnAfterAScenarioThatTheDeviceCannotRun) {
  write("all/a_huge.toml",
        "claim = \"c\"\nmodel = { kind = \"mlp\", hidden = 65536, layers = 64 }\n"
        "[variant.fix]\n[expect]\n"
        "no_slide = \"fix.samples_per_s >= 0.97 * stored.fix.samples_per_s\"\n");
  write("all/small.toml", small(2000));
  const Finished all = accept({"all", "--runs", "2"});
  EXPECT_EQ(all.exit_code, 3) << all.out << all.err;
  EXPECT_TRUE(contains(all.err, "all/a_huge.toml")) << all.err;
  EXPECT_TRUE(contains(all.out, "4 runs asked for: 2 stored, 0 not accepted, 1 failed, 1 not run"))
      << all.out;
}

TEST_F(AcceptVerb, HasTheLooksAtItsRunsKept) {
  ASSERT_EQ(accept({"small.toml", "--runs", "5"}).exit_code, 0);
  for (int look = 1; look <= 2; ++look)
    EXPECT_EQ(run({"small.toml", "--ledger", "l"}).exit_code, 0);
  std::ostringstream text;
  text << std::ifstream(place() / "l/simulated/gpu-of-round-numbers/small.toml").rdbuf();
  const std::string kept = "[run.stored]\n\"no_slide\" = [";
  const auto first = text.str().find(kept);
  EXPECT_NE(first, std::string::npos) << text.str();
  EXPECT_NE(text.str().find(kept, first + 1), std::string::npos) << text.str();
}

// Each run has a subject of its own, as runs of different builds would have; here all have the same
// program.
TEST_F(AcceptVerb, IsNotNeededWhereALedgerHasRunsOfOtherBuilds) {
  const std::string folder = "l/simulated/gpu-of-round-numbers";
  for (int build = 1; build <= 5; ++build) {
    const Finished run = this->run({"small.toml", "--ledger", "l", "--subject",
                                    std::to_string(build), "--seed", std::to_string(build)});
    EXPECT_TRUE(contains(run.out, "no run is stored for this device"))
        << "of one build: " << run.out;
    // Changes the file as if another build had written it.
    Baseline ledger = read_baseline(place() / folder / "small.toml", "small");
    ledger.runs.back().provenance.build = std::to_string(build);
    ASSERT_FALSE(ledger.runs.back().variants.empty());
    write(folder + "/kept" + std::to_string(build), baseline_text(ledger));
    std::filesystem::remove(place() / folder / "small.toml");
  }
  Baseline ledger{.file = "", .scenario = "small", .runs = {}};
  for (int build = 1; build <= 5; ++build) {
    const auto kept = place() / folder / ("kept" + std::to_string(build));
    ledger.runs.push_back(read_baseline(kept, "small").runs.back());
    std::filesystem::remove(kept);
  }
  write(folder + "/small.toml", baseline_text(ledger));
  const Finished same = run({"small.toml", "--ledger", "l", "--seed", "9"});
  EXPECT_EQ(same.exit_code, 0) << same.out << same.err;
  EXPECT_TRUE(contains(same.out,
                       "note: no run is accepted for this device: `stored.` is 5 runs of "
                       "other builds in " +
                           folder + "/small.toml: '5', '4', '3', ...\n"))
      << same.out;
  EXPECT_TRUE(contains(same.out, "against 5 stored runs")) << same.out;
  // The same build runs again; its own earlier run is not used for comparison.
  const Finished again = run({"small.toml", "--ledger", "l", "--seed", "10"});
  EXPECT_TRUE(contains(again.out, "against 5 stored runs")) << again.out;
  const Finished renamed = run({"small.toml", "--ledger", "l", "--seed", "11", "--subject", "x"});
  EXPECT_TRUE(contains(renamed.out, "against 5 stored runs")) << renamed.out;
  // A slower build is detected, and its run is not stored for later comparisons.
  ledger = read_baseline(place() / folder / "small.toml", "small");
  ledger.runs.resize(5);
  for (StoredRun& other : ledger.runs) {
    for (StoredTime& time : other.variants[0].times) {
      for (double& contrast : time.contrasts) contrast -= 0.1;
    }
  }
  write(folder + "/small.toml", baseline_text(ledger));
  const Finished slower = run({"small.toml", "--ledger", "l", "--seed", "12", "--subject", "y"});
  EXPECT_EQ(slower.exit_code, 1) << slower.out;
  ledger = read_baseline(place() / folder / "small.toml", "small");
  EXPECT_EQ(ledger.runs.size(), 6U);
  EXPECT_TRUE(ledger.runs.back().variants.empty());
  // `history` reads the same ledger; without --ledger the same command finds nothing.
  const Finished history = stepgate({"--baselines", "b", "history", "small.toml", "--ledger", "l"});
  EXPECT_TRUE(contains(history.out, "small/fix")) << history.out << history.err;
  EXPECT_TRUE(
      contains(stepgate({"--baselines", "b", "history", "small.toml"}).out, "no run is stored"));
  // Accepted runs take precedence, and the output says so.
  ASSERT_EQ(accept({"small.toml", "--runs", "5", "--seed", "1"}).exit_code, 0);
  const Finished accepted = run({"small.toml", "--ledger", "l", "--seed", "14"});
  EXPECT_TRUE(contains(accepted.out, "`stored.` is what was accepted into b/simulated/"))
      << accepted.out;
}

TEST_F(AcceptVerb, RefusesWhileTheGateFailsAgainstItself) {
  const Finished refused = stepgate(on("moody", {"accept", "small.toml", "--seed", "1"}));
  EXPECT_EQ(refused.exit_code, 1) << refused.err;
  EXPECT_TRUE(contains(refused.out,
                       "small: not accepted: the gate fails against itself: 'fix' takes as long as "
                       "a copy of itself fails ("))
      << refused.out;
  EXPECT_FALSE(exists(stored));
  // After a refused run the machine is checked again; after a stored run it is not.
  const Finished both =
      stepgate(on("moody", {"accept", "small.toml", "--runs", "2", "--seed", "1"}));
  EXPECT_TRUE(contains(both.out, "2 not accepted")) << both.out;
  write("job",
        R"({"baselines":"b","files":["small.toml"],"overrides":[],"tags":[],"excluded_tags":[],)"
        R"("device":"simulated:moody","seed":1,"task":{"accept":{"commit":"","baseline_reset":"",)"
        R"("gate_checked":true,"ranks":null,"stall_seconds":60,"budget_seconds":null}}})");
  const Finished checked =
      ChildProcess("/bin/sh", {"-c", STEPGATE_PROGRAM " serve <job"}, place()).wait();
  EXPECT_EQ(checked.exit_code, 0) << checked.out << checked.err;
}

TEST_F(AcceptVerb, LosesNoRunWhenManyStoreAtOnce) {
  constexpr int processes = 12;
  std::vector<std::unique_ptr<ChildProcess>> children;
  for (int child = 0; child < processes; ++child) {
    // Each child runs in a folder of its own with its own output files; the baseline is shared.
    const std::filesystem::path folder = place() / std::to_string(child);
    std::filesystem::create_directories(folder);
    children.push_back(std::make_unique<ChildProcess>(
        STEPGATE_PROGRAM,
        std::vector<std::string>{"--baselines", "../b", "accept", "../small.toml", "--device",
                                 "simulated:usual"},
        folder));
  }
  for (const auto& child : children) {
    const Finished finished = child->wait();
    EXPECT_EQ(finished.exit_code, 0) << finished.out << finished.err;
  }
  EXPECT_EQ(stored_runs(), processes);
  EXPECT_EQ(files_beside(), 1);
  EXPECT_NE(run().exit_code, 2);
}

TEST_F(AcceptVerb, LosesNoRunWhenItIsKilledAtAnyMoment) {
  constexpr std::uint64_t seed = 20261121;
  Random random(seed);
  int said_stored = 0;
  int killed = 0;
  ASSERT_EQ(accept().exit_code, 0);
  for (int attempt = 0; attempt < 60; ++attempt) {
    const int before = stored_runs();
    ChildProcess child(STEPGATE_PROGRAM, on("usual", {"accept", "small.toml"}), place());
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(40'000)));
    child.send(SIGKILL);
    const Finished finished = child.wait();
    killed += finished.exit_code == 128 + SIGKILL;
    said_stored += contains(finished.out, " stored in ");
    const int after = stored_runs();
    ASSERT_GE(after, before + contains(finished.out, " stored in ")) << "seed " << seed;
    ASSERT_LE(after, before + 1) << "seed " << seed;
  }
  EXPECT_GT(killed, 5);
  EXPECT_GE(stored_runs(), 1 + said_stored);
  EXPECT_EQ(accept().exit_code, 0);  // neither a lock nor a partial file is left
  EXPECT_EQ(files_beside(), 1);
  EXPECT_NE(run().exit_code, 2);
}

TEST_F(AcceptVerb, StoresNothingWhenItIsInterrupted) {
  write("small.toml", endless);
  ChildProcess child(STEPGATE_PROGRAM, on("steady", {"accept", "small.toml", "--seed", "1"}),
                     place());
  std::this_thread::sleep_for(1s);  // long enough to be measuring, even on a busy machine
  child.send(SIGTERM);
  const Finished finished = child.wait();
  EXPECT_EQ(finished.exit_code, 128 + SIGTERM) << finished.out;
  EXPECT_TRUE(contains(finished.err, "interrupted: this run of small was not stored"))
      << finished.err;
  EXPECT_FALSE(exists(stored));
}

TEST_F(AcceptVerb, WritesDownTheCommitOfTheScenariosFolder) {
  const std::string git =
      "cd " + place().string() +
      " && git init -q . && git add small.toml && git -c user.name=a -c "
      "user.email=a@b commit -qm a > /dev/null 2>&1 && git rev-parse HEAD > head";
  if (std::system(git.c_str()) != 0) GTEST_SKIP() << "there is no git here";
  std::ifstream head(place() / "head");
  std::string commit;
  head >> commit;
  ASSERT_EQ(accept().exit_code, 0);
  EXPECT_TRUE(contains(baseline(), "commit = \"" + commit + "\"")) << baseline();
  write("small.toml", small() + "# changed\n");
  ASSERT_EQ(accept().exit_code, 0);
  EXPECT_TRUE(contains(baseline(), "commit = \"" + commit + "-dirty\"")) << baseline();
}

}  // namespace
}  // namespace stepgate
