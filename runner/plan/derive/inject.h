// SPDX-License-Identifier: MIT
// Makes a step slower by a known amount, to see whether the gate notices. Changes plans only; what
// was really added is for whoever measures.
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
  // What the step does anyway, a share of it twice: what takes the device as much longer.
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

// What is extra comes at the end of every step. A spin of zero is a kernel that ends at once, so
// that two steps with spins differ by their difference and not by a launch. What is repeated comes
// right behind itself, in turns: of a tenth, each operation every tenth step, and each in another
// one. What is captured into a graph stays as it is.
void inject(StepPlan&, const Injection&);

}  // namespace stepgate
