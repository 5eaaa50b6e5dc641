// SPDX-License-Identifier: MIT
#include "device/loader.h"

#include <algorithm>
#include <limits>

#include "base/random.h"
#include "device/thread_clock.h"

namespace stepgate {
namespace {

// A sleeping thread wakes up late by about this much on a busy machine.
constexpr std::chrono::microseconds wake_up_margin{150};

// The first batch after this one for which the workers restart; a number beyond all batches if they
// never do.
std::int64_t next_start(const LoaderKnobs& plan, std::int64_t batch) {
  if (plan.restart_every == 0) return std::numeric_limits<std::int64_t>::max();
  return (batch / plan.restart_every + 1) * plan.restart_every;
}

}  // namespace

std::chrono::nanoseconds loading_time(const LoaderKnobs& plan, std::uint64_t seed,
                                      std::int64_t index) {
  return std::chrono::nanoseconds(
      varied_nanoseconds(nanoseconds_of(plan.wait_us), plan.jitter, seed, index));
}

std::uint64_t loader_seed(const StepPlan& plan, const LoadDraw& draw) {
  return draw.loader == 0 ? plan.seed : random_bits(plan.seed, draw.loader);
}

void pass_time(std::chrono::nanoseconds duration) {
  const auto end = std::chrono::steady_clock::now() + duration;
  const auto sleep = sleep_within(duration);
  if (sleep.count() > 0) std::this_thread::sleep_for(sleep);
  while (std::chrono::steady_clock::now() < end) {
  }
}

void compute_for(std::chrono::nanoseconds duration) {
  const auto end = thread_processor_time() + duration;
  while (thread_processor_time() < end) {
  }
}

std::chrono::nanoseconds sleep_within(std::chrono::nanoseconds duration) {
  return std::max(duration - wake_up_margin, std::chrono::nanoseconds(0));
}

Loader::Loader(const LoaderKnobs& plan, std::uint64_t seed, std::int64_t first)
    : plan_(plan),
      seed_(seed),
      next_to_make_(first),
      taken_(first),
      end_(next_start(plan, first)),
      ready_(static_cast<std::size_t>(plan.depth), -1) {
  if (plan_.depth > 0) start();
}

Loader::~Loader() {
  stop();
}

void Loader::start() {
  for (std::int64_t worker = 0; worker < plan_.workers; ++worker)
    workers_.emplace_back([this] { work(); });
}

void Loader::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  workers_.clear();
  stopping_ = false;
}

void Loader::take(std::int64_t index) {
  if (plan_.depth == 0) return make(index);
  if (index == end_) {
    stop();
    end_ = next_start(plan_, index);
    start();
  }
  std::unique_lock lock(mutex_);
  std::int64_t& place = ready_[static_cast<std::size_t>(index % plan_.depth)];
  changed_.wait(lock, [&] { return place == index; });
  place = -1;
  taken_ = index + 1;
  changed_.notify_all();
}

void Loader::make(std::int64_t index) const {
  const auto duration = loading_time(plan_, seed_, index);
  plan_.busy ? compute_for(duration) : pass_time(duration);
}

void Loader::work() {
  std::unique_lock lock(mutex_);
  // This wait can be interrupted, since starting a worker may take seconds.
  const std::chrono::nanoseconds start(nanoseconds_of(plan_.start_us));
  if (start.count() > 0 && changed_.wait_for(lock, start, [&] { return stopping_; })) return;
  while (true) {
    changed_.wait(
        lock, [&] { return stopping_ || next_to_make_ < std::min(taken_ + plan_.depth, end_); });
    if (stopping_) return;
    const std::int64_t index = next_to_make_++;
    lock.unlock();
    make(index);
    lock.lock();
    ready_[static_cast<std::size_t>(index % plan_.depth)] = index;
    changed_.notify_all();
  }
}

}  // namespace stepgate
