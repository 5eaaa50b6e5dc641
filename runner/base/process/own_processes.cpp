// SPDX-License-Identifier: MIT
#include "base/process/own_processes.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>

namespace stepgate {
namespace {

// The children of all threads, including zombies.
std::set<pid_t> children() {
  std::set<pid_t> all;
  std::error_code ended;  // a thread may end meanwhile
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", ended)) {
    std::ifstream file(thread.path() / "children");
    for (pid_t child = 0; file >> child;) all.insert(child);
  }
  return all;
}

struct Own {
  std::mutex mutex;
  std::set<pid_t> processes = children();
};

Own& own() {
  static Own all;
  return all;
}

}  // namespace

pid_t fork_own() {
  const std::lock_guard lock(own().mutex);  // own() must contain the new child
  // Some parents leave SIGCHLD ignored; then waitpid could not see children end.
  struct sigaction now {};
  if (::sigaction(SIGCHLD, nullptr, &now) == 0 && now.sa_handler == SIG_IGN)
    ::signal(SIGCHLD, SIG_DFL);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t process = ::fork();
  if (process > 0) own().processes.insert(process);
  return process;
}

void forget_own(pid_t process, int status) {
  constexpr std::chrono::seconds most_time{1};
  const std::lock_guard lock(own().mutex);
  own().processes.erase(process);
  if (!WIFSIGNALED(status)) return;
  const auto deadline = std::chrono::steady_clock::now() + most_time;
  for (bool any = true; any && std::chrono::steady_clock::now() < deadline;) {
    any = false;
    for (const pid_t child : children()) {
      if (own().processes.contains(child)) continue;
      any = true;
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, WNOHANG);
    }
    if (any) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace stepgate
