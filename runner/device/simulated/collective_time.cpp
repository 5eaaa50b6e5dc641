// SPDX-License-Identifier: MIT
#include "device/simulated/collective_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/require.h"
#include "device/simulated/kernel_time.h"
#include "kernels/catalogue.h"

namespace stepgate {
namespace {

// Time of one step round the ring: a small all-reduce takes 13 us (nccl-tests), and 4 ranks take 6
// steps for it.
constexpr double step_nanoseconds = 13'000.0 / 6;

CopyCost table_of(const CollectiveCosts& costs, CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return {costs.bytes, costs.all_reduce_nanoseconds};
    case CollectiveKind::reduce_scatter:
      return {costs.bytes, costs.reduce_scatter_nanoseconds};
    case CollectiveKind::all_gather:
      return {costs.bytes, costs.all_gather_nanoseconds};
    case CollectiveKind::broadcast:
      break;
  }
  require(false, "every collective has its times");
  return {};
}

// Share of its bytes that a rank sends to its neighbour in one trip round the ring.
double share_sent(std::int64_t ranks) {
  return static_cast<double>(ranks - 1) / static_cast<double>(ranks);
}

// Costs measured on the number of ranks that is nearest by ratio, since latency and rate of a ring
// scale with the ratio.
const CollectiveCosts& nearest(const DeviceProfile& profile, int ranks) {
  return *std::ranges::min_element(profile.collectives, {}, [&](const CollectiveCosts& costs) {
    return std::abs(std::log(static_cast<double>(costs.ranks) / ranks));
  });
}

// Rounds to nanoseconds. A profile may have a very slow bus, so the time is limited to one longest
// copy for each rank.
std::int64_t whole_nanoseconds(double nanoseconds) {
  constexpr auto most = static_cast<double>(most_ranks * longest_cost_nanoseconds);
  return std::llround(std::min(nanoseconds, most));
}

}  // namespace

std::int64_t collective_time(const DeviceProfile& profile, CollectiveKind kind, int ranks,
                             std::int64_t bytes) {
  require(ranks > 1, "a collective has several ranks");
  if (profile.collectives.empty()) return collective_time_over_pcie(profile, kind, ranks, bytes);
  const CollectiveCosts& costs = nearest(profile, ranks);
  const CopyCost table = table_of(costs, kind);
  if (ranks == costs.ranks) return table.of(bytes);
  // The size for which a rank sends as many bytes at the measured number of ranks.
  const std::int64_t alike =
      std::llround(static_cast<double>(bytes) * share_sent(ranks) / share_sent(costs.ranks));
  const std::int64_t latency = table.nanoseconds.front();
  const double steps = static_cast<double>(ranks - 1) / static_cast<double>(costs.ranks - 1);
  // Measured times may fall with size where a larger size uses a better algorithm.
  const std::int64_t beyond = std::max<std::int64_t>(table.of(alike) - latency, 0);
  return whole_nanoseconds(static_cast<double>(latency) * steps) + beyond;
}

std::int64_t collective_time_over_pcie(const DeviceProfile& profile, CollectiveKind kind, int ranks,
                                       std::int64_t bytes) {
  const double trips = kind == CollectiveKind::all_reduce ? 2 : 1;
  const double sent = trips * share_sent(ranks) * static_cast<double>(bytes);
  return whole_nanoseconds(trips * (ranks - 1) * step_nanoseconds +
                           sent / profile.pinned.bytes_per_nanosecond());
}

CtasOfCollectives ctas_of_collectives(const DeviceProfile& profile, const RanksPlan& ranks) {
  const bool has_links =
      !profile.collectives.empty() && ranks.collectives.links == RankLinks::usual;
  const int chosen = has_links ? 24 : 2;
  const int that_would_do = has_links ? 15 : 2;
  const auto taken =
      static_cast<int>(std::min<std::int64_t>(chosen, ranks.collectives.max_ctas.value_or(chosen)));
  return {.taken = taken, .bandwidth = std::min(1.0, static_cast<double>(taken) / that_would_do)};
}

bool leaves_room(const LaunchKernel& launch, const CtasOfCollectives& ctas) {
  const auto spared = kernel(launch.kernel).library.spare_multiprocessors;
  return spared && spared(launch.attributes) >= ctas.taken;
}

std::int64_t collective_time(const DeviceProfile& profile, const RanksPlan& ranks,
                             CollectiveKind kind, std::int64_t bytes) {
  if (kind == CollectiveKind::broadcast) {
    const std::int64_t alike = std::llround(static_cast<double>(bytes) / share_sent(ranks.count));
    return collective_time(profile, ranks, CollectiveKind::all_gather, alike);
  }
  const auto without_limit = [&](std::int64_t moved) {
    return ranks.collectives.links == RankLinks::no_p2p
               ? collective_time_over_pcie(profile, kind, ranks.count, moved)
               : collective_time(profile, kind, ranks.count, moved);
  };
  const std::int64_t time = without_limit(bytes);
  const std::int64_t latency = std::min(time, without_limit(0));
  const double bandwidth = ctas_of_collectives(profile, ranks).bandwidth;
  const double moving = static_cast<double>(time - latency) / bandwidth;
  const double gbps = ranks.collectives.link_gbps;
  if (gbps == 0) return latency + std::llround(moving);
  // A GB/s is a byte a nanosecond.
  const double over_link = ring_wire_bytes(kind, bytes, ranks.count) / gbps;
  return latency + whole_nanoseconds(std::max(moving, over_link));
}

Contention contention_of(const DeviceProfile& profile, int ranks) {
  if (ranks == 1 || profile.collectives.empty()) return {};
  const CollectiveCosts& costs = nearest(profile, ranks);
  return {.kernel_stretch = costs.kernel_stretch, .collective_stretch = costs.collective_stretch};
}

std::int64_t time_beside_kernels(std::int64_t alone, std::int64_t kernels,
                                 const Contention& contention) {
  const double beside = std::min(static_cast<double>(alone) * contention.collective_stretch,
                                 static_cast<double>(kernels) * contention.kernel_stretch);
  return alone + std::llround(beside - beside / contention.collective_stretch);
}

std::vector<std::int64_t> kernels_beside_collectives(const StepPlan& plan,
                                                     const DeviceProfile& profile) {
  std::vector<std::int64_t> beside(plan.operations.size(), 0);
  for (std::size_t index = 0; index < plan.operations.size(); ++index) {
    const Operation& collective = plan.operations[index];
    if (!std::holds_alternative<Collective>(collective.action) ||
        collective.stream == compute_stream)
      continue;
    std::set<int> records;  // events recorded after the collective
    for (std::size_t behind = index + 1; behind < plan.operations.size(); ++behind) {
      const Operation& operation = plan.operations[behind];
      const auto* record = std::get_if<RecordEvent>(&operation.action);
      if (record != nullptr && operation.stream == collective.stream) records.insert(record->event);
      if (operation.stream != compute_stream) continue;
      const auto* wait = std::get_if<StreamWaitsEvent>(&operation.action);
      if (wait != nullptr && records.contains(wait->event)) break;
      if (const auto* launch = std::get_if<LaunchKernel>(&operation.action))
        beside[index] += kernel_time(profile, *launch, profile.compute.kernel_floor_nanoseconds);
    }
  }
  return beside;
}

std::string what_is_guessed_of_collectives(const DeviceProfile& profile, const RanksPlan& plan) {
  const int ranks = plan.count;
  if (ranks == 1) return "";
  if (plan.collectives.link_gbps > 0) {
    return fmt::format("collectives take what a ring over links of {} GB/s would",
                       plan.collectives.link_gbps);
  }
  if (plan.collectives.links == RankLinks::no_p2p) {
    return "nobody measured collectives without peer access; they take what a ring over the PCIe "
           "bus would";
  }
  if (profile.collectives.empty()) {
    return fmt::format(
        "nobody measured collectives of {}; they take what a ring over the PCIe bus would",
        profile.name);
  }
  const CollectiveCosts& costs = nearest(profile, ranks);
  if (costs.ranks == ranks) return "";
  return fmt::format("collectives of {} ranks take what a ring makes of those measured on {}",
                     ranks, costs.ranks);
}

}  // namespace stepgate
