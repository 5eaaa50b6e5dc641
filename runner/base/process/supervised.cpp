// SPDX-License-Identifier: MIT
#include "base/process/supervised.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <system_error>

#include "base/process/own_processes.h"
#include "base/process/supervisor.h"

namespace stepgate {
namespace {

using Clock = std::chrono::steady_clock;

// The supervisor needs time_to_end and an instant; more only if the system cannot end a process.
constexpr std::chrono::milliseconds most_time_to_end = time_to_end + std::chrono::seconds(3);
constexpr int lowest_descriptor = 10;

[[noreturn]] void throw_errno(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

void OwnedDescriptor::close() {
  if (value_ >= 0) ::close(value_);
  value_ = -1;
}

OwnedDescriptor copy_of(int descriptor) {
  OwnedDescriptor copy(::fcntl(descriptor, F_DUPFD_CLOEXEC, lowest_descriptor));
  if (copy.get() < 0) throw_errno("copy a descriptor");
  return copy;
}

Pipe make_pipe() {
  std::array<int, 2> raw{};
  if (::pipe2(raw.data(), O_CLOEXEC) != 0) throw_errno("make a pipe");
  const OwnedDescriptor low_read(raw[0]);
  const OwnedDescriptor low_write(raw[1]);
  return {copy_of(raw[0]), copy_of(raw[1])};
}

Supervised::Supervised(Command command, std::optional<std::vector<std::string>> environment,
                       ProgramStreams streams, const std::filesystem::path& folder) {
  Pipe parent_death_pipe = make_pipe();
  Pipe report = make_pipe();
  // Everything that allocates happens before the fork.
  const std::vector<char*> words = pointers_to(command);
  std::vector<char*> variables;
  if (environment) variables = pointers_to(*environment);
  supervisor_ = fork_own();
  if (supervisor_ < 0) throw_errno("start a process");
  if (supervisor_ == 0) {
    supervise({.in = streams.in.get(),
               .out = streams.out.get(),
               .error = streams.error.get(),
               .parent_death_pipe = parent_death_pipe.read.get(),
               .report = report.write.get()},
              words.data(), environment ? variables.data() : ::environ,
              folder.empty() ? nullptr : folder.c_str());
  }
  parent_death_pipe_ = std::move(parent_death_pipe.write);
  report_ = std::move(report.read);
  ::fcntl(report_.get(), F_SETFL, O_NONBLOCK);
}

Supervised::~Supervised() {
  parent_death_pipe_.close();
  const Clock::time_point deadline = Clock::now() + most_time_to_end;
  int status = 0;
  pid_t ended = 0;
  while ((ended = ::waitpid(supervisor_, &status, WNOHANG)) == 0 && Clock::now() < deadline) {
    pollfd end{descriptor(), POLLIN, 0};
    ::poll(&end, 1, 1);
  }
  if (ended == 0) {  // a program that traces it keeps it from its work: this process does that
    ::kill(supervisor_, SIGKILL);
    status = SIGKILL;
    ended = supervisor_;
  }
  const bool is_gone = ended < 0 && errno == ECHILD;
  if (ended == supervisor_ || is_gone) forget_own(supervisor_, status);
}

int Supervised::descriptor() const {
  ::kill(supervisor_, SIGCONT);
  return report_.get();
}

void Supervised::take_report() {
  WorkerReport message;
  const auto length = ::read(report_.get(), &message, sizeof message);
  if (length == sizeof message) {
    (message.fate == WorkerFate::ended ? status_ : start_problem_) = message.value;
  } else if (length == 0) {
    report_.close();
    if (!status_) status_ = SIGKILL;  // somebody killed the supervisor, and by that the program
  }
}

}  // namespace stepgate
