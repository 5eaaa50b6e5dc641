// SPDX-License-Identifier: MIT
// The task of a rank process: it runs one rank of a run. Standard input and output are used by the
// protocol.
#include <cstdlib>
#include <functional>
#include <iostream>
#include <utility>
#include <vector>

#include "base/process/child.h"
#include "base/process/run_program.h"
#include "base/text/diagnostic.h"
#include "base/toml/toml_text.h"
#include "device/ranked/rank_server.h"
#include "line/fit_to_device.h"
#include "line/job.h"
#include "line/planned.h"
#include "line/ranks/rank_team.h"
#include "line/serve.h"
#include "plan/derive/anchors.h"
#include "plan/derive/collective_probes.h"
#include "plugin/library_call.h"

namespace stepgate {
namespace {

std::vector<PlannedStep> steps_of(const std::vector<Planned>& all) {
  std::vector<PlannedStep> steps;
  for (const Planned& planned : all) {
    if (!runs_in_processes(planned)) continue;
    steps.insert(steps.end(), planned.plans.begin(), planned.plans.end());
  }
  return steps;
}

std::vector<PlannedStep> steps_with_anchors(std::vector<Planned> all) {
  for (Planned& planned : all) planned.plans = with_anchors(std::move(planned.plans));
  return steps_of(all);
}

std::vector<PlannedStep> steps_of(const std::vector<CollectiveProbe>& probes) {
  std::vector<PlannedStep> steps;
  for (const CollectiveProbe& probe : probes) steps.insert(steps.end(), {probe.fewer, probe.more});
  return steps;
}

int serve(std::ostream& answers, const RankTask& task, Device& device,
          std::vector<PlannedStep> plans, std::function<std::vector<PlannedStep>()> more_plans) {
  RankSubject subject{.rank = static_cast<int>(task.rank),
                      .build = hexadecimal(digest_of_this_program()),
                      .plans = std::move(plans),
                      .more_plans = std::move(more_plans),
                      .fault = {}};
  if (!task.fault.empty()) subject.fault = played_fault(task.fault);
  RankServer server(device, std::move(subject));
  serve_rank(std::cin, answers, server);
  return 0;
}

// Sets NCCL's variables before NCCL reads them, which is when the device joins others.
void tell_nccl(const std::vector<Planned>& all) {
  constexpr int instead_of_what_is_there = 1;
  try {
    const CollectiveKnobs knobs = collectives_of_process(all);
    if (knobs.links == RankLinks::no_p2p) setenv("NCCL_P2P_DISABLE", "1", instead_of_what_is_there);
  } catch (const RequestError&) {  // the requesting process reads the same scenarios and reports
                                   // the error
  }
}

}  // namespace

int serve_as_rank(const LineArguments& arguments, const RankTask& task) {
  std::ostream& answers = answer_stream();
  const std::uint64_t seed = seed_of(arguments);
  DeviceChoice choice = arguments.device;
  choice.seed = task.noise.value_or(seed);
  choice.tracing = task.traces;
  choice.opens_libraries = true;
  tell_of_crashes_in_libraries(answer_descriptor(), crash_mark);
  if (task.probes > 0) {
    const OpenedDevice opened = open_device(choice);
    return serve(answers, task, *opened.device,
                 steps_of(collective_probes(static_cast<int>(task.probes))), {});
  }
  std::vector<Planned> all = plan_all(arguments, seed, Programs::kept);
  tell_nccl(all);
  const OpenedDevice opened = open_device(choice);
  try {
    fit_to_device(all, opened.device->identity(), seed);
  } catch (const RequestError&) {  // the requesting process reads the same scenarios and reports
                                   // the error
  }
  return serve(answers, task, *opened.device, with_injections(steps_of(all), task.injected),
               [&all] { return steps_with_anchors(all); });
}

}  // namespace stepgate
