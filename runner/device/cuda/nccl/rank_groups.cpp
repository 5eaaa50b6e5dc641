// SPDX-License-Identifier: MIT
#include "device/cuda/nccl/rank_groups.h"

#include <fmt/format.h>

#include <iterator>

namespace stepgate {
std::string RankGroups::make_rendezvous(const Nccl& nccl) {
  std::string names;
  for (int made = 0; made < most_communicators; ++made) names += nccl.make_unique_id();
  return names;
}

void RankGroups::join(const Nccl& nccl, const RankMembership& membership) {
  if (membership.count == 1) {
    groups_.clear();
    return;
  }
  groups_.erase(membership.count);
  RankGroup group{.membership = membership, .communicators = {}};
  (void)communicators_for(nccl, group, {.communicators = 1});
  groups_.emplace(membership.count, std::move(group));
}

const Communicators& RankGroups::communicators_for(const Nccl& nccl, RankGroup& group,
                                                   const RanksPlan& ranks) const {
  Communicators& there = group.communicators[ranks.collectives.max_ctas];
  const std::size_t name = group.membership.rendezvous.size() / most_communicators;
  while (std::ssize(there) < ranks.communicators) {
    if (group.names_taken == most_communicators) {
      throw DeviceError(
          fmt::format("a run has at most {} communicators; give its variants fewer values of "
                      "'ranks.max_ctas'",
                      most_communicators));
    }
    RankMembership membership = group.membership;
    membership.rendezvous = group.membership.rendezvous.substr(group.names_taken++ * name, name);
    CommunicatorLimits limits = limits_;
    limits.collectives = ranks.collectives;
    there.push_back(std::make_unique<NcclCommunicator>(nccl, membership, choose_gpu_, limits));
  }
  return there;
}

RankGroup* RankGroups::of(int count) {
  const auto found = groups_.find(count);
  return found == groups_.end() ? nullptr : &found->second;
}

RankMembership RankGroups::membership_among(int count) const {
  if (groups_.empty()) return {};
  const auto found = groups_.find(count);
  return found == groups_.end() ? groups_.rbegin()->second.membership : found->second.membership;
}

}  // namespace stepgate
