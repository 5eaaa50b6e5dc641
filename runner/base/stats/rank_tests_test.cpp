// SPDX-License-Identifier: MIT
// Checks that the rank tests have power and keep their level.
#include "base/stats/rank_tests.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "base/random.h"

namespace stepgate {
namespace {

constexpr int samples = 20000;
constexpr double level = 0.01;
const double most_errors = samples * (level + 3 * std::sqrt(level * (1 - level) / samples));

int times_true(const std::function<bool(Random&)>& test) {
  int count = 0;
  for (int sample = 0; sample < samples; ++sample) {
    Random random(static_cast<std::uint64_t>(sample));
    count += test(random);
  }
  return count;
}

// Values with outliers of ten deviations, which would decide a comparison of means.
std::vector<double> spiky(Random& random, std::size_t count, double centre = 0) {
  std::vector<double> values;
  while (values.size() < count) {
    values.push_back(centre + random.normal() * (random.uniform() < 0.1 ? 10 : 1));
  }
  return values;
}

TEST(RankTests, KeepTheirLevelWhereNothingDiffers) {
  EXPECT_LE(times_true([](Random& random) {
              return two_samples_differ(spiky(random, 8), spiky(random, 7), level);
            }),
            most_errors);
  EXPECT_LE(times_true([](Random& random) { return neighbours_agree(spiky(random, 15), level); }),
            most_errors);
}

TEST(RankTests, FindWhatLiesElsewhere) {
  EXPECT_GE(times_true([](Random& random) {
              return two_samples_differ(spiky(random, 16), spiky(random, 16, 3), level);
            }),
            0.95 * samples);
}

// The share `share` of the values lies above 1, and all others equal 1.
TEST(RankTests, KnowWhatManyEqualValuesLeaveOfTheVariance) {
  const auto cut = [](Random& random, double share) {
    std::vector<double> values;
    while (values.size() < 100) {
      values.push_back(random.uniform() < share ? 1 + random.uniform() : 1);
    }
    return values;
  };
  EXPECT_LE(times_true([&](Random& random) {
              return two_samples_differ(cut(random, 0.1), cut(random, 0.1), level);
            }),
            most_errors);
  EXPECT_GE(times_true([&](Random& random) {
              return two_samples_differ(cut(random, 0.02), cut(random, 0.3), level);
            }),
            0.95 * samples);
  const std::vector<double> equal(10, 1.0);
  EXPECT_FALSE(two_samples_differ(equal, equal, 0.5));
}

TEST(RankTests, FindWhatHasAMemory) {
  EXPECT_GE(times_true([](Random& random) {
              std::vector<double> values{random.normal()};
              while (values.size() < 40) values.push_back(0.8 * values.back() + random.normal());
              return neighbours_agree(values, level);
            }),
            0.95 * samples);
}

TEST(RankTests, SayNothingAboutAHandfulOfValues) {
  const std::vector<double> few{1, 2, 3, 4};
  const std::vector<double> others{11, 12, 13, 14};
  EXPECT_FALSE(two_samples_differ(few, others, 0.05));
  EXPECT_FALSE(neighbours_agree(few, 0.05));
}

TEST(RankTests, KnowStudentsT) {
  EXPECT_NEAR(t_beyond(5, 0.05), 2.571, 0.001);
  EXPECT_NEAR(t_beyond(1000, 0.001), 3.300, 0.001);
}

}  // namespace
}  // namespace stepgate
