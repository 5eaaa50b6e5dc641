// SPDX-License-Identifier: MIT
#include "verbs/compare/gate_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "base/text/units.h"
#include "compare/gate/compare_scenarios.h"
#include "compare/gate/compared_workloads.h"
#include "compare/gate/gate_timing.h"
#include "line/planned.h"
#include "line/wrong_libraries.h"
#include "plugin/tables/kernel_file.h"
#include "scenario/read/read_scenario.h"
#include "verbs/compare/program_worker.h"
#include "verbs/compare/workers.h"

namespace stepgate {
namespace {

std::vector<Finding> compare_with_head_files(const GateRequest& request) {
  Arguments of_head = request.arguments;
  of_head.files = request.arguments.gate.head_files;
  for (const auto& given : of_head.files) {
    if (!std::filesystem::exists(given))
      throw RequestError("--head-files " + given.string() + ": no such file", "check the path");
  }
  std::vector<Scenario> head;
  std::map<std::string, std::string> unread;
  for (const auto& file : scenario_files(of_head)) {
    try {
      for (Scenario& scenario : read_scenarios(file, of_head.overrides))
        if (has_wanted_tags(scenario, of_head)) head.push_back(std::move(scenario));
    } catch (const RequestError& error) {
      unread[file.stem().string()] = error.diagnostics().front().message;
    }
  }
  refuse_namesakes(head);
  return compare_scenarios(request.scenarios, head, unread);
}

void check_folders_of_program(const GateArguments& gate) {
  if (gate.base.empty())
    throw RequestError("there is nothing to compare HEAD with",
                       "give --base DIR, the folder in which the program of before runs");
  for (const auto& [option, folder] : {std::pair{"--base", &gate.base}, {"--head", &gate.head}}) {
    if (!std::filesystem::is_directory(*folder))
      throw RequestError(fmt::format("{} '{}' is no folder", option, *folder),
                         "with --program, give the folder in which the program runs");
  }
}

}  // namespace

std::optional<double> fraction_of_margin(const std::string& text) {
  constexpr double smallest = 1e-4;
  const auto margin = parse_quantity(text);
  const bool is_fraction = margin && margin->dimension == Dimension::plain &&
                           margin->value >= smallest && margin->value <= 1;
  return is_fraction ? std::optional(margin->value) : std::nullopt;
}

std::string hint_for_margin(const std::string& text) {
  if (parse_number(text) && fraction_of_margin(text + "%"))
    return fmt::format("did you mean '{}%'?", text);
  return "say how much slower is allowed, as in 1%";
}

double margin_of(const std::string& option) {
  if (const auto margin = fraction_of_margin(option)) return *margin;
  throw RequestError("--margin '" + option + "' is not from 0.01% to 100%",
                     hint_for_margin(option));
}

GateRequest request_of(const Arguments& arguments) {
  const GateArguments& gate = arguments.gate;
  GateRequest request{.arguments = arguments,
                      .seed = seed_of(arguments),
                      .settings = {.margin = margin_of(gate.margin)}};
  if (gate.of_commands()) request.arguments.files.clear();
  if (gate.of_program()) {
    request.arguments.files = {gate.program};
    if (gate.only.empty()) request.arguments.gate.only = {GatePart::counts, GatePart::time};
    request.caches = std::make_shared<TemporaryFolder>();
    request.arguments.gate.caches = request.caches->path();
  }
  if (!gate.stored && !gate.soak && gate.looks_at(GatePart::time))
    request.most_timing = arguments.budget_seconds
                              ? of_seconds(*arguments.budget_seconds)
                              : std::chrono::nanoseconds(most_timing_of_a_gate);
  return request;
}

std::vector<std::filesystem::path> inputs_of(const Arguments& arguments) {
  const GateArguments& gate = arguments.gate;
  std::vector<std::filesystem::path> all = gate.head_files;
  if (gate.of_commands()) {
    for (const ComparisonSide side : both_sides)
      std::ranges::copy(worker_command(arguments, side), std::back_inserter(all));
  }
  for (const std::string& program : {gate.base, gate.head}) {
    if (!program.empty()) all.emplace_back(program_path(program));
  }
  for (const std::string& library : {gate.base_kernels, gate.head_kernels}) {
    if (!library.empty()) std::ranges::copy(files_of_kernel(library), std::back_inserter(all));
  }
  all.push_back(gate.accepted);
  all.push_back(gate.source);
  return all;
}

void check_programs(const GateArguments& gate) {
  if (gate.of_commands()) return;
  if (gate.of_program()) return check_folders_of_program(gate);
  const bool alone = gate.stored || gate.soak;
  if (gate.base.empty() && !alone)
    throw RequestError("there is nothing to compare HEAD with",
                       "give --base PROGRAM, --stored for the runs that `accept` stored, or "
                       "--soak for HEAD's own beginning");
  if (gate.stored && (gate.pairs || !gate.workloads.empty()))
    throw RequestError("--pairs and --workload are for two programs", "choose files, or by --tag");
  if (!gate.base.empty()) check_program("--base", gate.base);
  check_program("--head", gate.head);
}

// Builds of stepgate are compared by steps that they compose.
void refuse_programs(const std::vector<Scenario>& scenarios) {
  for (const Scenario& scenario : scenarios) {
    if (!runs_programs(scenario)) continue;
    throw RequestError(
        {{scenario.file, 0, 0},
         fmt::format("'{}' runs a program, which two builds of stepgate would run alike",
                     scenario.name),
         "leave it out, or compare two checkouts of it: gate --program FILE"});
  }
}

void require_libraries(const std::vector<Scenario>& scenarios) {
  for (const Scenario& scenario : scenarios) {
    if (launches_libraries(scenario)) continue;
    throw RequestError(
        {{scenario.file, 0, 0},
         fmt::format("'{}' launches no kernel of a library, so both sides would run alike",
                     scenario.name),
         "leave it out, or name a kernel in a variant (docs/kernels.md)"});
  }
}

void refuse_wrong_libraries_of(const GateRequest& request) {
  const GateArguments& gate = request.arguments.gate;
  for (const auto* knobs : {&gate.base_overrides, &gate.head_overrides}) {
    Arguments of_side = request.arguments;
    of_side.overrides.insert(of_side.overrides.end(), knobs->begin(), knobs->end());
    try {
      refuse_wrong_libraries(plan_all(of_side, request.seed));
    } catch (const RequestError& error) {
      // Nobody wrote a --set that stands for another option.
      std::vector<Diagnostic> faults = error.diagnostics();
      for (Diagnostic& fault : faults)
        if (fault.place.file.starts_with("--set kernels")) fault.place = {};
      throw RequestError(std::move(faults));
    }
  }
}

std::vector<Finding> look_at_scenarios(GateRequest& request) {
  Arguments& arguments = request.arguments;
  if (arguments.gate.of_commands()) return {};
  if (arguments.gate.of_program()) {
    request.scenarios = {program_scenario(arguments.gate.program, arguments.overrides)};
  } else {
    request.scenarios = scenarios_with_wanted_tags(arguments);
    refuse_programs(request.scenarios);
  }
  if (arguments.gate.of_kernels()) {
    require_libraries(request.scenarios);
    refuse_wrong_libraries_of(request);
  }
  refuse_namesakes(request.scenarios);
  refuse_unmatched(arguments.gate.workloads, workloads_of(request.scenarios));
  (void)most_pairs(arguments.gate.pairs, 1, request.settings);
  request.settings.wider =
      wider_margins(request.scenarios, arguments.gate.workloads, request.settings.margin);
  arguments.files.clear();
  for (const Scenario& scenario : request.scenarios) {
    const bool is_there = !arguments.files.empty() && arguments.files.back() == scenario.file;
    if (!is_there) arguments.files.emplace_back(scenario.file);  // a sweep is one file
  }
  if (arguments.gate.head_files.empty()) return {};
  return compare_with_head_files(request);
}

bool calibrates(const GateRequest& request) {
  return std::ranges::any_of(request.scenarios, lacks_a_value);
}

GateScope scope_of(const GateRequest& request) {
  const Arguments& arguments = request.arguments;
  return {.patterns = arguments.gate.workloads,
          .of_commands = arguments.gate.of_commands(),
          .of_program = arguments.gate.of_program(),
          .of_kernels = arguments.gate.of_kernels(),
          .simulation_asked = arguments.device.spec.starts_with("simulated"),
          .counts = request.looks_at(GatePart::counts),
          .same_program = run_same_program(arguments)};
}

bool counts_first(const GateRequest& request) {
  return request.looks_at(GatePart::counts) || calibrates(request);
}

void refuse_stand_in(const GateRequest& request, const Hello& hello,
                     std::vector<Finding>& findings) {
  if (!simulates_unasked(hello, scope_of(request))) return;
  check_device(request.arguments.device);
  findings.push_back(
      of_gate(FindingKind::time, Severity::not_gated, "device", std::string(simulated_unasked)));
}

}  // namespace stepgate
