// SPDX-License-Identifier: MIT
// The task of a tracing process, the counterpart of trace_all. A line on standard input names a
// scenario and the file for its traces; a line on standard output says that the file is complete.
#include <algorithm>
#include <future>
#include <iostream>
#include <string>

#include "base/process/child.h"
#include "line/fit_to_device.h"
#include "line/planned.h"
#include "line/serve.h"
#include "line/trace/trace_all.h"
#include "line/trace/trace_planned.h"
#include "measure/trace/traced_file.h"

namespace stepgate {

int trace_for_run(const LineArguments& arguments) {
  const std::uint64_t seed = seed_of(arguments);
  std::ostream& answers = answer_stream();
  // Plans while the device opens, since each takes about a second.
  std::future<std::vector<Planned>> planning =
      std::async(std::launch::async, [&] { return plan_all(arguments, seed, Programs::kept); });
  DeviceChoice choice = arguments.device;
  choice.seed = seed;
  choice.tracing = true;
  choice.opens_libraries = true;
  const OpenedDevice opened = open_device(choice);
  std::vector<Planned> all = planning.get();
  fit_to_device(all, opened.device->identity(), seed);
  const JudgeSettings settings = settings_for(all);
  for (std::string line; std::getline(std::cin, line) && !line.empty();) {
    const TraceLine asked = read_trace_line(line);
    const auto planned = std::ranges::find_if(all, [&](const Planned& one) {
      return one.scenario.file == asked.file && one.scenario.name == asked.scenario;
    });
    if (planned == all.end()) break;
    Traced result;
    bool is_lost = false;
    try {
      result = trace_planned(*opened.device, arguments, *planned, settings, seed,
                             asked.with_timelines ? Timelines::drawn : Timelines::judged);
    } catch (const DeviceLost& error) {
      result.unavailable = error.what();
      is_lost = true;
    } catch (const DeviceError& error) {
      result.unavailable = error.what();
    }
    write_traced(asked.into, result);
    answers << (is_lost ? tracer_lost_its_device : "traced") << '\n';
    flush_answer(answers);
  }
  return 0;
}

}  // namespace stepgate
