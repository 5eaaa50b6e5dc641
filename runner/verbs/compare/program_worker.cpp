// SPDX-License-Identifier: MIT
// `stepgate worker --program`: a user's program as one side of a gate.
#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <vector>

#include "base/process/child.h"
#include "compare/worker/serve_programs.h"
#include "line/programs/decide_programs.h"
#include "scenario/read/read_scenario.h"
#include "verbs/compare/program_worker.h"

namespace stepgate {
namespace {

ServedProgram served(const Scenario& scenario, const Variant& variant,
                     const std::filesystem::path& folder) {
  ServedProgram program{.workload = scenario.name + "/" + variant.name,
                        .counted = counting_request(variant),
                        .held = {},
                        .warm_up_steps = variant.knobs.program.skip_steps};
  AttachRequest& counted = program.counted;
  // An absolute folder of the scenario stays.
  counted.folder = folder / counted.folder;
  counted.has_input = false;  // standard input is that of the protocol
  program.held = {.command = counted.command,
                  .variables = counted.variables,
                  .folder = counted.folder,
                  .start_limit = *counted.timeout,
                  .answer_limit = *counted.timeout};
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
  std::ostream& answers = answer_stream();
  const Scenario scenario = program_scenario(arguments.worker.program, arguments.overrides);
  std::vector<ServedProgram> programs;
  for (const Variant& variant : scenario.variants)
    programs.push_back(served(scenario, variant, arguments.worker.folder));
  serve_programs(std::cin, answers, programs, attach_files());
  return 0;
}

}  // namespace stepgate
