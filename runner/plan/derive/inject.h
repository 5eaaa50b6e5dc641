// SPDX-License-Identifier: MIT
// Makes a step slower by a known amount, to test whether the gate notices. Changes plans only; the
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
  // The kinds below repeat a share of the step's own work, which adds that share of the work's
  // time.
  repeated_products,
  repeated_kernels,  // kernels other than GEMMs
  repeated_copies,   // from the host and back
  dearer_launches    // busy host time before each launch
};

// The name as an option spells it: "device_spin".
std::string_view name_of(InjectionKind);

struct Injection {
  InjectionKind kind = InjectionKind::device_spin;
  std::chrono::nanoseconds duration{0};  // of a spin or a delay, or per launch
  double share = 0;                      // of the repeated work; 0.1 repeats every tenth operation
};

// Reads an injection. "host_delay:20" delays by 20 us; "repeated_products:10%" repeats every tenth
// GEMM; "extra_wait" has no amount. Throws RequestError.
Injection parse_injection(const std::string& text);

// The text from which parse_injection reads this injection.
std::string text_of(const Injection&);

// Appends extra work to every step. A spin of zero is a kernel that ends at once, which still takes
// some microseconds, so two spins should be compared with each other. Repeated work follows the
// original operation. For a share of a tenth, each operation is repeated every tenth step,
// different ones in different steps. Captured operations are not repeated.
void inject(StepPlan&, const Injection&);

}  // namespace stepgate
