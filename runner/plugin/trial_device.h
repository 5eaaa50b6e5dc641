// SPDX-License-Identifier: MIT
// The device on which a library's kernel is tried: memory between guard zones, one stream, and the
// facts that tell whether a launch did more than it should. cuda_trial_device.h is a GPU,
// testing/fake_trial_device.h is played by the host.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "kernels/kernel.h"
#include "kernels/trial/kernel_trial.h"
#include "plugin/open_library.h"

namespace stepgate {

// The operands of a trial in memory of the device.
class PlacedOperands {
 public:
  virtual ~PlacedOperands() = default;
  virtual void* const* pointers() const = 0;
  // All operands as they are now. Waits for the device.
  virtual KernelTrial read_back() const = 0;
  virtual bool guards_are_untouched() const = 0;
  // Replaces the contents at once; waits for the device.
  virtual void write(const KernelTrial&) = 0;
  // Enqueues on the device's stream: work that takes this long, then the contents.
  virtual void write_later(const KernelTrial&, std::chrono::microseconds) = 0;
};

struct PlacedAs {
  std::int64_t offset_bytes = 0;  // from an address that is aligned to 256 bytes
  bool every_second = false;      // offsets the second, fourth, ... operand alone
  bool in_place = false;          // the output of operand_in_place is in its input's buffer
};

// The work that a call enqueued while its stream was captured.
struct CapturedWork {
  std::string problem;     // why it cannot be captured; else empty
  std::int64_t nodes = 0;  // kernels, copies and fills
};

class TrialDevice {
 public:
  virtual ~TrialDevice() = default;
  virtual DeviceFacts facts() const = 0;
  virtual CUstream_st* stream() const = 0;
  virtual std::unique_ptr<PlacedOperands> place(const KernelTrial&, const PlacedAs&) = 0;
  // Memory for a launch's workspace, filled with 0xff; owned by the device.
  virtual void* workspace(std::int64_t bytes) = 0;
  // Waits for all work, also of other streams. Returns why it failed; empty where it did not. A
  // device whose work failed is lost.
  virtual std::string finish() = 0;
  virtual CapturedWork capture(const std::function<void()>& call) = 0;
  virtual std::int64_t free_bytes() const = 0;
  // Everything that a launch must leave alone, as text: limits of the device and of its caches.
  virtual std::string limits() const = 0;
};

}  // namespace stepgate
