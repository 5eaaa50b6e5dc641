// SPDX-License-Identifier: MIT
// A child process that answers lines with lines, or writes lines until it ends, under limits of
// time and length. protocol.h says what the lines of a worker mean. Nothing is read from a path,
// which the child could put a pipe, a device or a link under: its output and its errors are pipes.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/process/command.h"
#include "base/process/supervisor.h"

namespace stepgate {

// The worker failed: it did not start, stalled, died, or said what it must not. Exit 3.
class WorkerError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The wait for a worker was stopped by the caller; the worker has not failed.
class WaitStopped : public std::exception {
 public:
  const char* what() const noexcept override { return "stopped while waiting for a worker"; }
};

constexpr std::size_t longest_line_bytes = 1 << 20;

struct ChildRequest {
  Command command;
  std::string name;  // in messages: "BASE"
  // For every answer, the first and the end included.
  std::chrono::nanoseconds stall{std::chrono::seconds(60)};
  std::function<bool()> stopped;  // asked while waiting; may be empty
  // The environment that it sees, "NAME=value" each; nothing: all that we see.
  std::optional<std::vector<std::string>> environment = {};
};

// Limits on the standard output of a child that runs to its end; more ends it.
struct OutputLimits {
  std::size_t line_bytes = longest_line_bytes;
  std::size_t all_bytes = 0;
};

struct ChildEnd {
  // 128 + n when signal n ended it, 127 when it did not start; nothing when it was ended here.
  std::optional<int> code;
  std::string wrong;   // that it was ended for, as "wrote more than 64 MiB"; empty: for its time
  std::string errors;  // the last 4 KiB of its standard error
};

class Child {
 public:
  // Throws std::system_error when the system has no process or pipe left; a program that does not
  // exist shows at the first exchange.
  explicit Child(ChildRequest);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  // Ends the child and all that it started, the hard way if need be.
  ~Child();

  // Sends a line, without its end. Throws WorkerError, WaitStopped.
  void ask(std::string_view line);
  // Waits for what it says to the line that was asked last. Throws WorkerError, WaitStopped.
  std::string answer(std::string_view line);
  // Both.
  std::string exchange(std::string_view line);

  // For callers that wait for several children at once. Returns the next line of output, without
  // its line end; nothing where there is none yet. Throws WorkerError for a line that is too long.
  std::optional<std::string> take_line();
  // How it ended, in words: "was ended by signal 9 (Killed)", with what it wrote to standard error
  // where it ended by itself; nothing as long as it lives.
  std::optional<std::string> end_in_words();
  // Readable when take_line or end_in_words may have something new; below 0: they have.
  int descriptor() const { return out_.get(); }

  // Sends a last line, closes the child's input and waits for its end with code 0.
  void finish(std::string_view line);

  // Closes its input and hands on line by line, without their ends, what it writes, until it has
  // ended, has written more than the limits, or `stall` is over. An empty line is none. `take`
  // says what is wrong, if no more is wanted. Throws WaitStopped.
  using TakeLine = std::function<std::optional<std::string>(std::string_view)>;
  ChildEnd run_to_end(const OutputLimits&, const TakeLine& take);

  // Throws a WorkerError: name, command, the fact and the tail of its standard error.
  [[noreturn]] void fail(const std::string& fact);

 private:
  using Deadline = std::chrono::steady_clock::time_point;

  void start();
  void send(std::string_view line, Deadline);
  void pump(Deadline);
  void take_output();
  void take_error();
  void take_report();
  void check_alive_until(Deadline, std::string_view line);
  void wait_for_end(Deadline);
  // Call it when all writers are gone: poll may have read the output before its end arrived.
  void take_rest_of_output(std::size_t most);
  std::optional<std::string> take_lines(std::size_t longest, const TakeLine& take);
  std::string fate_in_words() const;
  std::string_view tail_of_error();

  // Closes a descriptor at the end of its life, or before.
  class Descriptor {
   public:
    Descriptor() = default;
    explicit Descriptor(int value) : value_(value) {}
    Descriptor(Descriptor&& other) noexcept : value_(other.value_) { other.value_ = -1; }
    Descriptor& operator=(Descriptor&& other) noexcept {
      std::swap(value_, other.value_);
      return *this;
    }
    ~Descriptor() { close(); }
    int get() const { return value_; }
    void close();

   private:
    int value_ = -1;
  };
  struct Pipe {
    Descriptor read;
    Descriptor write;
  };
  static Pipe make_pipe();

  ChildRequest request_;
  int supervisor_ = -1;
  Descriptor in_;
  Descriptor out_;
  Descriptor error_;
  Descriptor parent_death_pipe_;
  Descriptor report_;
  std::string output_;  // read and not yet taken
  std::string stderr_tail_;
  std::optional<int> start_problem_;  // errno
  std::optional<int> status_;         // as waitpid gives it, once nothing of the child is left
};

// For messages: at most a line of it, with nothing that a terminal would act on.
std::string printable(std::string_view text, std::size_t most = 160);

}  // namespace stepgate
