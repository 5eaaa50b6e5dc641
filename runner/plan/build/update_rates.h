// SPDX-License-Identifier: MIT
// The rates of every plan's optimizer. Chosen so that thousands of steps over a few batches stay
// finite in every dtype.
#pragma once

#include "kernels/adamw/adamw.h"

namespace stepgate {

constexpr double sgd_learning_rate = 0.01;
constexpr kernels::Adamw::Attributes adamw_rates = {
    .learning_rate = 1e-4, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0.01};

}  // namespace stepgate
