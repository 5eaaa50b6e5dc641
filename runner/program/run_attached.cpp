// SPDX-License-Identifier: MIT
#include "program/run_attached.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <string_view>

#include "base/files/temporary_folder.h"
#include "base/interruption.h"
#include "base/process/attached_tool.h"
#include "base/process/run_program.h"
#include "base/process/supervised.h"
#include "base/text/diagnostic.h"

namespace stepgate {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view library_name = "libstepgate_attach.so";
constexpr std::string_view hook_name = "sitecustomize.py";
constexpr int look_around_milliseconds = 100;

std::string variable_of(std::string_view entry) {
  return std::string(entry.substr(0, entry.find('=')));
}

// With those variables by which the library is loaded.
std::vector<std::string> environment_of(const AttachRequest& request, const AttachFiles& files,
                                        const std::filesystem::path& folder) {
  std::vector<std::string> added;
  for (const char* name :
       {"CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", attached::library_variable})
    added.push_back(fmt::format("{}={}", name, files.library.string()));
  added.push_back(fmt::format("{}={}", attached::folder_variable, folder.string()));
  added.push_back(fmt::format("{}={}", attached::range_variable, request.steps.range));
  // The library cannot tell the ends of steps that are named by a kernel or a call.
  if (request.steps.kernel.empty() && request.steps.call.empty()) {
    added.push_back(fmt::format("{}={}+{}", attached::window_variable, request.steps.skip,
                                request.steps.steps));
  }
  return hooked_environment(request.variables, files, added);
}

}  // namespace

ProgramStreams streams_of_program(bool quiet, bool has_input) {
  // A program in the background that reads from the terminal would be stopped.
  const OwnedDescriptor nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  return {.in = copy_of(has_input && ::isatty(STDIN_FILENO) == 0 ? STDIN_FILENO : nothing.get()),
          .out = copy_of(quiet ? nothing.get() : STDERR_FILENO),
          .error = copy_of(STDERR_FILENO)};
}

void refuse_other_tools() {
  if (const auto variable = attached_tool()) {
    throw RequestError(fmt::format("another tool is attached: {} is set", *variable),
                       "run without that tool");
  }
}

std::vector<std::string> hooked_environment(std::vector<std::string> variables,
                                            const AttachFiles& files,
                                            const std::vector<std::string>& added) {
  std::string python_path = files.hook_folder.string();
  const auto given = std::ranges::find(variables, "PYTHONPATH", variable_of);
  const char* ours = std::getenv("PYTHONPATH");
  const std::string before = given != variables.end() ? given->substr(std::strlen("PYTHONPATH="))
                             : ours != nullptr        ? std::string(ours)
                                                      : std::string();
  if (!before.empty()) python_path += ":" + before;
  std::erase_if(variables, [&](const std::string& entry) {
    const std::string name = variable_of(entry);
    return name == "PYTHONPATH" || std::ranges::find(added, name, variable_of) != added.end();
  });
  variables.push_back("PYTHONPATH=" + python_path);
  variables.insert(variables.end(), added.begin(), added.end());
  std::vector<std::string> all;
  for (char** entry = ::environ; *entry != nullptr; ++entry) {
    if (std::ranges::find(variables, variable_of(*entry), variable_of) == variables.end())
      all.emplace_back(*entry);
  }
  all.insert(all.end(), variables.begin(), variables.end());
  return all;
}

AttachFiles attach_files() {
  const std::filesystem::path here = path_of_this_program().parent_path();
  for (const std::filesystem::path& folder :
       {here / "attach", here / ".." / "lib" / "stepgate" / "attach"}) {
    const AttachFiles files{.library = folder / library_name, .hook_folder = folder};
    if (std::filesystem::exists(files.library) && std::filesystem::exists(folder / hook_name))
      return {std::filesystem::canonical(files.library), std::filesystem::canonical(folder)};
  }
  throw RequestError(fmt::format("{} and {} are missing in {} and in lib/stepgate/attach",
                                 library_name, hook_name, (here / "attach").string()),
                     "install or build stepgate again");
}

AttachedRun run_attached(const AttachRequest& request, const AttachFiles& files) {
  refuse_other_tools();
  const TemporaryFolder folder;
  AttachedRun run;
  {
    Supervised program(request.command, environment_of(request, files, folder.path()),
                       streams_of_program(request.quiet, request.has_input), request.folder);
    const Clock::time_point begin = Clock::now();
    while (!program.status()) {
      pollfd news{program.descriptor(), POLLIN, 0};
      if (::poll(&news, 1, look_around_milliseconds) > 0) program.take_report();
      if (program.start_problem()) {
        throw RequestError(fmt::format("'{}' cannot be started: {}", request.command.front(),
                                       std::strerror(*program.start_problem())),
                           "check its path");
      }
      throw_if_interrupted();
      run.timed_out = request.timeout && Clock::now() - begin > *request.timeout;
      run.stopped = request.stops_after_window && all_windows_are_over(folder.path());
      if (!program.status() && (run.timed_out || run.stopped)) break;
    }
    if (const auto status = program.status()) {
      run.signal = WIFSIGNALED(*status) ? WTERMSIG(*status) : 0;
      run.code = run.signal != 0 ? 128 + run.signal : WEXITSTATUS(*status);
      run.timed_out = run.stopped = false;
    }
  }
  for (const RecordedProcess& process : read_records(folder.path()))
    run.processes.push_back(count_steps(process, request.steps));
  for (CountedProcess& process : run.processes) {
    if (const std::string gpus = gpus_of_this_machine(); !gpus.empty())
      process.versions.try_emplace("gpu", gpus);
  }
  return run;
}

std::string gpus_of_this_machine() {
  std::set<std::string> models;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/driver/nvidia/gpus", none)) {
    std::ifstream information(entry.path() / "information");
    for (std::string line; std::getline(information, line);) {
      constexpr std::string_view key = "Model:";
      if (!line.starts_with(key)) continue;
      const std::size_t value = line.find_first_not_of(" \t", key.size());
      if (value != std::string::npos) models.insert(line.substr(value));
    }
  }
  std::string all;
  for (const std::string& model : models) all += (all.empty() ? "" : ", ") + model;
  return all;
}

}  // namespace stepgate
