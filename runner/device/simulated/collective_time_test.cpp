// SPDX-License-Identifier: MIT
#include "device/simulated/collective_time.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "device/simulated/round_numbers.h"

namespace stepgate {
namespace {

using enum CollectiveKind;

DeviceProfile with_links() {
  DeviceProfile profile = round_profile();
  profile.collectives = {{.ranks = 4,
                          .bytes = {1000, 101'000, 301'000},
                          .all_reduce_nanoseconds = {10'000, 110'000, 210'000},
                          .reduce_scatter_nanoseconds = {6000, 60'000, 110'000},
                          .all_gather_nanoseconds = {6000, 50'000, 90'000}}};
  return profile;
}

TEST(CollectiveTime, IsReadBetweenTheSizesOfItsKindsTable) {
  const DeviceProfile profile = with_links();
  EXPECT_EQ(collective_time(profile, all_reduce, 4, 1), 10'000);
  EXPECT_EQ(collective_time(profile, all_reduce, 4, 51'000), 60'000);
  EXPECT_EQ(collective_time(profile, all_reduce, 4, 201'000), 160'000);
  EXPECT_EQ(collective_time(profile, all_reduce, 4, 501'000), 310'000) << "by the last rate";
  EXPECT_EQ(collective_time(profile, reduce_scatter, 4, 101'000), 60'000);
  EXPECT_EQ(collective_time(profile, all_gather, 4, 101'000), 50'000);
}

// A line through the two largest sizes would give 50 us too much at the smallest size.
TEST(CollectiveTime, IsNoLineThroughTwoSizes) {
  const DeviceProfile profile = with_links();
  const std::int64_t slope_of_the_large = (210'000 - 110'000) / 200;
  EXPECT_LT(collective_time(profile, all_reduce, 4, 1000), 110'000 - 100 * slope_of_the_large);
}

TEST(CollectiveTime, OnOtherCountsOfRanksGoesWithTheStepsOfTheRingAndTheBytesThatARankSends) {
  const DeviceProfile profile = with_links();
  // A rank sends 7/8 of the bytes twice on 8 ranks and 6/8 on 4 ranks, in 7 steps per trip instead
  // of 3.
  const std::int64_t bytes = 51'000;
  const std::int64_t beyond = collective_time(profile, all_reduce, 4, bytes * 7 / 6) -
                              collective_time(profile, all_reduce, 4, 0);
  EXPECT_EQ(collective_time(profile, all_reduce, 8, bytes), 10'000 * 7 / 3 + beyond);
  // A rank sends half of the bytes on 2 ranks, in one step instead of 3.
  EXPECT_EQ(collective_time(profile, reduce_scatter, 2, 151'500),
            6000 / 3 + collective_time(profile, reduce_scatter, 4, 101'000) - 6000);
}

TEST(CollectiveTime, IsNotNegativeOnFewerRanksWhereATableFalls) {
  DeviceProfile profile = with_links();
  profile.collectives.front().all_reduce_nanoseconds = {10'000, 2000, 210'000};
  EXPECT_EQ(collective_time(profile, all_reduce, 2, 150'000), 10'000 / 3);
}

// The tables differ from what a ring would make of each other, so the test shows which table was
// used.
TEST(CollectiveTime, IsThatOfTheTableOfTheNearestCountOfRanks) {
  DeviceProfile profile = with_links();
  const DeviceProfile of_four = profile;
  CollectiveCosts& two = profile.collectives.emplace_back(profile.collectives.front());
  two.ranks = 2;
  for (std::int64_t& time : two.all_reduce_nanoseconds) time *= 10;
  DeviceProfile of_two = profile;
  of_two.collectives.erase(of_two.collectives.begin());
  const auto time_of = [](const DeviceProfile& of, int ranks) {
    return collective_time(of, all_reduce, ranks, 101'000);
  };
  EXPECT_EQ(time_of(profile, 2), 1'100'000);
  EXPECT_EQ(time_of(profile, 4), 110'000);
  EXPECT_EQ(time_of(profile, 3), time_of(of_four, 3)) << "3/4 is nearer to 1 than 3/2";
  EXPECT_EQ(time_of(profile, 64), time_of(of_four, 64));
  EXPECT_NE(time_of(profile, 64), time_of(of_two, 64));
}

TEST(CollectiveTime, IsStretchedForAsLongAsKernelsRunBesideIt) {
  const Contention none{.kernel_stretch = 1.5, .collective_stretch = 1};
  EXPECT_EQ(time_beside_kernels(100, 1000, none), 100);
  const Contention both{.kernel_stretch = 1.5, .collective_stretch = 2};
  EXPECT_EQ(time_beside_kernels(100, 1000, both), 200);
  EXPECT_EQ(time_beside_kernels(100, 0, both), 100);
  // Kernels of 40 run for 60, in which time the collective does 30 of its 100.
  EXPECT_EQ(time_beside_kernels(100, 40, both), 60 + 70);
}

TEST(CollectiveTime, ContendsAsTheNearestTableHasIt) {
  DeviceProfile profile = with_links();
  profile.collectives.push_back(profile.collectives.front());
  profile.collectives.back().ranks = 2;
  profile.collectives.back().collective_stretch = 1.75;
  EXPECT_EQ(contention_of(profile, 2).collective_stretch, 1.75);
  EXPECT_EQ(contention_of(profile, 8).collective_stretch, 1);
  EXPECT_EQ(contention_of(profile, 8).kernel_stretch, 1.38);
  EXPECT_EQ(contention_of(profile, 1).collective_stretch, 1);
}

// Gigabytes a second are bytes a nanosecond. An all-reduce sends its bytes 1.5 times on four ranks.
TEST(CollectiveTime, OverASlowerLinkIsThatOfItsBytes) {
  const DeviceProfile profile = with_links();
  RanksPlan ranks{.count = 4};
  const auto time = [&](CollectiveKind kind, std::int64_t bytes) {
    return collective_time(profile, ranks, kind, bytes);
  };
  const std::int64_t own = time(all_reduce, 100'000'000);
  const std::int64_t latency = time(all_reduce, 0);
  ranks.collectives.link_gbps = 0.5;
  EXPECT_EQ(time(all_reduce, 0), latency);
  EXPECT_EQ(time(all_reduce, 100'000'000), latency + 300'000'000);
  EXPECT_EQ(time(all_gather, 100'000'000), time(all_gather, 0) + 150'000'000);
  ranks.collectives.link_gbps = 10'000;
  EXPECT_EQ(time(all_reduce, 100'000'000), own) << "a limit makes no link faster";
  EXPECT_EQ(what_is_guessed_of_collectives(profile, ranks),
            "collectives take what a ring over links of 10000 GB/s would");
}

// A broadcast sends its bytes over each link, and an all-gather on four ranks three quarters.
TEST(CollectiveTime, OfABroadcastIsThatOfAGatherThatSendsAsMuch) {
  const DeviceProfile profile = with_links();
  RanksPlan ranks{.count = 4};
  EXPECT_EQ(collective_time(profile, ranks, CollectiveKind::broadcast, 75'000),
            collective_time(profile, ranks, all_gather, 100'000));
  ranks.collectives.link_gbps = 0.5;
  EXPECT_EQ(collective_time(profile, ranks, CollectiveKind::broadcast, 75'000'000),
            collective_time(profile, ranks, all_gather, 0) + 150'000'000);
}

TEST(CollectiveTime, SaysWhatOfItIsGuessed) {
  DeviceProfile profile = with_links();
  EXPECT_EQ(what_is_guessed_of_collectives(profile, {.count = 4}), "");
  RanksPlan without{.count = 4};
  without.collectives.links = RankLinks::no_p2p;
  EXPECT_NE(what_is_guessed_of_collectives(profile, without).find("without peer access"),
            std::string::npos);
  EXPECT_EQ(what_is_guessed_of_collectives(profile, {.count = 1}), "");
  EXPECT_EQ(what_is_guessed_of_collectives(profile, {.count = 2}),
            "collectives of 2 ranks take what a ring makes of those measured on 4");
  profile.collectives.clear();
  EXPECT_NE(what_is_guessed_of_collectives(profile, {.count = 4}).find("a ring over the PCIe bus"),
            std::string::npos);
  EXPECT_EQ(what_is_guessed_of_collectives(profile, {.count = 1}), "");
}

TEST(CollectiveTime, WithoutATableIsThatOfARingOverThePciBus) {
  const DeviceProfile profile = round_profile();
  const double rate = static_cast<double>((1 << 20) - (1 << 12)) / 18'000;  // bytes per nanosecond
  const std::int64_t bytes = 1 << 24;
  EXPECT_EQ(collective_time(profile, all_reduce, 4, bytes),
            collective_time_over_pcie(profile, all_reduce, 4, bytes));
  EXPECT_NEAR(static_cast<double>(collective_time(profile, all_reduce, 4, bytes)),
              13'000 + 1.5 * static_cast<double>(bytes) / rate, 1);
  EXPECT_NEAR(static_cast<double>(collective_time(profile, all_gather, 2, bytes)),
              13'000 / 6. + 0.5 * static_cast<double>(bytes) / rate, 1);
}

TEST(CollectiveTime, FitsWhateverTheBusTakes) {
  DeviceProfile profile = round_profile();
  profile.pinned = {.bytes = {1, 2}, .nanoseconds = {0, longest_cost_nanoseconds}};
  const std::int64_t time = collective_time(profile, all_reduce, 64, std::int64_t{1} << 60);
  EXPECT_GT(time, longest_cost_nanoseconds);
  EXPECT_LE(time, 64 * longest_cost_nanoseconds);
}

// All gradients of a GPT-2 of 124M parameters with its own output layer are 326.2 MB.
TEST(CollectiveTime, OfTheH200IsWhatWasMeasured) {
  const std::filesystem::path source = STEPGATE_SOURCE_DIR;
  const DeviceProfile profile = read_profile(source / "baselines/nvidia-h200/device.toml");
  EXPECT_EQ(collective_time(profile, all_reduce, 4, 64LL << 20), 330'000);
  EXPECT_EQ(collective_time(profile, all_gather, 4, 256LL << 20), 684'000);
  EXPECT_NEAR(static_cast<double>(collective_time(profile, all_reduce, 4, 326'200'000)), 1.45e6,
              0.02e6);
  for (const CollectiveKind kind : {all_reduce, reduce_scatter, all_gather}) {
    const std::int64_t small = collective_time(profile, kind, 4, 4096);
    EXPECT_GE(small, 13'000);
    EXPECT_LE(small, 20'000) << "what a call costs the host is no time of a collective";
  }
}

}  // namespace
}  // namespace stepgate
