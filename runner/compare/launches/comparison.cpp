// SPDX-License-Identifier: MIT
// Runs pairs of launches: pilot, warm-up and superblocks.
#include "compare/launches/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "base/random.h"
#include "base/require.h"
#include "base/seconds.h"
#include "base/stats/launch_levels.h"
#include "base/text/diagnostic.h"
#include "base/text/units.h"

namespace stepgate {
namespace {

using std::chrono::nanoseconds;

// Longest preferred segment of the slower side, in seconds.
constexpr double longest_comparison_segment = 5;
// Steps in segments of this total time suffice to estimate the step time.
constexpr double pilot_time = 0.5;
constexpr std::int64_t fewest_comparison_steps = 3;
constexpr std::int64_t fewest_wash_out_steps = 1;
// This number of superblocks per launch suffices to separate the launch's noise from theirs.
constexpr std::int64_t enough_superblocks = 2;
constexpr std::int64_t most_superblocks = 8;
// With fewer degrees of freedom within launches, estimated variance components are unreliable.
constexpr std::int64_t degrees_of_freedom_before_choice = 6;
// In one of this many pairs, a workload also runs watched steps.
constexpr std::int64_t pairs_of_a_watch = 5;
// Watched segments are longer, because they are not compared one by one.
constexpr std::int64_t watched_segment = 4;
constexpr std::int64_t share_to_watch = 20;
constexpr std::int64_t most_pairs_at_once = 5;
// Share of the device's memory that the processes of all concurrent pairs may use. Each process
// keeps as much memory as its largest workload needed.
constexpr double share_of_memory = 0.5;

ComparisonSide other(ComparisonSide side) {
  return side == ComparisonSide::base ? ComparisonSide::head : ComparisonSide::base;
}

// How one workload is measured; the number of steps is fixed by the first pair.
struct Plan {
  std::int64_t steps = 0;  // scored steps of a segment; 0 before the pilot
  std::int64_t wash_out_steps = 0;
  double step_seconds = 0;                     // of the faster side, by the pilot
  std::int64_t watched_pair = -1;              // which of five pairs has watched steps
  std::vector<std::vector<double>> contrasts;  // of the superblocks, one list per pair
  nanoseconds superblock_time{0};
  nanoseconds launch_time{0};  // remaining time of its last pair
  std::int64_t superblocks_run = 0;
};

// A pair of launches with running processes.
struct Launched {
  LaunchPair pair;
  std::array<std::unique_ptr<Worker>, 2> workers;

  Worker& worker(ComparisonSide side) { return *workers[static_cast<std::size_t>(side)]; }
  void ask_both_ahead(const Request& request) {
    for (const ComparisonSide side : both_sides) worker(side).ask_ahead(request);
  }
};

class Comparison {
 public:
  explicit Comparison(const ComparisonRequest& request)
      : request_(request),
        start_(request.clock()),
        random_(request.seed),
        watch_random_(~request.seed),
        plans_(request.workloads.size()) {
    result_.workloads = request.workloads;
    result_.unchecked = request.introduction.base.simulated || request.of_kernels;
  }

  ComparisonMeasurement measure() {
    std::vector<int> open = request_.undecided(result_);
    nanoseconds last_pair{0};  // estimate for the next pair
    while (!open.empty() && std::ssize(result_.pairs) < request_.most_pairs &&
           may_start(last_pair)) {
      const nanoseconds before = request_.clock();
      const std::int64_t pairs = pairs_to_launch(last_pair);
      if (!run_pairs(open, pairs)) break;
      last_pair = (request_.clock() - before) / pairs;
      open = request_.undecided(result_);
      if (request_.progress) request_.progress(std::ssize(result_.pairs), spent());
    }
    result_.wall_time = spent();
    return std::move(result_);
  }

 private:
  nanoseconds spent() const { return request_.clock() - start_; }

  bool may_start(nanoseconds last_pair) {
    if (std::ssize(result_.pairs) < request_.fewest_pairs) return true;
    result_.budget_spent = request_.patience && spent() + last_pair > *request_.patience;
    return !result_.budget_spent;
  }

  // Returns as many pairs as there is time for, but at least the fewest.
  std::int64_t pairs_to_launch(nanoseconds last_pair) const {
    const std::int64_t done = std::ssize(result_.pairs);
    std::int64_t wanted = request_.pairs_at_once ? request_.pairs_at_once(done, fitting()) : 1;
    if (request_.patience && done >= request_.fewest_pairs && last_pair.count() > 0)
      wanted = std::min(wanted, (*request_.patience - spent()) / last_pair);
    return std::clamp(wanted, std::int64_t{1}, request_.most_pairs - done);
  }

  std::optional<std::int64_t> fitting() const {
    if (!memory_of_a_pair_ || device_memory_ == 0) return std::nullopt;
    return pairs_in_memory(*memory_of_a_pair_, device_memory_);
  }

  // A side that does not say leaves the pair's memory unknown.
  void learn_memory(const std::array<Loaded, 2>& both) {
    double of_pair = 0;
    for (const Loaded& loaded : both) {
      if (loaded.memory_bytes == 0) return;
      of_pair += static_cast<double>(loaded.memory_bytes);
      device_memory_ = std::max(device_memory_, static_cast<double>(loaded.device_memory_bytes));
    }
    memory_of_a_pair_ = std::max(memory_of_a_pair_.value_or(0), of_pair);
  }

  // Returns false when interrupted.
  bool run_pairs(const std::vector<int>& open, std::int64_t count) try {
    const nanoseconds before = request_.clock();
    std::vector<Launched> launched(static_cast<std::size_t>(count));
    for (Launched& one : launched) {
      one.pair.first = random_.below(2) == 0 ? ComparisonSide::base : ComparisonSide::head;
      for (const ComparisonSide side : {one.pair.first, other(one.pair.first)})
        one.workers[static_cast<std::size_t>(side)] = request_.launch(side, launches_++);
    }
    for (Launched& one : launched) {
      for (const ComparisonSide side : both_sides) check_same(side, one.worker(side).hello());
    }
    superblock_time_ = nanoseconds(0);
    for (const int workload : open) run_workload(workload, launched);
    for (Launched& one : launched) one.ask_both_ahead(Quit{});
    for (Launched& one : launched) {
      for (const ComparisonSide side : both_sides) one.worker(side).quit();
    }
    const nanoseconds rest = request_.clock() - before - superblock_time_;
    for (const int workload : open) plan(workload).launch_time = rest / (std::ssize(open) * count);
    for (Launched& one : launched) result_.pairs.push_back(std::move(one.pair));
    return true;
  } catch (const WaitStopped&) {
    result_.stopped = true;
    return false;
  }

  Worker& worker(ComparisonSide side) { return timed_->worker(side); }
  static RunSteps segment_of(const Plan& how) {
    return {.steps = how.steps, .wash_out_steps = how.wash_out_steps};
  }
  RunSteps warm_up_of(const Plan& how) const {
    const auto steps = static_cast<std::int64_t>(seconds(request_.warm_up) / how.step_seconds);
    return {.steps = std::clamp(steps, std::int64_t{1}, request_.most_steps),
            .wash_out_steps = how.wash_out_steps};
  }
  Plan& plan(int workload) { return plans_[static_cast<std::size_t>(workload)]; }

  void check_same(ComparisonSide side, const Hello& now) const {
    const Hello& before =
        side == ComparisonSide::base ? request_.introduction.base : request_.introduction.head;
    if (now == before) return;
    throw WorkerError(fmt::format(
        "{} is not what it was at its first launch: '{}' {} on {} with {} workloads, then "
        "'{}' {} on {} with {}",
        side == ComparisonSide::base ? "BASE" : "HEAD", before.program, before.version,
        before.device, before.workloads.size(), now.program, now.version, now.device,
        now.workloads.size()));
  }

  // All pairs load the workload concurrently, since nothing is timed then and loading is mostly
  // host work. Then each pair is timed in turn.
  void run_workload(int workload, std::span<Launched> launched) {
    const std::string& name = request_.workloads[static_cast<std::size_t>(workload)];
    for (Launched& one : launched) one.ask_both_ahead(LoadWorkload{name});
    std::vector<std::array<Loaded, 2>> loaded;
    for (Launched& one : launched)
      loaded.push_back({one.worker(ComparisonSide::base).load(name),
                        one.worker(ComparisonSide::head).load(name)});
    for (const std::array<Loaded, 2>& both : loaded) learn_memory(both);
    for (std::size_t index = 0; index < launched.size(); ++index) {
      timed_ = &launched[index];
      timed_->pair.workloads.push_back(
          run_loaded(workload, timed_->pair.first, std::move(loaded[index])));
    }
  }

  WorkInPair run_loaded(int workload, ComparisonSide first, std::array<Loaded, 2> both) {
    Plan& how = plan(workload);
    std::int64_t period = 1;
    std::int64_t wash_out = fewest_wash_out_steps;
    for (const Loaded& loaded : both) {
      period = std::max(period, loaded.period_steps);
      wash_out = std::max(wash_out, loaded.wash_out_steps);
    }
    claimed_ = nanoseconds(0);
    const nanoseconds begin = request_.clock();
    if (how.steps == 0) choose_steps(how, period, wash_out, first);
    WorkInPair result{.workload = workload,
                      .wash_out_steps = how.wash_out_steps,
                      .superblocks = {},
                      .periodic = {std::move(both[0].periodic), std::move(both[1].periodic)}};
    for (const ComparisonSide side : {first, other(first)}) run_segment(warm_up_of(how), side);
    const std::int64_t superblocks = superblocks_of(how);
    const auto [watched_before, watched_after] = draw_watch(how);
    watch(how, watched_before, result.watched);
    const nanoseconds before = request_.clock();
    how.contrasts.emplace_back();
    for (std::int64_t done = 0; done < superblocks; ++done) {
      result.superblocks.push_back(run_superblock(segment_of(how), random_));
      how.contrasts.back().push_back(contrast_of(result.superblocks.back()));
    }
    const nanoseconds in_superblocks = request_.clock() - before;
    superblock_time_ += in_superblocks;
    how.superblock_time += in_superblocks;
    how.superblocks_run += superblocks;
    watch(how, watched_after, result.watched);
    timed_->ask_both_ahead(UnloadWork{});
    for (const ComparisonSide side : both_sides) worker(side).unload();
    result.passed = request_.clock() - begin;
    result.claimed = claimed_;
    return result;
  }

  // Draws how many of a side's watched steps in the next pair come before and after the
  // superblocks.
  std::pair<std::int64_t, std::int64_t> draw_watch(Plan& how) {
    const std::int64_t place = std::ssize(how.contrasts) % pairs_of_a_watch;
    if (place == 0) {
      how.watched_pair = static_cast<std::int64_t>(
          watch_random_.below(static_cast<std::uint64_t>(pairs_of_a_watch)));
    }
    if (place != how.watched_pair) return {0, 0};
    const std::int64_t all =
        std::min(enough_watched_steps,
                 static_cast<std::int64_t>(seconds(request_.watch_time) / (2 * how.step_seconds)));
    const auto before =
        static_cast<std::int64_t>(watch_random_.below(static_cast<std::uint64_t>(all + 1)));
    return {before, all - before};
  }

  void watch(const Plan& how, std::int64_t steps, std::vector<Superblock>& watched) {
    while (steps > 0) {
      const RunSteps longer{.steps = std::min(watched_segment * how.steps, (steps + 1) / 2),
                            .wash_out_steps = how.wash_out_steps};
      watched.push_back(run_superblock(longer, watch_random_));
      steps -= 2 * longer.steps;
    }
  }

  ComparisonSegment run_segment(const RunSteps& how, ComparisonSide side) {
    const nanoseconds before = request_.clock();
    const Ran ran = worker(side).run(how);
    const nanoseconds waited = request_.clock() - before;
    const nanoseconds of_all{static_cast<std::int64_t>(
        static_cast<double>(ran.elapsed.count()) *
        (1 + static_cast<double>(how.wash_out_steps) / static_cast<double>(how.steps)))};
    claimed_ += of_all + most_cost_of_a_request;
    return {.side = side,
            .steps = ran.steps,
            .elapsed = ran.elapsed,
            .hidden = std::max(nanoseconds(0), waited - of_all)};
  }

  Superblock run_superblock(const RunSteps& how, Random& random) {
    const ComparisonSide outer = random.below(2) == 0 ? ComparisonSide::base : ComparisonSide::head;
    Superblock block;
    std::size_t place = 0;
    for (const ComparisonSide side : {outer, other(outer), other(outer), outer}) {
      block[place++] = run_segment(how, side);
    }
    return block;
  }

  // Chooses about one segment's time of the faster side, at most five segments' time of the slower
  // side, in whole periods if that is not much longer.
  void choose_steps(Plan& how, std::int64_t period, std::int64_t wash_out, ComparisonSide first) {
    how.wash_out_steps = wash_out;
    double fastest = std::numeric_limits<double>::infinity();
    double slowest = 0;
    for (const ComparisonSide side : {first, other(first)}) {
      const double time = pilot_step_seconds(how, side);
      fastest = std::min(fastest, time);
      slowest = std::max(slowest, time);
    }
    how.step_seconds = fastest;  // a side that stalls in the pilot is the slower one
    const auto most = std::clamp(
        static_cast<std::int64_t>(longest_comparison_segment * seconds(request_.segment) / slowest),
        fewest_comparison_steps, request_.most_steps);
    const auto preferred =
        std::clamp(static_cast<std::int64_t>(std::ceil(seconds(request_.segment) / fastest)),
                   fewest_comparison_steps, most);
    const std::int64_t whole = (preferred + period - 1) / period * period;
    how.steps = whole <= 4 * preferred ? whole : preferred;
  }

  double pilot_step_seconds(Plan& how, ComparisonSide side) {
    for (how.steps = 1;; how.steps = std::min(4 * how.steps, request_.most_steps)) {
      const nanoseconds elapsed = run_segment(segment_of(how), side).elapsed;
      if (seconds(elapsed) >= pilot_time * seconds(request_.segment) ||
          how.steps == request_.most_steps)
        return seconds(elapsed) / static_cast<double>(how.steps);
    }
  }

  std::int64_t superblocks_of(const Plan& how) const {
    const std::int64_t pairs = std::ssize(how.contrasts);
    if (how.superblocks_run - pairs < degrees_of_freedom_before_choice)
      return pairs < request_.fewest_pairs ? request_.first_superblocks : enough_superblocks;
    const LaunchLevels levels = launch_levels_of(how.contrasts);
    const double superblock_cost =
        seconds(how.superblock_time) / static_cast<double>(how.superblocks_run);
    return best_superblocks(levels, seconds(how.launch_time), superblock_cost, most_superblocks);
  }

  const ComparisonRequest& request_;
  nanoseconds start_;
  Random random_;
  Random watch_random_;  // independent random numbers
  std::vector<Plan> plans_;
  Launched* timed_ = nullptr;
  std::int64_t launches_ = 2;                    // the first two were the introduction
  nanoseconds superblock_time_{0};               // since the last pairs were launched
  std::optional<double> memory_of_a_pair_ = {};  // bytes of the largest workload, both sides
  double device_memory_ = 0;
  nanoseconds claimed_{0};  // reported by both sides since the workload was loaded
  ComparisonMeasurement result_;
};

}  // namespace

double contrast_of(const Superblock& block) {
  double contrast = 0;
  for (const ComparisonSegment& segment : block) {
    const double log_step_time =
        std::log(seconds(segment.elapsed) / static_cast<double>(segment.steps));
    contrast += (segment.side == ComparisonSide::head ? 0.5 : -0.5) * log_step_time;
  }
  return contrast;
}

std::optional<Introduction> introduce(const LaunchWorker& launch) try {
  Introduction introduction;
  // Launches both sides at the same time.
  const auto base = launch(ComparisonSide::base, 0);
  const auto head = launch(ComparisonSide::head, 1);
  introduction.base = base->hello();
  introduction.head = head->hello();
  base->quit();
  head->quit();
  return introduction;
} catch (const WaitStopped&) {
  return std::nullopt;
}

std::int64_t pairs_in_memory(double bytes_of_a_pair, double bytes_of_device) {
  return static_cast<std::int64_t>(
      std::clamp(share_of_memory * bytes_of_device / std::max(bytes_of_a_pair, 1.0), 1.0,
                 double{most_pairs_at_once}));
}

nanoseconds time_to_watch(nanoseconds of_a_comparison, std::size_t workloads) {
  return of_a_comparison / (share_to_watch * static_cast<std::int64_t>(workloads));
}

ComparisonMeasurement measure_comparison(const ComparisonRequest& request) {
  require(!request.workloads.empty(), "there is something to measure");
  return Comparison(request).measure();
}

}  // namespace stepgate
