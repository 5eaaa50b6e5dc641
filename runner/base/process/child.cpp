// SPDX-License-Identifier: MIT
// Pipes, deadlines and ends.
#include "base/process/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>
#include <ext/stdio_filebuf.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <utility>
#include <vector>

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

int answer_descriptor() {
  static const int descriptor = [] {
    std::cout.flush();
    std::fflush(stdout);
    const int answers = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (answers < 0 || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
      throw WorkerError(
          fmt::format("cannot keep its standard output for answers: {}", std::strerror(errno)));
    return answers;
  }();
  return descriptor;
}

std::ostream& answer_stream() {
  static std::ostream* const stream = [] {
    // Lives as long as the process: what ends it may still answer.
    static __gnu_cxx::stdio_filebuf<char> buffer(answer_descriptor(), std::ios::out);
    static std::ostream own(&buffer);
    return &own;
  }();
  return *stream;
}

void flush_answer(std::ostream& out) {
  if (!out.flush()) throw WorkerError("its answer cannot be written to whoever asked");
}

Child::Child(ChildRequest request) : request_(std::move(request)) {
  start();
}

void Child::start() {
  Pipe in = make_pipe();
  Pipe out = make_pipe();
  Pipe error = make_pipe();
  process_.emplace(
      request_.command, request_.environment,
      ProgramStreams{
          .in = std::move(in.read), .out = std::move(out.write), .error = std::move(error.write)});
  in_ = std::move(in.write);
  out_ = std::move(out.read);
  error_ = std::move(error.read);
  for (const OwnedDescriptor* end : {&in_, &out_, &error_})
    ::fcntl(end->get(), F_SETFL, O_NONBLOCK);
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

// Waits for news until the deadline or for look_around, and takes what there is.
void Child::pump(Deadline deadline) {
  std::array<pollfd, 3> events{pollfd{out_.get(), POLLIN, 0}, pollfd{error_.get(), POLLIN, 0},
                               pollfd{process_->descriptor(), POLLIN, 0}};
  ::poll(events.data(), events.size(), milliseconds_until(deadline));
  if (events[0].revents != 0) take_output();
  if (events[1].revents != 0) take_error();
  // The tail of standard error comes before the end, whichever pipe is looked at first.
  if (events[2].revents != 0 && events[0].revents == 0 && events[1].revents == 0)
    process_->take_report();
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
  if (process_->start_problem()) {
    throw WorkerError(fmt::format("{}, `{}`, cannot be started: {}; check its path", request_.name,
                                  printable(to_text(request_.command)),
                                  std::strerror(*process_->start_problem())));
  }
  if (process_->status()) fail(fmt::format("{} instead of answering {}", fate_in_words(), line));
  if (out_.get() < 0) {
    // The exit status follows the end of output, unless the child closed its output and lives on.
    const Deadline reported = Clock::now() + time_to_report;
    while (!process_->status() && Clock::now() < reported) pump(reported);
    if (process_->status()) check_alive_until(deadline, line);
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
  if (process_->start_problem())
    return fmt::format("cannot be started: {}", std::strerror(*process_->start_problem()));
  if (!process_->status() && out_.get() >= 0) return std::nullopt;
  const Deadline reported = Clock::now() + time_to_report;
  while (!process_->status() && Clock::now() < reported) pump(reported);
  if (!process_->status()) return "closed its standard output";
  const std::string_view words = tail_of_error();
  // Whoever was killed had no time to say why.
  return WIFSIGNALED(*process_->status()) || words.empty()
             ? fate_in_words()
             : fmt::format("{}: {}", fate_in_words(), printable(words, stderr_tail_bytes));
}

std::string Child::exchange(std::string_view line) {
  ask(line);
  return answer(line);
}

void Child::wait_for_end(Deadline deadline) {
  while (!process_->status() && Clock::now() < deadline) {
    pump(deadline);
    output_.clear();
  }
}

void Child::finish(std::string_view line) {
  const Deadline deadline = Clock::now() + request_.stall;
  send(line, deadline);
  in_.close();
  wait_for_end(deadline);
  if (!process_->status()) {
    fail(fmt::format("did not end within {} of {}",
                     seconds_text(std::chrono::duration<double>(request_.stall).count()), line));
  }
  if (*process_->status() != 0) fail(fmt::format("{} when asked to {}", fate_in_words(), line));
}

// Takes whole lines from the output; at its end also the rest. Returns what is wrong with them.
std::optional<std::string> Child::take_lines(std::size_t longest, const TakeLine& take) {
  const bool is_over = out_.get() < 0 || process_->status();
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
    if (process_->status()) take_rest_of_output(limits.all_bytes);
    written += output_.size() - before;
    wrong = take_lines(limits.line_bytes, take);
    if (!wrong && written > limits.all_bytes)
      wrong = "wrote more than " + bytes_text(static_cast<std::int64_t>(limits.all_bytes));
  } while (!wrong && !process_->status() && Clock::now() < deadline);
  ChildEnd end{.code = {}, .wrong = wrong.value_or(""), .errors = std::string(tail_of_error())};
  if (!wrong && process_->status())
    end.code = WIFSIGNALED(*process_->status()) ? 128 + WTERMSIG(*process_->status())
                                                : WEXITSTATUS(*process_->status());
  return end;
}

std::string Child::fate_in_words() const {
  if (WIFSIGNALED(*process_->status())) {
    const int signal = WTERMSIG(*process_->status());
    return fmt::format("was ended by signal {} ({})", signal, ::strsignal(signal));
  }
  return fmt::format("ended with exit code {}", WEXITSTATUS(*process_->status()));
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
