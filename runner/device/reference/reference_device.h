// SPDX-License-Identifier: MIT
// The device that is the oracle for numbers: it carries a plan out on the host with the kernels'
// references, in a random order among those that the plan permits. Knows no time.
#pragma once

#include <cstdint>
#include <memory>

#include "device/device.h"

namespace stepgate {

// A plan whose waits are right gives the same losses and tensors at every order seed; one that
// lacks a wait does not. Memory from Allocate holds random bytes of the order seed at first, and
// again after Release.
//
// The guarantees are the weakest reading of CUDA's rules: synchronising the legacy stream waits for
// its own operations only; the run-ahead bound waits for the compute stream only. A copy from or to
// pageable memory holds the host until it is done.
//
// It carries out all ranks of a plan of several, in this process. Losses are means over the ranks,
// tensors those of rank 0; a run throws DeviceError where ranks end with different weights.
std::unique_ptr<Device> make_reference_device(std::uint64_t order_seed);

}  // namespace stepgate
