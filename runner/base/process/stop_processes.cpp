// SPDX-License-Identifier: MIT
#include "base/process/stop_processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>

namespace stepgate {
namespace {

using StopClock = std::chrono::steady_clock;

constexpr std::chrono::seconds most_time_to_stop{1};
constexpr std::chrono::microseconds between_stop_looks{100};

// State and parent of a process, as its file `stat` says them behind its name.
struct ProcessStat {
  char state = 'X';
  pid_t parent = 0;
};

ProcessStat stat_of(const std::filesystem::path& process) {
  std::ifstream file(process / "stat");
  std::string text;
  std::getline(file, text, '\0');
  ProcessStat read;
  const std::size_t name_end = text.rfind(')');
  if (name_end != std::string::npos && name_end + 4 < text.size()) {
    read.state = text[name_end + 2];
    read.parent = static_cast<pid_t>(std::strtol(text.c_str() + name_end + 3, nullptr, 10));
  }
  return read;
}

std::filesystem::path proc_folder_of(pid_t process) {
  return fmt::format("/proc/{}", process);
}

// Some kernels have no lists of children; there every process of the machine is asked for its
// parent.
std::vector<pid_t> children_by_parent(pid_t parent) {
  std::vector<pid_t> all;
  std::error_code ended;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ended)) {
    const pid_t process = std::atoi(entry.path().filename().c_str());
    if (process > 0 && stat_of(entry.path()).parent == parent) all.push_back(process);
  }
  return all;
}

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> all;
  bool has_lists = false;
  std::error_code ended;  // the process, or a thread of it, may end meanwhile
  for (const auto& thread :
       std::filesystem::directory_iterator(proc_folder_of(parent) / "task", ended)) {
    std::ifstream file(thread.path() / "children");
    has_lists = has_lists || file.is_open();
    for (pid_t child = 0; file >> child;) all.push_back(child);
  }
  return has_lists ? all : children_by_parent(parent);
}

// A process that waits in the kernel (D) stops before it runs again.
bool still_runs(pid_t process) {
  const char state = stat_of(proc_folder_of(process)).state;
  return state == 'R' || state == 'S';
}

}  // namespace

StoppedProcesses stop_descendants(pid_t root) {
  StoppedProcesses stopped;
  // A process that has been sent the signal starts no others, so its list of children is complete.
  std::vector<pid_t> level = children_of(root);
  while (!level.empty()) {
    std::vector<pid_t> next;
    for (const pid_t process : level) {
      ::kill(process, SIGSTOP);
      stopped.processes.push_back(process);
      const std::vector<pid_t> children = children_of(process);
      stopped.most_children = std::max(stopped.most_children, children.size());
      next.insert(next.end(), children.begin(), children.end());
    }
    level = std::move(next);
  }
  const auto deadline = StopClock::now() + most_time_to_stop;
  for (const pid_t process : stopped.processes) {
    while (still_runs(process)) {
      if (StopClock::now() >= deadline) {
        stopped.running = process;
        return stopped;
      }
      std::this_thread::sleep_for(between_stop_looks);
    }
  }
  return stopped;
}

void let_go_on(const StoppedProcesses& stopped) {
  for (auto process = stopped.processes.rbegin(); process != stopped.processes.rend(); ++process)
    ::kill(*process, SIGCONT);
}

}  // namespace stepgate
