// SPDX-License-Identifier: MIT
// The device that is the oracle for numbers: it runs a plan on the host with the reference
// implementations of the kernels, in a random order among those that the plan permits. It measures
// no times.
#pragma once

#include <cstdint>
#include <memory>

#include "device/device.h"

namespace stepgate {

// A plan with correct waits gives the same losses and tensors at every order seed; a plan that
// lacks a wait does not. Memory from Allocate holds random bytes of the order seed at first, and
// again after Release.
//
// The guarantees are the weakest reading of CUDA's rules. Synchronising the legacy stream waits for
// its own operations only; the run-ahead bound waits for the compute stream only. A copy from or to
// pageable memory blocks the host until it is done.
//
// The device runs all ranks of a plan in this process. Losses are means over the ranks, tensors
// those of rank 0; a run throws DeviceError where ranks end with different weights.
std::unique_ptr<Device> make_reference_device(std::uint64_t order_seed);

}  // namespace stepgate
