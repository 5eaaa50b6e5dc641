// SPDX-License-Identifier: MIT
// Pipes, deadlines and ends.
#include "base/process/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "base/process/own_processes.h"
#include "base/text/units.h"

namespace stepgate {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t chunk_bytes = 1 << 16;
constexpr std::size_t stderr_tail_bytes = 4096;
// A wait checks this often whether it should stop, since a signal may come just before poll().
constexpr milliseconds look_around{100};
// A child that closed its output and is about to end has this long to report its exit status.
constexpr milliseconds time_to_report{500};
// The supervisor needs time_to_end and an instant; it needs longer only if the system cannot end a
// process.
constexpr milliseconds most_time_to_end = time_to_end + std::chrono::seconds(3);
// Descriptors are moved to this number or above, clear of the standard streams even if a process
// started without them.
constexpr int lowest_descriptor = 10;

[[noreturn]] void throw_errno(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

// Blocks SIGPIPE, so that a dead worker is reported as an error and does not end stepgate. It is
// blocked in this thread only, since other threads talk to workers of their own.
class NoBrokenPipe {
 public:
  NoBrokenPipe() {
    sigemptyset(&broken_pipe_);
    sigaddset(&broken_pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &broken_pipe_, &before_);
  }
  ~NoBrokenPipe() {
    const timespec at_once{};
    sigtimedwait(&broken_pipe_, nullptr, &at_once);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoBrokenPipe(const NoBrokenPipe&) = delete;
  NoBrokenPipe& operator=(const NoBrokenPipe&) = delete;

 private:
  sigset_t broken_pipe_{};
  sigset_t before_{};
};

int milliseconds_until(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
  return static_cast<int>(std::clamp(left, milliseconds(0), look_around).count());
}

std::string indented(std::string_view text) {
  std::string lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines += "\n  " + printable(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace

std::string printable(std::string_view text, std::size_t most) {
  std::string clean(text.substr(0, most));
  for (char& letter : clean) {
    const auto code = static_cast<unsigned char>(letter);
    if (code < ' ' || code > '~') letter = '?';
  }
  return text.size() > most ? clean + "..." : clean;
}

void Child::Descriptor::close() {
  if (value_ >= 0) ::close(value_);
  value_ = -1;
}

Child::Pipe Child::make_pipe() {
  std::array<int, 2> raw{};
  if (::pipe2(raw.data(), O_CLOEXEC) != 0) throw_errno("make a pipe");
  const Descriptor low_read(raw[0]);
  const Descriptor low_write(raw[1]);
  Pipe pipe{Descriptor(::fcntl(raw[0], F_DUPFD_CLOEXEC, lowest_descriptor)),
            Descriptor(::fcntl(raw[1], F_DUPFD_CLOEXEC, lowest_descriptor))};
  if (pipe.read.get() < 0 || pipe.write.get() < 0) throw_errno("make a pipe");
  return pipe;
}

Child::Child(ChildRequest request) : request_(std::move(request)) {
  start();
}

void Child::start() {
  Pipe in = make_pipe();
  Pipe out = make_pipe();
  Pipe error = make_pipe();
  Pipe parent_death_pipe = make_pipe();
  Pipe report = make_pipe();
  // Everything that allocates happens before the fork.
  std::vector<char*> words;
  for (std::string& word : request_.command) words.push_back(word.data());
  words.push_back(nullptr);
  std::vector<char*> variables;
  if (request_.environment) {
    for (std::string& variable : *request_.environment) variables.push_back(variable.data());
    variables.push_back(nullptr);
  }
  supervisor_ = fork_own();
  if (supervisor_ < 0) throw_errno("start a process");
  if (supervisor_ == 0) {
    supervise({.in = in.read.get(),
               .out = out.write.get(),
               .error = error.write.get(),
               .parent_death_pipe = parent_death_pipe.read.get(),
               .report = report.write.get()},
              words.data(), request_.environment ? variables.data() : ::environ);
  }
  in_ = std::move(in.write);
  out_ = std::move(out.read);
  error_ = std::move(error.read);
  parent_death_pipe_ = std::move(parent_death_pipe.write);
  report_ = std::move(report.read);
  for (const Descriptor* end : {&in_, &out_, &error_, &report_}) {
    ::fcntl(end->get(), F_SETFL, O_NONBLOCK);
  }
}

Child::~Child() {
  in_.close();
  parent_death_pipe_.close();
  // In a destructor no error can be reported; the supervisor ends the worker by itself.
  const Clock::time_point deadline = Clock::now() + most_time_to_end;
  int status = 0;
  pid_t ended = 0;
  while ((ended = ::waitpid(supervisor_, &status, WNOHANG)) == 0 && Clock::now() < deadline) {
    ::kill(supervisor_, SIGCONT);  // the supervisor may have been stopped
    pollfd end{report_.get(), POLLIN, 0};
    ::poll(&end, 1, 1);
  }
  const bool is_gone = ended < 0 && errno == ECHILD;
  if (ended == supervisor_ || is_gone) forget_own(supervisor_, status);
}

void Child::take_output() {
  std::array<char, chunk_bytes> chunk;
  const auto length = ::read(out_.get(), chunk.data(), chunk.size());
  if (length > 0) output_.append(chunk.data(), static_cast<std::size_t>(length));
  if (length == 0) out_.close();
}

void Child::take_error() {
  std::array<char, chunk_bytes> chunk;
  const auto length = ::read(error_.get(), chunk.data(), chunk.size());
  if (length > 0) stderr_tail_.append(chunk.data(), static_cast<std::size_t>(length));
  if (length == 0) error_.close();
  if (stderr_tail_.size() > stderr_tail_bytes)
    stderr_tail_.erase(0, stderr_tail_.size() - stderr_tail_bytes);
}

void Child::take_report() {
  WorkerReport message;
  const auto length = ::read(report_.get(), &message, sizeof message);
  if (length == sizeof message) {
    (message.fate == WorkerFate::ended ? status_ : start_problem_) = message.value;
  } else if (length == 0) {
    report_.close();
    if (!status_) status_ = SIGKILL;  // the supervisor was killed, and with it the worker
  }
}

// Waits for output or the end until the deadline, at most for look_around, and reads what there is.
void Child::pump(Deadline deadline) {
  std::array<pollfd, 3> events{pollfd{out_.get(), POLLIN, 0}, pollfd{error_.get(), POLLIN, 0},
                               pollfd{report_.get(), POLLIN, 0}};
  ::poll(events.data(), events.size(), milliseconds_until(deadline));
  if (events[0].revents != 0) take_output();
  if (events[1].revents != 0) take_error();
  // Reads all of standard error before the exit status, whichever pipe is ready first.
  if (events[2].revents != 0 && events[0].revents == 0 && events[1].revents == 0) take_report();
  if (request_.stopped && request_.stopped()) throw WaitStopped();
}

void Child::send(std::string_view line, Deadline deadline) {
  const NoBrokenPipe ignored;
  const std::string text = std::string(line) + '\n';
  std::size_t sent = 0;
  while (sent < text.size() && Clock::now() < deadline) {
    const auto length = ::write(in_.get(), text.data() + sent, text.size() - sent);
    if (length > 0) sent += static_cast<std::size_t>(length);
    if (length < 0 && errno == EPIPE) return;  // the wait for the answer reports why
    if (length < 0 && errno == EAGAIN) pump(std::min(deadline, Clock::now() + milliseconds(1)));
  }
}

void Child::check_alive_until(Deadline deadline, std::string_view line) {
  if (start_problem_) {
    throw WorkerError(fmt::format("{}, `{}`, cannot be started: {}; check its path", request_.name,
                                  printable(to_text(request_.command)),
                                  std::strerror(*start_problem_)));
  }
  if (status_) fail(fmt::format("{} instead of answering {}", fate_in_words(), line));
  if (out_.get() < 0) {
    // The exit status follows the end of output, unless the child closed its output and lives on.
    const Deadline reported = Clock::now() + time_to_report;
    while (!status_ && Clock::now() < reported) pump(reported);
    if (status_) check_alive_until(deadline, line);
    fail(fmt::format("closed its standard output instead of answering {}", line));
  }
  if (Clock::now() >= deadline) {
    fail(fmt::format("did not answer {} within {}", line,
                     seconds_text(std::chrono::duration<double>(request_.stall).count())));
  }
}

void Child::ask(std::string_view line) {
  pump(Clock::now());
  if (!output_.empty()) {
    fail(fmt::format("wrote `{}` before it was asked for anything",
                     printable(output_.substr(0, output_.find('\n')))));
  }
  send(line, Clock::now() + request_.stall);
}

std::string Child::answer(std::string_view line) {
  const Deadline deadline = Clock::now() + request_.stall;
  std::size_t searched = 0;
  while (true) {
    const std::size_t end = output_.find('\n', searched);
    if (end != std::string::npos && end <= longest_line_bytes) {
      std::string answer = output_.substr(0, end);
      output_.erase(0, end + 1);
      return answer;
    }
    searched = output_.size();
    if (searched > longest_line_bytes) {
      fail(fmt::format("answered {} with more than {} without an end of line", line,
                       bytes_text(longest_line_bytes)));
    }
    check_alive_until(deadline, line);
    pump(deadline);
  }
}

std::optional<std::string> Child::take_line() {
  const auto end_of_line = [this] { return output_.find('\n'); };
  std::size_t end = end_of_line();
  while (end == std::string::npos && out_.get() >= 0) {
    const std::size_t before = output_.size();
    pump(Clock::now());
    if (output_.size() == before) break;
    end = end_of_line();
    if (end == std::string::npos && output_.size() > longest_line_bytes)
      fail(
          fmt::format("wrote more than {} without an end of line", bytes_text(longest_line_bytes)));
  }
  if (end == std::string::npos) return std::nullopt;
  std::string line = output_.substr(0, end);
  output_.erase(0, end + 1);
  return line;
}

std::optional<std::string> Child::end_in_words() {
  pump(Clock::now());
  if (start_problem_) return fmt::format("cannot be started: {}", std::strerror(*start_problem_));
  if (!status_ && out_.get() >= 0) return std::nullopt;
  const Deadline reported = Clock::now() + time_to_report;
  while (!status_ && Clock::now() < reported) pump(reported);
  if (!status_) return "closed its standard output";
  const std::string_view words = tail_of_error();
  // A child that was killed could not write why.
  return WIFSIGNALED(*status_) || words.empty()
             ? fate_in_words()
             : fmt::format("{}: {}", fate_in_words(), printable(words, stderr_tail_bytes));
}

std::string Child::exchange(std::string_view line) {
  ask(line);
  return answer(line);
}

void Child::wait_for_end(Deadline deadline) {
  while (!status_ && Clock::now() < deadline) {
    pump(deadline);
    output_.clear();
  }
}

void Child::finish(std::string_view line) {
  const Deadline deadline = Clock::now() + request_.stall;
  send(line, deadline);
  in_.close();
  wait_for_end(deadline);
  if (!status_) {
    fail(fmt::format("did not end within {} of {}",
                     seconds_text(std::chrono::duration<double>(request_.stall).count()), line));
  }
  if (*status_ != 0) fail(fmt::format("{} when asked to {}", fate_in_words(), line));
}

// Takes whole lines from the output; at its end also the rest. Returns what is wrong with them.
std::optional<std::string> Child::take_lines(std::size_t longest, const TakeLine& take) {
  const bool is_over = out_.get() < 0 || status_;
  std::size_t begin = 0;
  while (begin < output_.size()) {
    const std::size_t newline = output_.find('\n', begin);
    const std::size_t end = std::min(newline, output_.size());
    if (end - begin > longest)
      return "wrote a line of more than " + bytes_text(static_cast<std::int64_t>(longest));
    if (newline == std::string::npos && !is_over) break;
    if (end > begin) {
      if (auto wrong = take(std::string_view(output_).substr(begin, end - begin))) return wrong;
    }
    begin = std::min(end + 1, output_.size());
  }
  output_.erase(0, begin);
  return std::nullopt;
}

void Child::take_rest_of_output(std::size_t most) {
  for (std::size_t before = output_.size() + 1;
       out_.get() >= 0 && output_.size() != before && output_.size() <= most;) {
    before = output_.size();
    take_output();
  }
}

ChildEnd Child::run_to_end(const OutputLimits& limits, const TakeLine& take) {
  const Deadline deadline = Clock::now() + request_.stall;
  in_.close();
  std::size_t written = 0;
  std::optional<std::string> wrong;
  do {
    const std::size_t before = output_.size();
    pump(deadline);
    if (status_) take_rest_of_output(limits.all_bytes);
    written += output_.size() - before;
    wrong = take_lines(limits.line_bytes, take);
    if (!wrong && written > limits.all_bytes)
      wrong = "wrote more than " + bytes_text(static_cast<std::int64_t>(limits.all_bytes));
  } while (!wrong && !status_ && Clock::now() < deadline);
  ChildEnd end{.code = {}, .wrong = wrong.value_or(""), .errors = std::string(tail_of_error())};
  if (!wrong && status_)
    end.code = WIFSIGNALED(*status_) ? 128 + WTERMSIG(*status_) : WEXITSTATUS(*status_);
  return end;
}

std::string Child::fate_in_words() const {
  if (WIFSIGNALED(*status_)) {
    const int signal = WTERMSIG(*status_);
    return fmt::format("was ended by signal {} ({})", signal, ::strsignal(signal));
  }
  return fmt::format("ended with exit code {}", WEXITSTATUS(*status_));
}

std::string_view Child::tail_of_error() {
  // The text that is still in the pipe explains most.
  for (int chunk = 0; chunk < 4 && error_.get() >= 0; ++chunk) take_error();
  std::string_view words = stderr_tail_;
  while (!words.empty() && words.back() == '\n') words.remove_suffix(1);
  return words;
}

void Child::fail(const std::string& fact) {
  std::string_view words = tail_of_error();
  constexpr int most_lines = 8;
  std::size_t begin = words.size();
  for (int lines = 0; lines < most_lines && begin != 0 && begin != std::string_view::npos; ++lines)
    begin = words.rfind('\n', begin - 1);
  if (begin != 0 && begin != std::string_view::npos) words.remove_prefix(begin + 1);
  throw WorkerError(fmt::format(
      "{}, `{}`, {}{}", request_.name, printable(to_text(request_.command)), fact,
      words.empty() ? "; it wrote nothing to standard error"
                    : fmt::format("; the tail of its standard error:{}", indented(words))));
}

}  // namespace stepgate
