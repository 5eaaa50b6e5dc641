// SPDX-License-Identifier: MIT
// Uses fork, exec and wait (POSIX), and /proc and PR_SET_PDEATHSIG (Linux).
#include "base/process/run_program.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <limits>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/files/open_file.h"
#include "base/fnv1a.h"
#include "base/interruption.h"
#include "base/process/child.h"
#include "base/process/own_processes.h"

namespace stepgate {
namespace {

constexpr int cannot_start = 127;

// Returns the null-terminated array of pointers that exec needs; `words` must outlive it.
std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

int exit_code_of(pid_t process) {
  int status = 0;
  while (::waitpid(process, &status, 0) < 0) {
    if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "wait for a child");
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

ProcessError cannot_start_itself(const std::filesystem::path& program, int reason) {
  return ProcessError("cannot start itself: " + program.string() + ": " + std::strerror(reason) +
                      (reason == ENOENT ? "; mount /proc" : ""));
}

// Creates an unnamed file with that text, positioned at its beginning. If this fails, the file is
// not open and errno says why.
OpenFile file_of(std::string_view text) {
  OpenFile file(::memfd_create("input", MFD_CLOEXEC));
  while (!text.empty()) {
    const ssize_t length = ::write(file.descriptor(), text.data(), text.size());
    if (length < 0) return OpenFile();
    text.remove_prefix(static_cast<std::size_t>(length));
  }
  ::lseek(file.descriptor(), 0, SEEK_SET);
  return file;
}

volatile std::sig_atomic_t asked_to_stop = 0;

// While it lives, Ctrl-Z stops the child together with this process. The child has a process group
// of its own, so the terminal's SIGTSTP reaches only this process.
class StopsTogether {
 public:
  explicit StopsTogether(pid_t group) : group_(group) {
    asked_to_stop = 0;
    struct sigaction remember {};
    remember.sa_handler = [](int) { asked_to_stop = 1; };
    struct sigaction before {};
    ::sigaction(SIGTSTP, nullptr, &before);
    is_ignored_ = before.sa_handler == SIG_IGN;  // a shell without job control ignores it
    if (!is_ignored_) ::sigaction(SIGTSTP, &remember, &before_);
  }
  StopsTogether(const StopsTogether&) = delete;
  StopsTogether& operator=(const StopsTogether&) = delete;
  ~StopsTogether() {
    if (!is_ignored_) ::sigaction(SIGTSTP, &before_, nullptr);
  }

  void look() {
    if (!asked_to_stop) return;
    asked_to_stop = 0;
    ::kill(-group_, SIGSTOP);
    ::raise(SIGSTOP);  // returns at SIGCONT
    ::kill(-group_, SIGCONT);
  }

 private:
  pid_t group_;
  bool is_ignored_ = false;
  struct sigaction before_ {};
};

// Waits for the process and forwards the signal that interrupts this process meanwhile.
int exit_code_of_interruptible(pid_t process) {
  constexpr timespec between_looks{.tv_sec = 0, .tv_nsec = 10'000'000};
  // Ends before this process itself is ended, so that it can report what became of the child.
  constexpr auto time_to_end = most_time_to_end_by_itself - std::chrono::milliseconds(400);
  std::optional<std::chrono::steady_clock::time_point> deadline;
  StopsTogether stops(process);
  while (true) {
    stops.look();
    siginfo_t ended{};
    if (::waitid(P_PID, static_cast<id_t>(process), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        ended.si_pid == process)
      return exit_code_of(process);
    if (interrupted && !deadline) {
      ::kill(-process, interrupted);  // the child leads its process group
      deadline = std::chrono::steady_clock::now() + time_to_end;
    }
    if (deadline && std::chrono::steady_clock::now() > *deadline) ::kill(-process, SIGKILL);
    ::nanosleep(&between_looks, nullptr);
  }
}

// Fills the block, or reads what is left of the file. Returns -1 with errno on an error.
ssize_t fill(int descriptor, std::span<std::uint64_t> block) {
  char* to = reinterpret_cast<char*>(block.data());
  std::size_t filled = 0;
  while (filled < block.size_bytes()) {
    const ssize_t count = ::read(descriptor, to + filled, block.size_bytes() - filled);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return -1;
    if (count == 0) break;
    filled += static_cast<std::size_t>(count);
  }
  return static_cast<ssize_t>(filled);
}

}  // namespace

std::filesystem::path path_of_this_program(const std::filesystem::path& link) {
  std::error_code error;
  std::filesystem::path path = std::filesystem::read_symlink(link, error);
  if (error) throw cannot_start_itself(link, error.value());
  return path;
}

int run_this_program(const std::vector<std::string>& arguments,
                     const std::filesystem::path& program,
                     const std::optional<std::string>& input) {
  std::vector<std::string> words{"stepgate"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const std::vector<char*> pointers = pointers_to(words);
  std::array<int, 2> report{};  // transmits errno if exec fails; exec closes it otherwise
  if (::pipe2(report.data(), O_CLOEXEC) != 0) throw cannot_start_itself(program, errno);
  OpenFile read_end(report[0]);
  OpenFile write_end(report[1]);
  OpenFile in;
  if (input && (in = file_of(*input)).descriptor() < 0) throw cannot_start_itself(program, errno);
  const pid_t parent = ::getpid();
  const pid_t child = fork_own();
  if (child < 0) throw cannot_start_itself(program, errno);
  if (child == 0) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (input) ::dup2(in.descriptor(), STDIN_FILENO);
    if (::getppid() == parent) ::execv(program.c_str(), pointers.data());
    const int reason = errno;
    [[maybe_unused]] const auto said = ::write(report[1], &reason, sizeof reason);
    ::_exit(cannot_start);
  }
  (void)write_end.close();
  int reason = 0;
  ssize_t length = -1;
  while ((length = ::read(read_end.descriptor(), &reason, sizeof reason)) < 0 && errno == EINTR) {
  }
  if (length == sizeof reason) {
    (void)exit_code_of(child);
    forget_own(child, 0);
    throw cannot_start_itself(program, reason);
  }
  const int code = exit_code_of_interruptible(child);
  forget_own(child, 0);
  return code;
}

std::uint64_t digest_of_this_program(const std::filesystem::path& program) {
  const int descriptor = ::open(program.c_str(), O_RDONLY | O_CLOEXEC);
  std::uint64_t digest = fnv1a_start;
  ssize_t count = -1;
  do {
    std::array<std::uint64_t, 1 << 13> block{};  // zeros follow the end of the file
    count = descriptor < 0 ? -1 : fill(descriptor, block);
    for (const std::uint64_t word : block) digest = fnv1a_word(word, digest);
    digest = fnv1a_word(static_cast<std::uint64_t>(count), digest);
  } while (count > 0);
  const int reason = errno;
  if (descriptor >= 0) ::close(descriptor);
  if (count < 0) {
    throw ProcessError("cannot read its own program: " + program.string() + ": " +
                       std::strerror(reason) + (reason == ENOENT ? "; mount /proc" : ""));
  }
  return digest;
}

std::optional<std::string> first_line_of(std::vector<std::string> command,
                                         std::chrono::nanoseconds at_most,
                                         std::vector<std::string> variables) {
  std::string& program = command.front();
  if (program.find('/') == std::string::npos) {
    const auto tool = own_tool(program);
    if (!tool) return std::nullopt;
    program = tool->string();
  }
  const std::size_t given = variables.size();
  for (char** variable = ::environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const std::string_view name = text.substr(0, text.find('=') + 1);
    if (std::none_of(variables.begin(), variables.begin() + static_cast<std::ptrdiff_t>(given),
                     [&](const std::string& set) { return set.starts_with(name); }))
      variables.emplace_back(text);
  }
  std::optional<std::string> first;
  const ChildEnd end = Child({.command = command,
                              .name = command.front(),
                              .stall = at_most,
                              .stopped = {},
                              .environment = std::move(variables)})
                           .run_to_end({.all_bytes = std::numeric_limits<std::size_t>::max()},
                                       [&](std::string_view line) -> std::optional<std::string> {
                                         if (!first) first = line;
                                         return std::nullopt;
                                       });
  return end.code == 0 ? first : std::nullopt;
}

}  // namespace stepgate
