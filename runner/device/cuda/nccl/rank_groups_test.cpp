// SPDX-License-Identifier: MIT
// Tests groups of ranks with a fake NCCL.
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

  // The rendezvous names of this membership have one letter each: `first` and the letters after it.
  static RankMembership first_of(int count, char first) {
    std::string names;
    for (int made = 0; made < most_communicators; ++made)
      names += std::string(128, static_cast<char>(first + made));
    return {.rank = 0, .count = count, .rendezvous = names};
  }

  std::optional<Nccl> nccl_;
  FakeNccl* fake_ = nullptr;
  int chosen_ = 0;
};

TEST_F(RankGroupsOfAFakeNccl, StayBesideEachOther) {
  RankGroups groups([this] { ++chosen_; });
  EXPECT_EQ(groups.membership_among(2).count, 1);
  groups.join(*nccl_, first_of(2, 'a'));
  EXPECT_EQ(fake_->count, 2);
  EXPECT_EQ(fake_->id.bytes[0], 'a');
  groups.join(*nccl_, first_of(4, 'A'));
  EXPECT_EQ(fake_->count, 4);
  EXPECT_EQ(fake_->destroyed, 0) << "the two stay together";
  RankGroup* const two = groups.of(2);
  RankGroup* const four = groups.of(4);
  ASSERT_TRUE(two != nullptr && four != nullptr);
  EXPECT_EQ(groups.of(3), nullptr);
  EXPECT_EQ(two->membership.count, 2);
  EXPECT_EQ(groups.membership_among(2).count, 2);
  EXPECT_EQ(groups.membership_among(3).count, 4);
  EXPECT_EQ(groups.communicators_for(*nccl_, *two, {.communicators = 2}).size(), 2U);
  EXPECT_EQ(fake_->count, 2);
  EXPECT_EQ(fake_->id.bytes[0], 'b') << "a name of its own";
  EXPECT_EQ(groups.communicators_for(*nccl_, *four, {.communicators = 1}).size(), 1U);
  EXPECT_EQ(groups.communicators_for(*nccl_, *two, {.communicators = 1}).size(), 2U);
  EXPECT_EQ(chosen_, 3);
}

TEST_F(RankGroupsOfAFakeNccl, HaveOthersForEachLimitOfThreadBlocks) {
  RankGroups groups([] {});
  groups.join(*nccl_, first_of(2, 'a'));
  RankGroup& two = *groups.of(2);
  const NcclCommunicator* const first = &two.first();
  const RanksPlan limited{.communicators = 2, .collectives = {.max_ctas = 8}};
  const Communicators& of_eight = groups.communicators_for(*nccl_, two, limited);
  ASSERT_EQ(of_eight.size(), 2U);
  EXPECT_EQ(fake_->id.bytes[0], 'c') << "a name of its own";
  EXPECT_EQ(fake_->config.most_ctas, 8);
  EXPECT_EQ(&groups.communicators_for(*nccl_, two, limited), &of_eight);
  EXPECT_EQ(groups.communicators_for(*nccl_, two, {.communicators = 1}).front().get(), first);
  for (int ctas = 1; ctas <= most_communicators - 3; ++ctas)
    (void)groups.communicators_for(*nccl_, two,
                                   {.communicators = 1, .collectives = {.max_ctas = 32 + ctas}});
  EXPECT_THROW((void)groups.communicators_for(
                   *nccl_, two, {.communicators = 1, .collectives = {.max_ctas = 31}}),
               DeviceError)
      << "no name is left";
}

TEST_F(RankGroupsOfAFakeNccl, AreJoinedAnewByTheirCountAlone) {
  RankGroups groups([] {});
  groups.join(*nccl_, first_of(2, 'a'));
  groups.join(*nccl_, first_of(4, 'A'));
  const auto* const communicator_of_four = &groups.of(4)->first();
  groups.join(*nccl_, first_of(2, '0'));
  EXPECT_EQ(fake_->destroyed, 1);
  EXPECT_EQ(groups.of(2)->membership.rendezvous[0], '0');
  EXPECT_EQ(&groups.of(4)->first(), communicator_of_four);
  fake_->init = FakeAnswer::failure;
  EXPECT_THROW(groups.join(*nccl_, first_of(4, 'A')), DeviceError);
  EXPECT_EQ(groups.of(4), nullptr) << "who could not join is in none";
  EXPECT_NE(groups.of(2), nullptr);
  groups.join(*nccl_, {});
  EXPECT_EQ(groups.of(2), nullptr) << "alone";
}

TEST_F(RankGroupsOfAFakeNccl, FindEachOtherByANameForEachCommunicator) {
  EXPECT_EQ(RankGroups::make_rendezvous(*nccl_),
            std::string(std::size_t{128} * most_communicators, 'u'));
}

}  // namespace
}  // namespace stepgate
