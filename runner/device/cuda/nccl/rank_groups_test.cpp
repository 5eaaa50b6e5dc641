// SPDX-License-Identifier: MIT
// Groups of an NCCL that the test plays.
#include "device/cuda/nccl/rank_groups.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <optional>

#include "device/cuda/nccl/fake_nccl.h"

namespace stepgate {
namespace {

class RankGroupsOfAFakeNccl : public testing::Test {
 protected:
  RankGroupsOfAFakeNccl() {
    setenv("STEPGATE_NCCL", STEPGATE_FAKE_NCCL, 1);
    nccl_.emplace();
    fake_ = loaded_fake_nccl(STEPGATE_FAKE_NCCL);
    begin_anew();
  }
  ~RankGroupsOfAFakeNccl() override {
    begin_anew();
    unsetenv("STEPGATE_NCCL");
  }

  void begin_anew() {
    std::destroy_at(fake_);
    std::construct_at(fake_);
  }

  // Whose names are of one letter each.
  static RankMembership first_of(int count, char first, char second) {
    return {.rank = 0,
            .count = count,
            .rendezvous = std::string(128, first) + std::string(128, second)};
  }

  std::optional<Nccl> nccl_;
  FakeNccl* fake_ = nullptr;
  int chosen_ = 0;
};

TEST_F(RankGroupsOfAFakeNccl, StayBesideEachOther) {
  RankGroups groups([this] { ++chosen_; });
  EXPECT_EQ(groups.membership_among(2).count, 1);
  groups.join(*nccl_, first_of(2, 'a', 'b'));
  EXPECT_EQ(fake_->count, 2);
  EXPECT_EQ(fake_->id.bytes[0], 'a');
  groups.join(*nccl_, first_of(4, 'c', 'd'));
  EXPECT_EQ(fake_->count, 4);
  EXPECT_EQ(fake_->destroyed, 0) << "the two stay together";
  RankGroup* const two = groups.of(2);
  RankGroup* const four = groups.of(4);
  ASSERT_TRUE(two != nullptr && four != nullptr);
  EXPECT_EQ(groups.of(3), nullptr);
  EXPECT_EQ(two->membership.count, 2);
  EXPECT_EQ(groups.membership_among(2).count, 2);
  EXPECT_EQ(groups.membership_among(3).count, 4);
  groups.add_communicators(*nccl_, *two, 2);
  EXPECT_EQ(fake_->count, 2);
  EXPECT_EQ(fake_->id.bytes[0], 'b') << "a name of its own";
  EXPECT_EQ(two->communicators.size(), 2U);
  EXPECT_EQ(four->communicators.size(), 1U);
  groups.add_communicators(*nccl_, *two, 1);
  EXPECT_EQ(two->communicators.size(), 2U);
  EXPECT_EQ(chosen_, 3);
}

TEST_F(RankGroupsOfAFakeNccl, AreJoinedAnewByTheirCountAlone) {
  RankGroups groups([] {});
  groups.join(*nccl_, first_of(2, 'a', 'b'));
  groups.join(*nccl_, first_of(4, 'c', 'd'));
  const auto* const communicator_of_four = groups.of(4)->communicators.front().get();
  groups.join(*nccl_, first_of(2, 'e', 'f'));
  EXPECT_EQ(fake_->destroyed, 1);
  EXPECT_EQ(groups.of(2)->membership.rendezvous[0], 'e');
  EXPECT_EQ(groups.of(4)->communicators.front().get(), communicator_of_four);
  fake_->init = FakeAnswer::failure;
  EXPECT_THROW(groups.join(*nccl_, first_of(4, 'g', 'h')), DeviceError);
  EXPECT_EQ(groups.of(4), nullptr) << "who could not join is in none";
  EXPECT_NE(groups.of(2), nullptr);
  groups.join(*nccl_, {});
  EXPECT_EQ(groups.of(2), nullptr) << "alone";
}

TEST_F(RankGroupsOfAFakeNccl, FindEachOtherByANameForEachCommunicator) {
  EXPECT_EQ(RankGroups::make_rendezvous(*nccl_), std::string(256, 'u'));
}

}  // namespace
}  // namespace stepgate
