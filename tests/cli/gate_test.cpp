// SPDX-License-Identifier: MIT
// Tests `stepgate gate` from outside: faults planted into HEAD are found and named, identical
// builds pass, and errors never pass. On the simulated device, where HEAD is a script that runs
// this build with another profile or knob, or with work that no plan has.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "tests/cli/command_line.h"
#include "tests/cli/validate_json.h"
#include "tests/sanitized.h"

namespace stepgate {
namespace {

using Json = nlohmann::json;

const std::string program = STEPGATE_PROGRAM;
const std::string baselines = STEPGATE_SOURCE_DIR "/baselines";

// Four steps: one is limited by arithmetic, with hidden copies; one waits for every copy; one is
// limited by its launches; and one waits for the device in every step, so that host work shows.
const std::string tensor_cores =
    "claim = \"c\"\nmodel = { kind = \"mlp\", layers = 4, hidden = 1024, dtype = \"tf32\" }\n"
    "batch.size = 1024\ntransfer = { host = \"pinned\", stream = \"side\", buffers = 2 }\n"
    "[variant.step]\n[expect]\nno_waits = \"step.host_waits_per_step == 0\"\n";
const std::string copies =
    "claim = \"c\"\nmodel = { kind = \"spin\", kernels = 4, kernel_us = 20 }\n"
    "batch = { size = 64, sample_bytes = \"128 KiB\" }\n"
    "transfer = { host = \"pinned\", stream = \"compute\" }\n"
    "[variant.step]\n[expect]\nno_waits = \"step.host_waits_per_step == 0\"\n";
const std::string launches =
    "claim = \"c\"\nmodel = { kind = \"mlp\", layers = 8, hidden = 256, dtype = \"tf32\" }\n"
    "batch.size = 64\n"
    "[variant.step]\n[expect]\nno_waits = \"step.host_waits_per_step == 0\"\n";
const std::string waits =
    "claim = \"c\"\nmodel = { kind = \"spin\", kernels = 10, kernel_us = 20 }\n"
    "sync = { where = \"step\", how = \"device\" }\n"
    "[variant.step]\n[expect]\none_wait = \"step.host_waits_per_step == 1\"\n";

class Gates : public CommandLine {
 protected:
  void SetUp() override {
    write("tensor_cores.toml", tensor_cores);
    write("copies.toml", copies);
    write("launches.toml", launches);
    write("waits.toml", waits);
    script("base", "exec " + program + " \"$@\"\n");
  }

  void script(const std::string& name, const std::string& text) const {
    const auto file = place() / name;
    std::ofstream(file) << "#!/bin/sh\n" << text;
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  }

  // Makes HEAD run on a device whose profile has all values of these keys multiplied.
  void head_on_a_device_with(const std::string& keys, double factor) const {
    std::ifstream file(baselines + "/nvidia-h200/device.toml");
    const std::regex wanted("^(" + keys + ") = (.*)$");
    const std::regex number("[0-9][0-9.e+]*");
    std::ostringstream text;
    int changed = 0;
    for (std::string line; std::getline(file, line);) {
      std::smatch found;
      if (!std::regex_match(line, found, wanted)) {
        text << line << '\n';
        continue;
      }
      ++changed;
      std::string values = found[2];
      std::string scaled;
      std::sregex_iterator each(values.begin(), values.end(), number);
      std::size_t end = 0;
      for (; each != std::sregex_iterator(); ++each) {
        const double value = std::stod(each->str()) * factor;
        const bool whole = each->str().find_first_of(".e") == std::string::npos;
        scaled += values.substr(end, static_cast<std::size_t>(each->position()) - end);
        scaled += whole ? fmt::format("{:.0f}", value) : fmt::format("{:.6g}", value);
        end = static_cast<std::size_t>(each->position() + each->length());
      }
      text << found[1] << " = " << scaled << values.substr(end) << '\n';
    }
    ASSERT_GT(changed, 0) << keys;
    std::filesystem::create_directories(place() / "other/nvidia-h200");
    write("other/nvidia-h200/device.toml", text.str());
    script("head", "shift 2\nexec " + program + " --baselines " + (place() / "other").string() +
                       " \"$@\"\n");
  }

  // Makes a HEAD whose worker does additional work at the end of every step.
  void head_that_injects(const std::string& what) const {
    script("head", "if [ \"$3\" = worker ]; then " + adding("--injected " + what) + "fi\nexec " +
                       program + " \"$@\"\n");
  }

  void head_with_knob(const std::string& knob) const {
    script("head", adding("--set " + knob) + "exec " + program + " \"$@\"\n");
  }

  Finished gate(const std::vector<std::string>& files, std::vector<std::string> more = {},
                const std::string& device = "simulated", int seed = 7) const {
    std::vector<std::string> all{"--baselines", baselines,  "gate",
                                 "--base",      "./base",   "--head",
                                 "./head",      "--seed",   std::to_string(seed),
                                 "--json",      "gate.json"};
    if (!device.empty()) all.insert(all.end(), {"--device", device});
    all.insert(all.end(), more.begin(), more.end());
    for (const std::string& file : files) all.push_back(file + ".toml");
    return stepgate(all);
  }

  std::vector<Json> lines() const {
    std::vector<Json> all;
    std::ifstream file(place() / "gate.json");
    for (std::string line; std::getline(file, line);) all.push_back(Json::parse(line));
    return all;
  }

  void expect_json_of_the_schema() const {
#ifdef STEPGATE_PYTHON
    const Finished valid = ChildProcess(STEPGATE_PYTHON,
                                        {"-c", validate_json,
                                         STEPGATE_SOURCE_DIR "/docs/json_schema.json", "gate.json"},
                                        place())
                               .wait();
    EXPECT_EQ(valid.exit_code, 0) << valid.out << valid.err;
#endif
  }
};

std::string in_a_month() {
  return fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr) + 30 * 24 * 3600));
}

std::string last_line(const std::string& text) {
  const std::size_t before = text.find_last_of('\n', text.size() - 2);
  return before == std::string::npos ? text : text.substr(before + 1);
}

TEST_F(Gates, FindSlowerProducts) {
  head_on_a_device_with("[a-z0-9]+_flops_per_second", 0.9);
  const Finished run = gate({"tensor_cores"});
  EXPECT_EQ(run.exit_code, 1) << run.out << run.err;
  EXPECT_TRUE(contains(run.out, "blocks     time  tensor_cores/step")) << run.out;
  EXPECT_TRUE(contains(run.out, "kernels limited by arithmetic")) << run.out;
}

TEST_F(Gates, AWorkMayHaveAMarginOfItsOwn) {
  head_on_a_device_with("[a-z0-9]+_flops_per_second", 0.9);
  const auto with_own = [&](const std::string& own, const std::string& of_all) {
    write("wide.toml",
          tensor_cores + "[variant.quiet]\n[variant.step.gate]\nmargin = \"" + own + "\"\n");
    return gate({"wide"}, {"--only", "counts", "--only", "time", "--workload", "wide/step",
                           "--margin", of_all, "--report", "wide.html"});
  };
  const Finished wide = with_own("20%", "1%");
  EXPECT_EQ(wide.exit_code, 0) << wide.out << wide.err;
  EXPECT_TRUE(contains(wide.out, "; margin 1 %, more for 1 workload, ")) << wide.out;
  EXPECT_EQ(lines().at(1).at("margin"), 0.2);
  const std::string page = text_of(place() / "wide.html");
  EXPECT_TRUE(contains(page, ", limit +20.00 %")) << page;
  EXPECT_TRUE(contains(page, "from -30.00 % to +30.00 %, limit +1.00 % or as said")) << page;
  const Finished narrow = with_own("3%", "1%");
  EXPECT_EQ(narrow.exit_code, 1) << narrow.out << narrow.err;
  EXPECT_TRUE(contains(narrow.out, "the limit is +3 %")) << narrow.out;
  // The variant's margin only widens the common margin and never narrows it.
  const Finished asked = with_own("3%", "20%");
  EXPECT_EQ(asked.exit_code, 0) << asked.out << asked.err;
  EXPECT_FALSE(contains(asked.out, "more for")) << asked.out;
}

TEST_F(Gates, KnobsOfTheCommandLineAreThoseOfTheGateToo) {
  head_on_a_device_with("[a-z0-9]+_flops_per_second", 0.9);
  const Finished wide =
      gate({"tensor_cores"}, {"--only", "counts", "--only", "time", "--set", "gate.margin=20%"});
  EXPECT_EQ(wide.exit_code, 0) << wide.out << wide.err;
  EXPECT_TRUE(contains(wide.out, "more for 1 workload")) << wide.out;
  const Finished wrong = gate({"tensor_cores"}, {"--set", "batch.size=abc"});
  EXPECT_EQ(wrong.exit_code, 2) << wrong.out << wrong.err;
}

TEST_F(Gates, WhatFailsWhileTheMechanismIsLookedForChangesNoAnswer) {
  // HEAD dies at its second start as a counting worker.
  script("head",
         "for word; do [ \"$word\" = --counts ] && counts=1; [ \"$word\" = --noise-seed ] && "
         "alone=1; done\n[ \"$counts$alone\" = 11 ] && exit 9\n"
         "if [ \"$3\" = worker ]; then " +
             adding("--injected repeated_products:10%") + "fi\nexec " + program + " \"$@\"\n");
  const Finished run = gate({"tensor_cores"}, {"--only", "counts", "--only", "time"});
  EXPECT_EQ(run.exit_code, 1) << run.out << run.err;
  EXPECT_TRUE(contains(run.out, "blocks     time  tensor_cores/step")) << run.out;
  EXPECT_TRUE(contains(run.out, "where slower steps have grown is not known: HEAD, ")) << run.out;
  EXPECT_FALSE(contains(run.out, "FAILED")) << run.out;
}

TEST_F(Gates, FindSlowerMemory) {
  head_on_a_device_with("memory_bytes_per_second", 0.5);
  const Finished run = gate({"tensor_cores"});
  EXPECT_EQ(run.exit_code, 1) << run.out << run.err;
  EXPECT_TRUE(contains(run.out, "kernels limited by memory")) << run.out;
}

// The update is a small part of the step. An older worker, of which a pipe takes the new word away,
// knows nothing of kernels.
TEST_F(Gates, FindASlowerKernelOfAStepThatIsAsFastWhereAnAssertionNamesIt) {
  const std::string asked = tensor_cores + "norm = \"step.kernel_us(sgd) <= 1 s\"\n";
  write("asked.toml", asked);
  head_on_a_device_with("memory_bytes_per_second", 0.94);
  const Finished unasked = gate({"tensor_cores"});
  EXPECT_EQ(unasked.exit_code, 0) << unasked.out << unasked.err;
  const Finished slower = gate({"asked"}, {"--junit", "j.xml", "--ledger", "ledger"});
  EXPECT_EQ(slower.exit_code, 1) << slower.out << slower.err;
  EXPECT_TRUE(contains(slower.out, "kernels    1 kernel, 1 slower, ")) << slower.out;
  EXPECT_TRUE(contains(slower.out, "blocks     time  asked/step\n             sgd +"))
      << slower.out;
  EXPECT_TRUE(contains(slower.out, "; the limit is +2 %; the step +")) << slower.out;
  EXPECT_TRUE(contains(slower.out, "BLOCKED: 1 x time")) << slower.out;
  EXPECT_EQ(lines().at(1).at("outcome"), "passes");
  EXPECT_EQ(lines().at(2).at("workload"), "asked/step.kernel_us(sgd)");
  EXPECT_EQ(lines().at(2).at("kernel"), "sgd");
  EXPECT_EQ(lines().at(3).at("what"), "kernel_us(sgd)");
  expect_json_of_the_schema();
  EXPECT_TRUE(contains(text_of(place() / "j.xml"), "name=\"time.asked/step.kernel_us(sgd)\""));
  const Finished again = gate({"asked"}, {"--ledger", "ledger"}, "simulated", 8);
  EXPECT_EQ(again.exit_code, 1) << again.out << again.err;
  EXPECT_TRUE(contains(again.out, " pairs of launches and ")) << again.out;
  const Finished few = gate({"asked"}, {"--pairs", "7"});
  EXPECT_EQ(few.exit_code, 2) << few.out;
  EXPECT_TRUE(contains(few.err, "7 pairs of launches can never decide 1 workload")) << few.err;
  EXPECT_FALSE(contains(few.out, "comparison ")) << few.out;
  const Finished only = gate({"asked"}, {"--only", "time"});
  EXPECT_EQ(only.exit_code, 1) << only.out << only.err;
  script("base", program + " \"$@\" | sed -u 's/\"kernels\":\\[[^]]*\\],//'\n");
  const Finished older = gate({"asked"}, {"--only", "time"});
  EXPECT_EQ(older.exit_code, 0) << older.out << older.err;
  EXPECT_TRUE(contains(older.out, "sgd is not compared: BASE's worker does not tell its time"))
      << older.out;
}

TEST_F(Gates, NoKernelOfIdenticalBuildsIsSlower) {
  script("head", "exec " + program + " \"$@\"\n");
  write("asked.toml", tensor_cores + "norm = \"step.kernel_us(sgd) <= 1 s\"\n");
  int passed = 0;
  constexpr int gates = 10;
  for (int seed = 1; seed <= gates; ++seed) {
    const Finished same = gate({"asked"}, {"--only", "time"}, "simulated", seed);
    EXPECT_NE(same.exit_code, 1) << same.out;
    passed += same.exit_code == 0;
  }
  EXPECT_GE(passed, gates - 1);
}

TEST_F(Gates, FindDearerLaunches) {
  head_on_a_device_with("launch_ns|product_ns|graph_launch_ns", 1.25);
  const Finished run = gate({"launches"});
  EXPECT_EQ(run.exit_code, 1) << run.out << run.err;
  EXPECT_TRUE(contains(run.out, "idle while the host issues workload")) << run.out;
}

TEST_F(Gates, FindSlowerCopies) {
  head_on_a_device_with("ns", 1.25);
  const Finished run = gate({"copies"});
  EXPECT_EQ(run.exit_code, 1) << run.out << run.err;
  EXPECT_TRUE(contains(run.out, "copies with no kernel beside them")) << run.out;
}

TEST_F(Gates, FindEverythingTwiceAsSlow) {
  head_on_a_device_with("[a-z0-9_]+_per_second", 0.5);
  const Finished run = gate({"tensor_cores"});
  EXPECT_EQ(run.exit_code, 1) << run.out << run.err;
  EXPECT_TRUE(contains(run.out, "blocks     time")) << run.out;
}

struct Counted {
  const char* injection;
  std::string says;
};
void PrintTo(const Counted& counted, std::ostream* out) {
  *out << counted.injection;
}
class CountedGates : public Gates, public testing::WithParamInterface<Counted> {};

TEST_P(CountedGates, FindWhatNoPlanSaysByItsTrace) {
  head_that_injects(GetParam().injection);
  const Finished run = gate({"tensor_cores"}, {"--only", "counts", "--only", "time"});
  EXPECT_EQ(run.exit_code, 1) << run.out << run.err;
  EXPECT_TRUE(contains(run.out, GetParam().says)) << run.out;
  EXPECT_TRUE(contains(run.out, "in a trace, though both plans say the same")) << run.out;
}

INSTANTIATE_TEST_SUITE_P(Injections, CountedGates,
                         testing::Values(Counted{"extra_wait", "host_waits_per_step 0 -> 1"},
                                         Counted{"extra_copy", "pageable_copies_per_step 0 -> 1"},
                                         Counted{"extra_allocation",
                                                 "device_allocs_per_step 0 -> 1"}),
                         [](const auto& counted) { return std::string(counted.param.injection); });

TEST_F(Gates, FindAWaitOfThePlanAndNameItsOperation) {
  head_with_knob("sync.where=step");
  const Finished run = gate({"tensor_cores"}, {"--only", "counts", "--only", "time"});
  EXPECT_EQ(run.exit_code, 1) << run.out << run.err;
  EXPECT_TRUE(contains(run.out, "host_waits_per_step 0 -> 1\n")) << run.out;
  EXPECT_TRUE(contains(run.out, "'sync: ")) << run.out;
}

TEST_F(Gates, FindHostWorkOfTwoPercentOfAStepThatWaits) {
  head_that_injects("host_delay:6");
  const Finished run = gate({"waits"}, {"--only", "counts", "--only", "time"});
  EXPECT_EQ(run.exit_code, 1) << run.out << run.err;
  EXPECT_TRUE(contains(run.out, "blocks     time  waits/step")) << run.out;
  EXPECT_TRUE(contains(run.out, "idle")) << run.out;
}

TEST_F(Gates, DoNotLetLessWorkWin) {
  head_with_knob("batch.size=512");
  const Finished run = gate({"tensor_cores"}, {"--only", "counts", "--only", "time"});
  EXPECT_EQ(run.exit_code, 1) << run.out << run.err;
  EXPECT_TRUE(contains(run.out, "flops_per_step ")) << run.out;
}

TEST_F(Gates, BlockAFailedAssertionAndKnowWhatBaseFailsToo) {
  write("tensor_cores.toml", tensor_cores + "few = \"step.launches_per_step <= 1\"\n");
  script("head", "exec " + program + " \"$@\"\n");
  const Finished known = gate({"tensor_cores"});
  EXPECT_EQ(known.exit_code, 0) << known.out << known.err;
  EXPECT_TRUE(contains(known.out, "BASE is no better")) << known.out;
  script("head", "if [ \"$3\" = run ]; then " + adding("--set sync.where=step") + "fi\nexec " +
                     program + " \"$@\"\n");
  const Finished new_one = gate({"tensor_cores"});
  EXPECT_EQ(new_one.exit_code, 1) << new_one.out << new_one.err;
  EXPECT_TRUE(contains(new_one.out, "blocks     assertion  tensor_cores")) << new_one.out;
}

TEST_F(Gates, BlameNoHeadWhereBasesRunFails) {
  write("tensor_cores.toml", tensor_cores + "few = \"step.launches_per_step <= 1\"\n");
  script("head", "exec " + program + " \"$@\"\n");
  const std::string otherwise = "exec " + program + " \"$@\"\n";
  script("base", "[ \"$3\" = run ] && { echo 'out of disk' >&2; exit 3; }\n" + otherwise);
  const Finished failed = gate({"tensor_cores"});
  EXPECT_EQ(failed.exit_code, 3) << failed.out << failed.err;
  EXPECT_TRUE(contains(failed.out, "BASE's `run` ended with 3: out of disk")) << failed.out;
  script("base", "[ \"$3\" = run ] && { echo 'no such option' >&2; exit 2; }\n" + otherwise);
  const Finished refused = gate({"tensor_cores"});
  EXPECT_EQ(refused.exit_code, 2) << refused.out << refused.err;
  EXPECT_TRUE(contains(refused.err, "no such option")) << refused.err;
}

// Equal variants at their limit, with too few rounds to decide.
const std::string tie =
    "claim = \"c\"\nmodel = { kind = \"spin\", kernels = 10, kernel_us = 20 }\n"
    "measure.rounds = 6\n[variant.one]\n[variant.other]\n"
    "[expect]\nfaster = \"other.samples_per_s >= 1 * one.samples_per_s\"\n";

TEST_F(Gates, WhatBaseCannotDecideEitherIsKnown) {
  write("tie.toml", tie);
  script("head", "exec " + program + " \"$@\"\n");
  for (const std::string first : {"", "true\n"}) {
    script("base", first + "exec " + program + " \"$@\"\n");
    const Finished run = gate({"tie"});
    EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
    EXPECT_TRUE(contains(run.out, "BASE is no better")) << run.out;
    EXPECT_TRUE(contains(run.out, "undecided: ")) << run.out;
    EXPECT_EQ(contains(run.out, "are the same program, byte for byte"), first.empty()) << run.out;
  }
}

TEST_F(Gates, GoOnFromTheAssertionsOfEarlierGates) {
  write("tie.toml", tie);
  script("head", "true\nexec " + program + " \"$@\"\n");
  script("base", "[ \"$3\" = run ] && exit 3\nexec " + program + " \"$@\"\n");
  const auto rounds = [&](int seed) {
    (void)gate({"tie"}, {"--ledger", "kept"}, "simulated", seed);
    const Finished run =
        stepgate({"--baselines", baselines, "run", "tie.toml", "--device", "simulated", "--seed",
                  std::to_string(10 + seed), "--ledger", "kept", "--json", "run.json"});
    EXPECT_EQ(run.err, "");
    std::ifstream file(place() / "run.json");
    std::string line;
    std::getline(file, line);
    return Json::parse(line).at("earlier").at("runs").get<int>();
  };
  EXPECT_EQ(rounds(1), 1);
  EXPECT_EQ(rounds(2), 3) << "that gate, that run and this gate";
}

TEST_F(Gates, GoOnFromNothingOfBaseThatHeadWrote) {
  write("tie.toml", tie);
  script("base", "true\nexec " + program + " \"$@\"\n");
  script("head",
         "[ \"$3\" = run ] || exec " + program + " \"$@\"\n" + program +
             " \"$@\"\ncode=$?; for f in kept/*/*/*.toml; do echo forged >$f; done; exit $code\n");
  const Finished run = gate({"tie"}, {"--ledger", "kept"});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_TRUE(contains(run.out, "BASE is no better")) << run.out;
}

TEST_F(Gates, GoOnFromThePairsOfEarlierGates) {
  script("head", "true\nexec " + program + " \"$@\"\n");
  const auto comparison = [&](int seed) {
    const Finished run =
        gate({"waits"}, {"--only", "counts", "--only", "time", "--ledger", "kept", "-v"},
             "simulated", seed);
    EXPECT_EQ(run.exit_code, seed == 1 ? 0 : run.exit_code) << run.out << run.err;
    return run;
  };
  EXPECT_FALSE(contains(comparison(1).out, " before;"));
  const Finished second = comparison(2);
  EXPECT_EQ(second.exit_code, 0) << second.out << second.err;
  EXPECT_TRUE(contains(second.out, "over 5 pairs of launches and 6 before;")) << second.out;
  const Finished same_seed = comparison(2);
  EXPECT_EQ(same_seed.exit_code, 2) << same_seed.out;
  EXPECT_TRUE(contains(same_seed.err, "leave out --seed")) << same_seed.err;
  // Another HEAD starts without earlier evidence.
  script("head", "true\ntrue\nexec " + program + " \"$@\"\n");
  EXPECT_FALSE(contains(comparison(3).out, " before;"));
}

TEST_F(Gates, CompareTwoEnvironmentsOfOneProgram) {
  script("base",
         adding("--set sync.where=${CUDA_TEST_WHERE:-none}") + "exec " + program + " \"$@\"\n");
  script("head", text_of(place() / "base").substr(std::string("#!/bin/sh\n").size()));
  EXPECT_EQ(gate({"tensor_cores"}, {"--only", "counts", "--only", "time"}).exit_code, 0);
  const Finished run = gate({"tensor_cores"}, {"--only", "counts", "--only", "time", "--head-env",
                                               "CUDA_TEST_WHERE=step"});
  EXPECT_EQ(run.exit_code, 1) << run.out << run.err;
  EXPECT_TRUE(contains(run.out, "host_waits_per_step 0 -> 1")) << run.out;
  EXPECT_FALSE(contains(run.out, "byte for byte")) << run.out;
  const Finished both =
      gate({"tensor_cores"}, {"--only", "counts", "--only", "time", "--head-env",
                              "CUDA_TEST_WHERE=step", "--base-env", "CUDA_TEST_WHERE=step"});
  EXPECT_EQ(both.exit_code, 0) << both.out << both.err;
  const Finished wrong = gate({"tensor_cores"}, {"--base-env", "CUDA_TEST_WHERE"});
  EXPECT_EQ(wrong.exit_code, 2) << wrong.out << wrong.err;
  EXPECT_TRUE(contains(wrong.err, "must be NAME=VALUE")) << wrong.err;
}

TEST_F(Gates, SoakHeadAndSayHowFar) {
  head_on_a_device_with("within_rounds", 1);
  const auto soaked = [&] {
    return stepgate({"--baselines", baselines, "gate", "--soak", "--head", "./head", "--device",
                     "simulated", "waits.toml", "--seed", "3", "--json", "gate.json"});
  };
  const Finished steady = soaked();
  EXPECT_EQ(steady.exit_code, 0) << steady.out << steady.err;
  EXPECT_TRUE(contains(steady.out, "soak       1 workload, 0 slower, 6000 steps each or more"))
      << steady.out;
  std::string profile = text_of(place() / "other/nvidia-h200/device.toml");
  profile.insert(profile.find("spike_ns"), "slower_after_steps = 3000\nslower_by = 0.05\n");
  write("other/nvidia-h200/device.toml", profile);
  const Finished slower = soaked();
  EXPECT_EQ(slower.exit_code, 1) << slower.out << slower.err;
  EXPECT_TRUE(contains(slower.out, "after 6000 steps a step takes +")) << slower.out;
}

TEST_F(Gates, IdenticalBuildsAreNeverBlockedInTwentyGates) {
  script("head", "exec " + program + " \"$@\"\n");
  int passed = 0;
  const int gates = sanitized ? 3 : 20;
  for (int seed = 0; seed < gates; ++seed) {
    const Finished run = gate({"tensor_cores", "copies", "launches", "waits"},
                              {"--only", "counts", "--only", "time"}, "simulated", 100 + seed);
    EXPECT_TRUE(run.exit_code == 0 || run.exit_code == 77) << run.out << run.err;
    passed += run.exit_code == 0;
  }
  EXPECT_GE(passed, gates * 9 / 10);
}

TEST_F(Gates, TheWholeSuitePassesAgainstItself) {
  STEPGATE_RATES_AS_RELEASED();
  script("head", "exec " + program + " \"$@\"\n");
  const Finished run = stepgate({"--baselines", baselines, "gate", "--base", "./base", "--head",
                                 "./head", "--seed", "5", "--margin", "2%", "--device", "simulated",
                                 "--json", "gate.json", STEPGATE_SOURCE_DIR "/scenarios"});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_TRUE(contains(run.out, "0 differ")) << run.out;
  EXPECT_EQ(
      last_line(run.out),
      "SIMULATED, nothing was measured: PASSED: HEAD does what BASE did, within the margin\n");
  const std::vector<Json> all = lines();
  ASSERT_GT(all.size(), 100u);
  EXPECT_EQ(all.front().at("schema"), "stepgate.gate/2");
  EXPECT_EQ(all.back().at("answer"), "passed");
  expect_json_of_the_schema();
  EXPECT_TRUE(std::ranges::any_of(all, [](const Json& line) {
    return line.value("workload", "") == "copy_overlap/pinned_side";
  })) << "what is calibrated is timed too";
}

TEST_F(Gates, SayInTheFirstLineWhatIsComparedAndInTheLastTheAnswer) {
  script("head", "exec " + program + " \"$@\"\n");
  const Finished run = gate({"waits"}, {"--only", "counts", "--only", "time"});
  EXPECT_EQ(run.out.find("gate: BASE ./base (stepgate "), 0u) << run.out;
  EXPECT_TRUE(contains(run.out.substr(0, run.out.find('\n')), "-> HEAD ./head (stepgate "));
  EXPECT_TRUE(contains(last_line(run.out), "PASSED")) << run.out;
}

TEST_F(Gates, WriteJUnitAndASummaryForCiSystems) {
  head_with_knob("sync.where=step");
  const Finished run = gate({"tensor_cores", "waits"},
                            {"--junit", "j.xml", "--summary", "s.md", "--annotations", "github"});
  EXPECT_EQ(run.exit_code, 1) << run.out << run.err;
  std::ifstream junit(place() / "j.xml");
  const std::string xml{std::istreambuf_iterator<char>(junit), {}};
  EXPECT_TRUE(contains(xml, "name=\"counts.tensor_cores/step.host_waits_per_step\"")) << xml;
  EXPECT_TRUE(contains(xml, "<failure type=\"blocks\" message=\"host_waits_per_step 0 -&gt; 1; "))
      << xml;
  EXPECT_TRUE(contains(xml, "name=\"counts.waits/step.counts\"")) << "and what is the same passes";
  std::ifstream summary(place() / "s.md");
  const std::string page{std::istreambuf_iterator<char>(summary), {}};
  EXPECT_TRUE(page.starts_with("## stepgate: SIMULATED: ")) << page;
  EXPECT_TRUE(contains(run.out, "::error file=tensor_cores.toml,line=5,title=")) << run.out;
}

TEST_F(Gates, LeaveNoGreenReportWhenTheyAreKilled) {
  script("head", "kill -9 $PPID; sleep 1\n");  // kills the supervisor of the worker
  const Finished run = gate({"waits"}, {"--junit", "j.xml"});
  EXPECT_EQ(run.exit_code, 3) << run.out << run.err;
  std::ifstream junit(place() / "j.xml");
  const std::string xml{std::istreambuf_iterator<char>(junit), {}};
  EXPECT_TRUE(contains(xml, "<error ")) << xml;
}

class StoredGates : public Gates {
 protected:
  void SetUp() override {
    Gates::SetUp();
    std::filesystem::copy(baselines, place() / "stored", std::filesystem::copy_options::recursive);
    script("head", "exec " + program + " \"$@\"\n");
  }
  void accept(const std::vector<std::string>& names) const {
    std::vector<std::string> all{"--baselines", "stored",    "accept", "--runs", "5",
                                 "--device",    "simulated", "--seed", "31"};
    for (const std::string& name : names) all.push_back(name + ".toml");
    const Finished run = stepgate(all);
    ASSERT_EQ(run.exit_code, 0) << run.out << run.err;
  }
  // Stores runs for a HEAD that runs on another device.
  void head_knows_the_runs_of(const std::string& name) const {
    const std::string folder = "simulated/nvidia-h200";
    std::filesystem::create_directories(place() / "other" / folder);
    std::filesystem::copy(place() / "stored" / folder / (name + ".toml"),
                          place() / "other" / folder / (name + ".toml"));
  }
  Finished gate_of_stored(const std::vector<std::string>& names,
                          std::vector<std::string> more = {}) const {
    std::vector<std::string> all{"--baselines", "stored",    "gate",   "--stored",
                                 "--head",      "./head",    "--seed", "7",
                                 "--device",    "simulated", "--json", "gate.json"};
    all.insert(all.end(), more.begin(), more.end());
    for (const std::string& name : names) all.push_back(name + ".toml");
    return stepgate(all);
  }
};

TEST_F(StoredGates, PassWhatIsAsItsStoredRunsWere) {
  accept({"tensor_cores", "waits"});
  const Finished run = gate_of_stored({"tensor_cores", "waits"});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_EQ(run.out.find("gate: BASE the stored runs in stored -> HEAD ./head"), 0u) << run.out;
  EXPECT_TRUE(contains(last_line(run.out), "SIMULATED")) << run.out;
  EXPECT_TRUE(contains(last_line(run.out), "PASSED")) << run.out;
}

TEST_F(StoredGates, PassNothingThatIsSlowerOrAnotherStep) {
  accept({"tensor_cores"});
  head_on_a_device_with("[a-z0-9]+_flops_per_second", 0.9);
  head_knows_the_runs_of("tensor_cores");
  const Finished slower = gate_of_stored({"tensor_cores"});
  // The anchor multiplies matrices too, so the machine itself may be slower.
  EXPECT_EQ(slower.exit_code, 4) << slower.out << slower.err;
  EXPECT_TRUE(contains(slower.out, "not gated  time  tensor_cores/step")) << slower.out;
  EXPECT_TRUE(contains(slower.out, "machine slower: raw 1.0")) << slower.out;
  write("tensor_cores.toml", tensor_cores + "[variant.step.gate]\nmargin = \"20%\"\n");
  const Finished allowed = gate_of_stored({"tensor_cores"});
  EXPECT_EQ(allowed.exit_code, 0) << allowed.out << allowed.err;
  head_with_knob("batch.size=1040");
  const Finished more = gate_of_stored({"tensor_cores"});
  EXPECT_EQ(more.exit_code, 4) << more.out << more.err;
  EXPECT_TRUE(contains(more.out, "not comparable")) << more.out;
}

TEST_F(StoredGates, BlockWhatIsSlowerBesideItsAnchor) {
  // This step waits each time and its anchor measures launches; only its GEMMs are slower.
  std::filesystem::copy(STEPGATE_SOURCE_DIR "/scenarios/sync_every_step.toml", place());
  accept({"sync_every_step"});
  head_on_a_device_with("[a-z0-9]+_flops_per_second", 0.8);
  head_knows_the_runs_of("sync_every_step");
  const Finished run =
      gate_of_stored({"sync_every_step"}, {"--junit", "j.xml", "--report", "r.html", "--verbose"});
  EXPECT_EQ(run.exit_code, 1) << run.out << run.err;
  EXPECT_TRUE(contains(run.out, "blocks     time  sync_every_step/baseline")) << run.out;
  // Every assertion is one case, and none is about a temporary file.
  const std::string xml = text_of(place() / "j.xml");
  std::smatch told;
  ASSERT_TRUE(
      std::regex_search(run.out, told, std::regex("([0-9]+) assertions, ([0-9]+) not held")))
      << run.out;
  EXPECT_TRUE(contains(xml, "SIMULATED: nothing was measured\" tests=\"" + told[1].str() +
                                "\" failures=\"" + told[2].str() + "\" errors=\"0\" skipped=\"0\""))
      << xml;
  EXPECT_TRUE(contains(xml,
                       "name=\"counts.sync_every_step/baseline.launches_per_step\" "
                       "file=\"sync_every_step.toml\" line="))
      << xml;
  for (const std::string& written : {run.out, xml, text_of(place() / "r.html")}) {
    EXPECT_FALSE(contains(written, "as-stored")) << written;
    EXPECT_FALSE(contains(written, "/stepgate.")) << written;
  }
}

TEST_F(StoredGates, CompareEachPointOfASweepWithItsOwnRuns) {
  // The GEMMs of the larger point alone are limited by arithmetic.
  write("swept.toml",
        "claim = \"c\"\nmodel = { kind = \"mlp\", layers = 4, dtype = \"tf32\" }\n"
        "batch.size = 512\nhost.step_us = 100\nsync = { where = \"step\", how = \"device\" }\n"
        "[sweep]\nmodel.hidden = [64, 1024]\n"
        "[variant.step]\n[expect]\none_wait = \"step.host_waits_per_step == 1\"\n");
  accept({"swept"});
  const Finished same = gate_of_stored({"swept"});
  EXPECT_EQ(same.exit_code, 0) << same.out << same.err;
  EXPECT_TRUE(contains(same.out, "stored     2 scenarios")) << same.out;
  head_on_a_device_with("[a-z0-9]+_flops_per_second", 0.8);
  for (const char* point : {"swept@model.hidden=64", "swept@model.hidden=1024"})
    head_knows_the_runs_of(point);
  const Finished slower = gate_of_stored({"swept"});
  EXPECT_EQ(slower.exit_code, 1) << slower.out << slower.err;
  EXPECT_TRUE(contains(slower.out, "blocks     time  swept@model.hidden=1024/step\n"))
      << slower.out;
  EXPECT_EQ(lines()[1]["point"], Json({{"model.hidden", 1024}}));
  expect_json_of_the_schema();
  EXPECT_FALSE(contains(slower.out, "swept@model.hidden=64/step")) << slower.out;
  std::filesystem::remove(place() / "other/simulated/nvidia-h200/swept@model.hidden=64.toml");
  const Finished lacking = gate_of_stored({"swept"}, {"--set", "model.hidden=64"});
  EXPECT_EQ(lacking.exit_code, 4) << lacking.out << lacking.err;
  EXPECT_TRUE(contains(lacking.out, "not gated  time  swept@model.hidden=64/step\n"))
      << lacking.out;
}

TEST_F(StoredGates, BlameNoHeadForADamagedFile) {
  accept({"waits"});
  const std::string file = "stored/simulated/nvidia-h200/waits.toml";
  std::ifstream in(place() / file);
  std::string text(std::istreambuf_iterator<char>(in), {});
  const std::size_t at = text.find("step_us = ");
  ASSERT_NE(at, std::string::npos) << text;
  write(file, text.insert(at + 10, "\""));
  const Finished run = gate_of_stored({"waits"});
  EXPECT_EQ(run.exit_code, 2) << run.out << run.err;
  EXPECT_TRUE(contains(run.err, "waits.toml:")) << run.err;
}

TEST_F(StoredGates, AreNotGatesWhereNothingIsStored) {
  const Finished run = gate_of_stored({"waits"});
  EXPECT_EQ(run.exit_code, 4) << run.out << run.err;
  EXPECT_TRUE(contains(run.out, "`stepgate accept waits.toml` stores one")) << run.out;
  EXPECT_TRUE(contains(run.out, "  not gated  time  waits/step\n"))
      << run.out;  // only once, not for each count
}

TEST_F(StoredGates, AreNotGatedWhereHeadFindsNothingToMeasureWith) {
  script("head", "echo 'not gated: there is no GPU' >&2\nexit 4\n");
  const Finished run = gate_of_stored({"waits"});
  EXPECT_EQ(run.exit_code, 4) << run.out << run.err;
  EXPECT_TRUE(contains(run.out, "there is no GPU")) << run.out;
  script("head", "exit 5\n");
  EXPECT_EQ(gate_of_stored({"waits"}).exit_code, 3);
}

TEST_F(StoredGates, AreOfOneProgram) {
  EXPECT_EQ(gate_of_stored({"waits"}, {"--base", "./base"}).exit_code, 2);
  EXPECT_EQ(gate_of_stored({"waits"}, {"--pairs", "9"}).exit_code, 2);
  const Finished neither = stepgate({"gate", "--head", "./head", "waits.toml"});
  EXPECT_EQ(neither.exit_code, 2);
  EXPECT_TRUE(contains(neither.err, "--stored")) << neither.err;
  const Finished headless = stepgate({"gate", "--base", "./base", "waits.toml"});
  EXPECT_EQ(headless.exit_code, 2);
  EXPECT_EQ(headless.err, "there is no HEAD to gate; give --head PROGRAM\n");
}

TEST_F(Gates, TakeTheScenariosThatHaveATag) {
  write("waits.toml", "tags = [\"quick\"]\n" + waits);
  script("head", "exec " + program + " \"$@\"\n");
  const Finished run =
      gate({"waits", "copies"}, {"--tag", "quick", "--only", "counts", "--only", "time", "-v"});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_TRUE(contains(run.out, "passes     time  waits/step")) << run.out;
  EXPECT_FALSE(contains(run.out, "copies/step")) << run.out;
  EXPECT_EQ(gate({"waits"}, {"--tag", "quik"}).exit_code, 2);
}

TEST_F(Gates, GiveEveryWorkTheFewestPairsHoweverLittleTimeThereIs) {
  script("head", "exec " + program + " \"$@\"\n");
  const Finished run =
      gate({"waits", "copies"}, {"--only", "counts", "--only", "time", "--budget", "0.01"});
  EXPECT_TRUE(run.exit_code == 0 || run.exit_code == 77) << run.out << run.err;
  EXPECT_TRUE(contains(run.out, "at most 10 ms of timing")) << run.out;
  for (const Json& line : lines()) {
    if (line.at("kind") == "workload") {
      EXPECT_EQ(line.at("pairs"), 5) << line;
    }
  }
}

TEST_F(Gates, WriteAPageForPeople) {
  head_that_injects("extra_wait");
  write("accepted.toml",
        "[[accepted]]\nworkload = \"waits/*\"\nwhat = \"host_waits_per_step\"\nat_most = \"2\"\n"
        "who = \"ada\"\nwhy = \"<script>1</script>\"\nuntil = \"" +
            in_a_month() + "\"\n");
  const Finished run =
      gate({"waits", "tensor_cores"}, {"--report", "r.html", "--accepted", "accepted.toml"});
  EXPECT_EQ(run.exit_code, 1) << run.out << run.err;
  const std::string page = text_of(place() / "r.html");
  std::size_t last = 0;
  for (const char* words :
       {"<h1>stepgate gate</h1>", "BLOCKED: ", "SIMULATED: times are computed",
        "BASE ./base (stepgate ", "Exit code 1: ", "What was found",
        "<span class=\"badge bad\">blocks", "What was accepted", "&lt;script&gt;1&lt;/script&gt;",
        "<h2>Time</h2>", "tensor_cores/step", "<svg class=\"interval\"", "Counts that differ",
        "HEAD&#8217;s assertions", "tensor_cores.no_waits", "seed</th><td>7 "}) {
    const std::size_t at = page.find(words, last);
    ASSERT_NE(at, std::string::npos) << words << '\n' << page;
    last = at;
  }
  EXPECT_FALSE(contains(page, "<script"));
}

TEST_F(Gates, LeaveNoPageOfAnotherGate) {
  const auto refused = [&](const std::vector<std::string>& files, const std::string& why) {
    write("r.html", "what another gate left");
    EXPECT_EQ(gate(files, {"--report", "r.html"}).exit_code, 2);
    const std::string page = text_of(place() / "r.html");
    EXPECT_TRUE(contains(page, "<h1>stepgate gate</h1>")) << page;
    EXPECT_TRUE(contains(page, "Not ended")) << page;
    EXPECT_TRUE(contains(page, why)) << page;
  };
  refused({"waits"}, "'./head' is no program");
  script("head", "exec " + program + " \"$@\"\n");
  refused({"nowhere"}, "nowhere.toml");
  write("waits.toml", "claim = 7\n");
  refused({"waits"}, "waits.toml");
}

TEST_F(Gates, AcceptWhatALineOfTheRepositoryAccepts) {
  head_with_knob("sync.where=step");
  const auto accepted = [&](const std::string& until) {
    std::string text;
    for (const auto& [what, most] :
         {std::pair{"host_waits_per_step", "1"}, {"device_syncs_per_step", "1"}, {"time", "60%"}}) {
      text += fmt::format(
          "[[accepted]]\nworkload = \"tensor_cores/*\"\nwhat = \"{}\"\nat_most = \"{}\"\n"
          "who = \"ada\"\nwhy = \"reads the loss for a dashboard\"\nuntil = \"{}\"\n",
          what, most, until);
    }
    write("accepted.toml", text);
    return gate({"tensor_cores"},
                {"--only", "counts", "--only", "time", "--accepted", "accepted.toml"});
  };
  const Finished run = accepted(in_a_month());
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  expect_json_of_the_schema();
  EXPECT_TRUE(contains(run.out, "accepted up to 1 by ada until " + in_a_month() + ": reads"))
      << run.out;
  const Finished over = accepted("2001-12-31");
  EXPECT_EQ(over.exit_code, 1) << over.out;
  EXPECT_TRUE(contains(over.out, "ada accepted it until 2001-12-31")) << over.out;
}

TEST_F(Gates, CompareInBasesFormAndNameWhatHeadChanged) {
  script("head", "exec " + program + " \"$@\"\n");
  std::filesystem::create_directory(place() / "of_head");
  std::string looser = tensor_cores;
  looser.replace(looser.find("== 0"), 4, "<= 9");
  write("of_head/tensor_cores.toml", looser);
  write("of_head/fresh.toml", waits);
  const Finished run =
      gate({"tensor_cores"}, {"--only", "counts", "--only", "time", "--head-files", "of_head"});
  EXPECT_EQ(run.exit_code, 1) << run.out << run.err;
  EXPECT_TRUE(contains(run.out,
                       "HEAD changes 'no_waits': step.host_waits_per_step == 0 -> "
                       "step.host_waits_per_step <= 9"))
      << run.out;
  EXPECT_TRUE(contains(run.out, "of_head/tensor_cores.toml:")) << run.out;
  EXPECT_TRUE(contains(run.out, "note       scenario  fresh")) << run.out;
}

TEST_F(Gates, AProgramThatIsNotThereIsAWrongRequest) {
  const Finished run = gate({"waits"});  // HEAD does not exist
  EXPECT_EQ(run.exit_code, 2) << run.out;
  EXPECT_TRUE(contains(run.err, "--head './head' is no program that can be started")) << run.err;
}

TEST_F(Gates, AHeadThatStopsWhileItCountsFailsAndWhatIsTimedIsSaidToBe) {
  // The counting worker answers only hello and ends.
  script("head", "for word; do [ \"$word\" = --counts ] && { sed -u 1q | " + program +
                     " \"$@\"; exit 0; }; done\nexec " + program + " \"$@\"\n");
  const Finished run = gate({"waits"}, {"--only", "counts", "--only", "time"});
  EXPECT_EQ(run.exit_code, 3) << run.out << run.err;
  EXPECT_TRUE(contains(run.out, "comparison 1 workload, 0 slower")) << run.out;
  EXPECT_FALSE(contains(run.out, "nothing was compared")) << run.out;
}

TEST_F(Gates, AHeadThatStopsAfterAWorkIsComparedUpToIt) {
  // The counting worker answers only hello and one count, of another plan than BASE's.
  script("head", "for word; do [ \"$word\" = --counts ] && { " + adding("--set sync.where=step") +
                     "sed -u 2q | " + program + " \"$@\"; exit 0; }; done\nexec " + program +
                     " \"$@\"\n");
  const Finished run =
      gate({"copies", "launches", "waits"}, {"--only", "counts", "--only", "time"});
  EXPECT_EQ(run.exit_code, 1) << run.out << run.err;
  EXPECT_TRUE(contains(run.out, "blocks     counts  copies/step")) << run.out;
  EXPECT_TRUE(contains(run.out, "2 of 3 workloads were not counted")) << run.out;
  EXPECT_FALSE(contains(run.out, "blocks     counts  launches/step")) << run.out;
}

// HEAD answers for one workload, so BASE runs only that one, whichever side is faster.
TEST_F(Gates, NobodyCountsOnAloneWhenTheOtherSideIsGone) {
  script("base",
         "for word; do [ \"$word\" = --counts ] && { while IFS= read -r line; do "
         "echo \"$line\" >>asked; sleep 1; echo \"$line\"; done | " +
             program + " \"$@\"; exit; }; done\nexec " + program + " \"$@\"\n");
  script("head", "for word; do [ \"$word\" = --counts ] && { sed -u 2q | " + program +
                     " \"$@\"; exit 0; }; done\nexec " + program + " \"$@\"\n");
  const Finished run =
      gate({"copies", "launches", "tensor_cores", "waits"}, {"--only", "counts", "--only", "time"});
  EXPECT_EQ(run.exit_code, 3) << run.out << run.err;
  std::ifstream asked(place() / "asked");
  int counts = 0;
  for (std::string line; std::getline(asked, line);) counts += contains(line, "\"count\"") ? 1 : 0;
  EXPECT_GE(counts, 1);
  EXPECT_LT(counts, 4);
}

TEST_F(Gates, AWorkThatNobodyAskedForMayBeLost) {
  script("head",
         "for word; do shift; [ \"$word\" = copies.toml ] || set -- \"$@\" \"$word\"; done\nexec " +
             program + " \"$@\"\n");
  const Finished lost = gate({"waits", "copies"}, {"--only", "counts", "--only", "time"});
  EXPECT_EQ(lost.exit_code, 4) << lost.out << lost.err;
  EXPECT_TRUE(contains(lost.out, "copies/step")) << lost.out;
  const Finished left_out =
      gate({"waits", "copies"}, {"--only", "counts", "--only", "time", "--workload", "waits/*"});
  EXPECT_EQ(left_out.exit_code, 0) << left_out.out << left_out.err;
}

TEST_F(Gates, ABaseThatIsTooOldIsNotGated) {
  script("base",
         "for word; do [ \"$word\" = --counts ] && exit 2; done\nexec " + program + " \"$@\"\n");
  script("head", "exec " + program + " \"$@\"\n");
  const Finished run = gate({"waits"});
  EXPECT_EQ(run.exit_code, 4) << run.out << run.err;
  EXPECT_TRUE(contains(run.out, "BASE does not say what its steps consist of")) << run.out;
  const Finished timed = gate({"waits"}, {"--only", "time"});
  EXPECT_EQ(timed.exit_code, 0) << timed.out << timed.err;
}

TEST_F(Gates, AHeadThatLeavesItsRegimeIsBlockedWhereBaseIsWithinIt) {
  write("waits.toml", waits +
                          "steady = \"step.step_ms_mean >= 1 us\"\n[regime]\nsmall = "
                          "\"step.launches_per_step <= 15\"\n");
  script("head", "if [ \"$3\" = run ]; then " + adding("--set model.kernels=20") + "fi\nexec " +
                     program + " \"$@\"\n");
  const Finished run = gate({"waits"});
  EXPECT_EQ(run.exit_code, 1) << run.out << run.err;
  EXPECT_TRUE(contains(run.out, "BASE is within it")) << run.out;
}

TEST_F(Gates, AHeadThatDoesNotDecideEveryAssertionFails) {
  for (const std::string& line : {std::string("{\"scenario\":\"waits\"}"),
                                  std::string("{\"scenario\":\"waits\",\"expect\":[]}")}) {
    script("head",
           "if [ \"$3\" = run ]; then for word; do file=$word; done; while [ $# -gt 1 ]; do "
           "[ \"$1\" = --json ] && file=$2; shift; done; echo '" +
               line + "' > $file; exit 0; fi\nexec " + program + " \"$@\"\n");
    const Finished run = gate({"waits"});
    EXPECT_EQ(run.exit_code, 3) << run.out << run.err;
    EXPECT_TRUE(contains(run.out, "HEAD's `run` says nothing of it")) << run.out;
  }
}

TEST_F(Gates, AHeadWhoseRunIsNotToBeTrustedFails) {
  script("head", "if [ \"$3\" = run ]; then " + program + " \"$@\"; exit 2; fi\nexec " + program +
                     " \"$@\"\n");
  const Finished run = gate({"waits"});
  EXPECT_EQ(run.exit_code, 3) << run.out << run.err;
  EXPECT_TRUE(contains(run.out, "is not to be trusted: it ended with 2")) << run.out;
}

TEST_F(Gates, WhereNothingCouldBeComparedNothingIsGated) {
  write("waits.toml", waits + "[requires]\ncompute = 99\n");
  script("head", "exec " + program + " \"$@\"\n");
  const Finished run = gate({"waits"});
  EXPECT_EQ(run.exit_code, 4) << run.out << run.err;
  EXPECT_TRUE(contains(run.out, "nothing was compared")) << run.out;
}

TEST_F(Gates, WhatAnotherGateLeftInTheJsonFileIsNotTheAnswer) {
  script("head", "exec " + program + " \"$@\"\n");
  ASSERT_EQ(gate({"waits"}, {"--only", "counts", "--only", "time"}).exit_code, 0);
  EXPECT_EQ(gate({"waits"}, {"--only", "counts", "--only", "time", "--pairs", "1"}).exit_code, 2);
  for (const Json& line : lines()) EXPECT_NE(line.value("answer", ""), "passed");
}

// Otherwise a build folder or the scenarios would be overwritten before the comparison.
TEST_F(Gates, WriteNothingOverWhatTheyReadNorTwoAnswersIntoOneFile) {
  script("head", "exec " + program + " \"$@\"\n");
  write("accepted.toml", "");
  std::filesystem::create_symlink("head", place() / "link");
  for (const std::string input : {"waits.toml", "base", "./head", "link", "accepted.toml"}) {
    const std::string before = text_of(place() / input);
    for (const std::string option : {"--junit", "--report"}) {
      const Finished run = gate({"waits"}, {option, input, "--accepted", "accepted.toml"});
      EXPECT_EQ(run.exit_code, 2) << run.out;
      EXPECT_TRUE(contains(run.err, "would be written over what is read")) << run.err;
    }
    EXPECT_EQ(text_of(place() / input), before) << input;
  }
  const Finished twice = gate({"waits"}, {"--summary", "./gate.json"});
  EXPECT_EQ(twice.exit_code, 2) << twice.out;
  EXPECT_TRUE(contains(twice.err, "--summary and --json name the same file")) << twice.err;
  EXPECT_EQ(
      gate({"waits"}, {"--only", "counts", "--only", "time", "--summary", "/dev/null"}).exit_code,
      0);
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST_F(Gates, SayBeforeTheyCountWhatIsWrongWithTheRequest) {
  script("head", "exec " + program + " \"$@\"\n");
  const auto refused = [&](const std::vector<std::string>& more, const std::string& why,
                           const std::string& device = "simulated") {
    const Finished run = gate({"waits", "copies"}, more, device);
    EXPECT_EQ(run.exit_code, 2) << why << run.out << run.err;
    EXPECT_TRUE(contains(run.err, why)) << run.err;
    EXPECT_EQ(run.out, "") << "something was started";
  };
  refused({"--pairs", "3"}, "can never decide");
  refused({"--workload", "wait/*"}, "no workload is named 'wait/*'");
  refused({"--tag", "nobody"}, "no scenario here is tagged 'nobody'; none has a tag");
  refused({}, "there is no device 'simulatd'", "simulatd");
}

TEST_F(Gates, TimeNothingOnTheReferenceAndBlameNobody) {
  script("head", "exec " + program + " \"$@\"\n");
  const Finished run = gate({"waits"}, {"--only", "counts", "--only", "time"}, "reference");
  EXPECT_EQ(run.exit_code, 4) << run.out << run.err;
  EXPECT_TRUE(contains(run.out, "no notion of time: only counts, losses and gradients")) << run.out;
  const Finished timed = gate({"waits"}, {"--only", "time"}, "reference");
  EXPECT_EQ(timed.exit_code, 4) << timed.out << timed.err;
  EXPECT_FALSE(contains(timed.out, "counts")) << timed.out;
}

TEST_F(Gates, SayWhatAcceptedEntriesNobodyNeededInTheirJsonToo) {
  script("head", "exec " + program + " \"$@\"\n");
  write("accepted.toml",
        "[[accepted]]\nworkload = \"waits/*\"\nwhat = \"time\"\nat_most = \"5%\"\nwho = \"ada\"\n"
        "why = \"a reason\"\nuntil = \"" +
            in_a_month() + "\"\n");
  const Finished run =
      gate({"waits"}, {"--only", "counts", "--only", "time", "--accepted", "accepted.toml"});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_TRUE(std::ranges::any_of(lines(), [](const Json& line) {
    return line.at("kind") == "unused" &&
           contains(line.at("words"), "'time' of waits/* was not needed");
  }));
  expect_json_of_the_schema();
}

TEST_F(Gates, SayThatWhatIsUndecidedPassesByAnOption) {
  script("head",
         "if [ \"$3\" = run ]; then while [ $# -gt 1 ]; do [ \"$1\" = --json ] && file=$2; shift; "
         "done; echo '{\"scenario\":\"waits\",\"expect\":[{\"name\":\"one_wait\",\"outcome\":"
         "\"undecided\",\"reason\":\"noise\"}]}' >$file; exit 77; fi\nexec " +
             program + " \"$@\"\n");
  EXPECT_EQ(gate({"waits"}).exit_code, 77);
  const Finished passed = gate({"waits"}, {"--undecided", "pass"});
  EXPECT_EQ(passed.exit_code, 0) << passed.out << passed.err;
  EXPECT_TRUE(contains(last_line(passed.out), "; passes, as --undecided pass says")) << passed.out;
  const Finished failed = gate({"waits"}, {"--undecided", "fail"});
  EXPECT_EQ(failed.exit_code, 1) << failed.out << failed.err;
  EXPECT_TRUE(contains(last_line(failed.out), "; fails, as --undecided fail says")) << failed.out;
}

// The step times would exceed the size that the gate reads.
TEST_F(Gates, ReadALongRunWithoutTheTimesOfItsSteps) {
  std::string variants;
  for (int variant = 0; variant < 12; ++variant)
    variants += fmt::format("[variant.v{}]\n", variant);
  write("long.toml",
        "claim = \"the same thing many times\"\n"
        "model = { kind = \"spin\", kernels = 3, kernel_us = 20 }\nsync.where = \"step\"\n" +
            variants +
            "[variant.baseline]\n[expect]\ntail = \"v1.step_ms_p99 <= 1.001 * "
            "baseline.step_ms_p99\"\n");
  const Finished alone = stepgate({"--baselines", baselines, "run", "long.toml", "--device",
                                   "simulated", "--seed", "7", "--json", "alone.json"});
  EXPECT_EQ(alone.exit_code, 77) << alone.out;
  ASSERT_GT(std::filesystem::file_size(place() / "alone.json"), 4U << 20);
  script("head", "exec " + program + " \"$@\"\n");
  const Finished run = gate({"long"}, {"--workload", "long/v1"});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_TRUE(contains(run.out, "1 scenario, 1 assertion, 0 fails")) << run.out;
}

TEST_F(Gates, AHeadWhoseRunHangsFailsInTheTimeThatItWasGiven) {
  script("head", "[ \"$3\" = run ] && exec sleep 600\nexec " + program + " \"$@\"\n");
  const auto start = std::chrono::steady_clock::now();
  const Finished run = gate({"waits"}, {"--run-seconds", "1"});
  EXPECT_EQ(run.exit_code, 3) << run.out << run.err;
  EXPECT_TRUE(contains(run.out, "had not ended after 1 s, which is what --run-seconds gives it"))
      << run.out;
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

// The program and its children keep temporary files, which only the gate can remove.
TEST_F(Gates, LeaveNothingBehindWhenTheyAreInterrupted) {
  std::filesystem::create_directory(place() / "tmp");
  const EnvironmentVariable temporary("TMPDIR", (place() / "tmp").string());
  for (const std::string hangs : {"trap '' TERM; mktemp -d >/dev/null; touch ../hangs; sleep 600",
                                  "mktemp -d >/dev/null; touch ../hangs; exec sleep 600"}) {
    std::filesystem::remove(place() / "../hangs");
    script("head", "[ \"$3\" = run ] && { " + hangs + "; }\nexec " + program + " \"$@\"\n");
    ChildProcess child(STEPGATE_PROGRAM,
                       {"--baselines", baselines, "gate", "--base", "./base", "--head", "./head",
                        "--device", "simulated", "waits.toml"},
                       place());
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!exists("../hangs") && std::chrono::steady_clock::now() < deadline) ::usleep(10'000);
    ASSERT_TRUE(exists("../hangs"));
    child.send(SIGINT);
    EXPECT_TRUE(child.ends(std::chrono::seconds(10)));
    EXPECT_EQ(child.wait().exit_code, 130);
    EXPECT_TRUE(std::filesystem::is_empty(place() / "tmp")) << hangs;
  }
}

TEST_F(Gates, HandOnWhatWasTypedAndAFileThatIsCalledLikeAnOption) {
  write("-x.toml", waits);
  const std::string noting = "echo \"$@\" >>$3.calls\nexec " + program + " \"$@\"\n";
  for (const char* side : {"base", "head"}) script(side, noting);
  const Finished run =
      gate({"-x"}, {"--stall-seconds", "45.5", "--set", "model.kernels=11", "--verbose", "--"});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  for (const char* verb : {"worker", "run"}) {
    std::ifstream calls(place() / (std::string(verb) + ".calls"));
    std::string call;
    ASSERT_TRUE(std::getline(calls, call)) << verb;
    do {
      EXPECT_TRUE(
          contains(call, " --device simulated --set model.kernels=11 --stall-seconds 45.5 "))
          << call;
      EXPECT_TRUE(call.ends_with(" -- -x.toml")) << call;
    } while (std::getline(calls, call));
  }
}

TEST_F(Gates, AHeadThatCrashesFails) {
  for (const std::string where :
       {"kill -SEGV $$", "if [ \"$3\" = run ]; then kill -SEGV $$; fi", "echo hello; sleep 1"}) {
    script("head", where + "\nexec " + program + " \"$@\"\n");
    const Finished run = gate({"waits"});
    EXPECT_EQ(run.exit_code, 3) << where << run.out << run.err;
    EXPECT_TRUE(contains(last_line(run.out), "FAILED")) << run.out;
  }
}

TEST_F(Gates, AHeadThatHangsFailsInTime) {
  script("head", "exec sleep 600\n");
  const auto start = std::chrono::steady_clock::now();
  const Finished run = gate({"waits"}, {"--stall-seconds", "4"});
  EXPECT_EQ(run.exit_code, 3) << run.out << run.err;
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

TEST_F(Gates, WithoutAGpuNothingIsGatedUnlessSomebodyAskedForTheSimulatedDevice) {
  if (std::filesystem::exists("/dev/nvidiactl")) GTEST_SKIP() << "there is a GPU";
  script("head", "exec " + program + " \"$@\"\n");
  const Finished run = gate({"waits"}, {"--only", "counts", "--only", "time"}, "");
  EXPECT_EQ(run.exit_code, 4) << run.out << run.err;
  EXPECT_TRUE(contains(run.out, "SIMULATED")) << run.out;
}

}  // namespace
}  // namespace stepgate
