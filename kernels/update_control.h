// SPDX-License-Identifier: MIT
// The buffer that controls an update of the weights on the device, so that the host need not read
// the norm. clip writes it; the clipped and master kernels of every rule and the foreach passes
// read it. It is an fp32 [8]; the unnamed numbers at its end are unused and stay unchanged.
#pragma once

#include <cstdint>

namespace stepgate::update_control {

constexpr std::int64_t factor = 0;        // of every gradient; 0: this update is skipped
constexpr std::int64_t loss_scale = 1;    // factor of the loss, and so of the gradients
constexpr std::int64_t good_updates = 2;  // since the scale last changed
constexpr std::int64_t updates = 3;       // number so far, including this one; exact up to 2^24
constexpr std::int64_t norm = 4;          // of the gradients without the scale
constexpr std::int64_t size = 8;
constexpr std::int64_t bytes = 4 * size;

}  // namespace stepgate::update_control
