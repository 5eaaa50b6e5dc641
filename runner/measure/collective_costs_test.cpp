// SPDX-License-Identifier: MIT
// Measures collectives on simulated machines, which know their true times.
#include "measure/collective_costs.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "device/reference/reference_device.h"
#include "device/simulated/collective_time.h"
#include "device/simulated/simulated_device.h"
#include "kernels/catalogue.h"

namespace stepgate {
namespace {

DeviceProfile profile_of(const char* name) {
  const std::filesystem::path source = STEPGATE_SOURCE_DIR;
  return read_profile(source / "baselines" / name / "device.toml");
}

CollectiveCosts measured(const DeviceProfile& profile, int ranks) {
  const auto device = make_simulated_device(profile, {.seed = 7});
  return measure_collective_costs(*device, collective_probes(ranks));
}

void expect_times(const std::vector<std::int64_t>& times, const DeviceProfile& profile,
                  CollectiveKind kind, const CollectiveCosts& costs, double tolerance) {
  ASSERT_EQ(times.size(), costs.bytes.size());
  for (std::size_t index = 0; index < times.size(); ++index) {
    const auto expected = static_cast<double>(
        collective_time(profile, kind, static_cast<int>(costs.ranks), costs.bytes[index]));
    EXPECT_NEAR(static_cast<double>(times[index]), expected, tolerance * expected)
        << costs.bytes[index] << " bytes on " << costs.ranks << " ranks";
  }
}

void expect_own_times(const DeviceProfile& profile, int ranks, double tolerance) {
  const CollectiveCosts costs = measured(profile, ranks);
  EXPECT_EQ(costs.ranks, ranks);
  EXPECT_EQ(costs.bytes.front(), 64 << 10);
  EXPECT_EQ(costs.bytes.back(), 1 << 30);
  using enum CollectiveKind;
  expect_times(costs.all_reduce_nanoseconds, profile, all_reduce, costs, tolerance);
  expect_times(costs.reduce_scatter_nanoseconds, profile, reduce_scatter, costs, tolerance);
  expect_times(costs.all_gather_nanoseconds, profile, all_gather, costs, tolerance);
}

TEST(CollectiveCosts, AreThoseOfTheSimulatedMachineThatTheyAreMeasuredOn) {
  DeviceProfile quiet = profile_of("nvidia-h200");
  quiet.noise = {};
  for (const int ranks : {2, 4, 8}) expect_own_times(quiet, ranks, 0.001);
}

// Two loads of a step differ by a few tenths of a percent, and each small collective occupies the
// stream for 40 us.
TEST(CollectiveCosts, AreAboutRightWhereStepsAreNoisy) {
  expect_own_times(profile_of("nvidia-h200"), 2, 0.15);
}

// Reading a written cost table back gives the same times. So a measured profile predicts what was
// measured, also between the measured sizes.
TEST(CollectiveCosts, MakeAProfileThatGivesThemBack) {
  DeviceProfile profile = profile_of("nvidia-h200");
  profile.noise = {};
  DeviceProfile again = profile;
  again.collectives = {measured(profile, 2), measured(profile, 8)};
  for (const int ranks : {2, 8}) {
    for (const std::int64_t bytes : {1LL << 20, 25LL << 20, 300LL << 20}) {
      const auto before =
          static_cast<double>(collective_time(profile, CollectiveKind::all_reduce, ranks, bytes));
      EXPECT_NEAR(
          static_cast<double>(collective_time(again, CollectiveKind::all_reduce, ranks, bytes)),
          before, 0.05 * before);
    }
  }
}

TEST(CollectiveCosts, AreNoneWhereNothingTakesTime) {
  const auto device = make_reference_device(1);
  const std::vector<CollectiveProbe> probes = collective_probes(2);
  EXPECT_THROW((void)measure_collective_costs(*device, std::span(probes).first(1)), DeviceError);
}

TEST(CollectiveCosts, AreMeasuredWithPartsThatAreAlikeAndAHostThatStaysAhead) {
  for (const CollectiveProbe& probe : collective_probes(6)) {
    std::int64_t collectives = 0;
    double held_microseconds = 0;
    for (const Operation& operation : probe.more->operations) {
      if (const auto* collective = std::get_if<Collective>(&operation.action)) {
        ++collectives;
        EXPECT_EQ(payload_bytes(*collective), probe.bytes);
        EXPECT_EQ(payload_bytes(*collective) % (6 * 16), 0);
      } else if (const auto* launch = std::get_if<LaunchKernel>(&operation.action)) {
        const Kernel& spin = kernel(launch->kernel);
        if (spin.cost.delay_microseconds)
          held_microseconds +=
              static_cast<double>(spin.cost.delay_microseconds(launch->attributes));
      }
    }
    EXPECT_EQ(collectives, 2 * probe.times_more);
    EXPECT_GE(held_microseconds, 20.0 * static_cast<double>(collectives))
        << "NCCL's calls take 12 to 13 us";
  }
}

}  // namespace
}  // namespace stepgate
