// SPDX-License-Identifier: MIT
// Device profiles as files: what is written is read back, and what is wrong is said.
#include "device/profile.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "support/text/diagnostic.h"

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
    profile.host.launch_nanoseconds = 3400;
    profile.compute.memory_bytes_per_second = 4.25e12;
    profile.pinned = {.bytes = {10, 20}, .nanoseconds = {1, 2}};
    profile.pageable = {.bytes = {10, 20, 30}, .nanoseconds = {3, 4, 9}};
    profile.noise.within_rounds = 0.015;
    return profile;
  }

 private:
  std::filesystem::path folder_;
};

TEST_F(ProfileFile, IsReadBackAsItWasWritten) {
  const std::string text = to_toml(some_profile());
  EXPECT_EQ(to_toml(read_profile(write(text))), text);
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

TEST_F(ProfileFile, RefusesSizesWithoutTimes) {
  DeviceProfile profile = some_profile();
  profile.pinned.nanoseconds.push_back(3);
  EXPECT_THROW((void)read_profile(write(to_toml(profile))), RequestError);
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
