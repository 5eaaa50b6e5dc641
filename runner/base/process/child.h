// SPDX-License-Identifier: MIT
// A child process that answers lines with lines, or writes lines until it ends, under limits of
// time and length. protocol.h says what the lines of a worker mean. Nothing is read from a path,
// which the child could put a pipe, a device or a link under: its output and its errors are pipes.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/process/command.h"
#include "base/process/supervised.h"

namespace stepgate {

// The worker failed: it did not start, stalled, died, or wrote something invalid. Exit code 3.
class WorkerError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The worker works, and says that its times mean nothing: they are not comparable.
class NotComparable : public WorkerError {
 public:
  using WorkerError::WorkerError;
};

// Thrown when the caller stopped the wait for a worker. The worker has not failed.
class WaitStopped : public std::exception {
 public:
  const char* what() const noexcept override { return "stopped while waiting for a worker"; }
};

constexpr std::size_t longest_line_bytes = 1 << 20;

struct ChildRequest {
  Command command;
  std::string name;  // in messages: "BASE"
  // The most time for each answer, including the first and the wait for the end.
  std::chrono::nanoseconds stall{std::chrono::seconds(60)};
  std::function<bool()> stopped;  // asked while waiting; may be empty
  // The child's environment, "NAME=value" each; nullopt: the environment of this process.
  std::optional<std::vector<std::string>> environment = {};
};

// Limits on the standard output of a child that runs to its end. Output beyond them ends the child.
struct OutputLimits {
  std::size_t line_bytes = longest_line_bytes;
  std::size_t all_bytes = 0;
};

struct ChildEnd {
  // 128 + n when signal n ended it, 127 when it did not start; nullopt when this process ended it.
  std::optional<int> code;
  std::string wrong;   // why this process ended it: "wrote more than 64 MiB"; empty: time was over
  std::string errors;  // the last 4 KiB of its standard error
};

class Child {
 public:
  // Throws std::system_error when the system cannot create a process or pipe. If the program does
  // not exist, the first exchange throws.
  explicit Child(ChildRequest);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  // Ends the child and all that it started, the hard way if need be.
  ~Child() { in_.close(); }

  // Sends a line; the line end is added. Throws WorkerError, WaitStopped.
  void ask(std::string_view line);
  // Waits for the answer to `line`, which was sent last. Throws WorkerError, WaitStopped.
  std::string answer(std::string_view line);
  // Sends a line with ask() and returns the answer.
  std::string exchange(std::string_view line);

  // For callers that wait for several children at once. Returns the next line of output without its
  // line end; nullopt where there is none yet. Throws WorkerError for a line that is too long.
  std::optional<std::string> take_line();
  // Describes how the child ended: "was ended by signal 9 (Killed)"; an exit code is followed by
  // the tail of standard error. nullopt while it lives.
  std::optional<std::string> end_in_words();
  // A descriptor that is readable when take_line or end_in_words may have something new. If it is
  // negative, they have.
  int descriptor() const { return out_.get(); }

  // Sends a last line, closes the child's input and waits for its end with code 0.
  void finish(std::string_view line);

  // Closes the child's input and passes each line of its output, without the line end, to `take`.
  // Returns when the child has ended; ends it when it writes more than the limits allow or `stall`
  // is over. Empty lines are skipped. To end the child, `take` returns what is wrong. Throws
  // WaitStopped.
  using TakeLine = std::function<std::optional<std::string>(std::string_view)>;
  ChildEnd run_to_end(const OutputLimits&, const TakeLine& take);

  // Throws a WorkerError with the name, the command, the fact and the tail of standard error.
  [[noreturn]] void fail(const std::string& fact);

 private:
  using Deadline = std::chrono::steady_clock::time_point;

  void start();
  void send(std::string_view line, Deadline);
  void pump(Deadline);
  void take_output();
  void take_error();
  void check_alive_until(Deadline, std::string_view line);
  void wait_for_end(Deadline);
  // To be called when all writers have ended: poll may have read the output before its end arrived.
  void take_rest_of_output(std::size_t most);
  std::optional<std::string> take_lines(std::size_t longest, const TakeLine& take);
  std::string fate_in_words() const;
  std::string_view tail_of_error();

  ChildRequest request_;
  OwnedDescriptor in_;
  OwnedDescriptor out_;
  OwnedDescriptor error_;
  std::optional<Supervised> process_;
  std::string output_;  // read and not yet taken
  std::string stderr_tail_;
};

// The other end, for a process that answers. Answers go to the standard output that the process was
// started with; from the first call on, what anything else prints (NCCL with NCCL_DEBUG=INFO, a
// library's printf) goes to standard error, so that it is no part of an answer. Throws WorkerError.
std::ostream& answer_stream();

// The file descriptor of answer_stream().
int answer_descriptor();

// Throws a WorkerError where something that was written
// before is lost, since whoever asked would wait for it.
void flush_answer(std::ostream&);

// Returns the text for a message: each character that is not printable ASCII becomes '?', and text
// beyond `most` bytes becomes "...".
std::string printable(std::string_view text, std::size_t most = 160);

}  // namespace stepgate
