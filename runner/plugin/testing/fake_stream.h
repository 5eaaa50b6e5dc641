// SPDX-License-Identifier: MIT
// The stream that FakeTrialDevice hands to a library. Work that is enqueued runs when somebody
// waits. A fake kernel library includes this alone.
#pragma once

#include <cstdint>
#include <functional>

namespace stepgate {

struct FakeStream {
  virtual ~FakeStream() = default;
  virtual void enqueue(std::function<void()>) = 0;
  // As cudaStreamSynchronize.
  virtual void synchronize() = 0;
  // As cudaMalloc without its cudaFree.
  virtual void allocate(std::int64_t bytes) = 0;
  // As cudaDeviceSetLimit.
  virtual void set_limit(int value) = 0;
  // Work that was enqueued fails, as a misaligned access does.
  virtual void fail(const char* why) = 0;
};

}  // namespace stepgate
