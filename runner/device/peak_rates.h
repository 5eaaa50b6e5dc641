// SPDX-License-Identifier: MIT
// The peak rates of data sheets, which a model's FLOP utilisation is a share of. The rates that a
// device reaches are in its profile.
#pragma once

#include <optional>

#include "device/device.h"
#include "kernels/kernel.h"

namespace stepgate {

// Rate of dense GEMMs in this dtype, on tensor cores but for fp32. Nothing for a device that the
// table does not name; a MIG slice has a name of its own and only a part of the rate.
std::optional<double> peak_flops_per_second(const DeviceIdentity&, DType);

}  // namespace stepgate
