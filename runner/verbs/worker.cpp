// SPDX-License-Identifier: MIT
// `stepgate worker`: one side of a duel. Standard output belongs to the protocol.
#include <iostream>

#include "measure/serve_worker.h"
#include "verbs/fit_to_device.h"
#include "verbs/interruption.h"
#include "verbs/planned.h"
#include "verbs/verbs.h"

namespace stepgate {

int work_for_duel(const Arguments& arguments) {
  end_when_interrupted();
  const std::uint64_t seed = seed_of(arguments);
  std::vector<Planned> all = plan_all(arguments, seed);
  refuse_calibration(all);
  refuse_planned_only(all);
  DeviceChoice choice = arguments.device;
  choice.seed = seed;
  const OpenedDevice opened = open_device(choice);
  fit_to_device(all, opened.device->identity(), seed);
  std::vector<StepPlan> plans;
  for (Planned& planned : all) {
    std::move(planned.plans.begin(), planned.plans.end(), std::back_inserter(plans));
  }
  if (!opened.note.empty()) std::cerr << opened.note << '\n';
  serve_worker(std::cin, std::cout, *opened.device, plans, STEPGATE_VERSION);
  return 0;
}

}  // namespace stepgate
