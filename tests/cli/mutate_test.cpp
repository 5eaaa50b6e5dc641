// SPDX-License-Identifier: MIT
// Would a scenario notice? `mutate` and `check --strict` on planted ones, each with the fault that
// they are for, and on a scenario of the suite from which a sentence is taken.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "tests/cli/command_line.h"

namespace stepgate {
namespace {

using Mutate = CommandLine;

// Line 3 begins the baseline, line 5 the fix, line 7 the sentences.
std::string waits(const std::string& baseline, const std::string& fix, const std::string& expect) {
  return "claim = \"waiting every step is a wait every step\"\n"
         "model = { layers = 2, hidden = 64 }\n"
         "[variant.baseline]\n" +
         baseline + "\n[variant.fix]\n" + fix + "\n[expect]\n" + expect + "\n";
}

const std::string where = "sync = { where = \"step\", every = 2 }";
const std::string exact = "waits = \"baseline.host_waits_per_step == 0.5\"";

TEST_F(Mutate, IsContentWhereEveryOverrideIsNoticed) {
  write("a.toml", waits(where, "", exact));
  const Finished table = stepgate({"mutate", "a.toml"});
  EXPECT_EQ(table.exit_code, 0) << table.out << table.err;
  EXPECT_EQ(table.out,
            "a: overrides 2, not noticed 0, vacuous sentences 0\n"
            "  noticed   baseline without sync.where = step refutes waits\n"
            "  noticed   baseline without sync.every = 2 refutes waits\n");
  const Finished checked = stepgate({"check", "--strict", "a.toml"});
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  EXPECT_EQ(checked.out, "a.toml: 2 variants, 1 sentence\n");
}

TEST_F(Mutate, FindsAnOverrideThatNoSentenceNeeds) {
  write("a.toml", waits(where, "log = { every = 1, via = \"item\" }", exact));
  const Finished table = stepgate({"mutate", "a.toml"});
  EXPECT_EQ(table.exit_code, 1);
  EXPECT_TRUE(contains(table.out, "a: overrides 4, not noticed 2, vacuous sentences 0\n"));
  EXPECT_TRUE(
      contains(table.out,
               "  survives  fix without log.every = 1 holds all the same; copies_per_step 2 -> 1"))
      << table.out;
  const Finished checked = stepgate({"check", "--strict", "a.toml"});
  EXPECT_EQ(checked.exit_code, 2);
  EXPECT_TRUE(contains(checked.err,
                       "a.toml:6:9: 'log.every' of variant 'fix' could be removed and no sentence "
                       "would be refuted: copies_per_step 2 -> 1"))
      << checked.err;
  EXPECT_TRUE(
      contains(checked.err, "say in a sentence what it is there for, write it into the base "));
  EXPECT_EQ(stepgate({"check", "a.toml"}).exit_code, 0) << "who is not strict may go on";
}

// No variant can be tried in the place of the other: neither launches the other's kernel.
TEST_F(Mutate, GoesOnWhereASentenceNamesAKernelThatOnlyOneVariantLaunches) {
  write("a.toml", waits("optim.kind = \"adamw\"", "",
                        "rule = \"fix.kernel_us(sgd) <= 2 * baseline.kernel_us(adamw)\""));
  const Finished table = stepgate({"mutate", "a.toml"});
  EXPECT_EQ(table.exit_code, 0) << table.out << table.err;
  EXPECT_TRUE(contains(table.out, "overrides 1, not noticed 0, refused 1, vacuous sentences 0"))
      << table.out;
}

TEST_F(Mutate, FindsAnOverrideWithoutEffect) {
  write("a.toml", waits(where, "batch.size = 64", exact));
  const Finished checked = stepgate({"check", "--strict", "a.toml"});
  EXPECT_EQ(checked.exit_code, 2);
  EXPECT_EQ(checked.err,
            "a.toml:6:7: 'batch.size' of variant 'fix' has no effect: without it the step is the "
            "same; remove it\n");
  // A value for contrast with another variant's is worth its line.
  write("a.toml", waits(where, "sync.where = \"none\"", exact));
  EXPECT_EQ(stepgate({"check", "--strict", "a.toml"}).exit_code, 0);
}

TEST_F(Mutate, FindsSentencesThatCannotFail) {
  write("a.toml", waits(where, "",
                        exact + "\nitself = \"fix.samples_per_s >= 0.5 * fix.samples_per_s\""
                                "\nnothing = \"fix.host_waits_per_step >= 0\""));
  const Finished table = stepgate({"mutate", "a.toml"});
  EXPECT_EQ(table.exit_code, 1);
  EXPECT_TRUE(contains(table.out, ", vacuous sentences 2\n")) << table.out;
  const Finished checked = stepgate({"check", "--strict", "a.toml"});
  EXPECT_EQ(checked.exit_code, 2);
  for (const char* fault :
       {"a.toml:9:11: 'itself' cannot fail: of ", "a.toml:10:12: 'nothing' cannot "})
    EXPECT_TRUE(contains(checked.err, fault)) << checked.err;
}

// A variant that it does not name cannot refute it: turned, each would cost as much as all of the
// others together.
TEST_F(Mutate, TriesASentenceOnStepsOfTheVariantsThatItNames) {
  const auto tried = [&](const std::string& more) {
    write("a.toml",
          waits(where, "", exact + "\nnothing = \"fix.host_waits_per_step >= 0\"") + more);
    const std::string out = stepgate({"mutate", "a.toml"}).out;
    const std::string before = "no other step refutes it, of ";
    const std::size_t at = out.find(before);
    EXPECT_NE(at, std::string::npos) << out;
    return std::stoi(out.substr(at + before.size()));
  };
  const int two = tried("");
  const int three = tried("[variant.more]\nbatch.size = 8\n");
  EXPECT_GT(two, 20);
  EXPECT_EQ(three, two + 1) << "fix as if it were it";
}

TEST_F(Mutate, FindsVariantsThatAreTheSame) {
  write("a.toml", waits(where, "", exact) + "[variant.again]\n");
  const Finished checked = stepgate({"check", "--strict", "a.toml"});
  EXPECT_EQ(checked.exit_code, 2);
  EXPECT_TRUE(contains(checked.err, "a.toml:9:10: variant 'again' is the same step as 'fix'; "))
      << checked.err;
}

// Nobody noticed what could not be tried; and nobody is to blame for it.
TEST_F(Mutate, TellsARefusedScenarioFromWhatASentenceNotices) {
  write("a.toml", waits("loader = { depth = 2, workers = 3 }", "",
                        "threads = \"baseline.loader_threads == 3\""));
  const Finished table = stepgate({"mutate", "a.toml"});
  EXPECT_EQ(table.exit_code, 0) << table.out << table.err;
  EXPECT_EQ(
      table.out,
      "a: overrides 2, not noticed 0, refused 1, vacuous sentences 0\n"
      "  refused   baseline without loader.depth = 2 is refused: 'loader.workers' have nowhere to "
      "put batches when 'loader.depth' is 0\n"
      "  noticed   baseline without loader.workers = 3 refutes threads\n");
  const Finished checked = stepgate({"check", "--strict", "a.toml"});
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  EXPECT_EQ(checked.out, "a.toml: 2 variants, 1 sentence\n");
}

TEST_F(Mutate, KnowsNothingOfAStepThatItsDeviceRefuses) {
  write("a.toml",
        "claim = \"two layers fit where 64 do not\"\n"
        "model = { layers = 64, hidden = 65536, dtype = \"bf16\" }\n"
        "[variant.fix]\nmodel.layers = 2\n"
        "[expect]\nnone = \"fix.copies_per_step == 0\"\n");
  const Finished table = stepgate({"mutate", "a.toml"});
  EXPECT_EQ(table.exit_code, 0) << table.out << table.err;
  EXPECT_TRUE(table.out.starts_with(
      "a: overrides 1, not noticed 0, unknown 1, vacuous sentences 0\n"
      "  unknown   fix without model.layers = 2 is refused by the device: variant 'fix' needs "))
      << table.out;
  const Finished checked = stepgate({"check", "--strict", "a.toml"});
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  EXPECT_TRUE(contains(checked.out,
                       "warning: a.toml:4:7: without 'model.layers' of variant 'fix' the simulated "
                       "device refuses the step: variant 'fix' needs "))
      << checked.out;
  EXPECT_TRUE(contains(checked.out, "; whether a sentence would notice is not known\n"));
}

TEST_F(Mutate, SaysOfWhatItKnowsNothing) {
  write("a.toml", waits(where, "", exact + "\nwrong = \"fix.host_waits_per_step == 3\""));
  const Finished checked = stepgate({"check", "--strict", "a.toml"});
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  EXPECT_TRUE(
      contains(checked.out,
               "warning: a.toml:9:10: 'wrong' is refuted on the simulated device; whether it "
               "could fail is not known\n"))
      << checked.out;
}

std::string longer_in(const std::string& regime) {
  return "claim = \"a longer step takes longer\"\nmodel = { layers = 2, hidden = 64 }\n"
         "[regime]\nhere = \"" +
         regime +
         "\"\n[variant.baseline]\nmodel.layers = 8\n[variant.fix]\n[expect]\n"
         "faster = \"fix.samples_per_s >= 1.5 * baseline.samples_per_s\"\n";
}

TEST_F(Mutate, BlamesNoOverrideOfWhichOnlySpeaksWhatDoesNotHoldHere) {
  write("a.toml", longer_in("fix.gpu_idle <= 1%"));
  const Finished table = stepgate({"mutate", "a.toml"});
  EXPECT_EQ(table.exit_code, 0) << table.out << table.err;
  EXPECT_TRUE(contains(table.out,
                       "  unknown   baseline without model.layers = 8 holds all the same, as far"))
      << table.out;
  const Finished checked = stepgate({"check", "--strict", "a.toml"});
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
}

// Where nothing can be inside, a run is skipped on every machine, whatever the sentences say.
TEST_F(Mutate, FindsARegimeThatNoStepIsIn) {
  write("a.toml", longer_in("fix.host_share <= 0.001%"));
  const Finished table = stepgate({"mutate", "a.toml"});
  EXPECT_EQ(table.exit_code, 1) << table.out << table.err;
  EXPECT_TRUE(contains(table.out, "  never     here: fix.host_share <= 0.001%; no step"))
      << table.out;
  write("a.toml", longer_in("fix.step_ms_mean <= 1 ns"));
  const Finished checked = stepgate({"check", "--strict", "a.toml"});
  EXPECT_EQ(checked.exit_code, 2) << checked.out;
  EXPECT_TRUE(contains(checked.err, "a.toml:4:9: no step is inside the regime: of "))
      << checked.err;
}

// The step as it is stands for its stored runs.
TEST_F(Mutate, TriesSentencesOnStoredRuns) {
  write("a.toml", waits(where, "",
                        exact + "\nany = \"fix.launches_per_step <= 1000 * "
                                "stored.fix.launches_per_step\""
                                "\nsound = \"baseline.samples_per_s >= 0.95 * "
                                "stored.baseline.samples_per_s\""
                                "\nas_many = \"fix.launches_per_step <= 1 * "
                                "stored.fix.launches_per_step\""));
  const Finished checked = stepgate({"check", "--strict", "a.toml"});
  EXPECT_EQ(checked.exit_code, 2) << checked.out;
  EXPECT_TRUE(contains(checked.err, "a.toml:9:8: 'any' cannot fail: of ")) << checked.err;
  EXPECT_EQ(std::ranges::count(checked.err, '\n'), 1) << checked.err;
  EXPECT_FALSE(contains(checked.out, "warning")) << checked.out;
}

TEST_F(Mutate, FindsAComparisonThatIsTheWrongWayRound) {
  const std::string right = "\nfewer = \"fix.host_waits_per_step < baseline.host_waits_per_step\"";
  for (const char* wrong : {"fix.samples_per_s <= 0.9 * baseline.samples_per_s",
                            "1.1 * fix.step_ms_mean > baseline.step_ms_mean",
                            "fix.host_waits_per_step > baseline.host_waits_per_step"}) {
    write("a.toml", waits("sync = { where = \"step\" }\nhost.step_us = 200", "host.step_us = 100",
                          "it = \"" + std::string(wrong) + "\"" + right));
    const Finished checked = stepgate({"check", "--strict", "a.toml"});
    EXPECT_EQ(checked.exit_code, 2) << checked.out;
    EXPECT_TRUE(contains(checked.err,
                         "a.toml:9:7: 'it' is refuted on every simulated profile, and "
                         "its reverse holds there: " +
                             std::string(wrong)))
        << checked.err;
    EXPECT_FALSE(contains(checked.err, "'fewer'"));
  }
}

TEST_F(Mutate, TellsHowFarALimitIsFromWhatTheFileSays) {
  write("a.toml", waits("host.step_us = 400", "",
                        "far = \"fix.samples_per_s >= 0.5 * baseline.samples_per_s\""
                        "\nnear = \"fix.samples_per_s >= 1.2 * baseline.samples_per_s\""
                        "\ncount = \"fix.host_waits_per_step == 0\""));
  const Finished checked = stepgate({"check", "--strict", "a.toml"});
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  EXPECT_TRUE(contains(checked.out,
                       "note: a.toml:8:8: no override of the file decides 'far': its "
                       "sides are "))
      << checked.out << checked.err;
  EXPECT_EQ(checked.out.find("note: "), checked.out.rfind("note: ")) << checked.out;
}

TEST_F(Mutate, TakesAwayWhatAVariantIsLike) {
  const std::string two_more =
      "[variant.one]\nsync = { where = \"step\" }\n[variant.two]\nlike = \"one\"\nbatch.size = "
      "128\n";
  const std::string said = "\none = \"one.host_waits_per_step == 1\"";
  write("a.toml",
        waits(where, "", exact + said + "\nlarge = \"two.flops_per_step > one.flops_per_step\"") +
            two_more);
  const Finished checked = stepgate({"check", "--strict", "a.toml"});
  EXPECT_EQ(checked.exit_code, 2);
  EXPECT_TRUE(contains(checked.err, "'like' of variant 'two' could be removed")) << checked.err;
  write("a.toml", waits(where, "",
                        exact + said +
                            "\nlarge = \"two.flops_per_step > one.flops_per_step\""
                            "\ntwo = \"two.host_waits_per_step == 1\"") +
                      two_more);
  const Finished table = stepgate({"mutate", "a.toml"});
  EXPECT_EQ(table.exit_code, 0) << table.out;
  EXPECT_TRUE(contains(table.out, "  noticed   two without like = one refutes two\n")) << table.out;
}

TEST_F(Mutate, KnowsACalibratedScenarioOfAShareOfTheDevice) {
  write("a.toml",
        "claim = \"copies of a size that is found\"\n"
        "model = { kind = \"spin\", kernels = 10, kernel_us = 50 }\n"
        "batch = { size = 64, sample_bytes = \"64 KiB\" }\n"
        "alloc = { with = \"caching\", cap = \"60% of device\" }\n"
        "transfer.host = \"resident\"\n"
        "[calibrate]\nbatch.sample_bytes = \"fix.h2d_share ~= 40% within 10%\"\n"
        "[variant.fix]\ntransfer.host = \"pinned\"\n"
        "[expect]\none = \"fix.copies_per_step == 1\"\n");
  const Finished table = stepgate({"mutate", "a.toml"});
  EXPECT_EQ(table.exit_code, 0) << table.out << table.err;
  EXPECT_TRUE(contains(table.out, "  noticed   fix without transfer.host = pinned refutes one\n"))
      << table.out;
}

TEST_F(Mutate, IsDecidedByASimulatedDeviceAlone) {
  write("a.toml", waits(where, "", exact));
  const Finished other = stepgate({"mutate", "a.toml", "--device", "reference"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_TRUE(contains(other.err, "mutations are decided by the simulated device")) << other.err;
}

// A scenario of the suite less one sentence, and the override that nothing is left to notice.
struct Taken {
  const char* scenario;
  const char* sentence;
  const char* survivor;
};

TEST_F(Mutate, MissesEachOfTheseSentencesOfTheSuite) {
  for (const Taken& taken :
       {Taken{"capped_share", "is_a_cap", "survives  capped without alloc.cap = 60% of device"},
        Taken{"sync_every_step", "in_disguise", ""},
        Taken{"caching_churn", "recreated", "survives  baseline without alloc.when = "},
        Taken{"pin_each_step", "pageable", "survives  pageable without transfer.host = "}}) {
    const std::string file = std::string(taken.scenario) + ".toml";
    std::ifstream suite(STEPGATE_SOURCE_DIR "/scenarios/" + file);
    std::string text;
    bool found = false;
    for (std::string line; std::getline(suite, line);) {
      const bool is_it = line.starts_with(taken.sentence + std::string(" "));
      found = found || is_it;
      if (!is_it) text += line + '\n';
    }
    ASSERT_TRUE(found) << taken.sentence;
    write(file, text);
    const Finished table = stepgate({"mutate", file});
    EXPECT_EQ(table.exit_code, 1) << table.out << table.err;
    EXPECT_TRUE(contains(table.out, taken.survivor)) << table.out;
  }
}

}  // namespace
}  // namespace stepgate
