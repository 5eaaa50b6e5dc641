// SPDX-License-Identifier: MIT
// Tests which comparisons with stored runs the libraries of a step forbid, and which they do not.
#include <gtest/gtest.h>

#include "base/files/temporary_folder.h"
#include "base/files/write_file.h"
#include "base/text/diagnostic.h"
#include "judge/stored/stored_assertion.h"
#include "judge/testing/stored_runs_by_hand.h"
#include "ledger/baseline/baseline_record.h"

namespace stepgate {
namespace {

// The version of cuDNN that the step depends on; empty for a step without cuDNN.
std::vector<DeviceKey> cudnn(const std::string& version) {
  if (version.empty()) return {};
  return {{.name = "cuDNN", .value = version}};
}

AssertionVerdict against(const std::vector<DeviceKey>& stored, const std::vector<DeviceKey>& now) {
  const Scenario scenario = scenario_of_one({no_slide});
  Baseline baseline = baseline_of(scenario, quiet);
  for (StoredRun& run : baseline.runs) {
    run.variants.front().libraries = libraries_in_words(stored);
  }
  Measurement measurement = measured(subjects_with_anchors(scenario), 1);
  measurement.variants.front().libraries = now;
  return judged(scenario, baseline, measurement);
}
AssertionVerdict against(const std::string& stored, const std::string& now) {
  return against(cudnn(stored), cudnn(now));
}

TEST(StoredLibraries, ForbidToCompareWhereTheyDifferAndSayBoth) {
  const AssertionVerdict updated = against("9.14.0", "9.15.0");
  EXPECT_EQ(updated.outcome, Outcome::not_comparable);
  EXPECT_EQ(updated.reason,
            "the library that 'fix' depends on is 'cuDNN 9.15.0', the stored runs have 'cuDNN "
            "9.14.0'; a step takes 0.998x the time of the latest of them (272.4 us -> 271.8 us); "
            "`stepgate gate --base BASE --head HEAD scenarios/small.toml` compares two builds "
            "without them, "
            "`stepgate accept scenarios/small.toml --reset TEXT` stores runs to compare with "
            "from now on");
  EXPECT_EQ(against("9.14.0", "none").outcome, Outcome::not_comparable);
  EXPECT_EQ(against("none", "9.14.0").outcome, Outcome::not_comparable);
}

TEST(StoredLibraries, AllowToCompareWhereTheyAreTheSameOrOneSideHasNone) {
  EXPECT_EQ(against("9.14.0", "9.14.0").outcome, Outcome::passes);
  EXPECT_EQ(against("none", "none").outcome, Outcome::passes);
  EXPECT_EQ(against("", "").outcome, Outcome::passes);
  EXPECT_EQ(against("", "9.14.0").outcome, Outcome::passes) << "stored before this was";
}

// A step of several ranks depends on the settings of NCCL as on its version.
TEST(StoredLibraries, NameASettingThatIsAnotherOne) {
  const std::vector<DeviceKey> plain{{"NCCL", "2.28.9"}};
  const std::vector<DeviceKey> set{{"NCCL", "2.28.9"}, {"NCCL_ALGO", "Ring"}};
  EXPECT_EQ(against(set, set).outcome, Outcome::passes);
  const AssertionVerdict changed = against(plain, set);
  EXPECT_EQ(changed.outcome, Outcome::not_comparable);
  EXPECT_EQ(changed.reason.substr(0, changed.reason.find(';')),
            "the library that 'fix' depends on is 'NCCL 2.28.9, NCCL_ALGO Ring', the stored runs "
            "have 'NCCL 2.28.9'");
}

DeviceKey layer_norm(const std::string& digest) {
  return {.name = std::string(key_of_kernel) + "layer_norm", .value = "my, lib.so " + digest};
}

// A new build of the user's kernel is what such an assertion is about.
TEST(StoredLibraries, AreComparedWhereOnlyTheUsersKernelsAreOtherBuilds) {
  const DeviceKey then = layer_norm("1f0a33c2e0d94b55"), now = layer_norm("2b7c9d0011aa22bb");
  const DeviceKey old = cudnn("9.14.0").front(), updated = cudnn("9.15.0").front();
  const std::string both =
      "; layer_norm my, lib.so 1f0a33c2e0d94b55 then; layer_norm my, lib.so 2b7c9d0011aa22bb now; "
      "the limit";
  for (const AssertionVerdict& verdict :
       {against({then}, {now}), against({then, old}, {now, old})}) {
    EXPECT_EQ(verdict.outcome, Outcome::passes) << verdict.reason;
    EXPECT_NE(verdict.reason.find(both), std::string::npos) << verdict.reason;
  }
  const AssertionVerdict same = against({then, old}, {then, old});
  EXPECT_EQ(same.outcome, Outcome::passes);
  EXPECT_EQ(same.reason.find("then"), std::string::npos) << same.reason;
  const AssertionVerdict other = against({then, old}, {now, updated});
  EXPECT_EQ(other.outcome, Outcome::not_comparable);
  EXPECT_EQ(other.reason.substr(0, other.reason.find(';')),
            "the library that 'fix' depends on is 'cuDNN 9.15.0', the stored runs have 'cuDNN "
            "9.14.0'");
}

// Evidence goes on only where each of them is the same.
TEST(StoredLibraries, HaveTheBuildsOfAllVariants) {
  const DeviceKey one = layer_norm("1f0a33c2e0d94b55"), other = layer_norm("2b7c9d0011aa22bb");
  const std::vector<DeviceKey> of_variants{one, cudnn("9.14.0").front(), other,
                                           cudnn("9.14.0").front()};
  EXPECT_EQ(libraries_in_words(of_variants),
            "kernel layer_norm my, lib.so 1f0a33c2e0d94b55, cuDNN 9.14.0, kernel layer_norm my, "
            "lib.so 2b7c9d0011aa22bb");
  EXPECT_EQ(stored_libraries(libraries_in_words(of_variants)).kernels.size(), 2U);
  EXPECT_EQ(stored_libraries(libraries_in_words(of_variants)).others, "cuDNN 9.14.0");
}

TEST(StoredLibraries, SayAKernelThatOneOfTheRanksHasOtherwise) {
  const std::string one = "kernel layer_norm a.so 1f0a33c2e0d94b55";
  const std::string other = one + ", kernel layer_norm on rank 1 a.so 2b7c9d0011aa22bb";
  EXPECT_EQ(stored_libraries(other + ", NCCL 2.28.9, NCCL_ALGO Ring").others,
            "NCCL 2.28.9, NCCL_ALGO Ring");
  EXPECT_EQ(other_builds_in_words(one, other), "layer_norm on rank 1 a.so 2b7c9d0011aa22bb now");
}

TEST(StoredRuns, AreNotThoseOfGpusThatAreLinkedOtherwise) {
  DeviceIdentity device{.kind = DeviceKind::cuda, .name = "NVIDIA H100"};
  const Environment alone = environment_of(device);
  device.ranks = std::vector<RankIdentity>(3);
  const std::string fast(nvlink);
  device.ranks[0].communication.links = {"", fast, fast};
  device.ranks[1].communication.links = {fast, "", fast};
  const Environment linked = environment_of(device);
  EXPECT_EQ(linked.link, fast);
  EXPECT_FALSE(match_environment(alone, linked)) << "of one rank";
  device.ranks[1].communication.links.back() = no_nvlink;
  const auto mismatch = match_environment(linked, environment_of(device));
  ASSERT_TRUE(mismatch);
  EXPECT_EQ(mismatch->key, "link between GPUs");
  EXPECT_EQ(mismatch->now, "NVLink and PCIe");
  device.ranks[1].communication.links.back().clear();
  EXPECT_EQ(environment_of(device).link, "") << "one of them is not known";
}

TEST(StoredLibraries, AreThoseOfTheVariantAndNotOfAnother) {
  const Scenario scenario = scenario_of_one({no_slide});
  const std::vector<Subject> subjects = subjects_with_anchors(scenario);
  Measurement measurement = measured(subjects, 1);
  ASSERT_GE(measurement.variants.size(), 2U);
  measurement.variants.back().libraries = cudnn("9.14.0");
  const auto stored_of = [&] {
    return stored_run(scenario, subjects, measurement, {}).variants.front().libraries;
  };
  EXPECT_EQ(stored_of(), "");
  measurement.variants.front().libraries = cudnn("9.15.0");
  EXPECT_EQ(stored_of(), "cuDNN 9.15.0");
}

TEST(StoredLibraries, AreWrittenReadBackAndDigested) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "small.toml";
  Baseline baseline = baseline_of(scenario_of_one({}), {1});
  const std::string plain = baseline_text(baseline);
  EXPECT_EQ(plain.find("libraries"), std::string::npos);
  baseline.runs[0].variants[0].libraries = "cuDNN 9.14.0";
  std::string text = baseline_text(baseline);
  write_file(file, text);
  EXPECT_EQ(read_baseline(file, "small").runs[0].variants[0].libraries, "cuDNN 9.14.0");
  text.replace(text.find("9.14.0"), 6, "9.15.0");
  write_file(file, text);
  EXPECT_THROW((void)read_baseline(file, "small"), RequestError);
}

}  // namespace
}  // namespace stepgate
