// SPDX-License-Identifier: MIT
#include "verbs/compare/workers.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>
#include <utility>

#include "base/interruption.h"
#include "base/process/run_program.h"
#include "base/process/worker_environment.h"
#include "base/random.h"
#include "compare/gate/gate_timing.h"
#include "device/baselines.h"
#include "device/cuda/gpu_index.h"
#include "plugin/tables/kernel_file.h"
#include "program/held.h"
#include "verbs/settings.h"

namespace stepgate {
namespace {

// Its own limits (program.timeout_s) end a program before.
constexpr double longest_start_of_a_program = 86'400;

}  // namespace

std::chrono::nanoseconds of_seconds(double seconds) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(seconds));
}

std::string program_path(const std::string& given) {
  return given.find('/') == std::string::npos ? "./" + given : given;
}

void check_program(const std::string& option, const std::string& given) {
  const std::filesystem::path path = program_path(given);
  if (std::filesystem::is_regular_file(path) && ::access(path.c_str(), X_OK) == 0) return;
  throw RequestError(option + " '" + given + "' is no program that can be started",
                     "give the path of a built stepgate");
}

void check_device_name(const DeviceChoice& choice) {
  if (!choice.spec.empty() && !gpu_index_in(choice.spec)) (void)open_device(choice);
}

void refuse_namesakes(std::span<const Scenario> scenarios) {
  std::set<std::string> names;
  for (const Scenario& scenario : scenarios) {
    if (!names.insert(scenario.name).second)
      throw RequestError(scenario.file + ": another file has a scenario of the same name",
                         "a gate compares by names; leave one of them out");
  }
}

Command program_command(const Arguments& arguments, const std::string& program,
                        const std::string& verb, const std::vector<std::string>& more) {
  Command command{program_path(program), "--baselines", arguments.device.baselines.users.string(),
                  verb};
  if (!arguments.device.spec.empty())
    command.insert(command.end(), {"--device", arguments.device.spec});
  for (const std::string& knob : arguments.overrides)
    command.insert(command.end(), {"--set", knob});
  if (arguments.ranks.count)
    command.insert(command.end(), {"--ranks", std::to_string(*arguments.ranks.count)});
  if (arguments.stall_seconds)
    command.insert(command.end(), {"--stall-seconds", fmt::format("{}", *arguments.stall_seconds)});
  command.insert(command.end(), more.begin(), more.end());
  command.emplace_back("--");
  for (const auto& file : arguments.files) command.push_back(file.string());
  return command;
}

Command own_knobs(const Arguments& arguments, ComparisonSide side) {
  const GateArguments& gate = arguments.gate;
  Command options;
  for (const std::string& knob :
       side == ComparisonSide::base ? gate.base_overrides : gate.head_overrides)
    options.insert(options.end(), {"--set", knob});
  return options;
}

Command worker_command(const Arguments& arguments, ComparisonSide side,
                       std::vector<std::string> more) {
  const GateArguments& gate = arguments.gate;
  const bool is_base = side == ComparisonSide::base;
  if (gate.of_commands())
    return split_command_line(is_base ? *gate.base_command : *gate.head_command);
  if (gate.of_program()) {
    Command command{path_of_this_program().string(), "worker", "--program",
                    gate.program.string(),           "--cwd",  is_base ? gate.base : gate.head};
    for (const std::string& knob : arguments.overrides)
      command.insert(command.end(), {"--set", knob});
    command.insert(command.end(), more.begin(), more.end());
    return command;
  }
  for (const std::string& calibrated : arguments.worker.calibrated)
    more.insert(more.end(), {"--calibrated", calibrated});
  std::ranges::copy(own_knobs(arguments, side), std::back_inserter(more));
  return program_command(arguments, is_base ? gate.base : gate.head, "worker", more);
}

bool run_same_program(const Arguments& arguments) {
  if (arguments.gate.of_program()) {
    return std::filesystem::equivalent(arguments.gate.base, arguments.gate.head) &&
           arguments.gate.base_variables == arguments.gate.head_variables;
  }
  if (arguments.gate.of_kernels()) {
    return identity_of_files(arguments.gate.base_kernels) ==
           identity_of_files(arguments.gate.head_kernels);
  }
  const auto program = [&](ComparisonSide side) {
    const Command command = worker_command(arguments, side);
    return arguments.gate.of_commands() ? command : Command{command.front()};
  };
  return run_same_bytes(program(ComparisonSide::base), program(ComparisonSide::head)) &&
         arguments.gate.base_variables == arguments.gate.head_variables &&
         arguments.gate.base_overrides == arguments.gate.head_overrides;
}

void set_variable(std::vector<std::string>& environment, const std::string& name,
                  const std::string& value) {
  std::erase_if(environment, [start = name + '='](const std::string& variable) {
    return variable.starts_with(start);
  });
  environment.push_back(name + '=' + value);
}

std::vector<std::string> environment_of(const Arguments& arguments, ComparisonSide side) {
  const GateArguments& gate = arguments.gate;
  std::vector<std::string> environment = worker_environment(gate.passed_variables);
  set_variable(environment, settings_variable, "none");  // options say everything
  if (const auto& package = arguments.device.baselines.package; !package.empty())
    set_variable(environment, profiles_variable, std::filesystem::absolute(package).string());
  if (gate.of_program()) {
    const bool is_base = side == ComparisonSide::base;
    for (const auto& [name, folder] : cache_variables(gate.caches / (is_base ? "base" : "head")))
      set_variable(environment, name, folder);
  }
  for (const std::string& given :
       side == ComparisonSide::base ? gate.base_variables : gate.head_variables) {
    const std::size_t equals = given.find('=');
    set_variable(environment, given.substr(0, equals), given.substr(equals + 1));
  }
  return environment;
}

ChildRequest worker_request(const Arguments& arguments, Command command, ComparisonSide side) {
  return {.command = std::move(command),
          .name = side == ComparisonSide::base ? "BASE" : "HEAD",
          .stall = of_seconds(arguments.gate.of_program() && !arguments.stall_seconds
                                  ? longest_start_of_a_program
                                  : stall_seconds_of(arguments)),
          .stopped = [] { return interrupted != 0; },
          .environment = environment_of(arguments, side)};
}

LaunchWorker pairs_launcher(const Arguments& arguments, std::uint64_t seed,
                            const std::vector<std::string>& more_of_base,
                            const std::vector<std::string>& more_of_head) {
  return [=](ComparisonSide side, std::int64_t launch) {
    std::vector<std::string> more = side == ComparisonSide::base ? more_of_base : more_of_head;
    const auto number = static_cast<std::uint64_t>(launch);
    // Launches of both sides are numbered together, two per pair.
    more.insert(more.end(), {"--seed", std::to_string(random_bits(seed, number / 2)),
                             "--noise-seed", std::to_string(random_bits(~seed, number))});
    return start_worker(worker_request(arguments, worker_command(arguments, side, more), side));
  };
}

ComparisonRequest comparison_request(const Arguments& arguments, const Introduction& both,
                                     std::vector<std::string> workloads,
                                     const ComparisonSettings& settings, LaunchWorker launch,
                                     std::uint64_t seed, std::chrono::nanoseconds most_timing,
                                     std::span<const CountedPair> counted) {
  ComparisonRequest request;
  request.workloads = std::move(workloads);
  request.introduction = both;
  request.launch = std::move(launch);
  request.seed = seed;
  request.most_pairs = most_pairs(arguments.gate.pairs, request.workloads.size(), settings);
  request.clock = [] { return std::chrono::steady_clock::now().time_since_epoch(); };
  request.undecided = undecided_workloads(request.workloads, settings);
  time_as_a_gate(request, settings, most_timing, counted);
  if (arguments.ranks.count) request.pairs_at_once = {};  // each pair would start all ranks
  return request;
}

}  // namespace stepgate
