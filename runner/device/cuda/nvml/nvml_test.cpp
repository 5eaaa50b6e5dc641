// SPDX-License-Identifier: MIT
// Tests readings of a fake NVML, and of a missing one.
#include "device/cuda/nvml/nvml.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

namespace stepgate {
namespace {

const GpuName fake_gpu{.uuid = "GPU-fake", .pci_bus = "0000:17:00.0"};

class FakeNvml : public testing::Test {
 protected:
  ~FakeNvml() override {
    for (const std::string& name : said_) unsetenv(name.c_str());
  }
  void say(const std::string& name, const std::string& value) {
    said_.push_back("FAKE_NVML_" + name);
    setenv(said_.back().c_str(), value.c_str(), 1);
  }
  static EnvironmentReading read(const GpuName& gpu = fake_gpu) {
    return Nvml(gpu, STEPGATE_FAKE_NVML).read();
  }

 private:
  std::vector<std::string> said_;
};

std::chrono::nanoseconds time_of(const EnvironmentReading& reading, ClockEvent event) {
  for (const ClockEventTime& time : reading.times) {
    if (time.event == event) return time.total;
  }
  return std::chrono::nanoseconds(-1);
}

TEST(Nvml, SaysThatALibraryIsMissing) {
  const Nvml nvml(fake_gpu, "libno-such-driver.so.1");
  EXPECT_NE(nvml.read().unavailable.find("libno-such-driver.so.1"), std::string::npos)
      << nvml.read().unavailable;
  EXPECT_TRUE(nvml.keys().empty());
}

TEST(Nvml, SaysThatALibraryIsAnotherOne) {
  const Nvml nvml(fake_gpu, "libm.so.6");
  EXPECT_NE(
      nvml.read().unavailable.find(" lacks nvmlInit_v2, nvmlShutdown, nvmlDeviceGetHandleByUUID)"),
      std::string::npos)
      << nvml.read().unavailable;
}

TEST_F(FakeNvml, SaysHowTwoGpusAreLinked) {
  const Nvml nvml(fake_gpu, STEPGATE_FAKE_NVML);
  EXPECT_EQ(nvml.link_to("GPU-other"), "") << "where the driver does not tell";
  say("P2P", "0");
  EXPECT_EQ(nvml.link_to("GPU-other"), nvlink);
  EXPECT_EQ(nvml.link_to("GPU-fake"), "") << "itself";
  EXPECT_EQ(nvml.link_to("GPU-elsewhere"), "");
  say("P2P", "5");
  EXPECT_EQ(nvml.link_to("GPU-other"), no_nvlink);
  EXPECT_EQ(Nvml(fake_gpu, "libno-such-driver.so.1").link_to("GPU-other"), "");
}

TEST_F(FakeNvml, SaysWhyItDoesNotStart) {
  say("BROKEN", "1");
  EXPECT_EQ(read().unavailable, "the management library does not start: Driver Not Loaded");
}

TEST_F(FakeNvml, SaysThatItDoesNotKnowTheGpu) {
  EXPECT_EQ(read({"GPU-elsewhere", ""}).unavailable,
            "the management library does not know the GPU GPU-elsewhere: Not Found");
}

TEST_F(FakeNvml, FindsTheGpuByItsBusWhenTheUuidIsUnknown) {
  EXPECT_EQ(read({"MIG-slice", "0000:17:00.0"}).unavailable, "");
}

TEST_F(FakeNvml, LeavesOutWhatTheDriverDoesNotTell) {
  const EnvironmentReading reading = read();
  EXPECT_EQ(reading.unavailable, "");
  EXPECT_FALSE(reading.sm_clock_hertz || reading.memory_clock_hertz || reading.active);
  EXPECT_FALSE(reading.temperature_celsius || reading.power_watts || reading.power_limit_watts);
  EXPECT_FALSE(reading.processes);
  EXPECT_TRUE(reading.times.empty());
}

TEST_F(FakeNvml, ReadsInBaseUnits) {
  say("SM_CLOCK", "1980");
  say("MEMORY_CLOCK", "3201");
  say("TEMPERATURE", "41");
  say("POWER", "312500");
  say("POWER_LIMIT", "700000");
  const EnvironmentReading reading = read();
  EXPECT_DOUBLE_EQ(reading.sm_clock_hertz.value(), 1.98e9);
  EXPECT_DOUBLE_EQ(reading.memory_clock_hertz.value(), 3.201e9);
  EXPECT_DOUBLE_EQ(reading.temperature_celsius.value(), 41);
  EXPECT_DOUBLE_EQ(reading.power_watts.value(), 312.5);
  EXPECT_DOUBLE_EQ(reading.power_limit_watts.value(), 700);
}

TEST_F(FakeNvml, TellsCausesApart) {
  say("REASONS", std::to_string(0x4 | 0x40 | 0x80));
  EXPECT_EQ(read().active.value(),
            (std::vector{ClockEvent::software_power_cap, ClockEvent::hardware_thermal,
                         ClockEvent::hardware_power_brake}));
  say("REASONS", "0");
  EXPECT_TRUE(read().active.value().empty());
}

TEST_F(FakeNvml, ReadsTheTimesThatAreCountedWhateverTheirType) {
  say("FIELD_74", "1500");
  say("FIELD_252", "5000000000000");  // more than 32 bits hold
  const EnvironmentReading reading = read();
  EXPECT_EQ(reading.times.size(), 2U);
  EXPECT_EQ(time_of(reading, ClockEvent::software_power_cap).count(), 1500);
  EXPECT_EQ(time_of(reading, ClockEvent::hardware_thermal).count(), 5000000000000);
}

TEST_F(FakeNvml, TellsThisProcessFromOthers) {
  say("PROCESSES", "7 " + std::to_string(getpid()) + " 4711");
  const ComputeProcesses processes = read().processes.value();
  EXPECT_TRUE(processes.self_is_listed);
  ASSERT_EQ(processes.others.size(), 2U);
  EXPECT_EQ(processes.others[0].pid, 7);
  EXPECT_FALSE(processes.others[0].memory_bytes);
  EXPECT_EQ(processes.others[1].pid, 4711);
  EXPECT_EQ(processes.others[1].memory_bytes.value(), 1 << 20);
}

TEST_F(FakeNvml, SaysThatThisProcessIsNotListed) {
  say("PROCESSES", "4711");
  EXPECT_FALSE(read().processes.value().self_is_listed);
  say("PROCESSES", "");
  EXPECT_FALSE(read().processes.value().self_is_listed);
  EXPECT_TRUE(read().processes.value().others.empty());
}

TEST_F(FakeNvml, LeavesOutProcessesOfOtherSlices) {
  say("INSTANCE", "3");
  say("PROCESSES", "7 " + std::to_string(getpid()) + " 4711");
  const ComputeProcesses processes = read().processes.value();
  EXPECT_TRUE(processes.self_is_listed);
  ASSERT_EQ(processes.others.size(), 1U);
  EXPECT_EQ(processes.others[0].pid, 7);
}

TEST_F(FakeNvml, MakesRoomForManyProcesses) {
  std::string pids;
  for (int pid = 1000; pid < 1100; ++pid) pids += std::to_string(pid) + " ";
  say("PROCESSES", pids);
  const ComputeProcesses processes = read().processes.value();
  ASSERT_EQ(processes.others.size(), 100U);
  EXPECT_EQ(processes.others.back().pid, 1099);
}

TEST_F(FakeNvml, NamesTheKeysThatAreKnown) {
  say("VBIOS", "96.00.D9.00.02");
  say("POWER_LIMIT", "700000");
  say("ECC", "1");
  say("MIG", "0");
  say("PCIE_GENERATION", "5");
  say("MAX_CLOCK", "1980");
  std::string text;
  for (const DeviceKey& key : Nvml(fake_gpu, STEPGATE_FAKE_NVML).keys()) {
    text += key.name + ": " + key.value + "\n";
  }
  EXPECT_EQ(text,
            "vbios: 96.00.D9.00.02\npower limit: 700 W\necc: on\nmig: off\npcie generation: 5\n"
            "highest sm clock: 1980 MHz\n");
}

}  // namespace
}  // namespace stepgate
