// SPDX-License-Identifier: MIT
// fail_system_call N WHICH REPORT PROGRAM ARGUMENT...: runs the program, traces it and every
// process that it starts (ptrace), and lets system call number N of them fail once, in the way
// number WHICH that the call has. Counted are the calls of the table from the first line of main
// on, in processes that run PROGRAM. REPORT gets a line for the call that failed, and as the last
// one how many were counted. Ends as the program does when no process is left, with 128 + n where
// signal n ended it.
#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace {

using Path = std::filesystem::path;

struct Row {
  long number;
  const char* name;
  std::vector<int> errors;
};

// The calls that fail for reasons outside of a program, and some of those reasons.
const std::vector<Row> table{
    {SYS_openat, "openat", {EMFILE, EACCES, EIO}},
    {SYS_read, "read", {EIO, EINTR, EISDIR}},
    {SYS_pread64, "pread64", {EIO, EINTR}},
    {SYS_write, "write", {ENOSPC, EINTR, EIO}},
    {SYS_writev, "writev", {ENOSPC, EINTR, EIO}},
    {SYS_pwrite64, "pwrite64", {ENOSPC, EINTR}},
    {SYS_fsync, "fsync", {EIO, ENOSPC}},
    {SYS_rename, "rename", {EXDEV, EACCES, ENOSPC}},
    {SYS_linkat, "linkat", {EPERM, EACCES, EXDEV}},
    {SYS_unlink, "unlink", {EACCES, EBUSY}},
    {SYS_unlinkat, "unlinkat", {EACCES, EBUSY}},
    {SYS_mkdir, "mkdir", {ENOSPC, EACCES}},
    {SYS_rmdir, "rmdir", {EBUSY, EACCES}},
    {SYS_ftruncate, "ftruncate", {EIO, EINTR}},
    {SYS_fchmod, "fchmod", {EPERM, EIO}},
    {SYS_flock, "flock", {ENOLCK, EINTR}},
    {SYS_fcntl, "fcntl", {EMFILE}},
    {SYS_pipe2, "pipe2", {EMFILE, ENFILE}},
    {SYS_clone, "clone", {EAGAIN, ENOMEM}},
    {SYS_clone3, "clone3", {EAGAIN, ENOMEM}},
    {SYS_execve, "execve", {ENOMEM, EACCES}},
    {SYS_mmap, "mmap", {ENOMEM}},
    {SYS_mprotect, "mprotect", {ENOMEM}},
    {SYS_newfstatat, "newfstatat", {EACCES, EIO}},
    {SYS_fstat, "fstat", {EIO}},
    {SYS_getdents64, "getdents64", {EIO}},
    {SYS_poll, "poll", {EINTR, ENOMEM}},
    {SYS_wait4, "wait4", {EINTR}},
    {SYS_waitid, "waitid", {EINTR}},
    {SYS_readlink, "readlink", {EACCES, EIO}},
    {SYS_getcwd, "getcwd", {ENOENT, EACCES}},
    {SYS_chdir, "chdir", {EACCES, EIO}},
    {SYS_access, "access", {EACCES, EIO}},
    {SYS_memfd_create, "memfd_create", {EMFILE, ENOMEM}},
    {SYS_signalfd4, "signalfd4", {EMFILE, ENOMEM}},
    {SYS_timer_create, "timer_create", {EAGAIN}},
    {SYS_prlimit64, "prlimit64", {EPERM}},
    {SYS_lseek, "lseek", {ESPIPE}},
    {SYS_socket, "socket", {EMFILE, EACCES}},
    {SYS_bind, "bind", {EADDRINUSE, EACCES}},
    {SYS_listen, "listen", {EADDRINUSE}},
    {SYS_accept4, "accept4", {EMFILE, EINTR}},
    {SYS_connect, "connect", {ECONNREFUSED, EINTR}},
    {SYS_sendto, "sendto", {ECONNRESET, EINTR}},
    {SYS_recvfrom, "recvfrom", {ECONNRESET, EINTR}},
};

std::string link_text(const Path& link) {
  std::error_code unreadable;
  return std::filesystem::read_symlink(link, unreadable).string();
}

Path folder_of(pid_t process) {
  return Path("/proc") / std::to_string(process);
}

long number_in_status(pid_t process, const std::string& key) {
  std::ifstream status(folder_of(process) / "status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(key)) return std::atol(line.c_str() + key.size());
  return -1;
}

const Row* row_of(const __ptrace_syscall_info& call) {
  const auto row = std::ranges::find(table, static_cast<long>(call.entry.nr), &Row::number);
  return row == table.end() ? nullptr : &*row;
}

// The errors that this call can end with; none if Linux knows none.
std::vector<int> errors_of(pid_t process, const __ptrace_syscall_info& call) {
  const Row* const row = row_of(call);
  if (row == nullptr) return {};
  const auto* arguments = call.entry.args;
  switch (row->number) {
    case SYS_read:
    case SYS_write:
    case SYS_writev: {
      const std::string file =
          link_text(folder_of(process) / "fd" / std::to_string(static_cast<int>(arguments[0])));
      if (!file.starts_with('/') || file.starts_with("/memfd:")) return {EINTR};
      break;
    }
    case SYS_fcntl:
      if (arguments[1] != F_DUPFD_CLOEXEC) return {};
      break;
    case SYS_wait4:
      if ((arguments[2] & WNOHANG) != 0) return {};
      break;
    case SYS_waitid:
      if ((arguments[3] & WNOHANG) != 0) return {};
      break;
    default:
      break;
  }
  return row->errors;
}

class Tracer {
 public:
  Tracer(long failing, std::size_t way, const char* report, const char* program)
      : failing_(failing),
        way_(way),
        report_(report),
        program_(std::filesystem::canonical(program)) {}

  int follow(pid_t first) {
    int end = 127;
    int status = 0;
    for (pid_t process = 0; (process = ::waitpid(-1, &status, __WALL)) > 0;) {
      if (WIFSTOPPED(status)) {
        look_at(process, status);
        continue;
      }
      counting_.erase(process);
      if (process == first)
        end = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
    report_ << count_ << '\n';
    return end;
  }

 private:
  void look_at(pid_t process, int status) {
    if (!counting_.contains(process)) add(process);
    const int event = status >> 16;
    const int signal = WSTOPSIG(status);
    if (signal == (SIGTRAP | 0x80)) {
      look_at_call(process);
    } else if (event == PTRACE_EVENT_EXEC) {
      counting_[process] = false;
    } else if (event == PTRACE_EVENT_STOP && signal != SIGTRAP) {
      ::ptrace(PTRACE_LISTEN, process, nullptr, nullptr);
      return;
    } else if (event == 0) {
      ::ptrace(PTRACE_SYSCALL, process, nullptr, signal);
      return;
    }
    ::ptrace(PTRACE_SYSCALL, process, nullptr, nullptr);
  }

  // A process that forks counts, and so does the new one.
  void add(pid_t process) {
    const long group = number_in_status(process, "Tgid:");
    const long starter = group == process ? number_in_status(process, "PPid:") : group;
    const auto found = counting_.find(static_cast<pid_t>(starter));
    counting_[process] = found != counting_.end() && found->second;
  }

  void look_at_call(pid_t process) {
    __ptrace_syscall_info call{};
    ::ptrace(PTRACE_GET_SYSCALL_INFO, process, sizeof call, &call);
    if (call.op == PTRACE_SYSCALL_INFO_EXIT) {
      if (const auto failed = failing_now_.find(process); failed != failing_now_.end()) {
        ::ptrace(PTRACE_POKEUSER, process, offsetof(user, regs.rax),
                 -static_cast<long>(failed->second));
        failing_now_.erase(failed);
      }
      return;
    }
    if (call.op != PTRACE_SYSCALL_INFO_ENTRY) return;
    bool& counts = counting_[process];
    if (!counts) {  // main begins with whether there is a standard input
      const bool is_main = call.entry.nr == SYS_fcntl && call.entry.args[0] == STDIN_FILENO &&
                           call.entry.args[1] == F_GETFD;
      counts = is_main && link_text(folder_of(process) / "exe") == program_;
      return;
    }
    const std::vector<int> errors = errors_of(process, call);
    if (way_ >= errors.size() || ++count_ != failing_) return;
    const int error = errors[way_];
    ::ptrace(PTRACE_POKEUSER, process, offsetof(user, regs.orig_rax), -1L);
    failing_now_[process] = error;
    const auto first = static_cast<int>(call.entry.args[0]);
    report_ << row_of(call)->name << ' ' << ::strerrorname_np(error) << ' ' << first << ' '
            << link_text(folder_of(process) / "fd" / std::to_string(first)) << std::endl;
  }

  long failing_;
  std::size_t way_;
  std::ofstream report_;
  std::string program_;
  long count_ = 0;
  std::map<pid_t, bool> counting_;
  std::map<pid_t, int> failing_now_;  // between the entry of the call and its end
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const pid_t first = ::fork();
  if (first == 0) {
    ::raise(SIGSTOP);
    ::execv(argv[4], argv + 4);
    ::_exit(127);
  }
  ::waitpid(first, nullptr, WUNTRACED);
  constexpr long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                           PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
  if (::ptrace(PTRACE_SEIZE, first, nullptr, options) != 0) {
    std::perror("ptrace");
    ::kill(first, SIGKILL);
    return 2;
  }
  ::kill(first, SIGCONT);
  return Tracer(std::atol(argv[1]), std::strtoul(argv[2], nullptr, 10), argv[3], argv[4])
      .follow(first);
}
