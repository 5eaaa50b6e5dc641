// SPDX-License-Identifier: MIT
// The state of a device that a launch must leave alone, since it changes the time of launches that
// come later: limits of the device, and preferences of its caches.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stepgate {

struct DeviceLimit {
  std::string name;  // "persisting L2"
  std::int64_t value = 0;
  std::string_view unit = " B";
  // Whether the device itself may raise it: CUDA gives the stack what a kernel needs, and keeps it.
  bool may_grow = false;
};

// Returns those that the current device tells. Only a build with CUDA has this.
std::vector<DeviceLimit> device_limits();

// "stack 1024 B, heap 8388608 B".
std::string in_words(std::span<const DeviceLimit>);

// The first limit that is another one now: "persisting L2 was 0 B and is 4194304 B". Empty where
// there is none. Limits that only one of the lists has are not compared.
std::string changed_limit(std::span<const DeviceLimit> before, std::span<const DeviceLimit> now);

}  // namespace stepgate
