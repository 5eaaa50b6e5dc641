// SPDX-License-Identifier: MIT
// CUDA's profiling library (CUPTI), opened at run time and only where steps are traced. Converts
// its records to plain values; assemble_trace matches them to operations.
#pragma once

#include <memory>
#include <string>

#include "device/cuda/cupti/activity_records.h"

namespace stepgate {

// The current time of the clock that CUPTI uses for its records.
TraceTime trace_now();

class Cupti {
 public:
  // Must be created before the process first uses CUDA, and live until its end: disabling the
  // recording does not remove its cost. Does not throw; unavailable() says what is missing. Loads
  // $STEPGATE_CUPTI, or the toolkit's library.
  Cupti();
  ~Cupti();
  Cupti(const Cupti&) = delete;
  Cupti& operator=(const Cupti&) = delete;

  // The reason why nothing is recorded; empty when recording works.
  const std::string& unavailable() const;

  // Records page events of managed memory from now on. Call it after CUDA has started and before
  // the memory is allocated. Without the library's support traces have no page events.
  void watch_pages();

  // Returns everything recorded since the last call. The device must be idle. Throws DeviceError
  // when records were lost, since counts would be wrong.
  ActivityRecords take();

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace stepgate
