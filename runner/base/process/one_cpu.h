// SPDX-License-Identifier: MIT
// Keeps a thread on one processor for a while. Two processes that are compared by turns on the same
// one do not differ by what their processors differ in: distance to the GPU, neighbours, clock.
#pragma once

#include <sched.h>

#include <cstdint>

namespace stepgate {

// The calling thread, as long as this lives; threads that it starts meanwhile stay there. The same
// draw is the same processor in every process that may use the same ones. Without effect where the
// system does not allow it.
class OneCpu {
 public:
  explicit OneCpu(std::uint64_t draw);
  ~OneCpu();
  OneCpu(const OneCpu&) = delete;
  OneCpu& operator=(const OneCpu&) = delete;

 private:
  cpu_set_t before_{};
  bool moved_ = false;
};

}  // namespace stepgate
