// SPDX-License-Identifier: MIT
// Shows what a user's program prints. A program that prints commands to a CI system, or to a
// terminal that reads a log later, is no safer than a name that does.
#pragma once

#include <atomic>
#include <thread>

#include "base/process/supervised.h"

namespace stepgate {

// Copies to our standard error what comes from the program, made visible (visible_text.h); carriage
// returns, with which programs draw their progress, end lines, and tabs are spaces. On a terminal
// the program has our standard error itself.
class ShownOutput {
 public:
  // Throws std::system_error.
  ShownOutput();
  ShownOutput(const ShownOutput&) = delete;
  ShownOutput& operator=(const ShownOutput&) = delete;
  // To be called when the program has ended. Shows the rest.
  ~ShownOutput();

  // The stream for the program. Throws std::system_error.
  OwnedDescriptor stream() const;
  // To be called when the program has its streams: they end with the program.
  void close_stream() { write_.close(); }

 private:
  void copy();

  OwnedDescriptor read_;
  OwnedDescriptor write_;
  std::atomic<bool> is_over_{false};
  std::thread thread_;
};

}  // namespace stepgate
