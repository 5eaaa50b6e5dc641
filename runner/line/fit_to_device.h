// SPDX-License-Identifier: MIT
// Resolves what depends on the device: caps that are a share of its memory, and dtypes and kernels
// that it does not support. plan/ defines the meaning of such a cap.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "line/planned.h"

namespace stepgate {

// Returns the scenario's plans for that device; a cap may be a share of its memory. Throws
// RequestError.
std::vector<PlannedStep> plans_on(const DeviceIdentity&, const Scenario&, std::uint64_t seed);

// Replans variants whose cap is a share of memory, before any step is loaded or counted. Throws
// RequestError, also for variants whose dtype the device does not support in hardware.
void fit_to_device(std::span<Planned>, const DeviceIdentity&, std::uint64_t seed);

// Throws RequestError that names the variants that need a device; for verbs that open none.
void refuse_shares_of_a_device(const Planned&);

}  // namespace stepgate
