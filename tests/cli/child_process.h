// SPDX-License-Identifier: MIT
// For tests only: a child process whose output goes to files, so that it can be awaited, read while
// it runs, and sent signals.
#pragma once

#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace stepgate {

// Returns the text of the file; empty where there is none.
std::string text_of(const std::filesystem::path&);

struct Finished {
  int exit_code = -1;  // 128 + n when signal n ended it
  std::string out;
  std::string err;
  std::int64_t peak_bytes = 0;   // peak resident memory, including its children
  double processor_seconds = 0;  // user and system time, including its children
};

class ChildProcess {
 public:
  // Starts the program in the folder, with no terminal on any stream. Its output goes to files
  // beside the folder. Throws std::system_error when it cannot be started.
  ChildProcess(const std::filesystem::path& program, const std::vector<std::string>& arguments,
               const std::filesystem::path& folder);
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  // Kills the child if it was not awaited.
  ~ChildProcess();

  // Returns whether the words appear on its standard output within the time.
  bool says(const std::string& words, std::chrono::seconds within) const;
  void send(int signal) const;
  int number() const { return process_; }
  // Returns whether it ends within the time.
  bool ends(std::chrono::milliseconds within);
  Finished wait();

 private:
  std::filesystem::path out_;
  std::filesystem::path err_;
  int process_ = -1;
  int status_ = 0;
  std::int64_t peak_bytes_ = 0;
  double processor_seconds_ = 0;
  bool ended_ = false;

  bool has_ended(int options);
};

}  // namespace stepgate
