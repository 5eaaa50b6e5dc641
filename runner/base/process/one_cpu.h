// SPDX-License-Identifier: MIT
// Keeps a thread on one processor for a while. Two processes that alternate on the same processor
// do not differ in its distance to the GPU, its neighbours, or its clock.
#pragma once

#include <sched.h>

#include <cstdint>

namespace stepgate {

// Binds the calling thread, and threads that it starts, to one CPU until it is destroyed. Processes
// with the same allowed CPUs choose the same one for the same `draw`. Of `members` processes that
// work together, each chooses another one, as far from the others as their numbers go; `member` is
// its place among them, from 0 on. Has no effect where the system refuses.
class OneCpu {
 public:
  explicit OneCpu(std::uint64_t draw, int member = 0, int members = 1);
  ~OneCpu();
  OneCpu(const OneCpu&) = delete;
  OneCpu& operator=(const OneCpu&) = delete;

 private:
  cpu_set_t before_{};
  bool moved_ = false;
};

}  // namespace stepgate
