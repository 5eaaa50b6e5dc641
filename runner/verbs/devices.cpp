// SPDX-License-Identifier: MIT
// `stepgate devices`: what can be run on, and the profile of the local GPUs.
#include <iostream>
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

std::vector<CollectiveCosts> measure_collectives(const Arguments& arguments) {
  const std::uint64_t seed = seed_of(arguments);
  std::vector<CollectiveCosts> costs;
  for (const int count : counts_to_measure(arguments)) {
    const std::unique_ptr<RankedDevice> device = ranks_that_probe(arguments, count, seed);
    costs.push_back(measure_collective_costs(*device, collective_probes(count)));
  }
  return costs;
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
    profile.collectives = measure_collectives(arguments);
  } catch (const DeviceError& error) {  // such as no NCCL: all else was measured
    std::cerr << "collectives are not measured: " << error.what() << '\n';
    profile.collectives.clear();
  }
  write_file(arguments.profile, to_toml(profile));
  return 0;
}

}  // namespace stepgate
