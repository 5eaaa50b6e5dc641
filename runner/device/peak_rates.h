// SPDX-License-Identifier: MIT
// The peak rates of data sheets, which a model's FLOP utilisation is a share of. What a device
// reaches is its profile's.
#pragma once

#include <optional>

#include "device/device.h"
#include "kernels/kernel.h"

namespace stepgate {

// Of dense GEMMs in this dtype, on tensor cores but for fp32. Nothing for a device that
// the table does not name; a MIG slice has a name of its own and only a part of the rate.
std::optional<double> peak_flops_per_second(const DeviceIdentity&, DType);

}  // namespace stepgate
