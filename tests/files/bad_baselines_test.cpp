// SPDX-License-Identifier: MIT
// Tests that every damaged baseline of tests/scripts/baselines.txt is refused with exactly the
// messages below it. They are patches of a valid one, tests/golden/baseline.toml.
#include <gtest/gtest.h>

#include <fstream>

#include "base/files/temporary_folder.h"
#include "base/text/diagnostic.h"
#include "ledger/baseline/baseline_record.h"
#include "tests/scripts/script.h"

namespace stepgate {
namespace {

const std::filesystem::path tests = std::filesystem::path(STEPGATE_SOURCE_DIR) / "tests";

TEST(BadBaselines, AreRefusedWithTheMessagesBelowThem) {
  const TemporaryFolder folder;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  expect_script(tests / "scripts/baselines.txt", {{"refuse", [](const Step& step) {
                                                     const std::string file = step.name + ".toml";
                                                     std::ofstream(file) << step.input;
                                                     try {
                                                       (void)read_baseline(file, "small");
                                                     } catch (const RequestError& error) {
                                                       return std::string(error.what()) + '\n';
                                                     }
                                                     throw std::logic_error(file + " is accepted");
                                                   }}});
  std::filesystem::current_path(before);
}

TEST(GoodBaseline, IsRead) {
  const Baseline baseline = read_baseline(tests / "golden/baseline.toml", "small");
  ASSERT_EQ(baseline.runs.size(), 2U);
  EXPECT_EQ(baseline.runs[0].variants[0].times[0].contrasts.size(), 12U);
}

}  // namespace
}  // namespace stepgate
