// SPDX-License-Identifier: MIT
#include "program/run_attached.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

#include "base/files/temporary_folder.h"
#include "base/interruption.h"
#include "base/process/attached_tool.h"
#include "base/process/masked_words.h"
#include "base/process/run_program.h"
#include "base/process/supervised.h"
#include "base/text/diagnostic.h"

namespace stepgate {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view library_name = "libstepgate_attach.so";
constexpr std::string_view hook_name = "sitecustomize.py";
// Reading may take as long as the program, where --timeout bounds that, and not less than this.
constexpr std::chrono::seconds least_reading{30};
constexpr std::chrono::seconds usual_reading{300};
constexpr std::chrono::seconds longest_look{5};
constexpr std::size_t most_processes = 1024;
constexpr int look_around_milliseconds = 100;

std::string variable_of(std::string_view entry) {
  return std::string(entry.substr(0, entry.find('=')));
}

bool is_ours(std::string_view entry) {
  return entry.starts_with(attached::variable_beginning) || variable_of(entry) == hold_variable;
}

bool ends_by_kernel_or_call(const StepChoice& steps) {
  return !steps.kernel.empty() || !steps.call.empty();
}

// With those variables by which the library is loaded, and without what an attach around this one
// set.
std::vector<std::string> environment_of(const AttachRequest& request, const AttachFiles& files,
                                        const std::filesystem::path& folder) {
  std::vector<std::string> added;
  for (const char* name :
       {"CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", attached::library_variable})
    added.push_back(fmt::format("{}={}", name, files.library.string()));
  added.push_back(fmt::format("{}={}", attached::folder_variable, folder.string()));
  added.push_back(fmt::format("{}={}", attached::range_variable, request.steps.range));
  // The library cannot tell the ends of steps that are named by a kernel or a call.
  if (!ends_by_kernel_or_call(request.steps)) {
    added.push_back(fmt::format("{}={}+{}{}", attached::window_variable, request.steps.skip,
                                request.steps.steps,
                                request.steps.names_range ? attached::window_of_ranges : ""));
  }
  return hooked_environment(request.variables, files, added);
}

// Watches a program that runs for the end of its windows.
class WindowWatch {
 public:
  WindowWatch(std::filesystem::path folder, const StepChoice& steps)
      : folder_(std::move(folder)), steps_(steps) {}

  // Returns false between two looks: they take less than a tenth of the time.
  bool all_are_over() {
    const Clock::time_point begin = Clock::now();
    if (begin < next_look_) return false;
    const bool over = all_windows_are_over(progress());
    next_look_ = Clock::now() + 10 * (Clock::now() - begin);
    return over;
  }

 private:
  std::vector<ProcessProgress> progress() const {
    if (!ends_by_kernel_or_call(steps_)) return read_progress(folder_);
    const Clock::time_point deadline = Clock::now() + longest_look;
    std::vector<ProcessProgress> all;
    for (const std::filesystem::path& file : record_files(folder_)) {
      if (Clock::now() > deadline) return {};
      const auto process = read_process(file);
      if (!process) continue;
      const std::size_t boundaries = boundaries_in(*process, steps_, deadline);
      all.push_back(
          {.process = process->process,
           .rank = process->rank,
           .world_size = process->world_size,
           .has_begun = boundaries > 0,
           .is_over = boundaries >= boundaries_wanted(steps_) || process->first_dropped != 0});
    }
    return all;
  }

  std::filesystem::path folder_;
  const StepChoice& steps_;
  Clock::time_point next_look_{};
};

// Ranks in the order of their numbers, before processes without one: the numbers of processes say
// only in which order a launcher happened to start them.
std::pair<std::uint64_t, std::int64_t> rank_and_process(const CountedProcess& process) {
  std::uint64_t rank = std::numeric_limits<std::uint64_t>::max();
  (void)std::from_chars(process.rank.data(), process.rank.data() + process.rank.size(), rank);
  return {rank, process.process};
}

// One process after the other: the records of each can take 256 MiB.
std::vector<CountedProcess> count_all(const std::filesystem::path& folder,
                                      const AttachRequest& request) {
  const auto time = std::max<std::chrono::nanoseconds>(
      least_reading,
      std::min<std::chrono::nanoseconds>(request.timeout.value_or(usual_reading), usual_reading));
  const Clock::time_point deadline = Clock::now() + time;
  std::vector<CountedProcess> counted;
  for (const std::filesystem::path& file : record_files(folder)) {
    throw_if_interrupted();
    const bool has_time = Clock::now() < deadline, has_room = counted.size() < most_processes;
    auto process = read_process(file, has_time && has_room);
    if (!process) continue;
    if (!has_time) {
      process->fault = fmt::format(
          "there was no time for its records, after {} s with those of others: count fewer steps",
          std::chrono::duration_cast<std::chrono::seconds>(time).count());
    } else if (!has_room) {
      process->fault = fmt::format("more than {} processes used CUDA", most_processes);
    }
    counted.push_back(count_steps(*process, request.steps, deadline));
    if (!has_room) break;
  }
  std::ranges::stable_sort(counted, {}, rank_and_process);
  return counted;
}

}  // namespace

ProgramStreams streams_of_program(const ShownOutput& shown, bool quiet, bool has_input) {
  // A program in the background that reads from the terminal would be stopped.
  const OwnedDescriptor nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  return {.in = copy_of(has_input && ::isatty(STDIN_FILENO) == 0 ? STDIN_FILENO : nothing.get()),
          .out = quiet ? copy_of(nothing.get()) : shown.stream(),
          .error = shown.stream()};
}

void refuse_other_tools(const std::vector<std::string>& variables) {
  std::optional<std::string> variable = attached_tool();
  for (const std::string& entry : variables) {
    if (!variable && is_of_a_tool(variable_of(entry))) variable = variable_of(entry);
  }
  if (variable) {
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
    return name == "PYTHONPATH" || is_ours(name) ||
           std::ranges::find(added, name, variable_of) != added.end();
  });
  variables.push_back("PYTHONPATH=" + python_path);
  variables.insert(variables.end(), added.begin(), added.end());
  std::vector<std::string> all;
  for (char** entry = ::environ; *entry != nullptr; ++entry) {
    if (!is_ours(*entry) &&
        std::ranges::find(variables, variable_of(*entry), variable_of) == variables.end())
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
  refuse_other_tools(request.variables);
  const TemporaryFolder folder;
  AttachedRun run;
  {
    ShownOutput shown;  // outlives the program
    Supervised program(request.command, environment_of(request, files, folder.path()),
                       streams_of_program(shown, request.quiet, request.has_input), request.folder);
    shown.close_stream();
    const Clock::time_point begin = Clock::now();
    WindowWatch windows(folder.path(), request.steps);
    while (!program.status()) {
      pollfd news{program.descriptor(), POLLIN, 0};
      if (::poll(&news, 1, look_around_milliseconds) > 0) program.take_report();
      if (program.start_problem()) {
        throw RequestError(
            fmt::format("'{}' cannot be started: {}", masked(request.command).front(),
                        std::strerror(*program.start_problem())),
            request.folder.empty()
                ? std::string("check its path")
                : fmt::format("check its path, and the folder '{}'", request.folder.string()));
      }
      throw_if_interrupted();
      run.timed_out = request.timeout && Clock::now() - begin > *request.timeout;
      run.stopped = request.stops_after_window && windows.all_are_over();
      if (!program.status() && (run.timed_out || run.stopped)) break;
    }
    if (const auto status = program.status()) {
      run.signal = WIFSIGNALED(*status) ? WTERMSIG(*status) : 0;
      run.code = run.signal != 0 ? 128 + run.signal : WEXITSTATUS(*status);
      run.timed_out = run.stopped = false;
    }
  }
  run.processes = count_all(folder.path(), request);
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
