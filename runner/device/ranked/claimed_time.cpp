// SPDX-License-Identifier: MIT
#include "device/ranked/claimed_time.h"

#include <fmt/format.h>

#include "base/text/units.h"

namespace stepgate {
namespace {

using std::chrono::nanoseconds;

// The clocks of a device and of a host may differ by this share, and by their granularity.
constexpr double clock_disagreement = 0.01;
constexpr nanoseconds clock_granularity = std::chrono::milliseconds(1);
constexpr nanoseconds cost_of_a_request = std::chrono::milliseconds(2);
constexpr double share_of_a_wait = 0.9;
constexpr nanoseconds long_enough = std::chrono::milliseconds(100);

std::string in_seconds(nanoseconds time) {
  return seconds_text(std::chrono::duration<double>(time).count());
}

}  // namespace

std::optional<std::string> ClaimedTimes::problem_with(const std::string& steps,
                                                      const ClaimedTime& time) {
  const auto claimed = static_cast<double>(time.claimed.count());
  const auto waited = static_cast<double>(time.waited.count());
  if (claimed >
      waited * (1 + clock_disagreement) + static_cast<double>(clock_granularity.count())) {
    return fmt::format("says that steps of {} took {}, but answered within {}", steps,
                       in_seconds(time.claimed), in_seconds(time.waited));
  }
  const double rest = waited - static_cast<double>(cost_of_a_request.count());
  if (claimed * time.explained >= share_of_a_wait * rest) {
    late_.erase(steps);
    return std::nullopt;
  }
  Late& late = late_[steps];
  ++late.answers;
  late.claimed += nanoseconds(static_cast<std::int64_t>(claimed * time.explained));
  late.waited += time.waited;
  if (late.answers < late_in_a_row || late.waited < long_enough) return std::nullopt;
  return fmt::format(
      "says that steps of {} took {}, and answered after {}, {} times in a row later than it says; "
      "its clock cannot be believed",
      steps, in_seconds(late.claimed), in_seconds(late.waited), late.answers);
}

}  // namespace stepgate
