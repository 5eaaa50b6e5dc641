// SPDX-License-Identifier: MIT
// `stepgate devices` lists the available devices and measures the profile of the local GPUs.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "base/files/write_file.h"
#include "base/text/diagnostic.h"
#include "line/planned.h"
#include "line/ranks/rank_team.h"
#include "measure/collective_costs.h"
#include "plan/derive/collective_probes.h"
#include "report/text/print_list.h"
#include "verbs/outputs.h"
#include "verbs/verbs.h"

namespace stepgate {
namespace {

// Returns the numbers of communicating ranks to measure: 2, 4 and so on, up to the number of GPUs.
std::vector<int> counts_to_measure(const Arguments& arguments) {
  constexpr int of_a_simulated_machine = 4;
  const int there =
      resolved_spec(arguments.device) == "cuda" ? gpu_count() : of_a_simulated_machine;
  std::vector<int> counts;
  for (int count = 2; count <= there; count *= 2) counts.push_back(count);
  return counts;
}

// The link between each two of `count` GPUs; empty if the links differ or are unknown.
std::string link_of_each_two(const DeviceIdentity& identity, std::size_t count) {
  const std::string link = link_between(identity, 0, 1);
  for (std::size_t rank = 0; rank < count; ++rank) {
    for (std::size_t other = 0; other < count; ++other) {
      if (other != rank && link_between(identity, rank, other) != link) return {};
    }
  }
  return link;
}

// Adds the costs of collectives and the links of the GPUs to the profile.
void measure_collectives(DeviceProfile& profile, const Arguments& arguments) {
  const std::uint64_t seed = seed_of(arguments);
  for (const int count : counts_to_measure(arguments)) {
    const std::unique_ptr<RankedDevice> device = ranks_that_probe(arguments, count, seed);
    profile.collectives.push_back(measure_collective_costs(*device, collective_probes(count)));
    profile.link = link_of_each_two(device->identity(), static_cast<std::size_t>(count));
  }
}

// Returns the collectives in the profile that is to be replaced; empty if it cannot be read.
std::vector<CollectiveCosts> collectives_in(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) return {};
  try {
    return read_profile(file).collectives;
  } catch (const RequestError&) {  // the damaged file is replaced
    return {};
  }
}

// Keeps handwritten stretch factors, which are not measured here.
void keep_stretches(DeviceProfile& profile, const std::vector<CollectiveCosts>& known) {
  for (CollectiveCosts& costs : profile.collectives) {
    const auto before = std::ranges::find(known, costs.ranks, &CollectiveCosts::ranks);
    if (before == known.end()) continue;
    costs.kernel_stretch = before->kernel_stretch;
    costs.collective_stretch = before->collective_stretch;
  }
}

}  // namespace

int show_devices(const Arguments& arguments) {
  if (arguments.profile.empty()) {
    print_devices(std::cout, list_devices(arguments.device.baselines));
    return 0;
  }
  check_outputs(arguments);
  const std::vector<CollectiveCosts> known = collectives_in(arguments.profile);
  DeviceProfile profile = measure_profile_of(arguments.device);
  profile.measured = arguments.date;
  try {
    profile.collectives.clear();
    measure_collectives(profile, arguments);
  } catch (const DeviceError& error) {  // such as without NCCL; everything else was measured
    std::cerr << fmt::format("collectives of {} ranks are not measured: {}\n",
                             std::size_t{2} << profile.collectives.size(), error.what());
  }
  keep_stretches(profile, known);
  write_file(arguments.profile, to_toml(profile));
  return 0;
}

}  // namespace stepgate
