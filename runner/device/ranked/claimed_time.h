// SPDX-License-Identifier: MIT
// Compares the times that other processes say their steps took with the time until they answered,
// by this process's own clock.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace stepgate {

// One answer to a request to run steps.
struct ClaimedTime {
  std::chrono::nanoseconds claimed{0};  // for the scored steps
  std::chrono::nanoseconds waited{0};   // from the request to the answer
  double explained = 1;  // all steps of the request, as a multiple of the scored ones
};

class ClaimedTimes {
 public:
  // Returns why the claims for these steps cannot be true, in words that continue "rank 1 ";
  // nullopt where they can.
  // A claim cannot be longer than the wait. An answer also takes a request's cost of 2 ms, and a
  // tenth of the rest for what a wash-out has besides scored steps. One that takes longer is
  // suspicious, and may be late on a busy machine: a wrong clock is late every time. So claims are
  // wrong where `late_in_a_row` answers were late, and no other in between, and they took 100 ms
  // together.
  std::optional<std::string> problem_with(const std::string& steps, const ClaimedTime&);

 private:
  struct Late {
    std::int64_t answers = 0;
    std::chrono::nanoseconds claimed{0};
    std::chrono::nanoseconds waited{0};
  };
  std::map<std::string, Late> late_;  // by the steps; since the last answer in time
};

inline constexpr std::int64_t late_in_a_row = 10;

}  // namespace stepgate
