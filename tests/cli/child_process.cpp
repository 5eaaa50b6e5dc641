// SPDX-License-Identifier: MIT
// Uses fork, exec and waitpid (POSIX).
#include "tests/cli/child_process.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

namespace stepgate {
namespace {

constexpr int cannot_start_code = 127;

void redirect(const char* path, int flags, int stream) {
  constexpr mode_t readable = 0600;
  const int descriptor = ::open(path, flags, readable);
  if (descriptor < 0 || ::dup2(descriptor, stream) < 0) ::_exit(cannot_start_code);
}

// Returns the environment without variables of CI systems, since the tests may run in one, and
// without the width of somebody's terminal.
std::vector<char*> environment_of_tests() {
  std::vector<char*> kept;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (!text.starts_with("GITHUB_ACTIONS=") && !text.starts_with("GITHUB_STEP_SUMMARY=") &&
        !text.starts_with("COLUMNS="))
      kept.push_back(*variable);
  }
  kept.push_back(nullptr);
  return kept;
}

}  // namespace

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

ChildProcess::ChildProcess(const std::filesystem::path& program,
                           const std::vector<std::string>& arguments,
                           const std::filesystem::path& folder)
    : out_(folder.string() + ".out"), err_(folder.string() + ".err") {
  // All allocations happen before the fork.
  const std::string name = program.string();
  std::vector<char*> argv{const_cast<char*>(name.c_str())};
  for (const std::string& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  // Test folders have no baselines of their own. A caller that sets the variable, even to nothing,
  // keeps its value.
  ::setenv("STEPGATE_BASELINES", STEPGATE_SOURCE_DIR "/baselines", 0);
  std::vector<char*> environment = environment_of_tests();
  // Output of an earlier child must not be mistaken for output of this one.
  for (const std::filesystem::path& file : {out_, err_}) std::filesystem::remove(file);
  process_ = ::fork();
  if (process_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (process_ == 0) {
    redirect("/dev/null", O_RDONLY, STDIN_FILENO);
    redirect(out_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, STDOUT_FILENO);
    redirect(err_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, STDERR_FILENO);
    if (::chdir(folder.c_str()) == 0) ::execve(name.c_str(), argv.data(), environment.data());
    ::_exit(cannot_start_code);
  }
}

ChildProcess::~ChildProcess() {
  if (process_ < 0 || ended_) return;
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
}

bool ChildProcess::says(const std::string& words, std::chrono::seconds within) const {
  const auto deadline = std::chrono::steady_clock::now() + within;
  while (text_of(out_).find(words) == std::string::npos) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

void ChildProcess::send(int signal) const {
  if (!ended_) ::kill(process_, signal);
}

bool ChildProcess::has_ended(int options) {
  rusage used{};
  if (::wait4(process_, &status_, options, &used) != process_) return false;
  constexpr std::int64_t kibibyte = 1024;
  peak_bytes_ = used.ru_maxrss * kibibyte;
  for (const timeval& time : {used.ru_utime, used.ru_stime})
    processor_seconds_ +=
        static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  return true;
}

bool ChildProcess::ends(std::chrono::milliseconds within) {
  const auto deadline = std::chrono::steady_clock::now() + within;
  while (!ended_ && !has_ended(WNOHANG)) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ended_ = true;
  return true;
}

Finished ChildProcess::wait() {
  while (!ended_) ended_ = has_ended(0) || errno != EINTR;
  constexpr int signal_base = 128;
  const int code = WIFEXITED(status_) ? WEXITSTATUS(status_) : signal_base + WTERMSIG(status_);
  return {code, text_of(out_), text_of(err_), peak_bytes_, processor_seconds_};
}

}  // namespace stepgate
