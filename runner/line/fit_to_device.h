// SPDX-License-Identifier: MIT
// Decides what needs a device to be known: caps that are a share of its memory, and numbers that it
// cannot multiply. plan/ defines what such a cap means.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "line/planned.h"

namespace stepgate {

// The scenario's plans on that device, whose memory a cap may be a share of. Throws RequestError.
std::vector<PlannedStep> plans_on(const DeviceIdentity&, const Scenario&, std::uint64_t seed);

// Plans anew those whose cap is such a share, before anything of them is loaded or counted. Throws
// RequestError, also for variants whose dtype the device has no hardware for.
void fit_to_device(std::span<Planned>, const DeviceIdentity&, std::uint64_t seed);

// For verbs without a device. Throws RequestError that names the variants that need one.
void refuse_shares_of_a_device(const Planned&);

}  // namespace stepgate
