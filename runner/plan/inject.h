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
  extra_copy         // an eighth of the batch once more, from pageable memory
};

// "device_spin", ...
std::string_view name_of(InjectionKind);

struct Injection {
  InjectionKind kind = InjectionKind::device_spin;
  std::chrono::nanoseconds duration{0};
};

// "host_delay:20" is 20 us of it; "extra_wait" has no duration. Throws RequestError.
Injection parse_injection(const std::string& text);

// Adds the operation at the end of every step. `duration` of a spin or a delay; a spin of zero is a
// kernel that ends at once, so that two steps with spins differ by their difference and not by a
// launch. The other kinds have no duration.
void inject(StepPlan&, InjectionKind, std::chrono::nanoseconds duration = {});

}  // namespace stepgate
