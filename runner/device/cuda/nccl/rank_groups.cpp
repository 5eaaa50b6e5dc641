// SPDX-License-Identifier: MIT
#include "device/cuda/nccl/rank_groups.h"

#include <iterator>

namespace stepgate {
namespace {

constexpr int most_communicators = 2;  // of a plan

}  // namespace

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
  add_communicators(nccl, group, 1);
  groups_.emplace(membership.count, std::move(group));
}

void RankGroups::add_communicators(const Nccl& nccl, RankGroup& group, int needed) const {
  const std::size_t name = group.membership.rendezvous.size() / most_communicators;
  while (std::ssize(group.communicators) < needed) {
    RankMembership membership = group.membership;
    membership.rendezvous =
        group.membership.rendezvous.substr(group.communicators.size() * name, name);
    group.communicators.push_back(
        std::make_unique<NcclCommunicator>(nccl, membership, choose_gpu_, limits_));
  }
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
