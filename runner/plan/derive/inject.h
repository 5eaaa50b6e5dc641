// SPDX-License-Identifier: MIT
// Makes a step slower by a known amount, to see whether the gate notices. Changes plans only; the
// time that is really added must be measured.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "plan/step_plan.h"

namespace stepgate {

enum class InjectionKind {
  device_spin,       // a kernel that spins, on the compute stream
  host_delay,        // busy host time
  extra_wait,        // the host waits for the device
  extra_allocation,  // 1 MiB by cudaMalloc, freed at once
  extra_copy,        // an eighth of the batch once more, from pageable memory
  // Repeats a share of the step's own work: the device takes as much longer.
  repeated_products,
  repeated_kernels,  // that are no GEMMs
  repeated_copies,   // from the host and back
  dearer_launches    // busy host time before each
};

// "device_spin", ...
std::string_view name_of(InjectionKind);

struct Injection {
  InjectionKind kind = InjectionKind::device_spin;
  std::chrono::nanoseconds duration{
      0};            // of a spin or a delay, and of what a launch gets dearer by
  double share = 0;  // of what is repeated; 0.1 is every tenth one
};

// "host_delay:20" is 20 us of it; "repeated_products:10%" every tenth one; "extra_wait" has
// neither. Throws RequestError.
Injection parse_injection(const std::string& text);

// The text that parse_injection reads as this injection.
std::string text_of(const Injection&);

// Appends extra work to every step. A spin of zero is a kernel that ends at once, which takes some
// microseconds too, so two spins should be compared with each other. Repeated work follows the
// original operation. For a share of a tenth, each operation is repeated every tenth step,
// different ones in different steps. Captured operations stay as they are.
void inject(StepPlan&, const Injection&);

}  // namespace stepgate
