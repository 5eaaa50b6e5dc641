// SPDX-License-Identifier: MIT
#include "device/simulated/rank_timelines.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "device/simulated/collective_time.h"
#include "plan/derive/plan_of_rank.h"

namespace stepgate {
namespace {

// One rank of each kind, ascending. The first rank without host work of its own stands for all such
// ranks. Where host work varies, each rank has its own.
std::vector<RankKind> different_ranks(const StepPlan& plan) {
  std::set<int> own;
  for (const Operation& operation : plan.operations) {
    const auto* work = std::get_if<HostWork>(&operation.action);
    if (work == nullptr) continue;
    if (work->rank) own.insert(*work->rank);
    for (int rank = 0; work->variation > 0 && rank < plan.ranks.count; ++rank) own.insert(rank);
  }
  std::vector<RankKind> different;
  std::optional<std::size_t> stands_for_others;
  for (int rank = 0; rank < plan.ranks.count; ++rank) {
    if (!own.contains(rank) && stands_for_others) {
      different[*stands_for_others].alike.push_back(rank);
      continue;
    }
    if (!own.contains(rank)) stands_for_others = different.size();
    different.push_back({.rank = rank, .alike = {}});
  }
  return different;
}

bool broadcasts(const Operation& operation) {
  const auto* collective = std::get_if<Collective>(&operation.action);
  return collective != nullptr && collective->kind == CollectiveKind::broadcast;
}

std::string what_is_guessed(const StepPlan& plan, const DeviceProfile& profile) {
  std::string guessed = what_is_guessed_of_collectives(profile, plan.ranks);
  if (std::ranges::none_of(plan.operations, broadcasts)) return guessed;
  if (!guessed.empty()) guessed += "; ";
  return guessed + "a broadcast takes what an all-gather of as many bytes over each link does";
}

}  // namespace

RankTimelines::RankTimelines(const StepPlan& plan, const DeviceProfile& profile,
                             const LoadDraw& draw, Nanoseconds start)
    : ranks_(different_ranks(plan)), guessed_(what_is_guessed(plan, profile)) {
  if (plan.ranks.count == 1) {
    timelines_.emplace_back(plan, profile, draw, start);
    return;
  }
  for (const RankKind& kind : ranks_) {
    const StepPlan& own = plans_.emplace_back(plan_of_rank(plan, kind.rank));
    timelines_.emplace_back(own, profile, draw, start);
  }
}

void RankTimelines::issue_step(std::int64_t step, const StepNoise& noise) {
  for (Timeline& timeline : timelines_) timeline.begin_step(step, noise);
  std::vector<Nanoseconds> came;
  for (std::size_t index = 0; index < timelines_.front().operations(); ++index) {
    came.clear();
    for (Timeline& timeline : timelines_) {
      if (const auto here = timeline.issue(index, step)) came.push_back(*here);
    }
    if (came.empty()) continue;
    const Nanoseconds last = std::ranges::max(came);
    for (Timeline& timeline : timelines_) timeline.meet(last);
    if (recording_) note_arrivals(index, step, came);
  }
  for (Timeline& timeline : timelines_) timeline.end_step(step);
}

void RankTimelines::note_arrivals(std::size_t operation, std::int64_t step,
                                  const std::vector<Nanoseconds>& came) {
  for (std::size_t timeline = 0; timeline < came.size(); ++timeline) {
    arrivals_.push_back({.operation = static_cast<int>(std::min(operation, last_operation_)),
                         .step = step,
                         .rank = ranks_[timeline].rank,
                         .at = TraceTime(came[timeline])});
  }
}

void RankTimelines::start_at(Nanoseconds now) {
  for (Timeline& timeline : timelines_) timeline.start_at(now);
}

void RankTimelines::queue_after(Nanoseconds end) {
  for (Timeline& timeline : timelines_) timeline.queue_after(end);
}

void RankTimelines::drain() {
  for (Timeline& timeline : timelines_) timeline.drain();
}

Nanoseconds RankTimelines::host_now() const {
  return std::ranges::max_element(timelines_, {}, &Timeline::host_now)->host_now();
}

Nanoseconds RankTimelines::compute_end() const {
  return std::ranges::max_element(timelines_, {}, &Timeline::compute_end)->compute_end();
}

void RankTimelines::start_recording(std::int64_t first_step, std::size_t operations) {
  recording_ = true;
  last_operation_ = operations - 1;
  arrivals_.clear();
  for (Timeline& timeline : timelines_) timeline.recorder().start(first_step, operations);
}

std::vector<Trace> RankTimelines::take_recording(std::int64_t steps) {
  recording_ = false;
  std::vector<Trace> traces;
  for (std::size_t index = 0; index < timelines_.size(); ++index) {
    Trace& trace = traces.emplace_back(timelines_[index].recorder().take(steps));
    trace.rank = ranks_[index].rank;
    trace.alike = ranks_[index].alike;
    trace.arrivals = arrivals_;
    if (!guessed_.empty())
      trace.library = LibraryRecord{.library = "the simulated machine", .guessed = guessed_};
  }
  arrivals_.clear();
  return traces;
}

}  // namespace stepgate
