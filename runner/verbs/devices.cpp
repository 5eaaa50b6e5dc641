// SPDX-License-Identifier: MIT
// `stepgate devices`: what can be run on, and the profile of the local GPUs.
#include <iostream>
#include <string>
#include <vector>

#include "measure/collective_costs.h"
#include "plan/derive/collective_probes.h"
#include "report/text/print_list.h"
#include "support/files/write_file.h"
#include "verbs/outputs.h"
#include "verbs/planned.h"
#include "verbs/ranks/rank_team.h"
#include "verbs/verbs.h"

namespace stepgate {
namespace {

// Of ranks that communicate: two, four and so on, as many as there are GPUs at most.
std::vector<int> counts_to_measure(const Arguments& arguments) {
  constexpr int of_a_simulated_machine = 4;
  const int there =
      resolved_spec(arguments.device) == "cuda" ? gpu_count() : of_a_simulated_machine;
  std::vector<int> counts;
  for (int count = 2; count <= there; count *= 2) counts.push_back(count);
  return counts;
}

// How each two of so many GPUs are linked; empty where they differ or nobody knows.
std::string link_of_each_two(const DeviceIdentity& identity, std::size_t count) {
  const std::string link = link_between(identity, 0, 1);
  for (std::size_t rank = 0; rank < count; ++rank) {
    for (std::size_t other = 0; other < count; ++other) {
      if (other != rank && link_between(identity, rank, other) != link) return {};
    }
  }
  return link;
}

// Into the profile, also how GPUs are linked.
void measure_collectives(DeviceProfile& profile, const Arguments& arguments) {
  const std::uint64_t seed = seed_of(arguments);
  for (const int count : counts_to_measure(arguments)) {
    const std::unique_ptr<RankedDevice> device = ranks_that_probe(arguments, count, seed);
    profile.collectives.push_back(measure_collective_costs(*device, collective_probes(count)));
    profile.link = link_of_each_two(device->identity(), static_cast<std::size_t>(count));
  }
}

}  // namespace

int show_devices(const Arguments& arguments) {
  if (arguments.profile.empty()) {
    print_devices(std::cout, list_devices(arguments.device.baselines));
    return 0;
  }
  check_outputs(arguments);
  DeviceProfile profile = measure_profile_of(arguments.device);
  profile.measured = arguments.date;
  try {
    profile.collectives.clear();
    measure_collectives(profile, arguments);
  } catch (const DeviceError& error) {  // such as no NCCL: all else was measured
    std::cerr << "collectives are not measured: " << error.what() << '\n';
    profile.collectives.clear();
  }
  write_file(arguments.profile, to_toml(profile));
  return 0;
}

}  // namespace stepgate
