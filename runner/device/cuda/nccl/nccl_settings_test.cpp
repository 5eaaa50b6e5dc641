// SPDX-License-Identifier: MIT
#include "device/cuda/nccl/nccl_settings.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <fstream>

#include "base/files/temporary_folder.h"

namespace stepgate {
namespace {

using Settings = std::vector<NcclSetting>;

class NcclSettings : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) {
    const auto path = folder_.path() / name;
    std::ofstream(path) << text;
    return path.string();
  }

  TemporaryFolder folder_;
};

TEST_F(NcclSettings, AreThoseOfTheEnvironmentAndOfFilesWhereThatHasNone) {
  constexpr std::array<const char*, 5> environment{"NCCL_PROTO=LL", "HOME=/root",
                                                   "NCCL_ALGO=", "MY_NCCL_ALGO=Tree", nullptr};
  const std::string own =
      file("own", "# NCCL_DEBUG=INFO\nNCCL_ALGO=Ring\nNCCL_MIN_CTAS=4\nno line of a setting\n");
  const std::string general = file("general", "NCCL_MIN_CTAS=8\nNCCL_NET=a=b");
  const std::array<std::filesystem::path, 3> files{own, folder_.path() / "none", general};
  EXPECT_EQ(nccl_settings(environment.data(), files), (Settings{{"NCCL_ALGO", "", ""},
                                                                {"NCCL_MIN_CTAS", "4", own},
                                                                {"NCCL_NET", "a=b", general},
                                                                {"NCCL_PROTO", "LL", ""}}));
}

TEST_F(NcclSettings, AreReadFromTheFileThatTheEnvironmentNames) {
  const std::string own = file("own", "NCCL_GRAPH_REGISTER=7\n");
  ASSERT_EQ(::setenv("NCCL_CONF_FILE", own.c_str(), 1), 0);
  const auto named = nccl_setting("NCCL_GRAPH_REGISTER");
  ASSERT_EQ(::unsetenv("NCCL_CONF_FILE"), 0);
  EXPECT_EQ(named, (NcclSetting{"NCCL_GRAPH_REGISTER", "7", own}));
  EXPECT_EQ(nccl_setting("NCCL_GRAPH_REGISTER"), std::nullopt);
}

TEST_F(NcclSettings, AreThoseOfStepsButForWhatThisProgramSets) {
  const auto settings = [] {
    std::vector<DeviceKey> all = settings_of_communication();
    std::erase_if(all, [](const DeviceKey& key) {
      return key.name != "NCCL_PROFILER_PLUGIN" && key.name != "CUDA_DEVICE_MAX_CONNECTIONS" &&
             key.name != "NCCL_GRAPH_REGISTER";
    });
    return all;
  };
  EXPECT_TRUE(settings().empty());
  ::setenv("NCCL_PROFILER_PLUGIN", "STATIC_PLUGIN", 1);
  EXPECT_TRUE(settings().empty());
  ::setenv("NCCL_PROFILER_PLUGIN", "/opt/inspector.so", 1);
  ::setenv("NCCL_GRAPH_REGISTER", "7", 1);
  ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "1", 1);
  EXPECT_EQ(settings(), (std::vector<DeviceKey>{{"NCCL_GRAPH_REGISTER", "7"},
                                                {"NCCL_PROFILER_PLUGIN", "/opt/inspector.so"},
                                                {"CUDA_DEVICE_MAX_CONNECTIONS", "1"}}));
  for (const char* name :
       {"NCCL_PROFILER_PLUGIN", "NCCL_GRAPH_REGISTER", "CUDA_DEVICE_MAX_CONNECTIONS"})
    ::unsetenv(name);
}

}  // namespace
}  // namespace stepgate
