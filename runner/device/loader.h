// SPDX-License-Identifier: MIT
// The data loader of a step: real threads that make batches ahead of the step, as the plan's
// [loader] asks. It does not touch the batches' bytes; it only decides when a batch may be used.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "device/device.h"
#include "plan/step_plan.h"

namespace stepgate {

// Time that a worker needs for batch `index`: log-normal with the plan's mean and coefficient of
// variation, the same on every device. Each load has its own seed.
std::chrono::nanoseconds loading_time(const LoaderKnobs&, std::uint64_t seed, std::int64_t index);

// The seed of a load's draws. The variants of a round share it, and every round has another.
std::uint64_t loader_seed(const StepPlan&, const LoadDraw&);

// Occupies the calling thread for this long: sleeps while that is safe, spins at the end.
void pass_time(std::chrono::nanoseconds);
// Uses this much processor time of the calling thread.
void compute_for(std::chrono::nanoseconds);
// The part of this time that pass_time sleeps.
std::chrono::nanoseconds sleep_within(std::chrono::nanoseconds);

class Loader {
 public:
  // The first batch has the number `first`.
  Loader(const LoaderKnobs&, std::uint64_t seed, std::int64_t first);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // Returns when batch `index` is ready. Batches are taken in order, each once. If the plan
  // restarts the workers for this batch, they end and start first, so no later batch is ready.
  void take(std::int64_t index);

 private:
  void start();
  void stop();
  void work();
  void make(std::int64_t index) const;

  LoaderKnobs plan_;
  std::uint64_t seed_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t next_to_make_;
  std::int64_t taken_;
  std::int64_t end_;  // the batch before which the workers restart
  std::vector<std::int64_t>
      ready_;  // batch that lies in each place of the queue, -1 while there is none
  bool stopping_ = false;
  std::vector<std::jthread> workers_;
};

}  // namespace stepgate
