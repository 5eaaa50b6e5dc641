// SPDX-License-Identifier: MIT
// How much of the GPU a kernel can fill, from its launch alone: what the PyTorch profiler writes
// beside a kernel. An estimate for people; nothing is decided by it.
#pragma once

#include <optional>

#include "device/device.h"

namespace stepgate {

struct Occupancy {
  double blocks_per_multiprocessor = 0;
  double warps_per_multiprocessor = 0;
  int percent = 0;  // of the warps that a multiprocessor can pass at once
};

// Nothing where the device does not say how many multiprocessors it has, or the kernel nothing of
// its grid, or the compute capability is not in the table.
std::optional<Occupancy> estimated_occupancy(const DeviceIdentity&, const DeviceWork& kernel);

}  // namespace stepgate
