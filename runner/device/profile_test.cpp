// SPDX-License-Identifier: MIT
// Device profiles as files: values that are written are read back, and errors are reported.
#include "device/profile.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <tuple>

#include "base/text/diagnostic.h"
#include "device/device.h"

namespace stepgate {
namespace {

class ProfileFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("stepgate_profile_" +
               std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path write(const std::string& text) const {
    const std::filesystem::path file = folder_ / "device.toml";
    std::ofstream(file) << text;
    return file;
  }

  static DeviceProfile some_profile() {
    DeviceProfile profile;
    profile.name = "some device";
    profile.compute_capability = 9;
    profile.copy_engines = 2;
    profile.link = nvlink;
    profile.multiprocessors = 100;
    profile.memory_bytes = 1 << 30;
    profile.compute.fp32_flops_per_second = 5e13;
    profile.compute.tf32_flops_per_second = 4e14;
    profile.compute.bf16_flops_per_second = 8e14;
    profile.host.processors = 32;
    profile.compute.sm_clock_hertz = 1.98e9;
    profile.host.launch_nanoseconds = 3400;
    profile.noise.slower_after_steps = 500;  // the file has these only where they are not zero
    profile.noise.slower_by = 0.05;
    profile.noise.slower_each_step = 0.0001;
    profile.compute.memory_bytes_per_second = 4.25e12;
    profile.compute.l1_latency_nanoseconds = 21;
    profile.compute.l2_latency_nanoseconds = 140;
    profile.compute.memory_latency_nanoseconds = 400;
    profile.compute.l1_bytes = 262144;
    profile.compute.l2_bytes = 52428800;
    profile.pinned = {.bytes = {10, 20}, .nanoseconds = {1, 2}};
    profile.pageable = {.bytes = {10, 20, 30}, .nanoseconds = {3, 4, 9}};
    profile.collectives = {{.ranks = 4,
                            .bytes = {100, 1000},
                            .all_reduce_nanoseconds = {20, 40},
                            .reduce_scatter_nanoseconds = {10, 30},
                            .all_gather_nanoseconds = {10, 25},
                            .kernel_stretch = 1.5,
                            .collective_stretch = 1.75}};
    profile.noise.within_rounds = 0.015;
    return profile;
  }

 private:
  std::filesystem::path folder_;
};

TEST_F(ProfileFile, IsReadBackAsItWasWritten) {
  const std::string text = to_toml(some_profile());
  EXPECT_EQ(to_toml(read_profile(write(text))), text);
  DeviceProfile profile = some_profile();
  profile.name = "a \"quoted\" device of C:\\";
  EXPECT_EQ(read_profile(write(to_toml(profile))).name, profile.name);
}

TEST_F(ProfileFile, LeavesTypicalLatenciesOutAndTakesThemWhereTheyAreMissing) {
  DeviceProfile profile = some_profile();
  profile.compute.l1_latency_nanoseconds = ComputeCosts{}.l1_latency_nanoseconds;
  const std::string text = to_toml(profile);
  EXPECT_EQ(text.find("l1_latency_ns"), std::string::npos) << text;
  EXPECT_NE(text.find("l2_latency_ns = 140"), std::string::npos) << text;
  EXPECT_EQ(read_profile(write(text)).compute.l1_latency_nanoseconds, 18);
}

TEST_F(ProfileFile, SaysEverythingThatIsWrongAtOnce) {
  std::string text = to_toml(some_profile());
  text.replace(text.find("launch_ns = 3400"), 16, "launch_ns = -340");
  text.replace(text.find("spike_ns"), 8, "spike_us");
  try {
    (void)read_profile(write(text));
    FAIL() << "accepted";
  } catch (const RequestError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("'noise.spike_ns' is missing"), std::string::npos) << message;
    EXPECT_NE(message.find("unknown key 'spike_us'"), std::string::npos) << message;
  }
}

// The text of a file with `name` set to this value; no key may have the value "".
std::string with(const std::string& text, const std::string& name, const std::string& value) {
  const std::size_t dot = name.find('.');
  const std::string table = dot == std::string::npos ? "" : '[' + name.substr(0, dot) + "]\n";
  const std::string key = name.substr(dot == std::string::npos ? 0 : dot + 1) + " = ";
  std::size_t at = text.find(table);
  at = text.compare(at, key.size(), key) == 0 ? at : text.find('\n' + key, at) + 1;
  return text.substr(0, at) + key + value + text.substr(text.find('\n', at));
}

// The simulated device divides by, multiplies with or adds up each of these values.
TEST_F(ProfileFile, RefusesInEveryRowWhatIsBeyondItsLimits) {
  const std::string good = to_toml(some_profile());
  ASSERT_NO_THROW((void)read_profile(write(good)));
  int tried = 0;
  for (const ProfileField& field : profile_fields()) {
    std::vector<std::string> values{"true", "[]", "inf", "nan", "-1", "9223372036854775807"};
    const std::string least = fmt::format("{:.0f}", field.limits.least - 1);
    const std::string most = fmt::format("{:.0f}", field.limits.most + field.limits.most / 8 + 1);
    if (field.kind == ProfileKind::number) values.insert(values.end(), {least + ".0", most + ".0"});
    if (field.kind == ProfileKind::whole) values.insert(values.end(), {least, most});
    if (field.kind == ProfileKind::list) {
      values.insert(values.end(),
                    {"[" + least + ", 5]", "[1, " + most + "]", "[2, 1]", "[1, inf]"});
    }
    for (const std::string& value : values) {
      SCOPED_TRACE(field.name + " = " + value);
      try {
        (void)read_profile(write(with(good, field.name, value)));
        ADD_FAILURE() << "accepted";
      } catch (const RequestError& error) {
        const std::string message = error.what();
        EXPECT_NE(message.find('\'' + field.name + "' must be a"), std::string::npos) << message;
        EXPECT_NE(message.find("device.toml:"), std::string::npos) << message;
      }
      ++tried;
    }
  }
  EXPECT_GE(tried, 40 * 6);
}

// Otherwise a simulated load from memory would be faster than one from a cache, and the profile
// would make a scenario fail.
TEST_F(ProfileFile, RefusesLevelsOfMemoryInAWrongOrder) {
  const std::string good = to_toml(some_profile());
  for (const auto& [name, value, expected] :
       {std::tuple("compute.l1_latency_ns", "141", "are 141, 140 and 400 ns"),
        std::tuple("compute.l2_latency_ns", "401", "are 21, 401 and 400 ns"),
        std::tuple("compute.l2_bytes", "262143", "l1 has 262144 bytes and l2 has 262143")}) {
    try {
      (void)read_profile(write(with(good, name, value)));
      ADD_FAILURE() << "accepted: " << name;
    } catch (const RequestError& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find(expected), std::string::npos) << message;
      EXPECT_NE(message.find("device.toml"), std::string::npos) << message;
    }
  }
}

TEST_F(ProfileFile, MakesNoCopyNegativeOrLongerThanAnHour) {
  const CopyCost rises{.bytes = {1, 2}, .nanoseconds = {0, longest_cost_nanoseconds}};
  EXPECT_LE(rises.of(std::int64_t{1} << 60), 2 * longest_cost_nanoseconds);
  const CopyCost falls{.bytes = {1, 2}, .nanoseconds = {100, 1}};
  EXPECT_GE(falls.of(std::int64_t{1} << 60), 0);
}

TEST_F(ProfileFile, RefusesSizesWithoutTimes) {
  DeviceProfile profile = some_profile();
  profile.pinned.nanoseconds.push_back(3);
  EXPECT_THROW((void)read_profile(write(to_toml(profile))), RequestError);
}

// With part of a table, all-gathers of a step would cost nothing.
TEST_F(ProfileFile, RefusesCollectivesWithoutATimeOfEachKindForEachSize) {
  DeviceProfile none = some_profile();
  none.collectives = {};
  EXPECT_EQ(to_toml(none).find("[collectives]"), std::string::npos);
  EXPECT_EQ(read_profile(write(to_toml(none))).collectives.size(), 0U);
  const auto refusal = [&](auto change) -> std::string {
    DeviceProfile profile = some_profile();
    change(profile.collectives.front());
    try {
      (void)read_profile(write(to_toml(profile)));
    } catch (const RequestError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal([](CollectiveCosts&) {}), "accepted");
  for (const std::string& words :
       {refusal([](CollectiveCosts& costs) { costs.ranks = 0; }),
        refusal([](CollectiveCosts& costs) { costs.bytes.push_back(2000); }),
        refusal([](CollectiveCosts& costs) { costs.all_reduce_nanoseconds.push_back(50); }),
        refusal([](CollectiveCosts& costs) { costs.reduce_scatter_nanoseconds.push_back(50); }),
        refusal([](CollectiveCosts& costs) { costs.all_gather_nanoseconds = {}; })})
    EXPECT_NE(words.find("has no time of each kind for each size"), std::string::npos) << words;
}

// No scenario could require a link with an unknown name.
TEST_F(ProfileFile, RefusesALinkThatThereIsNot) {
  DeviceProfile profile = some_profile();
  profile.link = "nvlink";
  try {
    (void)read_profile(write(to_toml(profile)));
    FAIL();
  } catch (const RequestError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("'link' is 'nvlink'"), std::string::npos) << message;
  }
  profile.link.clear();
  EXPECT_EQ(read_profile(write(to_toml(profile))).link, "");
}

TEST_F(ProfileFile, TakesTypicalStretchesWhereTheyAreMissing) {
  DeviceProfile profile = some_profile();
  EXPECT_EQ(read_profile(write(to_toml(profile))).collectives.front().kernel_stretch, 1.5);
  profile.collectives.front().kernel_stretch = CollectiveCosts{}.kernel_stretch;
  const std::string text = to_toml(profile);
  EXPECT_EQ(text.find("kernel_stretch"), std::string::npos) << text;
  EXPECT_NE(text.find("collective_stretch = 1.75\n"), std::string::npos) << text;
  EXPECT_EQ(read_profile(write(text)).collectives.front().kernel_stretch, 1.38);
}

TEST_F(ProfileFile, HasCollectivesOfSeveralCountsOfRanks) {
  DeviceProfile profile = some_profile();
  profile.collectives.push_back(profile.collectives.front());
  profile.collectives.back().ranks = 2;
  const std::string text = to_toml(profile);
  EXPECT_NE(text.find("[[collectives]]\nranks = 4\n"), std::string::npos) << text;
  const DeviceProfile read = read_profile(write(text));
  ASSERT_EQ(read.collectives.size(), 2U);
  EXPECT_EQ(read.collectives.back().ranks, 2);
  EXPECT_EQ(to_toml(read), text);
  const auto refusal = [&](const std::string& wrong) -> std::string {
    try {
      (void)read_profile(write(wrong));
    } catch (const RequestError& error) {
      return error.what();
    }
    return "accepted";
  };
  profile.collectives.back().ranks = 4;
  EXPECT_NE(refusal(to_toml(profile)).find("two tables of 4 ranks"), std::string::npos);
  const std::string without = text.substr(0, text.find("\n[[collectives]]"));
  const std::string rest = text.substr(text.find("\n[noise]"));
  EXPECT_NE(refusal("collectives = 4\n" + without + rest).find("'collectives' must be a table"),
            std::string::npos);
  EXPECT_NE(refusal("collectives = [4]\n" + without + rest).find("'collectives' must be a table"),
            std::string::npos);
}

TEST_F(ProfileFile, OfEveryDeviceInTheRepositoryIsValid) {
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator(STEPGATE_SOURCE_DIR "/baselines")) {
    const std::filesystem::path file = entry.path() / "device.toml";
    if (!std::filesystem::exists(file)) continue;
    ++found;
    EXPECT_FALSE(read_profile(file).name.empty()) << file;
  }
  EXPECT_GE(found, 1);
}

}  // namespace
}  // namespace stepgate
