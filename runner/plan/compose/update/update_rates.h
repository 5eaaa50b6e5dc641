// SPDX-License-Identifier: MIT
// The rates of every plan's optimizer. They are chosen so that thousands of steps over a few
// batches stay finite in every dtype.
#pragma once

#include "kernels/optimizer/optimizer.h"

namespace stepgate {

constexpr kernels::Sgd::Attributes sgd_rates = {.learning_rate = 0.01};
constexpr kernels::Adamw::Attributes adamw_rates = {
    .learning_rate = 1e-4, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0.01};
// The learning rate equals AdamW's, where Lion's authors advise a third or less: a plan trains for
// minutes only.
constexpr kernels::Lion::Attributes lion_rates = {
    .learning_rate = 1e-4, .beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.1};
// The mean of the last ten gradients moves a weight as far as sgd's rate does.
constexpr kernels::Momentum::Attributes momentum_rates = {
    .learning_rate = 1e-3, .momentum = 0.9, .weight_decay = 1e-4};

}  // namespace stepgate
