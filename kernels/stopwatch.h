// SPDX-License-Identifier: MIT
// Measures device time of work on the legacy stream with two events. Only in CUDA builds. Failures
// throw std::runtime_error.
#pragma once

#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

namespace stepgate {

class Stopwatch {
 public:
  Stopwatch() {
    check(cudaEventCreate(&begin_), "create an event");
    check(cudaEventCreate(&end_), "create an event");
  }
  ~Stopwatch() {
    (void)cudaEventDestroy(begin_);
    (void)cudaEventDestroy(end_);
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  // Mean device time of one repetition, in seconds. Waits for the device.
  template <class Work>
  double seconds_each(int times, Work work) {
    check(cudaEventRecord(begin_, nullptr), "record");
    for (int i = 0; i < times; ++i) work();
    check(cudaEventRecord(end_, nullptr), "record");
    check(cudaEventSynchronize(end_), "wait for the kernels");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin_, end_), "read the time");
    return milliseconds * 1e-3 / times;
  }

 private:
  static void check(cudaError_t status, const char* deed) {
    if (status != cudaSuccess)
      throw std::runtime_error(std::string("stopwatch: ") + deed + ": " +
                               cudaGetErrorString(status));
  }

  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

}  // namespace stepgate
