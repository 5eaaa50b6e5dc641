// SPDX-License-Identifier: MIT
// A graph of the shortest kernels, to measure what graphs cost.
#pragma once

#include "device/cuda/calibrate/cost_bench.h"

namespace stepgate {

constexpr int graph_nodes = 60;

GraphExec graph_of_small_kernels(const CostBench&);

}  // namespace stepgate
