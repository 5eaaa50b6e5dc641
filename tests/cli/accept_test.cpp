// SPDX-License-Identifier: MIT
// `stepgate accept` from outside, and `run` against what it stored: what is refused, what is kept
// when processes store at once or are killed, and what a baseline decides.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <thread>

#include "support/random.h"
#include "tests/cli/command_line.h"

namespace stepgate {
namespace {

using namespace std::chrono_literals;

// Nobody's machine, a little different in every process; and one that is very different.
class AcceptVerb : public CommandLine {
 protected:
  AcceptVerb() {
    add_profile("usual", "0.001");
    add_profile("moody", "0.2");
    add_profile("steady", "0");  // two variants that are equal stay undecided
    write("b/updated/device.toml",
          std::regex_replace(text_of(place() / "b/usual/device.toml"),
                             std::regex("driver = \"1.0\""), "driver = \"2.0\""));
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
  // Times take twice as long where the key matches.
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

TEST_F(AcceptVerb, StoresARunAndSaysWhere) {
  const Finished accepted = accept({"small.toml", "--commit", "0123abc"});
  EXPECT_EQ(accepted.exit_code, 0) << accepted.err;
  EXPECT_TRUE(contains(accepted.out,
                       "small on a simulated GPU of round numbers (no measurement): run 1 stored "
                       "in " +
                           stored))
      << accepted.out;
  EXPECT_TRUE(contains(accepted.out, " of launch.1")) << accepted.out;
  EXPECT_EQ(stored_runs(), 1);
  EXPECT_TRUE(contains(baseline(), "\ncommit = \"0123abc\"\n")) << baseline();
}

TEST_F(AcceptVerb, LeavesASentenceUndecidedAfterOneRunAndDecidesItAfterFive) {
  const Finished none = run();
  EXPECT_EQ(none.exit_code, 4);
  EXPECT_TRUE(contains(none.out, "no run is stored for this device; `stepgate accept small.toml`"));
  ASSERT_EQ(accept().exit_code, 0);
  const Finished one = run();
  EXPECT_EQ(one.exit_code, 77);
  EXPECT_TRUE(contains(one.out, "; the limit is 0.97x; fewer than 3 do not say")) << one.out;
  const Finished four_more = accept({"small.toml", "--runs", "4"});
  EXPECT_EQ(four_more.exit_code, 0) << four_more.err;
  EXPECT_EQ(stored_runs(), 5);
  const Finished five = run({"small.toml", "--json", "report.json"});
  EXPECT_EQ(five.exit_code, 0) << five.out;
  EXPECT_TRUE(contains(five.out, "against 5 stored runs, which differ by 0.")) << five.out;
  std::ifstream file(place() / "report.json");
  const auto report = nlohmann::json::parse(file);
  const auto& sentence = report["expect"][0]["stored"];
  EXPECT_EQ(sentence["runs"], 5);
  EXPECT_EQ(sentence["stored_contrasts"].size(), 5U);
  EXPECT_EQ(sentence["stored_anchors"].size(), 5U);
  for (const char* value : {"raw", "anchor", "normalised"})
    EXPECT_EQ(sentence[value]["interval"].size(), 2U) << value;
  EXPECT_EQ(report["variants"].size(), 1U);  // anchors are no variants
  EXPECT_EQ(report["measurement"]["variants"][1]["name"], "anchor.launch.1");
}

// GEMMs take a third of it, and of its anchor nothing that they do.
const std::string memory_bound =
    "claim = \"as fast as it was\"\n"
    "model = { kind = \"mlp\", layers = 2, hidden = 4096, dtype = \"tf32\" }\n"
    "batch.size = 256\ntransfer.host = \"resident\"\noptim.kind = \"adamw\"\n"
    "[variant.fix]\n[expect]\n"
    "no_slide = \"fix.samples_per_s >= 0.97 * stored.fix.samples_per_s\"\n";

// Neither holds, as its own anchor would have it, nor is refuted: with every --undecided.
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
  EXPECT_TRUE(contains(kept.out, "; if that is meant, --new-era TEXT stores it and says why"));
  EXPECT_EQ(stored_runs(), 5);
}

TEST_F(AcceptVerb, RefutesAStepThatIsSlowerBesideAnAnchorThatIsNot) {
  write("small.toml", memory_bound);
  ASSERT_EQ(accept({"small.toml", "--runs", "5", "--seed", "1"}).exit_code, 0);
  const Finished slower = stepgate(on("slow_products", {"run", "small.toml", "--seed", "2"}));
  EXPECT_EQ(slower.exit_code, 1) << slower.out << slower.err;
  EXPECT_TRUE(contains(slower.out, "refuted         no_slide")) << slower.out;
  EXPECT_FALSE(contains(slower.out, "this machine is slower")) << slower.out;
}

TEST_F(AcceptVerb, BeginsNoNewEraUnlessItIsToldWhy) {
  ASSERT_EQ(accept({"small.toml", "--runs", "3", "--seed", "1"}).exit_code, 0);
  const Finished other_knobs = accept({"small.toml", "--set", "model.kernels=11"});
  EXPECT_EQ(other_knobs.exit_code, 1);
  EXPECT_TRUE(contains(other_knobs.out,
                       "small: not accepted: the knobs of 'fix' are not those of the stored runs; "
                       "if that is meant, --new-era TEXT stores it and says why"))
      << other_knobs.out;
  const Finished compared = stepgate(on("updated", {"run", "small.toml"}));
  EXPECT_EQ(compared.exit_code, 4);
  EXPECT_TRUE(
      contains(compared.out, "the driver branch is '2', the stored runs have '1'; a step takes "))
      << compared.out;
  const Finished updated = stepgate(on("updated", {"accept", "small.toml"}));
  EXPECT_EQ(updated.exit_code, 1);
  EXPECT_TRUE(contains(updated.out, "small: not accepted: the driver branch is '2', the stored"))
      << updated.out;
  EXPECT_EQ(stored_runs(), 3);
  EXPECT_EQ(accept({"small.toml", "--new-era", " "}).exit_code, 2);
  const Finished meant = stepgate(on("updated", {"accept", "small.toml", "--runs", "3", "--new-era",
                                                 "driver 2 (ticket 12)", "--seed", "2"}));
  EXPECT_EQ(meant.exit_code, 0) << meant.out;
  EXPECT_TRUE(contains(meant.out, "a new era, no more compared with earlier runs: driver 2 (ti"));
  EXPECT_EQ(stored_runs(), 6);
  const std::string line = "new_era = \"driver 2 (ticket 12)\"\n";
  EXPECT_NE(baseline().find(line), std::string::npos);
  EXPECT_EQ(baseline().find(line), baseline().rfind(line)) << "of the first of them alone";
  const Finished after = stepgate(on("updated", {"run", "small.toml", "-v"}));
  EXPECT_TRUE(contains(after.out, " against 3 stored runs")) << after.out;
}

// One command for a folder as it is shipped.
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
  const Finished typed = accept({"all/hurried.toml", "--budget", "0.2"});
  EXPECT_EQ(typed.exit_code, 1) << "what somebody typed is not stretched";
}

TEST_F(AcceptVerb, HasItsRunsKeptAsEvidence) {
  ASSERT_EQ(accept({"small.toml", "--runs", "5"}).exit_code, 0);
  for (int look = 1; look <= 2; ++look)
    EXPECT_EQ(run({"small.toml", "--evidence", "e.toml"}).exit_code, 0);
  std::ostringstream text;
  text << std::ifstream(place() / "e.toml").rdbuf();
  const std::string kept = "[entry.run.stored]\n\"no_slide\" = [";
  const auto first = text.str().find(kept);
  EXPECT_NE(first, std::string::npos) << text.str();
  EXPECT_NE(text.str().find(kept, first + 1), std::string::npos) << text.str();
}

TEST_F(AcceptVerb, GivesTheRunsOfOneSeedSeedsOfTheirOwnAndNeverStoresTheSameRunTwice) {
  EXPECT_EQ(accept({"small.toml", "--runs", "3", "--seed", "1"}).exit_code, 0);
  EXPECT_EQ(stored_runs(), 3);
  const std::string before = baseline();
  const Finished again = accept({"small.toml", "--runs", "3", "--seed", "1"});
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_TRUE(contains(again.err, "is stored already; leave out --seed")) << again.err;
  EXPECT_EQ(baseline(), before);
}

TEST_F(AcceptVerb, IsNotComparableWithARunOfOtherKnobs) {
  ASSERT_EQ(accept({"small.toml", "--runs", "2"}).exit_code, 0);
  const Finished other = run({"small.toml", "--set", "model.kernels=11"});
  EXPECT_EQ(other.exit_code, 4);
  EXPECT_TRUE(contains(other.out, "not comparable  no_slide")) << other.out;
  EXPECT_TRUE(contains(other.out, "the knobs of 'fix' are not those of the stored runs"));
}

TEST_F(AcceptVerb, RefusesWhileTheGateFailsAgainstItself) {
  const Finished refused = stepgate(on("moody", {"accept", "small.toml", "--seed", "1"}));
  EXPECT_EQ(refused.exit_code, 1) << refused.err;
  EXPECT_TRUE(contains(refused.out,
                       "small: not accepted: the gate fails against itself: 'fix' takes as long as "
                       "a copy of itself is refuted ("))
      << refused.out;
  EXPECT_FALSE(exists(stored));
  // A run after one that was refused is checked again; one after one that was stored is not.
  const Finished both =
      stepgate(on("moody", {"accept", "small.toml", "--runs", "2", "--seed", "1"}));
  EXPECT_TRUE(contains(both.out, "2 not accepted")) << both.out;
  EXPECT_EQ(stepgate(on("moody", {"accept", "small.toml", "--gate-checked"})).exit_code, 0);
}

TEST_F(AcceptVerb, RefusesARunThatRefutesASentence) {
  write("small.toml", small() + "more = \"fix.host_waits_per_step == 3\"\n");
  const Finished refused = accept();
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_TRUE(
      contains(refused.out, "small: not accepted: more is refuted: fix.host_waits_per_step == 3 ("))
      << refused.out;
  EXPECT_FALSE(exists(stored));
}

TEST_F(AcceptVerb, RefusesARunOfTooFewRounds) {
  write("small.toml", small(20, "measure.rounds = 5\n"));
  const Finished refused = accept();
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_TRUE(contains(refused.out,
                       "not accepted: 0 rounds were measured, but a run is compared by its first "
                       "12; raise 'measure.rounds' or the budget"))
      << refused.out;
}

TEST_F(AcceptVerb, RefusesTheReferenceWhichHasNoTimes) {
  const Finished refused =
      stepgate({"--baselines", "b", "accept", "small.toml", "--device", "reference"});
  EXPECT_EQ(refused.exit_code, 1) << refused.err;
  EXPECT_TRUE(contains(refused.out, "0 rounds were measured")) << refused.out;
}

TEST_F(AcceptVerb, FindsAFaultInTheLastFileBeforeItMeasuresTheFirst) {
  write("wrong.toml", "claim = 3\n");
  const Finished refused = accept({"small.toml", "wrong.toml"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_FALSE(exists(stored));
}

TEST_F(AcceptVerb, NeitherReadsNorOverwritesADamagedBaseline) {
  ASSERT_EQ(accept({"small.toml", "--runs", "2"}).exit_code, 0);
  const std::string damaged = baseline().substr(0, baseline().size() / 2);
  write(stored, damaged);
  for (const Finished& refused : {accept(), run()}) {
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_EQ(refused.err.find(stored + ":"), 0U) << refused.err;
    EXPECT_EQ(refused.out, "");
  }
  EXPECT_EQ(baseline(), damaged);
}

TEST_F(AcceptVerb, RefusesOptionsThatMakeNoSense) {
  EXPECT_EQ(accept({"small.toml", "--runs", "0"}).exit_code, 2);
  EXPECT_EQ(accept({"small.toml", "--runs", "many"}).exit_code, 2);
  EXPECT_EQ(accept({"small.toml", "--budget", "0"}).exit_code, 2);
  EXPECT_EQ(accept({"none.toml"}).exit_code, 2);
}

TEST_F(AcceptVerb, LosesNoRunWhenManyStoreAtOnce) {
  constexpr int processes = 12;
  std::vector<std::unique_ptr<ChildProcess>> children;
  for (int child = 0; child < processes; ++child) {
    // Every child's output goes to files of its folder's name: a folder each, the baseline shared.
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
  EXPECT_EQ(accept().exit_code, 0);  // neither a lock nor half a file is in its way
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
