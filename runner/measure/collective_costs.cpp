// SPDX-License-Identifier: MIT
#include "measure/collective_costs.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/require.h"
#include "base/stats/quantile.h"

namespace stepgate {
namespace {

constexpr int turns = 3;               // repetitions in each slot
constexpr std::int64_t wash_out = 10;  // steps after which the host is ahead of the device
constexpr std::int64_t scored = 10;

double time_of_a_step(LoadedStep& step) {
  const StepResult result = step.run({.wash_out_steps = wash_out, .steps = scored});
  if (!result.elapsed) throw DeviceError("the device does not tell how long collectives take");
  return static_cast<double>(result.elapsed->count()) / static_cast<double>(scored);
}

// Averages over both slots, since the slot and the load of a step change its time slightly.
std::int64_t time_of(Device& device, const CollectiveProbe& probe) {
  double sum = 0;
  for (const int slot_of_fewer : {0, 1}) {
    const auto fewer = device.load_into(slot_of_fewer, probe.fewer);
    const auto more = device.load_into(1 - slot_of_fewer, probe.more);
    std::vector<double> differences;  // between steps that run directly after each other
    for (int turn = 0; turn < turns; ++turn) {
      const double shorter = time_of_a_step(*fewer);
      differences.push_back(time_of_a_step(*more) - shorter);
    }
    sum += quantile(std::move(differences), 0.5);
  }
  const double one = sum / 2 / static_cast<double>(probe.times_more);
  return std::max<std::int64_t>(std::llround(one), 0);
}

std::vector<std::int64_t>& times_of(CollectiveCosts& costs, CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return costs.all_reduce_nanoseconds;
    case CollectiveKind::reduce_scatter:
      return costs.reduce_scatter_nanoseconds;
    case CollectiveKind::all_gather:
      return costs.all_gather_nanoseconds;
    case CollectiveKind::broadcast:
      break;
  }
  require(false, "no profile has times of broadcasts");
  return costs.all_gather_nanoseconds;
}

}  // namespace

CollectiveCosts measure_collective_costs(Device& device, std::span<const CollectiveProbe> probes) {
  CollectiveCosts costs;
  for (const CollectiveProbe& probe : probes) {
    costs.ranks = probe.fewer->ranks.count;
    if (probe.kind == CollectiveKind::all_reduce) costs.bytes.push_back(probe.bytes);
    times_of(costs, probe.kind).push_back(time_of(device, probe));
  }
  return costs;
}

}  // namespace stepgate
