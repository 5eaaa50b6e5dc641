// SPDX-License-Identifier: MIT
// System calls only: this runs in a forked copy of stepgate.
#include "base/process/supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>

namespace stepgate {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int cannot_start_code = 127;
constexpr std::array all_signals{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGXFSZ};

void set_all_signals(void (*handler)(int)) {
  for (const int signal : all_signals) std::signal(signal, handler);
}

void say(int report, WorkerReport message) {
  // This fails when stepgate has ended, in which case no process needs the report.
  [[maybe_unused]] const auto written = ::write(report, &message, sizeof message);
}

// Closes inherited copies of stepgate's other descriptors, which would keep other workers' pipes
// open.
void close_all_but(std::array<int, 5> kept) {
  std::sort(kept.begin(), kept.end());
  int next = STDERR_FILENO + 1;
  for (const int descriptor : kept) {
    if (descriptor > next) ::close_range(next, descriptor - 1, 0);
    next = descriptor + 1;
  }
  ::close_range(next, ~0U, 0);
}

[[noreturn]] void become_worker(const SupervisorEnds& ends, char* const* command,
                                char* const* environment, const char* folder, pid_t supervisor) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != supervisor) ::_exit(cannot_start_code);
  set_all_signals(SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::dup2(ends.in, STDIN_FILENO);
  ::dup2(ends.out, STDOUT_FILENO);
  ::dup2(ends.error, STDERR_FILENO);
  if (folder == nullptr || ::chdir(folder) == 0) ::execvpe(command[0], command, environment);
  say(ends.report, {.fate = WorkerFate::cannot_start, .value = errno});
  ::_exit(cannot_start_code);
}

// The list of the children of this process, to be read again and again.
int open_children() {
  std::array<char, 64> name{};
  std::snprintf(name.data(), name.size(), "/proc/self/task/%d/children", ::getpid());
  return ::open(name.data(), O_RDONLY | O_CLOEXEC);
}

class Supervisor {
 public:
  Supervisor(const SupervisorEnds& ends, pid_t worker, int deaths, int children)
      : ends_(ends), worker_(worker), deaths_(deaths), children_(children) {}

  // Returns when the worker has ended, or when stepgate asks to end it or is gone.
  void watch() {
    while (!status_) {
      std::array<pollfd, 2> events{pollfd{deaths_, POLLIN, 0},
                                   pollfd{ends_.parent_death_pipe, POLLIN, 0}};
      if (::poll(events.data(), events.size(), -1) < 0 && errno != EINTR) break;
      if (events[0].revents != 0) reap();
      if (events[1].revents != 0) break;
    }
  }

  void end_all() {
    if (!status_) ask_to_end();
    ::kill(-worker_, SIGKILL);
    while (kill_children()) wait_for_one();
    reap();
    say(ends_.report, {.fate = WorkerFate::ended, .value = status_.value_or(SIGKILL)});
  }

 private:
  void note(pid_t process, int status) {
    if (process == worker_) status_ = status;
  }

  void reap() {
    signalfd_siginfo drained;
    while (::read(deaths_, &drained, sizeof drained) > 0) {
    }
    int status = 0;
    for (pid_t process; (process = ::waitpid(-1, &status, WNOHANG)) > 0;) note(process, status);
  }

  void wait_for_one() {
    int status = 0;
    note(::waitpid(-1, &status, 0), status);
  }

  void ask_to_end() {
    ::kill(-worker_, SIGTERM);
    ::kill(-worker_, SIGCONT);  // a stopped process would not see the request
    const auto deadline = Clock::now() + time_to_end;
    while (!status_ && Clock::now() < deadline) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
      pollfd death{deaths_, POLLIN, 0};
      ::poll(&death, 1, static_cast<int>(left.count()) + 1);
      reap();
    }
  }

  // Sends SIGKILL to every child, adopted ones and zombies included. Returns false when there is
  // none.
  bool kill_children() const {
    std::array<char, 4096> text{};
    const auto length = ::pread(children_, text.data(), text.size() - 1, 0);
    bool any = false;
    char* at = text.data();
    for (char* end = at; length > 0; at = end) {
      const long process = std::strtol(at, &end, 10);
      if (end == at || *end != ' ') break;  // the last number may be cut off: read it next time
      any = true;
      ::kill(static_cast<pid_t>(process), SIGKILL);
    }
    return any;
  }

  const SupervisorEnds& ends_;
  pid_t worker_;
  int deaths_;
  int children_;
  std::optional<int> status_;
};

}  // namespace

void supervise(const SupervisorEnds& ends, char* const* command, char* const* environment,
               const char* folder) {
  // Leaves the terminal's process group: its signals go to stepgate, which ends its workers itself.
  ::setpgid(0, 0);
  set_all_signals(SIG_IGN);
  ::signal(SIGCHLD, SIG_DFL);  // if it were ignored, the kernel would reap children unseen
  close_all_but({ends.in, ends.out, ends.error, ends.parent_death_pipe, ends.report});
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  sigset_t death;
  sigemptyset(&death);
  sigaddset(&death, SIGCHLD);
  ::sigprocmask(SIG_SETMASK, &death, nullptr);
  const int deaths = ::signalfd(-1, &death, SFD_NONBLOCK | SFD_CLOEXEC);
  // Opened now, since the worker may lower this process's limit of open files. Some kernels have no
  // such list.
  const int children = open_children();
  const bool has_descriptors = deaths >= 0 && (children >= 0 || errno == ENOENT);
  const pid_t self = ::getpid();
  const pid_t worker = has_descriptors ? ::fork() : -1;
  if (worker == 0) become_worker(ends, command, environment, folder, self);
  if (worker < 0) {
    say(ends.report, {.fate = WorkerFate::cannot_start, .value = errno});
    ::_exit(cannot_start_code);
  }
  ::setpgid(worker, worker);  // parent and child both set it, whichever runs first
  for (const int descriptor : {ends.in, ends.out, ends.error}) ::close(descriptor);
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nothing, stream);
  Supervisor supervisor(ends, worker, deaths, children);
  supervisor.watch();
  supervisor.end_all();
  ::_exit(0);
}

}  // namespace stepgate
