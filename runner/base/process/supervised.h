// SPDX-License-Identifier: MIT
// A program that runs under a supervisor (supervisor.h) on given streams: nothing that it starts is
// left when this object is gone, or when this process is killed.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/process/command.h"
#include "base/process/stop_processes.h"

namespace stepgate {

// Closes a descriptor at the end of its life, or before.
class OwnedDescriptor {
 public:
  OwnedDescriptor() = default;
  explicit OwnedDescriptor(int value) : value_(value) {}
  OwnedDescriptor(OwnedDescriptor&& other) noexcept : value_(other.value_) { other.value_ = -1; }
  OwnedDescriptor& operator=(OwnedDescriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~OwnedDescriptor() { close(); }
  int get() const { return value_; }
  void close();

 private:
  int value_ = -1;
};

// A pipe above the standard streams, also in a process that was started without them. Throws
// std::system_error.
struct Pipe {
  OwnedDescriptor read;
  OwnedDescriptor write;
};
Pipe make_pipe();
// A copy of a descriptor, above the standard streams too. Throws std::system_error.
OwnedDescriptor copy_of(int descriptor);

// Standard streams of the program; each is closed here once the program has it.
struct ProgramStreams {
  OwnedDescriptor in;
  OwnedDescriptor out;
  OwnedDescriptor error;
};

class Supervised {
 public:
  // The environment is "NAME=value" each; without it the program sees ours. It runs in `folder`; an
  // empty one is ours. Throws std::system_error when the system has no process or pipe left.
  Supervised(Command command, std::optional<std::vector<std::string>> environment, ProgramStreams,
             const std::filesystem::path& folder = {});
  Supervised(const Supervised&) = delete;
  Supervised& operator=(const Supervised&) = delete;
  // Asks the program to end (SIGTERM), and kills what has not ended after time_to_end.
  ~Supervised();

  // Readable when take_report has news; below 0: there will be none. To be asked for at every look:
  // the supervisor goes on where the program has stopped it.
  int descriptor() const;
  void take_report();

  std::optional<int> start_problem() const { return start_problem_; }  // errno
  // As waitpid gives it, once nothing of the program is left.
  std::optional<int> status() const { return status_; }

  // Stops the program and all that it started. What is stopped can be ended all the same.
  StoppedProcesses stop() const { return stop_descendants(supervisor_); }

 private:
  int supervisor_ = -1;
  OwnedDescriptor parent_death_pipe_;
  OwnedDescriptor report_;
  std::optional<int> start_problem_;
  std::optional<int> status_;
};

}  // namespace stepgate
