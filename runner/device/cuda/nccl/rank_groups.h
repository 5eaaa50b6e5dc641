// SPDX-License-Identifier: MIT
// The groups to which one rank of a run belongs. The first n ranks run steps of n ranks, so there
// is a group for each such n, with communicators of its own. Groups coexist, since steps of
// different numbers of ranks are loaded at the same time.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "device/cuda/nccl/nccl.h"
#include "device/cuda/nccl/nccl_communicator.h"
#include "device/device.h"
#include "plan/step_plan.h"

namespace stepgate {

using Communicators = std::vector<std::unique_ptr<NcclCommunicator>>;

struct RankGroup {
  RankMembership membership;
  // The communicators for each limit of the thread blocks of a collective; nullopt: no limit.
  std::map<std::optional<std::int64_t>, Communicators> communicators;
  std::size_t names_taken = 0;  // of the rendezvous

  NcclCommunicator& first() { return *communicators.at(std::nullopt).front(); }
};

class RankGroups {
 public:
  // The arguments are those of NcclCommunicator.
  explicit RankGroups(std::function<void()> choose_gpu, CommunicatorLimits limits = {})
      : choose_gpu_(std::move(choose_gpu)), limits_(limits) {}

  // Makes one name for each communicator that plans may have. Throws DeviceError.
  static std::string make_rendezvous(const Nccl&);

  // Replaces the group of this many ranks; with one rank, leaves all groups. Returns when all ranks
  // have joined. Throws DeviceError, and then there is no group of this size.
  void join(const Nccl&, const RankMembership&);
  void leave(int count) { groups_.erase(count); }
  // Returns the communicators that a plan needs; creates missing ones. All ranks of a group load
  // the same plans in the same order, so they create them together. Throws DeviceError.
  const Communicators& communicators_for(const Nccl&, RankGroup&, const RanksPlan&) const;

  // The group of so many ranks; nullptr if the device is in none.
  RankGroup* of(int count);
  // The membership in the group of so many ranks; if there is none, that in the largest group.
  RankMembership membership_among(int count) const;

 private:
  std::function<void()> choose_gpu_;
  CommunicatorLimits limits_;
  std::map<int, RankGroup> groups_;  // by how many ranks they have
};

}  // namespace stepgate
