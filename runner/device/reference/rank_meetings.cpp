// SPDX-License-Identifier: MIT
#include "device/reference/rank_meetings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/require.h"
#include "device/device.h"
#include "kernels/number_format.h"
#include "plan/compose/step_names.h"

namespace stepgate {
namespace {

std::string in_words(const Collective& collective) {
  return fmt::format("{} of {} B", name_of(collective.kind), payload_bytes(collective));
}

bool are_alike(const Collective& a, const Collective& b) {
  return a.kind == b.kind && a.dtype == b.dtype && a.reduction == b.reduction &&
         payload_bytes(a) == payload_bytes(b);
}

}  // namespace

void RankMeeting::come(int rank, const Collective& collective, const std::byte* from,
                       std::byte* to) {
  Come& own = come_[static_cast<std::size_t>(rank)];
  require(own.collective == nullptr, "a rank comes once");
  own = {&collective, from, to};
  refuse_if_others(rank);
  if (--missing_ > 0) return;
  carry_out();
  over_->done = true;
}

void RankMeeting::refuse_if_others(int rank) const {
  const Collective& own = *come_[static_cast<std::size_t>(rank)].collective;
  for (std::size_t other = 0; other < come_.size(); ++other) {
    const Collective* others = come_[other].collective;
    if (others == nullptr || are_alike(own, *others)) continue;
    throw DeviceError(fmt::format("rank {} is at {} where rank {} is at {}", rank, in_words(own),
                                  other, in_words(*others)));
  }
}

void RankMeeting::carry_out() const {
  const Collective& made = *come_.front().collective;
  const auto ranks = static_cast<std::int64_t>(come_.size());
  if (made.kind == CollectiveKind::all_gather) {
    // The parts are copied first, as a rank's own part may lie within the buffer that it gathers
    // into.
    std::vector<std::byte> whole;
    for (const Come& one : come_)
      whole.insert(whole.end(), one.from, one.from + one.collective->from.bytes);
    for (const Come& one : come_) std::memcpy(one.to, whole.data(), whole.size());
    return;
  }
  if (made.kind == CollectiveKind::broadcast) {
    const Come& root = come_.front();
    for (const Come& one : come_)
      std::memmove(one.to, root.from, static_cast<std::size_t>(made.to.bytes));
    return;
  }
  const std::int64_t elements = made.from.bytes / bytes_of(made.dtype);
  std::vector<double> sums(static_cast<std::size_t>(elements));
  for (const Come& one : come_) {
    for (std::int64_t i = 0; i < elements; ++i)
      sums[static_cast<std::size_t>(i)] += number_at(one.from, made.dtype, i);
  }
  const double factor = made.reduction == Reduction::average ? 1 / static_cast<double>(ranks) : 1;
  const bool scatters = made.kind == CollectiveKind::reduce_scatter;
  const std::int64_t part = scatters ? elements / ranks : elements;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    std::byte* to = come_[static_cast<std::size_t>(rank)].to;
    const std::int64_t first = scatters ? rank * part : 0;
    for (std::int64_t i = 0; i < part; ++i)
      set_number(to, made.dtype, i, factor * sums[static_cast<std::size_t>(first + i)]);
  }
}

std::shared_ptr<RankMeeting> RankMeetings::next(int rank, int communicator) {
  const auto index = static_cast<std::size_t>(communicator);
  if (communicators_.size() <= index) communicators_.resize(index + 1);
  OfCommunicator& of = communicators_[index];
  if (of.next.empty()) of.next.resize(ranks_);
  const std::int64_t number = of.next[static_cast<std::size_t>(rank)]++;
  const auto place = static_cast<std::size_t>(number - of.first);
  while (of.meetings.size() <= place)
    of.meetings.push_back(std::make_shared<RankMeeting>(static_cast<int>(ranks_)));
  const std::shared_ptr<RankMeeting> meeting = of.meetings[place];
  const std::int64_t behind = *std::ranges::min_element(of.next);
  of.meetings.erase(of.meetings.begin(), of.meetings.begin() + (behind - of.first));
  of.first = behind;
  return meeting;
}

}  // namespace stepgate
