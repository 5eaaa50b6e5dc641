// SPDX-License-Identifier: MIT
// Sends requests over a child's pipes, and checks its answers as far as possible.
#include "compare/worker/worker.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/require.h"
#include "base/text/units.h"

namespace stepgate {
namespace {

using std::chrono::nanoseconds;
using Clock = std::chrono::steady_clock;

// A device's clock and the host's clock may differ by this share.
constexpr double clock_disagreement = 0.01;
constexpr std::size_t longest_error_bytes = 1000;
constexpr nanoseconds clock_granularity = std::chrono::milliseconds(1);

class ChildWorker : public Worker {
 public:
  explicit ChildWorker(ChildRequest request) : child_(std::move(request)) { ask_ahead(SayHello{}); }

  void ask_ahead(const Request& request) override {
    require(asked_.empty(), "one thing is asked at a time");
    asked_ = to_line(request);
    child_.ask(asked_);
  }

  const Hello& hello() override {
    if (!hello_) hello_ = ask(SayHello{}, read_hello);
    return *hello_;
  }

  Loaded load(const std::string& workload) override {
    return ask(LoadWorkload{workload}, read_loaded);
  }

  Ran run(const RunSteps& run) override {
    const Clock::time_point before = Clock::now();
    const Ran ran = ask(run, read_ran);
    const nanoseconds passed = Clock::now() - before;
    if (ran.steps != run.steps) {
      child_.fail(fmt::format("ran {} steps when asked for {}", ran.steps, run.steps));
    }
    const nanoseconds most = passed + clock_granularity +
                             std::chrono::duration_cast<nanoseconds>(passed * clock_disagreement);
    if (!hello().simulated && ran.elapsed > most) {
      child_.fail(fmt::format("says that its steps took {}, but answered within {}",
                              in_seconds(ran.elapsed), in_seconds(passed)));
    }
    return ran;
  }

  void unload() override { ask(UnloadWork{}, read_unloaded); }
  StepCounts count(const CountWorkload& count) override { return ask(count, read_counts); }
  // Does not wait for the answer to a request that was sent ahead.
  void quit() override { child_.finish(to_line(Quit{})); }

 private:
  static std::string in_seconds(nanoseconds time) {
    return seconds_text(std::chrono::duration<double>(time).count());
  }

  template <class Value>
  Value ask(const Request& request, Answer<Value> (*read)(std::string_view)) {
    if (asked_.empty()) ask_ahead(request);
    const std::string line = std::exchange(asked_, {});
    require(line == to_line(request), "what was asked ahead is what is asked for");
    const std::string text = child_.answer(line);
    Answer<Value> answer = read(text);
    if (const auto* says = std::get_if<WorkerSays>(&answer)) {
      if (!says->is_comparable) throw NotComparable(printable(says->error, longest_error_bytes));
      child_.fail(fmt::format("answered {} with an error: {}", line,
                              printable(says->error, longest_error_bytes)));
    }
    if (const auto* problem = std::get_if<Problem>(&answer)) {
      child_.fail(
          fmt::format("answered {} with `{}`, which {}", line, printable(text), problem->fact));
    }
    return std::get<Value>(std::move(answer));
  }

  Child child_;
  std::string asked_;  // the request that was sent ahead and not answered yet
  std::optional<Hello> hello_;
};

}  // namespace

std::unique_ptr<Worker> start_worker(ChildRequest request) {
  return std::make_unique<ChildWorker>(std::move(request));
}

}  // namespace stepgate
