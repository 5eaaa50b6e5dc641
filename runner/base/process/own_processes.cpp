// SPDX-License-Identifier: MIT
#include "base/process/own_processes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "base/files/open_file.h"

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
  // The children of the main thread, which adopts. Opened before there is a program that could
  // lower this process's limit of open files.
  OpenFile adopting{
      ::open(fmt::format("/proc/self/task/{}/children", ::getpid()).c_str(), O_RDONLY | O_CLOEXEC)};

  std::vector<pid_t> adopted() const {
    std::string text;
    std::array<char, 4096> chunk{};
    for (ssize_t length = 1; length > 0;) {
      length = ::pread(adopting.descriptor(), chunk.data(), chunk.size(),
                       static_cast<off_t>(text.size()));
      text.append(chunk.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
    }
    std::istringstream numbers(text);
    std::vector<pid_t> all{std::istream_iterator<pid_t>(numbers), {}};
    std::erase_if(all, [&](pid_t child) { return processes.contains(child); });
    return all;
  }
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
    for (const pid_t child : own().adopted()) {
      any = true;
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, WNOHANG);
    }
    if (any) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace stepgate
