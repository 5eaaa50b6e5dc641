// SPDX-License-Identifier: MIT
// Tests ledgers: their text, reading it back, and all errors of damaged ones.
#include "ledger/runs/ledger.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "base/files/temporary_folder.h"
#include "base/files/write_file.h"
#include "base/random.h"
#include "base/text/diagnostic.h"
#include "judge/testing/stored_runs_by_hand.h"
#include "ledger/baseline/baseline_record.h"
#include "tests/golden.h"

namespace stepgate {
namespace {

StoredRun run_of(const std::string& subject, std::uint64_t seed, std::vector<double> contrasts) {
  StoredRun run;
  run.provenance = {.date = "2026-11-21T10:15:00Z",
                    .commit = "0123abc",
                    .stepgate = "0.1.0",
                    .scenario = 0xfedcba9876543210,
                    .seed = seed,
                    .boot = "",
                    .subject = subject,
                    .build = "0x0000000000000007"};
  run.environment = environment_of(machine());
  run.step_seconds = {{"fix", 0.0012345}, {"a \"b\".c", 1.0 / 3}};
  run.found = {.regime = {.contrasts = {{"host_bound", {0.25}}}},
               .expect = {.contrasts = {{"line", std::move(contrasts)}, {"a \"b\".c", {-0.5, 1}}},
                          .times = {{"a \"b\".c", {40, 0.004, 0.005, 40, 0.004, 0.006}}}}};
  return run;
}

class Ledger : public testing::Test {
 protected:
  std::string content() const {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
  }
  Baseline read() const { return read_ledger(file, "small"); }
  // Makes a whole run and returns the evidence that was stored before it.
  EarlierEvidence add(const StoredRun& run) const {
    LedgerTurn turn(file, "small");
    turn.keep(run);
    return earlier_in(turn.before(), run);
  }
  // Adds two runs of one subject and a run of another one between them.
  void add_three() const {
    add(run_of("0123abc", 1, {0.001, -0.002, 1e-7, 0, 0.1, 0.2, 0.3, 0.4, 1.0 / 3}));
    add(run_of("4567def", 1, {0.25}));
    add(run_of("0123abc", 2, {0.5}));
  }
  // Returns the error of reading this text and of adding a run to it; the file must stay unchanged.
  std::string refusal(const std::string& text) const {
    std::filesystem::create_directories(folder);
    std::ofstream(file) << text;
    std::string said;
    for (const bool adding : {false, true}) {
      try {
        adding ? (void)add(run_of("new", 1, {1})) : (void)read();
        return "accepted";
      } catch (const RequestError& error) {
        EXPECT_TRUE(said.empty() || said == error.what()) << error.what();
        said = error.what();
      }
    }
    EXPECT_EQ(content(), text) << "what cannot be read must not be overwritten";
    return said;
  }
  std::string refusal_to_add(const StoredRun& run) const {
    const std::string before = content();
    try {
      (void)add(run);
      return "accepted";
    } catch (const RequestError& error) {
      EXPECT_EQ(content(), before);
      EXPECT_EQ(std::string(error.what()).find(file.string() + ": "), 0U);
      return std::string(error.what()).substr(file.string().size() + 2);
    }
  }

  const TemporaryFolder temporary;
  const std::filesystem::path folder = temporary.path() / "f";  // does not exist yet
  const std::filesystem::path file = folder / "small.toml";
};

TEST_F(Ledger, IsReadableInADiff) {
  add_three();
  expect_golden(std::filesystem::path(STEPGATE_SOURCE_DIR) / "tests" / "golden" / "ledger.toml",
                content());
}

TEST_F(Ledger, GivesBackEveryContrastToTheLastBit) {
  constexpr std::uint64_t seed = 11;
  SCOPED_TRACE("seed 11");
  Random random(seed);
  std::vector<double> contrasts;
  for (int index = 0; index < 1000; ++index) {
    contrasts.push_back(random.normal() * std::pow(10, -random.uniform() * 12));
  }
  StoredRun run = run_of("a", 1, contrasts);
  run.found.stored = {{"no_slide", {1.0 / 3}}};
  EXPECT_EQ(add(run), EarlierEvidence{});
  run.found.runs = 1;
  EXPECT_EQ(earlier_in(read(), run), run.found);
}

TEST_F(Ledger, PutsTheRunsOfASubjectOneAfterTheOther) {
  add_three();
  const EarlierEvidence before = add(run_of("0123abc", 3, {0.75}));
  EXPECT_EQ(before.runs, 2);
  EXPECT_EQ(before.expect.contrasts.at("line").size(), 10U);
  const EarlierEvidence after = earlier_in(read(), run_of("0123abc", 0, {}));
  EXPECT_EQ(after.runs, 3);
  EXPECT_EQ(after.expect.contrasts.at("line").size(), 11U);
  EXPECT_EQ(after.expect.contrasts.at("line").back(), 0.75);
  EXPECT_EQ(after.regime.contrasts.at("host_bound").size(), 3U);
  EXPECT_EQ(earlier_in(read(), run_of("4567def", 0, {})).runs, 1);
}

TEST_F(Ledger, StartsAnewForAnotherPair) {
  add_three();
  std::vector<StoredRun> others(10, run_of("0123abc", 1, {1}));
  others[0].provenance.subject = "another";
  others[1].provenance.scenario = 1;
  others[2].environment.kind = "simulated";
  others[3].environment.uuid = "GPU-2";
  others[4].environment.driver = "580.159.05";
  others[5].environment.cuda_runtime = "13.1";
  others[6].environment.cublas = "13.1";
  others[7].libraries = "cuDNN 9.14.0";
  others[8].libraries = "kernel layer_norm libmine.so 1f0a33c2e0d94b55";
  others[9].libraries = "kernel layer_norm libmine.so 2b7c9d0011aa22bb";
  for (const StoredRun& other : others) {
    EXPECT_EQ(earlier_in(read(), other).runs, 0);
    EXPECT_EQ(add(other).runs, 0);
    EXPECT_EQ(earlier_in(read(), other).runs, 1);
  }
  EXPECT_EQ(read().runs.size(), 13U);
}

TEST_F(Ledger, RefusesTheSameSeedTwice) {
  add_three();
  EXPECT_EQ(refusal_to_add(run_of("0123abc", 2, {1})),
            "a run of 'small' with seed 0x0000000000000002 is in it already; leave out --seed: the "
            "same orders and contents twice are not new evidence");
}

TEST_F(Ledger, ComparesWithRunsOfOtherBuildsThatAreComparable) {
  add_three();
  StoredRun comparable = run_of("0123abc", 3, {0.5});
  comparable.variants = baseline_of(scenario_of_one({no_slide}), {0.25}).runs[0].variants;
  add(comparable);
  const auto compared = [&](const std::string& subject, const std::string& build) {
    const auto others = runs_of_others(
        read(), {.scenario = comparable.provenance.scenario, .subject = subject, .build = build});
    return others ? others->runs.size() : 0;
  };
  EXPECT_FALSE(runs_of_others(read(), {.scenario = 1, .subject = "new", .build = "0x8"}))
      << "a looser text, whose runs scatter more";
  EXPECT_EQ(compared("new", "0x0000000000000008"), 1U) << "one has step times";
  EXPECT_EQ(compared("0123abc", "0x0000000000000008"), 0U) << "its own subject";
  EXPECT_EQ(compared("new", "0x0000000000000007"), 0U) << "its own build under another name";
}

TEST_F(Ledger, KnowsTheOtherPairsOfADeviceByNameAndByText) {
  add_three();
  std::filesystem::copy_file(file, folder / "kept.toml");
  StoredRun now = run_of("new", 1, {});
  EXPECT_EQ(other_pairs(read(), now).size(), 2U);
  // The same scenario under another name is in the folder of the same device.
  const Baseline renamed = read_ledger(folder / "renamed.toml", "renamed");
  std::filesystem::remove(folder / "kept.toml");
  EXPECT_EQ(other_pairs(renamed, now).size(), 2U);
  now.provenance.scenario = 1;
  EXPECT_EQ(other_pairs(renamed, now).size(), 0U) << "another name and another text";
  ASSERT_EQ(other_pairs(read(), now).size(), 2U);
  EXPECT_FALSE(other_pairs(read(), now).front().has_same_text);
  EXPECT_EQ(other_pairs(read(), now).front().subject, "0123abc") << "which ran last";
  now.environment.uuid = "GPU-2";
  EXPECT_EQ(other_pairs(read(), now).size(), 0U) << "another device";
}

// The current pair never loses a run; all runs of the pair that ran least recently are removed.
TEST_F(Ledger, ForgetsTheSubjectsThatRanLeastRecentlyWhereItIsFull) {
  const std::vector<double> many(15'000, 1.0 / 3);
  for (const auto& [subject, seed] : std::vector<std::pair<std::string, std::uint64_t>>{
           {"first", 1}, {"second", 1}, {"first", 2}, {"now", 1}})
    add(run_of(subject, seed, many));
  const auto runs = [&](const std::string& of) {
    return earlier_in(read(), run_of(of, 0, {})).runs;
  };
  EXPECT_EQ(runs("second"), 0) << "it ran least recently";
  EXPECT_EQ(runs("first"), 2);
  EXPECT_EQ(runs("now"), 1);
  add(run_of("now", 2, many));
  EXPECT_EQ(runs("first"), 0) << "both runs, though one would do";
  EXPECT_EQ(runs("now"), 2);
}

TEST_F(Ledger, DoesNotGrowBeyondWhatCanBeRead) {
  const std::vector<double> many(45'000, 1.0 / 3);
  add(run_of("a", 1, many));
  const std::string out =
      "; take out every [[run]] of this subject: what they found is then forgotten";
  EXPECT_EQ(refusal_to_add(run_of("a", 2, many)), "would grow beyond 1 MiB" + out);
  std::filesystem::remove(file);
  add(run_of("a", 1, std::vector<double>(46'000, 1.0 / 3)));
  EXPECT_EQ(refusal_to_add(run_of("a", 2, {1})),
            "is about to grow beyond 1 MiB by the runs of one subject" + out);
}

// Removing a single run would leave selected evidence, but all runs of a subject may be removed.
TEST_F(Ledger, MissesARunThatIsTakenOutOfASubject) {
  add_three();
  Baseline taken = read();
  taken.runs.erase(taken.runs.begin());
  EXPECT_NE(refusal(baseline_text(taken))
                .find(": the run of '0123abc' before it was taken out, or moved; take out every "
                      "[[run]] of this subject"),
            std::string::npos);
  taken.runs.erase(taken.runs.begin() + 1);
  EXPECT_EQ(refusal(baseline_text(taken)), "accepted");
}

TEST_F(Ledger, MissesTheLatestRunOfASubject) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) add(run_of("a", seed, {0.5}));
  for (int left = 2; left > 0; --left) {
    const std::string good = content();
    write_file(file, good.substr(0, good.rfind("\n[[run]]")));
    EXPECT_NE(refusal(content()).find("the latest run of 'a' was taken out; take out every"),
              std::string::npos)
        << left;
  }
  const std::string good = content();
  EXPECT_EQ(refusal(good.substr(0, good.rfind("\n[[run]]"))), "accepted") << "all of them";
}

TEST_F(Ledger, TakesNoRunThatIsNeitherComparedNorOfASubject) {
  add_three();
  Baseline nothing = read();
  nothing.runs.front().provenance.subject.clear();
  nothing.runs.resize(1);
  EXPECT_NE(refusal(baseline_text(nothing)).find("'variant' is missing in a run that names no"),
            std::string::npos);
}

// Damages tables of contrasts, which only ledgers have; record_test.cpp damages all other lines.
TEST_F(Ledger, IsRefusedWhenItsContrastsAreDamaged) {
  add_three();
  const std::string good = content();
  struct Damage {
    std::string from;
    std::string to;
    std::string said;
  };
  const std::string changed = "the run was changed after it was written: its digest does not fit";
  const std::string range = "'line' holds what is not a number between -1000 and 1000";
  for (const Damage& damage : std::vector<Damage>{
           {" 0.1,", "", changed},
           {"subject = \"0123abc\"", "subject = \"0123abd\"", changed},
           {"0.001,", "nan,", range},
           {"0.001,", "\"0.001\",", range},
           {"0.001,", "1e9,", range},
           {"[\n  0.25,\n]", "[]", "'host_bound' must be a list of at least one number"},
           {"[\n  0.25,\n]", "0.25", "'host_bound' must be a list of at least one number"},
           {"[run.regime]", "[run.regimes]", "unknown key 'regimes' in a run"},
           {"\"fix\" = [1234.500000]", "\"fix\" = [0]", "the step time of 'fix' is not above 0"},
           {"\"fix\" = [1234.500000]", "\"fix\" = [1, 2]", "'fix' must be a list of 1 numbers"},
           {"format = 1", "format = 2", "ledger format 2 is newer than"},
           {"scenario = \"small\"", "scenario = \"large\"",
            "the ledger of scenario 'large', not of 'small'"}}) {
    std::string text = good;
    const std::size_t at = text.find(damage.from);
    ASSERT_NE(at, std::string::npos) << damage.from;
    text.replace(at, damage.from.size(), damage.to);
    EXPECT_NE(refusal(text).find(damage.said), std::string::npos) << refusal(text);
  }
}

// A file cut off before a run is indistinguishable from a file without it.
TEST_F(Ledger, IsRefusedWhereverItIsCutOffInARun) {
  add(run_of("a", 1, {0.5}));
  const std::string good = content();
  const std::size_t run = good.find("\n[[run]]\n") + 1;
  const std::size_t scenario = good.find("scenario = ");
  for (std::size_t size = 0; size + 1 < good.size(); ++size) {
    const bool without_run = size <= run && size + 2 >= run && size > scenario;
    EXPECT_EQ(refusal(good.substr(0, size)) == "accepted", without_run) << size << " bytes";
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace stepgate
