// SPDX-License-Identifier: MIT
// Held programs as steps that are loaded, for measuring (measure/rounds/measure.h). A load is a
// launch of the program.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "device/device.h"
#include "program/held.h"

namespace stepgate {

struct HeldVariant {
  std::string name;
  HeldRequest request;
  std::int64_t skip_steps = 0;  // of every launch, before any that is scored
};

class HeldRunner : public StepRunner {
 public:
  HeldRunner(DeviceIdentity device, std::vector<HeldVariant> variants)
      : device_(std::move(device)), variants_(std::move(variants)), peaks_(variants_.size()) {}

  DeviceIdentity identity() const override { return device_; }
  // Starts the variant's program and returns; its first run waits until it is held, so that
  // programs start beside each other. Its steps begin at a random one of those that repeat. Throws
  // RequestError; runs throw DeviceError.
  std::unique_ptr<LoadedStep> load(std::size_t variant, const LoadDraw&);
  // Most device memory that a run of the variant had allocated; 0: not known.
  std::int64_t peak_memory_bytes(std::size_t variant) const { return peaks_[variant]; }

 private:
  DeviceIdentity device_;
  std::vector<HeldVariant> variants_;
  std::vector<std::int64_t> peaks_;
};

}  // namespace stepgate
