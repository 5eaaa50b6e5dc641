// SPDX-License-Identifier: MIT
// Collectives of a timeline: the times when its rank arrives, and the slowdown of concurrent
// kernels. timeline.cpp has the rest of a timeline.
#include <algorithm>
#include <cmath>

#include "base/require.h"
#include "device/simulated/collective_time.h"
#include "device/simulated/timeline.h"
#include "plan/compose/step_names.h"

namespace stepgate {
namespace {

const char* call_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return "ncclAllReduce";
    case CollectiveKind::reduce_scatter:
      return "ncclReduceScatter";
    case CollectiveKind::all_gather:
      return "ncclAllGather";
    case CollectiveKind::broadcast:
      return "ncclBroadcast";
  }
  require(false, "every collective is a call");
  return "";
}

}  // namespace

// Lets this rank arrive at a collective. From then on its kernel holds multiprocessors, even while
// it waits for other ranks. In a graph it is a node, which costs the host nothing.
void Timeline::come_to(const Operation& operation, const Collective& collective) {
  Nanoseconds earliest = 0;
  if (operation.captured) {
    earliest = launch_graph();
  } else {
    call({CallKind::launch, call_of(collective.kind)}, profile_.host.launch_nanoseconds);
    earliest = host_ + profile_.compute.launch_latency_nanoseconds;
  }
  const auto communicator = static_cast<std::size_t>(collective.communicator);
  came_ = std::max({ready(operation), earliest, communicators_.at(communicator)});
  meeting_ = &operation;
}

void Timeline::meet(Nanoseconds last) {
  require(meeting_ != nullptr && last >= came_, "a rank has come to where all meet");
  const auto& collective = std::get<Collective>(meeting_->action);
  const std::int64_t bytes = payload_bytes(collective);
  const Nanoseconds alone = collective_time(profile_, plan_.ranks, collective.kind, bytes);
  const auto index = static_cast<std::size_t>(meeting_ - plan_.operations.data());
  const Nanoseconds time = kernels_beside_.empty()
                               ? alone
                               : time_beside_kernels(alone, kernels_beside_[index], contention_);
  const Nanoseconds end = last + scaled_for_device(time);
  communicators_[static_cast<std::size_t>(collective.communicator)] = end;
  const bool is_behind = communication_.empty() || communication_.back().end < came_;
  communication_.push_back({came_, end});
  if (!is_behind) communication_ = union_of(std::move(communication_));
  finish_work(*meeting_,
              {.kind = WorkKind::collective,
               .name = name_of(collective.kind),
               .bytes = bytes,
               .collective = collective.kind},
              came_, end);
  recorder_.end_span(host_);
  meeting_ = nullptr;
}

// Returns the end of a kernel that runs beside collectives. If the kernel leaves them no
// multiprocessors, the collectives that were issued before it slow it down. A collective that is
// issued later mostly waits for earlier work of the compute stream, so it starts after the kernel.
Nanoseconds Timeline::end_beside_collectives(const LaunchKernel& launch, Nanoseconds begin,
                                             Nanoseconds alone) const {
  if (leaves_room(launch, ctas_)) return begin + alone;
  Nanoseconds now = begin;
  Nanoseconds left = alone;
  auto next = std::ranges::upper_bound(communication_, begin, {}, &Interval::end);
  for (; next != communication_.end() && next->begin < now + left; ++next) {
    if (next->begin > now) {
      left -= next->begin - now;
      now = next->begin;
    }
    const auto under = static_cast<Nanoseconds>(
        std::floor(static_cast<double>(next->end - now) / contention_.kernel_stretch));
    if (left <= under) {
      return now + static_cast<Nanoseconds>(
                       std::llround(static_cast<double>(left) * contention_.kernel_stretch));
    }
    left -= under;
    now = next->end;
  }
  return now + left;
}

}  // namespace stepgate
