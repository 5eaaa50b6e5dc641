// SPDX-License-Identifier: MIT
#include "scenario/read/read_scenario.h"
#include "scenario/knobs/fingerprint.h"
#include "scenario/read/bases.h"
#include "scenario/read/lint.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>

namespace stepgate {
namespace {

const std::string good = R"(
claim  = "Waiting exposes host work"
source = "an article"
tags   = ["sync", "smoke"]
requires = { compute = "8.0", free_memory = "4 GiB" }

[model]
kind   = "mlp"
layers = 6
hidden = 512
dtype  = "bf16"

[batch]
size = 32

[measure]
warmup = 7

[variant.zeta]
sync = { where = "step", how = "item" }

[variant.fix]

[variant.again]
like = "zeta"
sync.every = 2

[regime]
host_matters = "fix.host_share >= 20%"

[expect]
faster   = "fix.samples_per_s >= 1.05 * zeta.samples_per_s"
no_waits = "fix.host_waits_per_step == 0"
)";

Scenario scenario_of(std::string_view text, std::vector<std::string> overrides = {}) {
  return parse_scenario(text, "scenarios/good.toml", no_base, overrides);
}

std::string refusal(std::string_view text, std::vector<std::string> overrides = {}) {
  try {
    scenario_of(text, std::move(overrides));
  } catch (const RequestError& error) {
    return error.what();
  }
  return "accepted";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(ReadScenario, TakesItsNameFromTheFile) {
  EXPECT_EQ(scenario_of(good).name, "good");
  EXPECT_EQ(scenario_of(good).file, "scenarios/good.toml");
}

TEST(ReadScenario, ReadsWhatTheScenarioSaysAsAWhole) {
  const Scenario scenario = scenario_of(good);
  EXPECT_EQ(scenario.claim, "Waiting exposes host work");
  EXPECT_EQ(scenario.source, "an article");
  EXPECT_EQ(scenario.tags, (std::vector<std::string>{"sync", "smoke"}));
  EXPECT_EQ(scenario.requirements.compute, 8.0);
  EXPECT_EQ(scenario.requirements.free_memory_bytes, std::int64_t{4} << 30);
  EXPECT_EQ(scenario.requirements.gpus, std::nullopt);
  EXPECT_EQ(scenario.measure.warmup_steps, 7);
  EXPECT_EQ(scenario.measure.rounds, 200);
}

TEST(ReadScenario, KeepsVariantsAndAssertionsInTheFilesOrder) {
  const Scenario scenario = scenario_of(good);
  ASSERT_EQ(scenario.variants.size(), 3U);
  EXPECT_EQ(scenario.variants[0].name, "zeta");
  EXPECT_EQ(scenario.variants[1].name, "fix");
  EXPECT_EQ(scenario.variants[2].name, "again");
  ASSERT_EQ(scenario.expect.size(), 2U);
  EXPECT_EQ(scenario.expect[0].name, "faster");
  EXPECT_EQ(scenario.expect[0].place, (Place{"scenarios/good.toml", 32, 13}));
  EXPECT_EQ(scenario.regime.size(), 1U);
}

TEST(ReadScenario, MakesVariantsFromTheBaseKnobByKnob) {
  const Scenario scenario = scenario_of(good);
  Knobs base;
  base.model = {ModelKind::mlp, 6, 512, 10, 10, DType::bf16};
  base.batch.size = 32;
  Knobs zeta = base;
  zeta.sync = {SyncWhere::step, SyncHow::item, 1};
  Knobs again = zeta;
  again.sync.every = 2;
  EXPECT_EQ(scenario.variants[0].knobs, zeta);
  EXPECT_EQ(scenario.variants[1].knobs, base);
  EXPECT_EQ(scenario.variants[2].knobs, again);
}

TEST(ReadScenario, GivesVariantsAMarginOfTheirOwnThatIsNoPartOfTheStep) {
  const Scenario plain = scenario_of(good);
  for (const Variant& variant : plain.variants) EXPECT_EQ(variant.gate.margin, std::nullopt);
  const Scenario own = scenario_of(good + "[variant.zeta.gate]\nmargin = \"5%\"\n");
  EXPECT_DOUBLE_EQ(own.variants[0].gate.margin.value(), 0.05);
  EXPECT_EQ(own.variants[1].gate.margin, std::nullopt);
  EXPECT_EQ(own.variants[2].gate, own.variants[0].gate) << "like zeta";
  EXPECT_EQ(own.fingerprint, plain.fingerprint);
  const Scenario all = scenario_of(good + "[gate]\nmargin = \"2.5%\"\n");
  EXPECT_DOUBLE_EQ(all.variants[1].gate.margin.value(), 0.025);
}

TEST(ReadScenario, AppliesOverridesLastAndToEveryVariant) {
  const Scenario scenario = scenario_of(
      good, {"batch.size=128", "sync.where=phase", "measure.rounds=3", "transfer.blocking=true"});
  for (const Variant& variant : scenario.variants) {
    EXPECT_EQ(variant.knobs.batch.size, 128);
    EXPECT_EQ(variant.knobs.sync.where, SyncWhere::phase);
    EXPECT_TRUE(variant.knobs.transfer.blocking);
  }
  EXPECT_EQ(scenario.measure.rounds, 3);
}

// A key below [variant.fix] belongs to that variant, which people forget who end a file with a
// table.
TEST(ReadScenario, SaysWhereAKeyOfTheFileStandsInAVariant) {
  EXPECT_EQ(
      refusal("claim = \"x\"\n[variant.fix]\nexpect = []\n[expect]\n"
              "a = \"fix.launches_per_step == 3\""),
      "scenarios/good.toml:3:1: 'expect' stands in a variant; write [expect] on a line of its own, "
      "and its keys below");
  EXPECT_EQ(
      refusal("[variant.fix]\nclaim = \"x\"\n[expect]\n"
              "a = \"fix.launches_per_step == 3\""),
      "scenarios/good.toml: no 'claim'; say in one sentence what the scenario shows: claim = "
      "\"...\"\nscenarios/good.toml:2:1: 'claim' stands in a variant; write claim = ... above the "
      "first table");
}

TEST(ReadScenario, RefusesOverridesByTheirText) {
  EXPECT_EQ(refusal(good, {"batch.sise=128"}),
            "--set batch.sise=128: unknown key 'batch.sise'; did you mean 'batch.size'?");
  EXPECT_EQ(refusal(good, {"batch.size=many"}),
            "--set batch.size=many: 'batch.size' must be a whole number, but is a string; write "
            "batch.size = 64");
  EXPECT_EQ(refusal(good, {"fix.batch.size=128"}),
            "--set fix.batch.size=128: unknown key 'fix.batch.size'; that sets it in every "
            "variant; for one, write batch.size below [variant.fix]");
  EXPECT_EQ(refusal(good, {"launch.via=7"}),
            "--set launch.via=7: 'launch.via' has no choice '7'; 'launch.via' may be stream or "
            "graph");
  EXPECT_EQ(refusal(good, {"batch.size"}),
            "--set batch.size: no '=' in it; write --set batch.size=128");
  EXPECT_EQ(
      refusal(good, {"measure.clock=1"}),
      "--set measure.clock=1: 'measure.clock' is not built yet; 'stepgate fields' lists the keys");
  EXPECT_EQ(refusal(good, {"loader.workers=2"}),
            "--set loader.workers=2: 'loader.workers' have nowhere to put batches when "
            "'loader.depth' is 0; write loader.depth, at least as many as there are workers");
}

TEST(ReadScenario, LetsAFileWinOverItsBasesAndAVariantOverBoth) {
  const std::map<std::string, std::string> files{
      {"scenarios/bases/near.toml",
       "extends = \"far.toml\"\nclaim = \"near\"\n[model]\nlayers = 2\nhidden = 64\n"},
      {"scenarios/bases/far.toml",
       "claim = \"far\"\nsource = \"far\"\n[model]\nlayers = 3\nhidden = 128\ndtype = \"tf32\"\n"
       "[variant.fix]\nsync.every = 5\nbatch.size = 5\n"}};
  const BaseReader reader = [&](const std::string& file) -> TextOrProblem {
    const auto found = files.find(file);
    return found == files.end() ? no_base(file) : TextOrProblem(found->second);
  };
  const Scenario scenario = parse_scenario(
      "extends = \"bases/near.toml\"\n[model]\nlayers = 1\n[variant.fix]\nbatch.size = 9\n"
      "[expect]\na = \"fix.peak_live <= 1 GiB\"\n",
      "scenarios/a.toml", reader);
  EXPECT_EQ(scenario.claim, "near");
  EXPECT_EQ(scenario.source, "far");
  ASSERT_EQ(scenario.variants.size(), 1U);
  const Knobs& knobs = scenario.variants[0].knobs;
  EXPECT_EQ(knobs.model.layers, 1);
  EXPECT_EQ(knobs.model.hidden, 64);
  EXPECT_EQ(knobs.model.dtype, DType::tf32);
  EXPECT_EQ(knobs.sync.every, 5);
  EXPECT_EQ(knobs.batch.size, 9);
}

class Extends : public testing::Test {
 protected:
  Extends() {
    std::string name = testing::TempDir() + "extends_XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    place = std::filesystem::canonical(name);
    write("bases/small.toml", "model.hidden = 512\n");
    write("outside.toml", "model.hidden = 1024\npassword = \"secret\"\n");
  }
  ~Extends() override {
    ::unsetenv(bases_variable);
    std::filesystem::remove_all(place);
  }

  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((place / file).parent_path());
    std::ofstream(place / file) << text;
  }

  // The value of model.hidden in repository/scenarios/mine.toml, which extends the base, or the
  // error.
  std::string hidden_by(const std::string& base) const {
    write("repository/scenarios/mine.toml",
          "claim = \"c\"\nextends = \"" + base +
              "\"\n[variant.fix]\n[expect]\na = \"fix.peak_live <= 1 GiB\"\n");
    try {
      const Scenario scenario = read_scenario(place / "repository/scenarios/mine.toml");
      return std::to_string(scenario.variants.at(0).knobs.model.hidden);
    } catch (const RequestError& error) {
      return error.what();
    }
  }

  std::filesystem::path place;
};

TEST_F(Extends, ReachesAFileOfTheSameRepository) {
  write("repository/.git/HEAD", "");
  write("repository/bases/near.toml", "model.hidden = 256\n");
  EXPECT_EQ(hidden_by("../bases/near.toml"), "256");
  EXPECT_EQ(hidden_by((place / "repository/bases/near.toml").string()), "256");
}

TEST_F(Extends, ReachesNoFileOutsideIt) {
  write("repository/.git/HEAD", "");
  write("repository/scenarios/other.toml", "");
  std::filesystem::create_symlink(place, place / "repository/scenarios/link");
  for (const std::string& base :
       {std::string("../../outside.toml"), std::string("link/outside.toml"),
        (place / "outside.toml").string()}) {
    const std::string refused = hidden_by(base);
    EXPECT_NE(refused.find(
                  "mine.toml:2:11: extends '" + base + "': " + (place / "outside.toml").string() +
                  " lies outside " + (place / "repository").string() +
                  "; move it there, or allow its folder: STEPGATE_BASES=" + place.string()),
              std::string::npos)
        << refused;
    EXPECT_EQ(refused.find("password"), std::string::npos) << refused;
  }
}

TEST_F(Extends, SaysOfNoFileOutsideWhetherItIsThere) {
  write("repository/.git/HEAD", "");
  EXPECT_NE(hidden_by("../../none.toml").find("none.toml lies outside"), std::string::npos);
}

TEST_F(Extends, StaysInItsOwnFolderWhereThereIsNoRepository) {
  write("repository/bases/near.toml", "model.hidden = 256\n");
  write("repository/scenarios/bases/own.toml", "model.hidden = 128\n");
  EXPECT_EQ(hidden_by("bases/own.toml"), "128");
  EXPECT_NE(hidden_by("../bases/near.toml").find("lies outside"), std::string::npos);
}

TEST_F(Extends, ReachesFoldersThatTheEnvironmentAllows) {
  write("repository/.git/HEAD", "");
  ::setenv(bases_variable, ("/nowhere:" + (place / "bases").string() + "/").c_str(), 1);
  EXPECT_EQ(hidden_by("../../bases/small.toml"), "512");
  EXPECT_NE(hidden_by("../../outside.toml").find("lies outside"), std::string::npos);
}

TEST(ReadScenario, RefusesMoreVariantsThanARunCanVisit) {
  std::string many = good;
  for (int i = 0; i < 253; ++i) many += fmt::format("[variant.v{}]\nlike = \"zeta\"\n", i);
  EXPECT_EQ(scenario_of(many).variants.size(), 256U);
  for (int i = 253; i < 20000; ++i)
    many += fmt::format("[variant.v{}]\nlike = \"v{}\"\n", i, i - 1);
  EXPECT_NE(refusal(many).find("more than 256 variants; make scenarios of some of them"),
            std::string::npos);
}

TEST(ReadScenario, FollowsALongChainOfVariants) {
  std::string chain = good + "[variant.v0]\nlike = \"zeta\"\n";
  for (int i = 1; i < 250; ++i)
    chain += fmt::format("[variant.v{}]\nlike = \"v{}\"\nbatch.size = {}\n", i, i - 1, i);
  const Scenario scenario = scenario_of(chain);
  EXPECT_EQ(scenario.variants.back().knobs.batch.size, 249);
  EXPECT_EQ(scenario.variants.back().knobs.sync, scenario.variants.front().knobs.sync);
}

// A variant that leads into a cycle is not reported as part of it.
TEST(ReadScenario, ReportsEveryVariantOfACircleOnceAndNobodyElse) {
  const std::string circle = refusal(good +
                                     "[variant.a]\nlike = \"b\"\n[variant.b]\nlike = \"c\"\n"
                                     "[variant.c]\nlike = \"b\"\n");
  EXPECT_EQ(circle.find("'a' is like itself"), std::string::npos) << circle;
  for (const char* name : {"variant 'b' is like itself", "variant 'c' is like itself"}) {
    EXPECT_NE(circle.find(name), std::string::npos) << circle;
    EXPECT_EQ(circle.find(name), circle.rfind(name)) << circle;
  }
}

TEST(ReadScenario, RefusesAChainOfFilesWithoutEnd) {
  int read = 0;
  const BaseReader next = [&](const std::string&) -> TextOrProblem {
    ++read;
    return fmt::format("extends = \"b{}.toml\"\n", read);
  };
  try {
    parse_scenario("extends = \"b0.toml\"\n", "a.toml", next);
    FAIL() << "accepted";
  } catch (const RequestError& error) {
    EXPECT_NE(std::string(error.what()).find("more than 32 files extend each other"),
              std::string::npos)
        << error.what();
  }
  EXPECT_EQ(read, 31);
}

TEST(Fingerprint, IsTheSameForTheSameQuestionWrittenOtherwise) {
  const std::uint64_t original = scenario_of(good).fingerprint;
  EXPECT_EQ(scenario_of("# a comment\n" + good).fingerprint, original);
  EXPECT_EQ(scenario_of(replaced(good, "layers = 6\nhidden = 512", "hidden = 512\nlayers = 6"))
                .fingerprint,
            original);
  EXPECT_EQ(scenario_of(replaced(good, "[model]", "[transfer]\nbuffers = 1\n[model]")).fingerprint,
            original);
  EXPECT_EQ(scenario_of(replaced(good, "1.05 * zeta", "1.050*zeta")).fingerprint, original);
  EXPECT_EQ(scenario_of(replaced(good, "host work", "other words")).fingerprint, original);
}

TEST(Fingerprint, IsTheSameWhereverMeasuringBeginsAndEndsAndWhateverIsPrinted) {
  const std::uint64_t original = scenario_of(good).fingerprint;
  for (const char* knob : {"warmup = 8", "rounds = 9", "max_seconds = 3", "confidence = 0.9"}) {
    EXPECT_EQ(scenario_of(replaced(good, "warmup = 7", knob)).fingerprint, original) << knob;
  }
}

// If fields were hashed differently, comparisons with stored runs would silently end.
TEST(Fingerprint, IsThatOfTheRunsThatAreStored) {
  const std::filesystem::path source(STEPGATE_SOURCE_DIR);
  const Scenario scenario = read_scenario(source / "scenarios/stored/train_step.toml");
  std::ifstream file(source / "baselines/nvidia-h200/train_step.toml");
  const std::string stored{std::istreambuf_iterator<char>(file), {}};
  for (const Variant& variant : scenario.variants) {
    const std::string knobs = fmt::format("knobs = \"0x{:016x}\"", fingerprint_of(variant.knobs));
    EXPECT_NE(stored.find(knobs), std::string::npos) << variant.name;
  }
}

TEST(Fingerprint, DiffersForAnotherQuestion) {
  const std::uint64_t original = scenario_of(good).fingerprint;
  EXPECT_NE(scenario_of(replaced(good, "layers = 6", "layers = 7")).fingerprint, original);
  EXPECT_NE(scenario_of(replaced(good, "how = \"item\"", "how = \"event\"")).fingerprint, original);
  EXPECT_NE(scenario_of(replaced(good, "1.05", "1.06")).fingerprint, original);
  EXPECT_NE(scenario_of(replaced(good, "20%", "25%")).fingerprint, original);
  EXPECT_NE(scenario_of(replaced(good, "warmup = 7", "steps = 49")).fingerprint, original);
}

TEST(ReadScenario, ReadsAThousandFilesWellWithinASecond) {
  const std::clock_t start = std::clock();  // CPU time, since other processes may be running
  for (int i = 0; i < 1000; ++i) scenario_of(good);
  const double spent = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  EXPECT_LT(spent, 10) << "seconds, which allow for sanitizers";
  RecordProperty("milliseconds", static_cast<int>(1000 * spent));
}

std::vector<std::string> warnings_of(const std::string& assertion, const std::string& counted) {
  std::vector<std::string> warnings;
  const Scenario scenario = parse_scenario(
      "claim = \"one\"\n[variant.a]\n[variant.b]\n[expect]\nit = \"" + assertion + "\"\n",
      "a.toml");
  for (const Diagnostic& warning : lint(scenario, counted)) warnings.push_back(to_string(warning));
  return warnings;
}

TEST(Lint, WarnsAboutAScenarioThatCountsNothing) {
  const std::string counted = "b.copies_per_step < a.copies_per_step";
  using Warnings = std::vector<std::string>;
  for (const char* timed : {"b.step_ms_mean <= 1 ms", "b.gpu_idle <= 5%"}) {
    EXPECT_EQ(
        warnings_of(timed, counted),
        (Warnings{"a.toml:5:7: [expect] has no exact assertion: a timed one says how much, not "
                  "why; add a count, such as b.copies_per_step < a.copies_per_step"}));
    EXPECT_EQ(warnings_of(timed, ""), Warnings{}) << "no count would tell the two apart";
  }
  for (const char* exact : {"b.launches_per_step <= 1", "b.host_waits_per_step == 0"})
    EXPECT_EQ(warnings_of(exact, counted), Warnings{});
}

TEST(Lint, WarnsOfOverridesThatDoNothing) {
  const auto warnings = [](const std::string& of_base, const std::string& of_variant) {
    std::vector<std::string> all;
    const Scenario scenario =
        parse_scenario("claim = \"one\"\n" + of_base + "\n[variant.a]\n" + of_variant +
                           "\n[expect]\nit = \"a.host_waits_per_step == 0\"\n",
                       "a.toml");
    for (const Diagnostic& warning : lint(scenario, "")) all.push_back(to_string(warning));
    return all;
  };
  using Warnings = std::vector<std::string>;
  EXPECT_EQ(
      warnings("loader.depth = 2", "loader.workers = 16"),
      (Warnings{"a.toml:4:8: variant 'a' has 16 workers, and 2 at a time have a batch to make: "
                "'loader.depth' is 2; write loader.depth = 16, or fewer workers"}));
  EXPECT_EQ(warnings("loader.depth = 2", "loader.workers = 2"), Warnings{});
  EXPECT_EQ(warnings("", "sync.times = 50"),
            (Warnings{"a.toml:4:6: 'sync.times = 50' of variant 'a' does nothing: its "
                      "'sync.where' is none; write sync.where = \"step\", or remove it"}));
  EXPECT_EQ(warnings("sync.where = \"step\"", "sync.times = 50"), Warnings{});
  EXPECT_EQ(warnings("", "log.via = \"item\""),
            (Warnings{"a.toml:4:5: 'log.via = item' of variant 'a' does nothing: its 'log.every' "
                      "is 0; write log.every = 1, or remove it"}));
  EXPECT_EQ(warnings("log.every = 2", "log.via = \"item\""), Warnings{});
  EXPECT_EQ(warnings("sync.times = 50", "sync.where = \"none\""), Warnings{})
      << "a base has what other variants need";
}

TEST(Lint, WarnsAboutALimitOfExactlyOne) {
  for (const char* bare :
       {"b.step_ms_mean < 1 * a.step_ms_mean", "b.step_ms_p50 <= a.step_ms_p50",
        "2 * b.samples_per_s > 2 * a.samples_per_s", "b.gpu_idle <= 1 * a.gpu_idle"}) {
    const std::vector<std::string> warnings = warnings_of(bare, "");
    ASSERT_EQ(warnings.size(), 1U) << bare;
    EXPECT_NE(warnings[0].find("about 6 % of runs refute it and 10 % hold"), std::string::npos);
  }
  const std::vector<std::string> stored =
      warnings_of("b.samples_per_s >= stored.b.samples_per_s", "");
  ASSERT_EQ(stored.size(), 1U);
  EXPECT_NE(stored[0].find("about 1 % of runs refute it, 5 % hold"), std::string::npos);
  for (const char* with_margin :
       {"b.step_ms_mean <= 1.01 * a.step_ms_mean", "b.samples_per_s ~= a.samples_per_s within 3%",
        "b.peak_live <= 1 * a.peak_live", "b.samples_per_s >= 0.99 * stored.b.samples_per_s",
        "b.step_ms_mean <= 1 ms"})
    EXPECT_TRUE(warnings_of(with_margin, "").empty()) << with_margin;
}

TEST(ReadScenario, KnowsWhatEachVariantsOwnTableSays) {
  const Scenario scenario = scenario_of(good);
  std::vector<std::string> said;
  for (const VariantOverride& one : scenario.overrides)
    said.push_back(fmt::format("{}:{}: {} = {}", one.place.line, one.variant, one.knob, one.value));
  EXPECT_EQ(said,
            (std::vector<std::string>{"20:zeta: sync.where = step", "20:zeta: sync.how = item",
                                      "25:again: like = zeta", "26:again: sync.every = 2"}))
      << "neither what all share nor what `like` brings";
}

TEST(ReadScenario, ChangesOneVariantWhereSomebodyAsks) {
  const auto changed = [](const VariantChange& change) {
    return parse_scenario(good, "scenarios/good.toml", no_base, {}, &change);
  };
  const Scenario removed = changed({"zeta", "sync.where", std::nullopt});
  EXPECT_EQ(removed.variants[0].knobs.sync.where, SyncWhere::none);
  EXPECT_EQ(removed.variants[2].knobs.sync.where, SyncWhere::none) << "it is like zeta";
  EXPECT_EQ(removed.variants[0].knobs.sync.how, SyncHow::item);
  const Scenario turned = changed({"fix", "batch.size", FieldValue(std::int64_t{64})});
  EXPECT_EQ(turned.variants[1].knobs.batch.size, 64);
  EXPECT_EQ(turned.variants[0].knobs.batch.size, 32);
}

std::string identical_in(const std::string& text) {
  std::string told;
  for (const Diagnostic& one : identical_variants(scenario_of(text))) told += to_string(one) + '\n';
  return told;
}

TEST(Lint, FindsVariantsThatAreTheSameStep) {
  EXPECT_EQ(identical_in(good), "");
  const std::string twice = replaced(good, "sync.every = 2", "");
  EXPECT_EQ(identical_in(twice),
            "scenarios/good.toml:24:10: variant 'again' is the same step as 'zeta'; remove one, or "
            "claim in an assertion that they tie\n");
  EXPECT_EQ(identical_in(twice + "tie = \"again.samples_per_s ~= zeta.samples_per_s within 5%\"\n"),
            "");
}

TEST(ReadScenario, RefusesMetricsThatAVariantsModelDoesNotHave) {
  const auto refusal_of_line = [](const std::string& line) {
    return refusal(replaced(good, "fix.host_waits_per_step == 0", line));
  };
  EXPECT_NE(refusal_of_line("fix.tokens_per_s >= 1000")
                .find("'fix' has no tokens_per_s: its samples are no sequences of tokens; compare "
                      "samples_per_s, or set 'model.kind' to transformer"),
            std::string::npos);
  EXPECT_EQ(refusal_of_line("fix.mfu >= 40%"), "accepted");
  const std::string spinning = replaced(good, "kind   = \"mlp\"", "kind   = \"spin\"");
  const std::string no_products =
      refusal(replaced(spinning, "fix.host_waits_per_step == 0", "fix.mfu >= 40%"));
  EXPECT_NE(no_products.find("'fix' has no mfu: it computes no GEMMs"), std::string::npos)
      << no_products;
}

TEST(Fingerprint, IsAnotherForAnotherKernelOrClass) {
  const auto fingerprint = [](const std::string& line) {
    return fingerprint_of(scenario_of(replaced(good, "fix.host_waits_per_step == 0", line)));
  };
  EXPECT_NE(fingerprint("fix.kernel_us(matmul) <= 1 us"),
            fingerprint("fix.kernel_us(sgd) <= 1 us"));
  EXPECT_NE(fingerprint("fix.bound == copy"), fingerprint("fix.bound == host"));
}

const std::string of_programs = R"(
claim = "Training waits only to log"
program = { command = ["python3", "train.py"], steps = 10, env = { SEED = "1", MODE = "fast" } }

[variant.every_step]
program.arguments = ["--log-every", "1"]

[variant.every_10]
program.arguments = ["--log-every", "10"]
program.env.MODE = "slow"
program.cwd = "../other"

[expect]
waits  = "every_10.host_waits_per_step <= 0.1"
faster = "every_10.steps_per_s >= 1.02 * every_step.steps_per_s"
)";

TEST(ReadScenario, ReadsAProgramInPlaceOfAStep) {
  const Scenario scenario = scenario_of(of_programs);
  EXPECT_TRUE(runs_programs(scenario));
  EXPECT_FALSE(runs_programs(scenario_of(good)));
  const ProgramKnobs& slow = scenario.variants[1].knobs.program;
  EXPECT_EQ(slow.command, (ProgramWords{"python3", "train.py"}));
  EXPECT_EQ(slow.arguments, (ProgramWords{"--log-every", "10"}));
  EXPECT_EQ(slow.env, (ProgramVariables{{"MODE", "slow"}, {"SEED", "1"}})) << "added to the base's";
  EXPECT_EQ(slow.cwd, "../other");
  EXPECT_EQ(slow.steps, 10);
  EXPECT_EQ(scenario.measure.max_seconds, 300) << "programs take long to start";
  EXPECT_EQ(slow.skip_steps, 10);
  EXPECT_EQ(scenario.variants[0].knobs.program.env,
            (ProgramVariables{{"MODE", "fast"}, {"SEED", "1"}}));
}

TEST(ReadScenario, TellsProgramsThatDifferInAnyKnobApart) {
  const auto fingerprint = [](const std::string& from, const std::string& to) {
    return fingerprint_of(scenario_of(replaced(of_programs, from, to)));
  };
  const std::uint64_t as_it_is = fingerprint("steps = 10", "steps = 10");
  EXPECT_NE(fingerprint("steps = 10", "steps = 11"), as_it_is);
  EXPECT_NE(fingerprint("train.py", "other.py"), as_it_is);
  EXPECT_NE(fingerprint("\"slow\"", "\"sl\u00f6w\""), fingerprint("\"slow\"", "\"sl\u00e4w\""));
  EXPECT_EQ(fingerprint("steps = 10", "steps = 10, timeout_s = 5"), as_it_is);
}

TEST(ReadScenario, RefusesWhatAProgramCannotHave) {
  struct Wrong {
    std::string from;
    std::string to;
    std::string message;
  };
  const std::string line = "[variant.every_step]\n";
  for (const Wrong& wrong : {
           Wrong{line, line + "batch.size = 4\n", "'batch.size' is about a step"},
           Wrong{line, line + "ranks.count = 2\n", "'ranks.count' is about a step"},
           Wrong{"\nprogram =", "\nmodel.layers = 2\nprogram =", "'model.layers' is about a step"},
           Wrong{"command = [\"python3\", \"train.py\"], ", "", "'program.command' names none"},
           Wrong{"[\"python3\", \"train.py\"]", "\"python3 train.py\"",
                 "must be a list of strings"},
           Wrong{"[\"python3\", \"train.py\"]", "[]", "must list 1 to 256 words"},
           Wrong{"[\"python3\", \"train.py\"]", "[\"\"]", "'program.command' is empty"},
           Wrong{"[\"python3\", \"train.py\"]", "[\"python3\", 3]", "but is a whole number"},
           Wrong{"train.py", "a\\u0007.py", "characters that nobody sees"},
           Wrong{"SEED = \"1\"", "SEED = 1", "must be a table of strings"},
           Wrong{"SEED = \"1\"", "\"A=B\" = \"1\"", "'A=B' cannot name a variable"},
           Wrong{"SEED", "CUDA_INJECTION64_PATH", "by which stepgate loads its library"},
           Wrong{"SEED", "STEPGATE_HOLD", "by which stepgate loads its library"},
           Wrong{"steps = 10", "steps = 10, step_kernel = \"(\"", "'(' is no regular expression"},
           Wrong{"steps = 10", "steps = 0", "must be between 1 and 100000"},
           Wrong{"steps = 10", "setps = 10", "unknown key 'program.setps'"},
           Wrong{"host_waits_per_step", "flops_per_step", "has no plan"},
           Wrong{"host_waits_per_step <= 0.1", "peak_reserved <= 1 MiB", "has no plan"},
           Wrong{"\nprogram =", "\nrequires.gpus = 2\nprogram =",
                 "'requires.gpus' is about a device"},
           Wrong{"steps = 10", "steps = 10, step_call = \"cudaGraphLaunch\"",
                 "its steps are others"},
           Wrong{"host_waits_per_step", "gpu_idle", "is not traced"},
           Wrong{"host_waits_per_step", "samples_per_s", "only whole runs are timed"},
           Wrong{"host_waits_per_step <= 0.1", "copy_bytes_per_step <= 2 * batch_bytes",
                 "program has no plan"},
           Wrong{"* every_step.steps", "* stored.every_10.steps", "are not stored"},
           Wrong{"\nprogram =", "\ntags = [\"no_gpu\"]\nprogram =", "a program has no plan"},
       }) {
    const std::string text = refusal(replaced(of_programs, wrong.from, wrong.to));
    EXPECT_NE(text.find(wrong.message), std::string::npos) << wrong.to << '\n' << text;
  }
}

TEST(ReadScenario, RefusesAVariantWithoutAProgramBesideOthers) {
  const std::string text = refusal(R"(
claim = "One of them runs nothing"
[variant.a]
program.command = ["./train"]
[variant.b]
[expect]
waits = "a.host_waits_per_step <= b.host_waits_per_step"
)");
  EXPECT_NE(text.find("'b' runs no program, and other variants do"), std::string::npos) << text;
}

TEST(ReadScenario, SetsKnobsOfProgramsFromTheCommandLine) {
  const Scenario scenario =
      scenario_of(of_programs, {"program.arguments=[\"--fast\"]", "program.env={ MODE = \"x\" }",
                                "program.steps=5", "program.cwd=a folder"});
  const ProgramKnobs& program = scenario.variants[1].knobs.program;
  EXPECT_EQ(program.arguments, (ProgramWords{"--fast"}));
  EXPECT_EQ(program.env.at("MODE"), "x");
  EXPECT_EQ(program.steps, 5);
  EXPECT_EQ(program.cwd, "a folder");
  EXPECT_NE(refusal(of_programs, {"program.arguments=--fast"}).find("must be a list of strings"),
            std::string::npos);
}

}  // namespace
}  // namespace stepgate
