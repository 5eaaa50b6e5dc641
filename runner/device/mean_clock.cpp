// SPDX-License-Identifier: MIT
#include "device/mean_clock.h"

#include <map>

#include "base/seconds.h"

namespace stepgate {
namespace {

constexpr double least_share = 0.5;  // of the time between the first and last stamp of all

struct Ends {
  const ClockStamp* first;
  const ClockStamp* last;

  double nanoseconds() const {
    return static_cast<double>(last->nanoseconds) - static_cast<double>(first->nanoseconds);
  }
  double cycles() const {
    return static_cast<double>(last->cycles) - static_cast<double>(first->cycles);
  }
};

}  // namespace

std::optional<double> mean_clock_hertz(std::span<const ClockStamp> stamps) {
  if (stamps.empty()) return std::nullopt;
  std::map<std::uint64_t, Ends> by_multiprocessor;
  for (const ClockStamp& stamp : stamps) {
    by_multiprocessor.try_emplace(stamp.multiprocessor, Ends{&stamp, &stamp}).first->second.last =
        &stamp;
  }
  const Ends all{&stamps.front(), &stamps.back()};
  Ends longest{&stamps.front(), &stamps.front()};
  for (const auto& [number, ends] : by_multiprocessor) {
    if (ends.nanoseconds() > longest.nanoseconds()) longest = ends;
  }
  const bool long_enough =
      longest.nanoseconds() > 0 && longest.nanoseconds() >= least_share * all.nanoseconds();
  if (!long_enough || longest.cycles() <= 0) return std::nullopt;
  return longest.cycles() / longest.nanoseconds() * nanoseconds_per_second;
}

std::vector<std::optional<double>> clocks_hertz(std::span<const ClockStamp> stamps) {
  std::vector<std::optional<double>> clocks(stamps.size());
  for (std::size_t index = 1; index < stamps.size(); ++index) {
    const Ends between{&stamps[index - 1], &stamps[index]};
    const bool comparable = between.first->multiprocessor == between.last->multiprocessor;
    if (comparable && between.nanoseconds() > 0 && between.cycles() > 0) {
      clocks[index] = between.cycles() / between.nanoseconds() * nanoseconds_per_second;
    }
  }
  return clocks;
}

}  // namespace stepgate
