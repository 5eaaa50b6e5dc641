// SPDX-License-Identifier: MIT
// Tests baselines on disk: what is written is read back, and nothing stored is ever lost.
// tests/scripts/baselines.txt tests damaged files.
#include "ledger/baseline/baseline_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "base/files/temporary_folder.h"
#include "base/files/write_file.h"
#include "base/text/diagnostic.h"
#include "judge/testing/stored_runs_by_hand.h"
#include "ledger/baseline/baseline_record.h"
#include "tests/sanitized.h"

namespace stepgate {
namespace {

class BaselineFile : public testing::Test {
 protected:
  std::string content() const {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
  }
  std::size_t files_beside() const {
    const std::filesystem::directory_iterator begin(folder / "device");
    return static_cast<std::size_t>(std::distance(begin, {}));
  }

  const TemporaryFolder temporary;
  const std::filesystem::path folder = temporary.path() / "f";  // does not exist yet
  const std::filesystem::path file = folder / "device" / "small.toml";
  const Scenario scenario = scenario_of_one({});
};

TEST_F(BaselineFile, ReadsBackWhatItWrote) {
  Baseline baseline = baseline_of(scenario, {0.25, -0.5, 1.0 / 3});
  baseline.runs[1].environment.cpu = "a \"quoted\\ \xc3\xa9 name\n";
  baseline.runs[2].variants[0].counts[0].value = 1.0 / 3;
  write_file(file, baseline_text(baseline));
  const Baseline read = read_baseline(file, "small");
  EXPECT_EQ(baseline_text(read), content());
  ASSERT_EQ(read.runs.size(), 3U);
  EXPECT_EQ(read.runs[0].environment, baseline.runs[0].environment);
  EXPECT_EQ(read.runs[1].environment.cpu, "a \"quoted\\ ?? name?");
  EXPECT_EQ(read.runs[2].provenance, baseline.runs[2].provenance);
  const StoredVariant& variant = read.runs[2].variants.at(0);
  EXPECT_EQ(variant.counts[0].value, 1.0 / 3);
  EXPECT_EQ(variant.anchor, "launch.1");
  ASSERT_EQ(variant.times[0].contrasts.size(), 12U);
  EXPECT_NEAR(variant.times[0].contrasts[11], 1.0 / 3, 1e-5);  // the measured step is whole ns
}

TEST_F(BaselineFile, GrowsByOneRunAndKeepsTheTextOfTheOthers) {
  const Baseline baseline = baseline_of(scenario, {1, 2});
  EXPECT_EQ(append_run(file, "small", baseline.runs[0]).runs.size(), 1U);
  const std::string before = content();
  EXPECT_EQ(append_run(file, "small", baseline.runs[1]).runs.size(), 2U);
  EXPECT_EQ(content().substr(0, before.size()), before);
  EXPECT_GT(content().size(), before.size());
}

TEST_F(BaselineFile, RefusesTheSameMeasurementAgain) {
  Baseline baseline = baseline_of(scenario, {1});
  append_run(file, "small", baseline.runs[0]);
  const std::string before = content();
  baseline.runs[0].provenance.date = "2027-01-01T00:00:00Z";
  EXPECT_THROW(append_run(file, "small", baseline.runs[0]), RequestError);
  EXPECT_EQ(content(), before);
}

TEST_F(BaselineFile, IsNeverOverwrittenWhenItIsDamaged) {
  const Baseline baseline = baseline_of(scenario, {1, 2});
  append_run(file, "small", baseline.runs[0]);
  const std::string whole = content();
  for (const std::size_t length : {std::size_t{0}, whole.size() / 2, whole.size() - 3}) {
    write_file(file, whole.substr(0, length));
    EXPECT_THROW(append_run(file, "small", baseline.runs[1]), RequestError) << length;
    EXPECT_EQ(content(), whole.substr(0, length));
  }
}

TEST_F(BaselineFile, NoticesEveryDigitThatAHandChanges) {
  const Baseline baseline = baseline_of(scenario, {1});
  append_run(file, "small", baseline.runs[0]);
  const std::string whole = content();
  const std::size_t first_run = whole.find("[[run]]");
  int changed = 0;
  for (std::size_t at = first_run; at < whole.size(); ++at) {
    if (whole[at] < '0' || whole[at] > '9') continue;
    std::string text = whole;
    text[at] = text[at] == '9' ? '8' : static_cast<char>(text[at] + 1);
    write_file(file, text);
    EXPECT_THROW(read_baseline(file, "small"), RequestError) << "at " << at << ":\n" << text;
    ++changed;
  }
  EXPECT_GT(changed, 300);
}

TEST_F(BaselineFile, IsRefusedWhereverItIsTruncated) {
  append_run(file, "small", baseline_of(scenario, {1}).runs[0]);
  const std::string whole = content();
  const std::size_t complete = whole.find_last_not_of('\n') + 1;
  const std::size_t apart = sanitized ? 7 : 1;
  for (std::size_t length = whole.find("[[run]]") + 1; length < complete; length += apart) {
    write_file(file, whole.substr(0, length));
    EXPECT_THROW(read_baseline(file, "small"), RequestError) << "of length " << length;
  }
}

TEST_F(BaselineFile, IsRidOfWhatKilledWritersLeftBehind) {
  const Baseline baseline = baseline_of(scenario, {1, 2});
  append_run(file, "small", baseline.runs[0]);
  std::ofstream(file.string() + ".unfinished-0123456789abcdef") << "half of a ba";
  std::ofstream(file.string() + ".backup") << "somebody's";
  append_run(file, "small", baseline.runs[1]);
  EXPECT_EQ(files_beside(), 2U);
  EXPECT_TRUE(std::filesystem::exists(file.string() + ".backup"));
}

TEST_F(BaselineFile, DoesNotGrowBeyondWhatCanBeRead) {
  Baseline baseline = baseline_of(scenario, {1});
  const auto add_run = [&] {
    baseline.runs.push_back(baseline.runs.back());
    baseline.runs.back().provenance.seed = baseline.runs.size();
    baseline.runs.back().variants[0].step_seconds *= 1.001;
  };
  const std::size_t first = baseline_text(baseline).size();
  // Fills the baseline almost to its size limit; the size is estimated without writing the text.
  while (baseline.runs.size() * first < 1'000'000) add_run();
  while (baseline_text(baseline).size() < 1'048'000) add_run();
  StoredRun last = baseline.runs.back();
  baseline.runs.pop_back();
  write_file(file, baseline_text(baseline));
  const std::string before = content();
  last.provenance.commit = std::string(10'000, 'a');
  try {
    append_run(file, "small", last);
    FAIL() << "grew";
  } catch (const RequestError& error) {
    EXPECT_NE(std::string(error.what()).find("would grow beyond 1 MiB with its"), std::string::npos)
        << error.what();
  }
  EXPECT_EQ(content(), before);
}

TEST(BaselinePath, KeepsSimulatedRunsApart) {
  DeviceIdentity device = machine();
  EXPECT_EQ(baseline_path("b", device, "small"), "b/nvidia-h200/small.toml");
  device.kind = DeviceKind::simulated;
  EXPECT_EQ(baseline_path("b", device, "small"), "b/simulated/nvidia-h200/small.toml");
  device.name = " (../..) GPU / 7 ";
  EXPECT_EQ(baseline_path("b", device, "small"), "b/simulated/gpu-7/small.toml");
}

}  // namespace
}  // namespace stepgate
