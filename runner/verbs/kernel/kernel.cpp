// SPDX-License-Identifier: MIT
// `stepgate kernel` describes the kernels of the catalogue, and checks those of a user's library.
// Only a process of its own opens the library, so that one that crashes is a fault and not the end.
#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iostream>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/files/temporary_folder.h"
#include "base/files/write_file.h"
#include "base/interruption.h"
#include "base/process/run_program.h"
#include "base/text/diagnostic.h"
#include "base/text/nearest.h"
#include "base/text/text_stream.h"
#include "kernels/catalogue.h"
#include "line/planned.h"
#include "plugin/check_kernel.h"
#include "plugin/kept_check.h"
#include "plugin/open_kernels.h"
#include "plugin/tables/kernel_file.h"
#include "report/exit_code.h"
#include "report/text/print_kernels.h"
#include "verbs/kernel/new_step.h"
#include "verbs/outputs.h"
#include "verbs/verbs.h"
#ifdef STEPGATE_WITH_CUDA
#include "plugin/cuda_trial_device.h"
#include "plugin/tables/open_cubin.h"
#endif

namespace stepgate {
namespace {

// The references of larger launches take the host seconds.
constexpr std::int64_t most_flops = std::int64_t{1} << 28;
constexpr std::int64_t most_bytes = std::int64_t{1} << 25;
constexpr unsigned most_seconds_of_a_trial = 60;
// A process that ends by itself writes this in the place of its present trial.
constexpr std::string_view over = "over";

const Kernel& kernel_named(const std::string& name) {
  std::vector<std::string_view> names;
  for (const Kernel& known : kernel_catalogue()) {
    if (known.name == name) return known;
    names.push_back(known.name);
  }
  throw RequestError(fmt::format("no kernel is named '{}'", name),
                     did_you_mean(name, names, "`stepgate kernel describe` lists them"));
}

int describe(const std::vector<std::string>& names) {
  if (names.empty()) print_kernels(std::cout);
  for (const std::string& name : names) {
    const std::filesystem::path file = name;
    if (is_table(name) && std::holds_alternative<TvmFfiLaunch>(read_launch(file)))
      print_library(std::cout, read_tvm_ffi_library(files_of_kernel(file).at(1)));
    else if (is_table(name))
      print_cubin(std::cout, read_cubin(files_of_kernel(file).at(1)));
    else if (file.extension() == ".cubin")
      print_cubin(std::cout, read_cubin(file));
    else if (name.find('/') != std::string::npos || name.find(".so") != std::string::npos)
      print_library(std::cout, read_library(name));
    else
      print_kernel(std::cout, kernel_named(name));
  }
  return 0;
}

bool is_small(const Kernel& launched, const LaunchOfStep& launch) {
  const KernelWork work = work_of(launched, launch.shape, launch.dtype, launch.attributes);
  return work.flops <= most_flops && work.bytes_read <= most_bytes &&
         work.bytes_written <= most_bytes;
}

struct LaunchesOfSteps {
  std::vector<LaunchOfStep> tried;
  std::int64_t left_out = 0;  // that are too large
};

void add(LaunchesOfSteps& found, const Kernel& wanted, const LaunchKernel& launch) {
  auto known = std::ranges::find_if(found.tried, [&](const LaunchOfStep& other) {
    return other.shape == launch.shape && other.dtype == launch.dtype &&
           other.attributes == launch.attributes;
  });
  if (known == found.tried.end()) {
    const LaunchOfStep one{
        .shape = launch.shape, .dtype = launch.dtype, .attributes = launch.attributes};
    if (!is_small(wanted, one)) return void(++found.left_out);
    known = found.tried.insert(found.tried.end(), one);
  }
  const auto& with = kernel(launch.kernel).replacement;
  if (with && known->otherwise != Otherwise::refuse) known->otherwise = with->otherwise;
}

// The different launches of the kernel in the steps of the scenarios.
LaunchesOfSteps launches_in_steps(const Arguments& arguments, const Kernel& wanted) {
  LaunchesOfSteps found;
  if (arguments.kernel.scenarios.empty()) return found;
  Arguments asked = arguments;
  asked.files = arguments.kernel.scenarios;
  for (const Planned& planned : plan_all(asked, 1)) {
    for (const StepPlan& plan : planned.plans) {
      for (const Operation& operation : plan.operations) {
        const auto* launch = std::get_if<LaunchKernel>(&operation.action);
        if (launch == nullptr || launch->kernel != wanted.name) continue;
        add(found, wanted, *launch);
      }
    }
  }
  if (found.tried.empty() && found.left_out == 0) {
    throw RequestError(fmt::format("no step of the scenarios launches '{}'", wanted.name),
                       "`stepgate plan` lists the launches of a step");
  }
  return found;
}

#ifdef STEPGATE_WITH_CUDA
KernelCheck checked(const Arguments& arguments, const Kernel& wanted, TrialDevice& device,
                    const LaunchesOfSteps& of_steps, LoadedKernel loaded) {
  const KernelArguments& given = arguments.kernel;
  return check_kernel(device, {.loaded = std::move(loaded),
                               .kernel = wanted,
                               .of_step = of_steps.tried,
                               .left_out = of_steps.left_out,
                               .seed = *arguments.seed,
                               .at_trial = [&](const std::string& place) {
                                 std::ofstream(given.place) << place;
                                 ::alarm(most_seconds_of_a_trial);
                               }});
}

KernelCheck checked_here(const Arguments& arguments, const Kernel& wanted) {
  const KernelArguments& given = arguments.kernel;
  const LaunchesOfSteps of_steps = launches_in_steps(arguments, wanted);
  const auto device = make_cuda_trial_device(0);
  OpenKernels kernels(loaded_on_gpu);
  return checked(arguments, wanted, *device, of_steps,
                 kernels.at(given.names.front(), given.function, wanted));
}
#else
KernelCheck checked_here(const Arguments& arguments, const Kernel& wanted) {
  (void)launches_in_steps(arguments, wanted);  // what is wrong with the scenarios comes first
  throw RequestError("this build of stepgate has no CUDA, and a kernel is tried on a GPU",
                     "install or build one with CUDA (docs/install.md)");
}
#endif

void keep(const KernelArguments& given, const KernelCheck& check) {
  KeptCheck kept{.library = check.library,
                 .kernel = check.kernel,
                 .function = given.function,
                 .trials = check.trials,
                 .faults = {}};
  for (const KernelFault& fault : check.faults) kept.faults.push_back(fault.check);
  if (!check.is_it() && kept.faults.empty()) kept.faults.emplace_back("supported");
  try {
    keep_check(given.names.front(), kept);
  } catch (const RequestError& error) {  // a folder that others own is no fault of the kernel
    std::cerr << "note: " << error.what() << '\n';
  }
}

int report(const Arguments& arguments, const KernelCheck& check) {
  print_kernel_check(std::cout, check);
  keep(arguments.kernel, check);
  if (!arguments.json.empty()) {
    TextStream json;
    write_kernel_check_json(json, check);
    write_output([&] { write_file(arguments.json, json.str()); });
  }
  return status_of(check.is_it() ? ExitCode::passes : ExitCode::fails);
}

std::string text_of_file(const std::filesystem::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string end_in_words(int code) {
  constexpr int first_signal = 128, most_signals = 64;
  if (code == first_signal + SIGALRM)
    return fmt::format("it did not end within {} s", most_seconds_of_a_trial);
  if (code > first_signal && code <= first_signal + most_signals) {
    return fmt::format("it ended its process by signal {} ({})", code - first_signal,
                       ::strsignal(code - first_signal));
  }
  return fmt::format("it ended its process with code {}", code);
}

// Runs this program again for the check, and makes a fault of its crash.
int check_apart(const Arguments& arguments, const Kernel& wanted) {
  const std::string& file = arguments.kernel.names.front();
  // Nothing of it runs.
  const std::string identity = identity_of(read_kernel(file, arguments.kernel.function, wanted));
  const TemporaryFolder folder;
  const std::filesystem::path place = folder.path() / "place";
  std::vector<std::string> command{"kernel",     "check",
                                   "--place",    place.string(),
                                   "--seed",     std::to_string(*arguments.seed),
                                   "--function", arguments.kernel.function};
  if (!arguments.json.empty()) command.insert(command.end(), {"--json", arguments.json.string()});
  for (const auto& scenario : arguments.kernel.scenarios)
    command.insert(command.end(), {"--scenario", scenario.string()});
  command.insert(command.end(), {"--", file, std::string(wanted.name)});
  const int code = run_this_program(command);
  const std::string at = text_of_file(place);
  if (at == over || interrupted != 0) return code;
  return report(arguments, {.kernel = std::string(wanted.name),
                            .library = identity,
                            .trials = 1,
                            .seed = *arguments.seed,
                            .faults = {{.check = "crash",
                                        .first = fmt::format("{}{}", end_in_words(code),
                                                             at.empty() ? ", before the first trial"
                                                                        : fmt::format(" ({})", at)),
                                        .trials = 1}}});
}

// Says at its end that it ended by itself, whatever it found: a library that ends the process, by a
// crash or by exit(), does not come so far.
int check_in_this_process(const Arguments& arguments, const Kernel& wanted) {
  const auto ends = [&] { std::ofstream(arguments.kernel.place) << over; };
  try {
    const int code = report(arguments, checked_here(arguments, wanted));
    ends();
    return code;
  } catch (...) {
    ends();
    throw;
  }
}

int check(const Arguments& arguments) {
  const KernelArguments& given = arguments.kernel;
  constexpr std::size_t library_and_kernel = 2;
  if (given.names.size() != library_and_kernel) {
    throw RequestError("a check needs a library and a kernel, or a table and a kernel",
                       "say `stepgate kernel check build/libmine.so layer_norm`");
  }
  const Kernel& wanted = kernel_named(given.names.back());
  if (is_table(given.names.front()) && !given.function.empty() && given.place.empty())
    throw RequestError("--function is for a library", "a table names its own");
  Arguments whole = arguments;
  if (whole.kernel.function.empty()) whole.kernel.function = given.names.back();
  whole.seed = seed_of(arguments);  // both processes tell the same one
  Arguments outputs = whole;
  outputs.files.clear();  // they are no scenarios
  check_outputs(outputs, files_of_kernel(given.names.front()));
  return given.place.empty() ? check_apart(whole, wanted) : check_in_this_process(whole, wanted);
}

// Files that are there already are somebody's work, and so is what a link names.
void refuse_written(const std::filesystem::path& file) {
  std::error_code none;
  if (std::filesystem::symlink_status(file, none).type() != std::filesystem::file_type::not_found) {
    throw RequestError(fmt::format("'{}' is there already", file.string()),
                       "name another folder: --in FOLDER");
  }
}

int begin_kernel(const Arguments& arguments) {
  const KernelArguments& given = arguments.kernel;
  if (given.names.size() != 1) {
    throw RequestError("a new kernel needs the name of one of stepgate's",
                       "say `stepgate kernel new layer_norm --in my`; `stepgate kernel describe` "
                       "lists them");
  }
  const Kernel& wanted = kernel_named(given.names.front());
  TextStream source, project;
  print_new_kernel(source, wanted);
  print_new_project(project, wanted);
  const std::filesystem::path of_source = given.folder / fmt::format("{}.cu", wanted.name);
  const std::filesystem::path of_project = given.folder / "CMakeLists.txt";
  const std::filesystem::path of_step = given.folder / "step.toml";
  for (const auto& file : {of_source, of_project, of_step}) refuse_written(file);
  write_file(of_source, source.str());
  write_file(of_project, project.str());
  std::cout << of_source.string() << '\n' << of_project.string() << '\n';
  const std::string step = step_with_own(wanted);
  if (step.empty()) {
    std::cout << "no step.toml: no usual step launches " << wanted.name << '\n';
    return 0;
  }
  write_file(of_step, step);
  std::cout << of_step.string() << '\n';
  return 0;
}

}  // namespace

int look_at_kernels(const Arguments& arguments) {
  const std::string& action = arguments.kernel.action;
  if (action == "check") return check(arguments);
  if (action == "describe") return describe(arguments.kernel.names);
  if (action == "new") return begin_kernel(arguments);
  constexpr std::string_view actions[] = {"describe", "check", "new"};
  throw RequestError(fmt::format("`stepgate kernel` has no '{}'", action),
                     did_you_mean(action, actions, "say describe, check or new"));
}

}  // namespace stepgate
