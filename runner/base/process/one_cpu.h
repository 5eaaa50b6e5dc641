// SPDX-License-Identifier: MIT
// Keeps a thread on one processor for a while. Two processes that are compared by turns on the same
// one do not differ by what their processors differ in: distance to the GPU, neighbours, clock.
#pragma once

#include <sched.h>

#include <cstdint>

namespace stepgate {

// Binds the calling thread, and threads that it starts, to one CPU until it is destroyed. Processes
// with the same allowed CPUs choose the same one for the same `draw`. Has no effect where the
// system refuses.
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
