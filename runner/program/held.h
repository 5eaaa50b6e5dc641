// SPDX-License-Identifier: MIT
// A program, unchanged, that is held at the end of a step until it is asked for steps. The Python
// hook (python/stepgate/hook) speaks for the first process whose optimizer ends a step, of several
// ranks for rank 0. The other ranks are held at the same end of a step: one that waited in its next
// collective would keep its GPU busy. From its first run of steps on nothing of a held program
// runs: it and all that it started are stopped, so that a loader neither fills its queue meanwhile
// nor disturbs what is timed. Nothing of CUPTI is loaded, but for a trace.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files/temporary_folder.h"
#include "base/process/command.h"
#include "base/process/supervised.h"
#include "program/run_attached.h"
#include "program/shown_output.h"

namespace stepgate {

// Variables for caches of compiled kernels in the folder, so that a program does not profit from
// what another one compiled. CUDA, Triton and PyTorch have them; cuDNN keeps no such files.
std::vector<std::pair<std::string, std::string>> cache_variables(
    const std::filesystem::path& folder);

struct HeldRequest {
  Command command;
  std::vector<std::string> variables = {};  // "NAME=VALUE" beside those of this process
  std::filesystem::path folder = {};        // in which it runs; empty: ours
  bool quiet = false;  // its standard output is dropped; else it goes to our errors
  // From the start to the end of its first step, and for each run of steps.
  std::chrono::nanoseconds start_limit{std::chrono::minutes(5)};
  std::chrono::nanoseconds answer_limit{std::chrono::minutes(1)};
  std::filesystem::path caches = {};  // see cache_variables; empty: where the environment says
};

struct HeldHello {
  std::string program;
  std::string device;                    // empty: none that PyTorch uses
  std::string steps;                     // "ends of AdamW.step"
  std::int64_t device_memory_bytes = 0;  // 0: unknown
};

struct HeldRun {
  std::int64_t steps = 0;
  std::chrono::nanoseconds elapsed{
      0};  // by the program's clock; the device is waited for at both ends
  std::chrono::nanoseconds wall{0};        // from our request to the answer, wash-out included
  std::int64_t peak_memory_bytes = 0;      // torch.cuda.max_memory_allocated of the run; 0: unknown
  std::int64_t reserved_memory_bytes = 0;  // as much as PyTorch keeps; 0: unknown
};

// The program ended, was late, made no step that is known, or said what cannot be.
class HeldError : public std::runtime_error {
 public:
  HeldError(const std::string& thing, const std::string& fact, const std::string& way_out,
            bool is_about_clock = false);
  // Its times are not comparable; the program itself did not fail.
  bool is_about_clock() const { return is_about_clock_; }

 private:
  bool is_about_clock_;
};

class HeldProgram {
 public:
  // Starts the program and returns. Throws RequestError where another tool is attached, the hook is
  // missing, or the folder of temporary files has too long a name.
  explicit HeldProgram(const HeldRequest&, const AttachFiles& = attach_files());
  HeldProgram(const HeldProgram&) = delete;
  HeldProgram& operator=(const HeldProgram&) = delete;
  // Ends the program and all that it started.
  ~HeldProgram() { go_on(); }  // what is stopped would not see the request to end

  // Waits until it is held after its first step. Throws HeldError; RequestError where it cannot be
  // started; Interrupted. So do all of these.
  const HeldHello& hello();
  // Lets it run: `wash_out` steps, then at once `steps` that are timed.
  HeldRun run(std::int64_t steps, std::int64_t wash_out);
  // As many unscored steps as the next run needs at least; known from the first run on. Timers go
  // on in what is stopped, so each loader process may have a batch more when it goes on: there is a
  // step for each child of the process that has most, from 2 to 16.
  std::int64_t steps_to_settle() const;
  // Lets it run: `wash_out` steps, then `steps` that torch.profiler records. Returns a trace for
  // each rank of this machine, which exists as long as this object.
  std::vector<std::filesystem::path> trace(std::int64_t steps, std::int64_t wash_out);
  // Ends it; no other call may follow.
  void quit();

 private:
  using Clock = std::chrono::steady_clock;

  void look_around(int descriptor, Clock::time_point deadline);
  void accept_process(Clock::time_point deadline);
  void wait_for_ranks(Clock::time_point deadline);
  void stop(Clock::time_point deadline);
  void go_on();
  void send(std::string_view line);
  std::string take_line(Clock::time_point deadline, const std::string& late);
  template <class Value>
  Value answer(Clock::time_point deadline, const std::string& late);
  void check_clock(const HeldRun&, std::chrono::nanoseconds between);
  [[noreturn]] void fail(const std::string& fact, const std::string& way_out,
                         bool is_about_clock = false) const;

  HeldRequest request_;
  TemporaryFolder folder_;
  OwnedDescriptor listening_;
  OwnedDescriptor connection_;
  ShownOutput shown_;  // outlives the program
  std::optional<Supervised> program_;
  StoppedProcesses stopped_;
  std::int64_t most_children_ = 0;
  Clock::time_point start_;
  std::string unread_;
  std::optional<HeldHello> hello_;
  // The time of all runs that the program claims, and that passed here.
  std::chrono::nanoseconds claimed_{0};
  std::chrono::nanoseconds passed_{0};
  // Runs that are long enough to tell whether the program's clock is slow, and whether any of them
  // took as long as the program claims.
  std::int64_t long_runs_ = 0;
  bool was_in_time_ = false;
};

}  // namespace stepgate
