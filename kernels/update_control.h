// SPDX-License-Identifier: MIT
// The buffer with which an update of the weights is steered on the device, so that no host reads a
// norm: clip writes it, the clipped and the master kernels of every rule and the foreach passes
// read it. An fp32 [8]; the numbers behind the named ones are unused and stay as they are.
#pragma once

#include <cstdint>

namespace stepgate::update_control {

constexpr std::int64_t factor = 0;        // of every gradient; 0: this update is skipped
constexpr std::int64_t loss_scale = 1;    // the loss was multiplied with it, and so the gradients
constexpr std::int64_t good_updates = 2;  // since the scale last changed
constexpr std::int64_t updates = 3;       // made so far, this one included; exact up to 2^24
constexpr std::int64_t norm = 4;          // of the gradients without the scale
constexpr std::int64_t size = 8;
constexpr std::int64_t bytes = 4 * size;

}  // namespace stepgate::update_control
