// SPDX-License-Identifier: MIT
// Tests communicators of a fake NCCL, and of a missing one.
#include "device/cuda/nccl/nccl_communicator.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <thread>

#include "device/cuda/nccl/fake_nccl.h"

namespace stepgate {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

class FakeNcclCommunicator : public testing::Test {
 protected:
  FakeNcclCommunicator() {
    setenv("STEPGATE_NCCL", STEPGATE_FAKE_NCCL, 1);
    nccl_.emplace();
    fake_ = loaded_fake_nccl(STEPGATE_FAKE_NCCL);
    begin_anew();
  }
  // An abandoned thread must not see the next test's answers.
  ~FakeNcclCommunicator() override {
    fake_->released = true;
    while (fake_->waiting > 0) std::this_thread::sleep_for(milliseconds(1));
    begin_anew();
    unsetenv("STEPGATE_NCCL");
  }

  std::unique_ptr<NcclCommunicator> second_of_two() {
    return std::make_unique<NcclCommunicator>(
        *nccl_, RankMembership{.rank = 1, .count = 2, .rendezvous = std::string(128, 'r')},
        [this] { ++chosen_; },
        CommunicatorLimits{.deadline = milliseconds(50), .abort = milliseconds(50)});
  }

  std::string error_of(const std::function<void()>& act) {
    try {
      act();
    } catch (const DeviceError& error) {
      return error.what();
    }
    return "no error";
  }

  void begin_anew() {
    std::destroy_at(fake_);
    std::construct_at(fake_);
  }

  std::optional<Nccl> nccl_;
  FakeNccl* fake_ = nullptr;
  std::atomic<int> chosen_{0};
};

TEST_F(FakeNcclCommunicator, ALibrarySaysItsVersionAndFile) {
  EXPECT_EQ(nccl_->unavailable(), "");
  EXPECT_EQ(nccl_->version(), "2.28.9");
  EXPECT_EQ(nccl_->file(), STEPGATE_FAKE_NCCL);
  EXPECT_EQ(nccl_->make_unique_id(), std::string(128, 'u'));
}

TEST_F(FakeNcclCommunicator, AnOldLibraryIsUnavailable) {
  fake_->version = 21805;
  const Nccl old;
  EXPECT_NE(old.unavailable().find("is NCCL 2.18.5"), std::string::npos) << old.unavailable();
  EXPECT_EQ(error_of([&] { (void)old.make_unique_id(); }), old.unavailable());
}

TEST_F(FakeNcclCommunicator, AFileThatIsNoNcclIsUnavailable) {
  setenv("STEPGATE_NCCL", "libm.so.6", 1);
  const Nccl other;
  EXPECT_NE(other.unavailable().find("no NCCL was found where STEPGATE_NCCL names 'libm.so.6'"),
            std::string::npos)
      << other.unavailable();
  EXPECT_EQ(error_of([&] { NcclCommunicator(other, {.rank = 0, .count = 2}, [] {}); }),
            other.unavailable());
}

TEST_F(FakeNcclCommunicator, JoinsAsTheRankThatItIsAndBlocking) {
  const auto communicator = second_of_two();
  EXPECT_EQ(chosen_, 1);
  EXPECT_EQ(fake_->rank, 1);
  EXPECT_EQ(fake_->count, 2);
  EXPECT_EQ(std::string(fake_->id.bytes, 128), std::string(128, 'r'));
  EXPECT_EQ(fake_->config.blocking, 1);
  EXPECT_EQ(fake_->config.magic, 0xcafebeefU);
}

TEST_F(FakeNcclCommunicator, LeavesThreadBlocksToNcclUnlessTheyAreLimited) {
  (void)second_of_two();
  EXPECT_EQ(fake_->config.most_ctas, nccl_api::undefined);
  const NcclCommunicator limited(
      *nccl_, RankMembership{.rank = 1, .count = 2, .rendezvous = std::string(128, 'r')}, [] {},
      CommunicatorLimits{.collectives = {.max_ctas = 8}});
  EXPECT_EQ(fake_->config.most_ctas, 8);
}

// NCCL's abort waits until these graphs are destroyed.
TEST_F(FakeNcclCommunicator, SaysThatItHasFailedAlsoWhereGraphsStillHaveItsCollectives) {
  const auto communicator = second_of_two();
  fake_->collective = FakeAnswer::failure;
  fake_->abort = FakeAnswer::never;
  EXPECT_NE(error_of([&] { communicator->issue({}, nullptr); }).find("remote process exited"),
            std::string::npos);
  EXPECT_EQ(fake_->aborted, 1);
}

TEST_F(FakeNcclCommunicator, PassesOnWhatACollectiveIs) {
  const auto communicator = second_of_two();
  float numbers[4] = {};
  const auto stream = reinterpret_cast<nccl_api::Stream>(&numbers);
  communicator->issue({.from = numbers, .to = numbers + 1, .elements = 3, .dtype = DType::bf16},
                      stream);
  EXPECT_STREQ(fake_->called, "all-reduce");
  EXPECT_EQ(fake_->from, numbers);
  EXPECT_EQ(fake_->to, numbers + 1);
  EXPECT_EQ(fake_->elements, 3U);
  EXPECT_EQ(fake_->type, nccl_api::bfloat16);
  EXPECT_EQ(fake_->operation, nccl_api::average);
  EXPECT_EQ(fake_->stream, stream);
  communicator->issue({.kind = CollectiveKind::reduce_scatter, .reduction = Reduction::sum},
                      stream);
  EXPECT_STREQ(fake_->called, "reduce-scatter");
  EXPECT_EQ(fake_->type, nccl_api::float32);
  EXPECT_EQ(fake_->operation, nccl_api::sum);
  communicator->issue_first({.kind = CollectiveKind::all_gather}, stream);
  EXPECT_STREQ(fake_->called, "all-gather");
  EXPECT_EQ(fake_->operation, -1);
  communicator->issue({.kind = CollectiveKind::broadcast}, stream);
  EXPECT_STREQ(fake_->called, "broadcast from rank 0");
  EXPECT_EQ(chosen_, 2);
}

TEST_F(FakeNcclCommunicator, IsDestroyedWhileItWorksAndAbortedOnceItHasFailed) {
  second_of_two().reset();
  EXPECT_EQ(fake_->destroyed, 1);
  EXPECT_EQ(fake_->aborted, 0);
  const auto communicator = second_of_two();
  fake_->collective = FakeAnswer::failure;
  EXPECT_EQ(error_of([&] { communicator->issue({}, nullptr); }),
            "rank 1 of 2: NCCL 2.28.9 cannot all-reduce: remote process exited: socket closed by "
            "peer");
  EXPECT_EQ(fake_->aborted, 1);
  EXPECT_EQ(error_of([&] { communicator->issue({}, nullptr); }),
            "rank 1 of 2 has lost the others in an earlier call and must join anew");
}

TEST_F(FakeNcclCommunicator, SaysWhyItCannotJoin) {
  fake_->init = FakeAnswer::failure;
  EXPECT_EQ(error_of([&] { (void)second_of_two(); }),
            "rank 1 of 2: NCCL 2.28.9 cannot join the other ranks: remote process exited: socket "
            "closed by peer");
  EXPECT_NE(error_of([&] {
              NcclCommunicator(*nccl_, {.count = 2, .rendezvous = "x"}, [] {});
            }).find("by 128 bytes of NCCL's, not by 1"),
            std::string::npos);
}

TEST_F(FakeNcclCommunicator, WaitsForRanksThatComeLater) {
  fake_->init = FakeAnswer::later;
  fake_->collective = FakeAnswer::later;
  const auto communicator = second_of_two();
  EXPECT_EQ(fake_->polls, 3);
  fake_->polls = 0;
  communicator->issue({}, nullptr);
  EXPECT_EQ(fake_->polls, 3);
}

TEST_F(FakeNcclCommunicator, GivesUpAtTheDeadline) {
  fake_->init = FakeAnswer::never;
  const auto begin = steady_clock::now();
  const std::string words = error_of([&] { (void)second_of_two(); });
  EXPECT_GE(steady_clock::now() - begin, milliseconds(50));
  EXPECT_NE(words.find("the other ranks have not come within 0.05 s"), std::string::npos) << words;
  EXPECT_EQ(fake_->aborted, 0);  // a call still uses it
}

TEST_F(FakeNcclCommunicator, GivesUpAFirstCollectiveAtTheDeadline) {
  const auto communicator = second_of_two();
  fake_->collective = FakeAnswer::never;
  EXPECT_NE(error_of([&] { communicator->issue_first({}, nullptr); }).find("cannot all-reduce"),
            std::string::npos);
  EXPECT_NE(error_of([&] { communicator->issue({}, nullptr); }).find("must join anew"),
            std::string::npos);
}

TEST_F(FakeNcclCommunicator, AWaitEndsWithAFailureOrAtTheDeadline) {
  auto communicator = second_of_two();
  communicator->check_while_waiting(steady_clock::now(), "finish");
  fake_->async_state = 6;
  EXPECT_NE(error_of([&] {
              communicator->check_while_waiting(steady_clock::now(), "finish");
            }).find("cannot finish: remote process exited"),
            std::string::npos);
  EXPECT_EQ(fake_->aborted, 1);
  fake_->async_state = nccl_api::success;
  communicator = second_of_two();
  const auto long_ago = steady_clock::now() - std::chrono::seconds(1);
  EXPECT_NE(error_of([&] {
              communicator->check_while_waiting(long_ago, "finish");
            }).find("have not come within"),
            std::string::npos);
  EXPECT_EQ(fake_->aborted, 2);
}

}  // namespace
}  // namespace stepgate
