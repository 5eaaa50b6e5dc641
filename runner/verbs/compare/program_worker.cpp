// SPDX-License-Identifier: MIT
// `stepgate worker --program`: a user's program as one side of a gate.
#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <vector>

#include "compare/worker/serve_programs.h"
#include "line/planned.h"
#include "verbs/compare/program_worker.h"

namespace stepgate {
namespace {

std::chrono::nanoseconds of_seconds_of(const ProgramKnobs& knobs) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(knobs.timeout_s));
}

AttachRequest attach_request_of(const ProgramKnobs& knobs) {
  AttachRequest request{.command = knobs.command,
                        .folder = knobs.cwd,
                        .steps = {.kernel = knobs.step_kernel,
                                  .call = knobs.step_call,
                                  .skip = knobs.skip_steps,
                                  .steps = knobs.steps,
                                  .is_default = knobs.steps == ProgramKnobs().steps},
                        .timeout = of_seconds_of(knobs)};
  if (!knobs.step_range.empty()) {
    request.steps.range = knobs.step_range;
    request.steps.names_range = true;
  }
  request.command.insert(request.command.end(), knobs.arguments.begin(), knobs.arguments.end());
  for (const auto& [name, value] : knobs.env)
    request.variables.push_back(fmt::format("{}={}", name, value));
  return request;
}

ServedProgram served(const Scenario& scenario, const Variant& variant,
                     const std::filesystem::path& folder) {
  const ProgramKnobs& knobs = variant.knobs.program;
  ServedProgram program{.workload = scenario.name + "/" + variant.name,
                        .counted = attach_request_of(knobs),
                        .held = {},
                        .warm_up_steps = knobs.skip_steps};
  AttachRequest& counted = program.counted;
  // An absolute folder of the scenario stays.
  counted.folder = folder / counted.folder;
  counted.stops_after_window = true;
  counted.has_input = false;  // standard input is that of the protocol
  program.held = {.command = counted.command,
                  .variables = counted.variables,
                  .folder = counted.folder,
                  .start_limit = of_seconds_of(knobs),
                  .answer_limit = of_seconds_of(knobs)};
  return program;
}

}  // namespace

Scenario program_scenario(const std::filesystem::path& file,
                          const std::vector<std::string>& overrides) {
  Scenario scenario = read_scenario(file, overrides);
  if (!runs_programs(scenario)) {
    throw RequestError(fmt::format("{}: the scenario names no program", file.string()),
                       "write program = { command = [...] } (docs/programs.md), or gate two builds "
                       "of stepgate without --program");
  }
  return scenario;
}

int work_of_program(const Arguments& arguments) {
  const Scenario scenario = program_scenario(arguments.worker.program, arguments.overrides);
  std::vector<ServedProgram> programs;
  for (const Variant& variant : scenario.variants)
    programs.push_back(served(scenario, variant, arguments.worker.folder));
  serve_programs(std::cin, std::cout, programs, attach_files());
  return 0;
}

}  // namespace stepgate
