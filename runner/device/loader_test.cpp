// SPDX-License-Identifier: MIT
// Real loader threads: order, back-pressure and the distribution of their times.
#include "device/loader.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "base/process/one_cpu.h"
#include "device/thread_clock.h"

namespace stepgate {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

nanoseconds time_to_take(Loader& loader, std::int64_t first, std::int64_t count,
                         nanoseconds between) {
  nanoseconds taking{0};
  for (std::int64_t index = first; index < first + count; ++index) {
    const auto begin = steady_clock::now();
    loader.take(index);
    taking += steady_clock::now() - begin;
    pass_time(between);
  }
  return taking;
}

TEST(Loader, MakesTheStepWaitWhenItLoadsInline) {
  Loader loader({.wait_us = 2000, .jitter = 0, .depth = 0, .workers = 1}, 1, 0);
  EXPECT_GE(time_to_take(loader, 0, 10, milliseconds(0)), milliseconds(20));
}

TEST(Loader, HidesItsTimeBehindAStepThatIsLonger) {
  Loader loader({.wait_us = 2000, .jitter = 0, .depth = 2, .workers = 1}, 1, 0);
  loader.take(0);
  pass_time(milliseconds(10));
  EXPECT_LT(time_to_take(loader, 1, 20, milliseconds(6)), milliseconds(40));
}

TEST(Loader, SharesItsWorkAmongItsWorkers) {
  Loader loader({.wait_us = 10000, .jitter = 0, .depth = 4, .workers = 4}, 1, 0);
  const auto begin = steady_clock::now();
  for (std::int64_t index = 0; index < 12; ++index) loader.take(index);
  const auto elapsed = steady_clock::now() - begin;
  EXPECT_GE(elapsed, milliseconds(30));
  EXPECT_LT(elapsed, milliseconds(100));  // one worker would need 120
}

TEST(Loader, OfBusyWorkersPassesProcessorTimeWhichSleepingOnesDoNot) {
  for (const bool busy : {false, true}) {
    Loader loader({.wait_us = 10000, .busy = busy}, 1, 0);
    const nanoseconds before = thread_processor_time();
    loader.take(0);
    const nanoseconds used = thread_processor_time() - before;
    EXPECT_EQ(used >= milliseconds(10), busy);
  }
}

// Two busy workers on one processor take twice as long for a batch. Threads have the processors of
// the thread that starts them.
TEST(Loader, OfBusyWorkersIsNoFasterThanTheProcessors) {
  const OneCpu pinned(0);
  const std::int64_t workers = 2;
  const auto time_to_make = [&](bool busy) {
    const auto begin = steady_clock::now();
    Loader loader({.wait_us = 20000, .depth = workers, .workers = workers, .busy = busy}, 1, 0);
    for (std::int64_t index = 0; index < 2 * workers; ++index) loader.take(index);
    return steady_clock::now() - begin;
  };
  const auto computing = time_to_make(true);
  EXPECT_GE(computing, milliseconds(4 * 20));
  EXPECT_LT(time_to_make(false), computing) << "they sleep side by side";
}

TEST(Loader, EndsWhileItsWorkersWait) {
  for (int repeat = 0; repeat < 20; ++repeat) {
    const Loader loader({.wait_us = 1, .jitter = 0, .depth = 3, .workers = 3}, 1, 0);
  }
}

// Eight batches of 1 ms lie ahead of a step of 2 ms. If the workers restart, each batch waits for
// their start.
TEST(Loader, HasNothingAheadWhenItsWorkersStartAnew) {
  const LoaderKnobs stays{.wait_us = 1000,
                          .jitter = 0,
                          .depth = 8,
                          .workers = 2,
                          .restart_every = 0,
                          .start_us = 15000};
  LoaderKnobs restarts = stays;
  restarts.restart_every = 10;
  const auto after_the_first = [](const LoaderKnobs& plan) {
    Loader loader(plan, 1, 0);
    loader.take(0);
    return time_to_take(loader, 1, 30, milliseconds(2));
  };
  EXPECT_GE(after_the_first(restarts), milliseconds(3 * 15)) << "batches 10, 20 and 30";
  EXPECT_LT(after_the_first(stays), milliseconds(2 * 15));
}

TEST(Loader, StartsAnewAtTheSameBatchesWhereverItBegins) {
  const LoaderKnobs plan{
      .wait_us = 1, .jitter = 0, .depth = 4, .workers = 3, .restart_every = 5, .start_us = 10000};
  Loader loader(plan, 1, 13);
  loader.take(13);
  EXPECT_LT(time_to_take(loader, 14, 1, milliseconds(0)), milliseconds(8));
  EXPECT_GE(time_to_take(loader, 15, 1, milliseconds(0)), milliseconds(10));
  EXPECT_LT(time_to_take(loader, 16, 4, milliseconds(0)), milliseconds(8));
  EXPECT_GE(time_to_take(loader, 20, 1, milliseconds(0)), milliseconds(10));
}

TEST(Loader, EndsAtOnceWhileItsWorkersStart) {
  const auto begin = steady_clock::now();
  { const Loader loader({.depth = 2, .workers = 2, .start_us = 10000000}, 1, 0); }
  EXPECT_LT(steady_clock::now() - begin, milliseconds(2000));
}

TEST(LoadingTime, HasTheMeanAndSpreadThatThePlanAsksFor) {
  const LoaderKnobs plan{.wait_us = 1000, .jitter = 0.5, .depth = 0, .workers = 1};
  constexpr int count = 20000;
  double sum = 0;
  double squares = 0;
  for (int index = 0; index < count; ++index) {
    const auto time = static_cast<double>(loading_time(plan, 3, index).count()) * 1e-6;
    sum += time;
    squares += time * time;
  }
  const double mean = sum / count;
  EXPECT_NEAR(mean, 1.0, 0.02);
  EXPECT_NEAR(std::sqrt(squares / count - mean * mean) / mean, 0.5, 0.03);
  EXPECT_EQ(loading_time(plan, 3, 17), loading_time(plan, 3, 17));
  EXPECT_NE(loading_time(plan, 3, 17), loading_time(plan, 3, 18));
}

TEST(Loader, CountsItsBatchesFromTheFirstOne) {
  Loader loader({.wait_us = 1, .jitter = 0, .depth = 2, .workers = 2}, 1, 1234);
  for (std::int64_t index = 1234; index < 1244; ++index) loader.take(index);
}

TEST(Loader, DrawsAnewInEveryLoadAndTheSameForAllThatShareIt) {
  StepPlan plan;
  plan.seed = 7;
  StepPlan other = plan;
  other.variant = "other";
  EXPECT_EQ(loader_seed(plan, {}), plan.seed);
  EXPECT_NE(loader_seed(plan, {.loader = 1}), loader_seed(plan, {.loader = 2}));
  EXPECT_EQ(loader_seed(plan, {.loader = 1}), loader_seed(other, {.loader = 1}));
}

TEST(ThreadProcessorTime, PassesWhileTheThreadSpinsAndNotWhileItSleeps) {
  const nanoseconds before = thread_processor_time();
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_LT(thread_processor_time() - before, milliseconds(10));
  const auto begin = steady_clock::now();
  while (thread_processor_time() - before < milliseconds(20)) {
  }
  EXPECT_GE(steady_clock::now() - begin, milliseconds(10))
      << "no faster than the clock on the wall";
}

}  // namespace
}  // namespace stepgate
