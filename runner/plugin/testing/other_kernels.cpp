// SPDX-License-Identifier: MIT
// A library that was built with another interface.
#include <cstdint>

extern "C" {
extern __attribute__((visibility("default"))) const std::uint32_t stepgate_kernel_abi;
const std::uint32_t stepgate_kernel_abi = 99;
}
