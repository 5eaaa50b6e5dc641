// SPDX-License-Identifier: MIT
// The peak rates in data sheets, from which the model FLOP utilisation is computed. The rates that
// a device reaches are in its profile.
#pragma once

#include <optional>

#include "device/device.h"
#include "kernels/kernel.h"

namespace stepgate {

// Peak FLOP/s of dense GEMMs in this dtype, on tensor cores except for fp32. nullopt for a device
// that the table does not name; a MIG slice has a name of its own and only a part of the rate.
std::optional<double> peak_flops_per_second(const DeviceIdentity&, DType);

}  // namespace stepgate
