// SPDX-License-Identifier: MIT
// The file of `run --evidence`: its text, what comes back, and everything that is wrong with a
// damaged one.
#include "history/evidence/evidence_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "support/files/temporary_folder.h"
#include "support/files/write_file.h"
#include "support/random.h"
#include "support/text/diagnostic.h"
#include "tests/golden.h"

namespace stepgate {
namespace {

EvidenceKey key_of(const std::string& subject) {
  return {.subject = subject,
          .scenario = "small",
          .fingerprint = 0xfedcba9876543210,
          .kind = "cuda",
          .gpu = "NVIDIA H200",
          .uuid = "GPU-1",
          .driver = "580.159.04",
          .cuda_runtime = "13.0"};
}

EvidenceRun run_of(std::uint64_t seed, std::vector<double> contrasts) {
  return {.seed = seed,
          .date = "2026-11-21T10:15:00Z",
          .stepgate = "0.1.0",
          .evidence = {
              .runs = 1,
              .regime = {.contrasts = {{"host_bound", {0.25}}}},
              .expect = {.contrasts = {{"line", std::move(contrasts)}, {"a \"b\".c", {-0.5, 1}}},
                         .times = {{"a \"b\".c", {40, 0.004, 0.005, 40, 0.004, 0.006}}}}}};
}

// A whole run; gives what was there before it.
EarlierEvidence append_evidence(const std::filesystem::path& file, const EvidenceKey& key,
                                const EvidenceRun& run) {
  EvidenceTurn turn(file, key);
  turn.keep(run);
  return earlier_in(turn.before(), key);
}

EvidenceFile by_hand() {
  return {.file = "e.toml",
          .entries = {{.key = key_of("0123abc"),
                       .runs = {run_of(1, {0.001, -0.002, 1e-7, 0, 0.1, 0.2, 0.3, 0.4, 1.0 / 3}),
                                run_of(2, {0.5})}},
                      {.key = key_of("4567def"), .runs = {run_of(1, {0.25})}}}};
}

class EvidenceFileTest : public testing::Test {
 protected:
  std::string content() const {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
  }
  // The error of reading, and of adding a run; the file stays as it is.
  std::string refusal(const std::string& text) const {
    std::filesystem::create_directories(folder);
    std::ofstream(file) << text;
    std::string said;
    for (const bool adding : {false, true}) {
      try {
        if (adding) {
          (void)append_evidence(file, key_of("new"), run_of(1, {1}));
        } else {
          (void)read_evidence(file);
        }
        return "accepted";
      } catch (const RequestError& error) {
        EXPECT_TRUE(said.empty() || said == error.what()) << error.what();
        said = error.what();
      }
    }
    EXPECT_EQ(content(), text) << "what cannot be read must not be overwritten";
    for (auto at = said.find(file.string()); at != std::string::npos; at = said.find(file.string()))
      said.replace(at, file.string().size(), "F");
    return said;
  }

  const TemporaryFolder temporary;
  const std::filesystem::path folder = temporary.path() / "f";  // not there at first
  const std::filesystem::path file = folder / "e.toml";
};

TEST_F(EvidenceFileTest, IsReadableInADiff) {
  expect_golden(std::filesystem::path(STEPGATE_SOURCE_DIR) / "tests" / "golden" / "evidence.toml",
                evidence_text(by_hand()));
}

TEST_F(EvidenceFileTest, GivesBackEveryContrastToTheLastBit) {
  constexpr std::uint64_t seed = 11;
  SCOPED_TRACE("seed 11");
  Random random(seed);
  std::vector<double> contrasts;
  for (int index = 0; index < 1000; ++index) {
    contrasts.push_back(random.normal() * std::pow(10, -random.uniform() * 12));
  }
  EvidenceRun run = run_of(1, contrasts);
  run.evidence.stored = {{"no_slide", {1.0 / 3}}};
  EXPECT_EQ(append_evidence(file, key_of("a"), run), EarlierEvidence{});
  const EarlierEvidence back = earlier_in(read_evidence(file), key_of("a"));
  EXPECT_EQ(back, run.evidence);
}

TEST_F(EvidenceFileTest, PutsTheRunsOfAnEntryOneAfterTheOther) {
  write_file(file, evidence_text(by_hand()));
  const EarlierEvidence before = append_evidence(file, key_of("0123abc"), run_of(3, {0.75}));
  EXPECT_EQ(before.runs, 2);
  EXPECT_EQ(before.expect.contrasts.at("line").size(), 10U);
  const EarlierEvidence after = earlier_in(read_evidence(file), key_of("0123abc"));
  EXPECT_EQ(after.runs, 3);
  EXPECT_EQ(after.expect.contrasts.at("line").size(), 11U);
  EXPECT_EQ(after.expect.contrasts.at("line").back(), 0.75);
  EXPECT_EQ(after.regime.contrasts.at("host_bound").size(), 3U);
  EXPECT_EQ(earlier_in(read_evidence(file), key_of("4567def")).runs, 1);
}

TEST_F(EvidenceFileTest, StartsAnewForAnotherKey) {
  write_file(file, evidence_text(by_hand()));
  std::vector<EvidenceKey> others(6, key_of("0123abc"));
  others[0].subject = "another";
  others[1].fingerprint = 1;
  others[2].kind = "simulated";
  others[3].uuid = "GPU-2";
  others[4].driver = "580.159.05";
  others[5].cuda_runtime = "13.1";
  for (const EvidenceKey& other : others) {
    EXPECT_EQ(earlier_in(read_evidence(file), other).runs, 0);
    EXPECT_EQ(append_evidence(file, other, run_of(1, {1})).runs, 0);
  }
  EXPECT_EQ(read_evidence(file).entries.size(), 8U);
}

TEST_F(EvidenceFileTest, RefusesTheSameSeedTwice) {
  write_file(file, evidence_text(by_hand()));
  const std::string before = content();
  try {
    (void)append_evidence(file, key_of("0123abc"), run_of(2, {1}));
    FAIL() << "accepted";
  } catch (const RequestError& error) {
    EXPECT_EQ(error.what(),
              file.string() +
                  ": a run of 'small' with seed 0x0000000000000002 is in it already; leave out "
                  "--seed: the same orders and contents twice are not new evidence");
  }
  EXPECT_EQ(content(), before);
}

TEST_F(EvidenceFileTest, DoesNotGrowBeyondWhatCanBeRead) {
  std::vector<double> many(45'000, 1.0 / 3);
  (void)append_evidence(file, key_of("a"), run_of(1, many));
  const std::string before = content();
  try {
    (void)append_evidence(file, key_of("a"), run_of(2, many));
    FAIL() << "accepted";
  } catch (const RequestError& error) {
    EXPECT_EQ(
        error.what(),
        file.string() + ": would grow beyond 1 MiB; take [[entry]]s of old subjects out of it");
  }
  EXPECT_EQ(content(), before);
}

struct Damage {
  std::string from;
  std::string to;
  std::string refusal;
};

TEST_F(EvidenceFileTest, IsRefusedWhenDamagedAndNeverOverwritten) {
  const std::string whole =
      "take the whole [[entry]] out, with all its runs: what it found is then forgotten";
  const std::string away =
      "name another file, or move this one away: what it found is then forgotten";
  const std::string changed =
      "F:6:10: the entry was changed after it was written: its digest does not fit; " + whole;
  const std::string good = evidence_text(by_hand());
  const std::string last_run = "[[entry.run]]\nseed = \"0x0000000000000002\"";
  const Damage damages[] = {
      {"format = 1", "format = 2",
       "F:3:10: evidence format 2 is newer than 1, the newest that this stepgate knows; use a "
       "newer stepgate, or name another file"},
      {"format = 1", "format = 0",
       "F:3:10: 'format' must be a whole number of at least 1; " + away},
      {"format = 1\n", "", "F: 'format' is missing in an evidence file; " + away},
      {"0.001,", "0.002,", changed},
      {" 0.1,", "", changed},
      {"subject = \"0123abc\"", "subject = \"0123abd\"", changed},
      {last_run, "[[entry.run]]\nseed = \"0x0000000000000003\"", changed},
      {"seed = \"0x0000000000000001\"", "seed = 1",
       "F:16:8: 'seed' must be a string of 0x and 16 hexadecimal digits; " + whole},
      {"0.001,", "nan,",
       "F:28:3: 'line' holds what is not a number between -1000 and 1000; " + whole},
      {"0.001,", "\"0.001\",",
       "F:28:3: 'line' holds what is not a number between -1000 and 1000; " + whole},
      {"0.001,", "1e9,",
       "F:28:3: 'line' holds what is not a number between -1000 and 1000; " + whole},
      {"[\n  0.25,\n]", "[]",
       "F:20:16: 'host_bound' must be a list of at least one number; " + whole},
      {"[\n  0.25,\n]", "0.25",
       "F:20:16: 'host_bound' must be a list of at least one number; " + whole},
      {"driver =", "drivers =",
       "F:5:1: 'driver' is missing in an entry; " + whole +
           "\nF:12:1: unknown key 'drivers' in an entry; did you mean 'driver'?"},
      {"[entry.run.regime]", "[entry.run.regimes]",
       "F:19:12: unknown key 'regimes' in a run; did you mean 'regime'?"},
      {"format = 1\n", "format = 1\nentries = 2\n",
       "F:4:1: unknown key 'entries' in an evidence file; " + away},
      {"subject = \"4567def\"", "subject = 4567", ""},
  };
  for (const Damage& damage : damages) {
    std::string text = good;
    const std::size_t at = text.find(damage.from);
    ASSERT_NE(at, std::string::npos) << damage.from;
    text.replace(at, damage.from.size(), damage.to);
    const std::string said = refusal(text);
    if (damage.refusal.empty()) {
      EXPECT_NE(said.find("'subject' must be a string; " + whole), std::string::npos) << said;
    } else {
      EXPECT_EQ(said, damage.refusal) << damage.to;
    }
  }
}

TEST_F(EvidenceFileTest, RefusesTheSameEntryTwice) {
  EvidenceFile twice = by_hand();
  twice.entries[1] = twice.entries[0];
  EXPECT_NE(refusal(evidence_text(twice))
                .find("there is another entry of the same subject, scenario and device; "),
            std::string::npos);
}

// A cut before the first entry is the same file with an entry taken out: that alone is allowed.
TEST_F(EvidenceFileTest, IsRefusedWhereverItIsCutOffInAnEntry) {
  EvidenceFile one = by_hand();
  one.entries.pop_back();
  const std::string good = evidence_text(one);
  const std::size_t entry = good.find("\n[[entry]]\n") + 1;
  for (std::size_t size = 0; size + 1 < good.size(); ++size) {
    const bool without_entry = size <= entry && size + 2 >= entry;  // "format = 1"
    EXPECT_EQ(refusal(good.substr(0, size)) == "accepted", without_entry) << size << " bytes";
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace stepgate
