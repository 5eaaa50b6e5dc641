// SPDX-License-Identifier: MIT
// CUDA's profiling library (CUPTI), opened while the program runs and only where steps are traced.
// Turns its records into plain ones; assemble_trace finds what they belong to.
#pragma once

#include <memory>
#include <string>

#include "device/cuda/cupti/activity_records.h"

namespace stepgate {

// Now, by the clock that CUPTI stamps its records with.
TraceTime trace_now();

class Cupti {
 public:
  // Must come before the process first uses CUDA, and lives until it ends: turning recording off
  // does not take its cost away. Does not throw; `unavailable` says what is missing. The library is
  // $STEPGATE_CUPTI, or that of the toolkit.
  Cupti();
  ~Cupti();
  Cupti(const Cupti&) = delete;
  Cupti& operator=(const Cupti&) = delete;

  // Why nothing is recorded, in words; empty when something is.
  const std::string& unavailable() const;

  // Records managed memory too, from now on. CUDA has started, and the memory is not there yet.
  // Where the library cannot, traces have no page events.
  void watch_pages();

  // Everything recorded since the last time. The device must have nothing left to do. Throws
  // DeviceError when records were lost: counts would be lies.
  ActivityRecords take();

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace stepgate
