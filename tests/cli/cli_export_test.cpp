// SPDX-License-Identifier: MIT
// `stepgate run --export` from outside: the comparison script of google/benchmark, as its
// distribution ships it, reads what is written.
#include <gtest/gtest.h>

#include "tests/cli/command_line.h"

namespace stepgate {
namespace {

constexpr const char* compare_script = "/usr/share/benchmark/compare.py";
constexpr const char* python = "/usr/bin/python3";  // the one for which the packages install scipy

class ExportVerb : public CommandLine {
 protected:
  // Not a failure of what is tested here; ci/test installs what is missing.
  std::string missing() const {
    if (!std::filesystem::exists(compare_script)) return "libbenchmark-tools is not installed";
    const auto import = ChildProcess(python, {"-c", "import numpy, scipy.stats"}, place()).wait();
    return import.exit_code == 0 ? "" : "python3-scipy is not installed";
  }

  Finished compare(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {compare_script, "--no-color"});
    return ChildProcess(python, arguments, place()).wait();
  }

  void run_and_export(const std::string& file, const std::string& seed) const {
    const Finished run = stepgate({"--baselines", STEPGATE_SOURCE_DIR "/tests/baselines", "run",
                                   "holding.toml", "--device", "simulated:round-numbers", "--seed",
                                   seed, "--export", "google-benchmark:" + file});
    ASSERT_EQ(run.exit_code, 0) << run.err;
  }
};

TEST_F(ExportVerb, LetsGoogleBenchmarkCompareTwoRuns) {
  if (const std::string why = missing(); !why.empty()) GTEST_SKIP() << why;
  write("holding.toml", holding);
  run_and_export("before.json", "1");
  run_and_export("after.json", "2");
  const Finished compared = compare({"benchmarks", "before.json", "after.json"});
  EXPECT_EQ(compared.exit_code, 0) << compared.err;
  for (const char* words : {"holding/baseline ", "holding/fix ", "holding/baseline_pvalue",
                            "holding/fix_pvalue", "U Test, Repetitions: "}) {
    EXPECT_TRUE(contains(compared.out, words)) << words << " in\n" << compared.out;
  }
}

TEST_F(ExportVerb, LetsGoogleBenchmarkCompareTwoVariantsOfOneRun) {
  if (const std::string why = missing(); !why.empty()) GTEST_SKIP() << why;
  write("holding.toml", holding);
  run_and_export("run.json", "1");
  const Finished compared = compare({"filters", "run.json", "holding/baseline", "holding/fix"});
  EXPECT_EQ(compared.exit_code, 0) << compared.err;
  EXPECT_TRUE(contains(compared.out, "[holding/baseline vs. holding/fix]")) << compared.out;
  EXPECT_TRUE(contains(compared.out, "-0.49") || contains(compared.out, "-0.50")) << compared.out;
}

TEST_F(ExportVerb, WritesSeveralFormatsAndTheFilesBesideThem) {
  write("holding.toml", holding);
  const Finished run = simulate({"holding.toml", "--export", "nvbench:out/n.json", "--export",
                                 "csv:s.csv", "--export", "csv-steps:t.csv"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  for (const char* file :
       {"out/n.json", "out/n.json-bin/0.bin", "out/n.json-bin/1.bin", "s.csv", "t.csv"}) {
    EXPECT_TRUE(exists(file)) << file;
  }
}

TEST_F(ExportVerb, SaysWhatIsWrongWithAFormatBeforeAnythingRuns) {
  write("holding.toml", holding);
  const std::pair<const char*, const char*> wrong[] = {
      {"nvbnch:x", "there is no --export 'nvbnch'; did you mean 'nvbench'?"},
      {"tables:x", "there is no --export 'tables'; `stepgate run --help` lists the formats"},
      {"csv", "--export csv does not say where to; say csv:FILE"},
      {"csv:", "--export csv does not say where to; say csv:FILE"},
      {"csv:holding.toml/x.csv", "holding.toml/x.csv: cannot be written"}};
  for (const auto& [text, message] : wrong) {
    const Finished run = simulate({"holding.toml", "--export", text});
    EXPECT_EQ(run.exit_code, 2) << text;
    EXPECT_EQ(run.out, "") << text;
    EXPECT_TRUE(contains(run.err, message)) << run.err;
  }
}

}  // namespace
}  // namespace stepgate
