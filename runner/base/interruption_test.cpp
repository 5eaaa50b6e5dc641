// SPDX-License-Identifier: MIT
#include "base/interruption.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

namespace stepgate {
namespace {

TEST(Interruption, IsRememberedAndTheOtherSignalEndsTheProcessToo) {
  EXPECT_EXIT(
      {
        stop_when_interrupted();
        std::raise(SIGTERM);
        if (interrupted != SIGTERM) ::_exit(1);
        try {
          throw_if_interrupted();
        } catch (const Interrupted&) {
          std::raise(SIGINT);  // a signal of the other kind
        }
        ::_exit(2);
      },
      testing::KilledBySignal(SIGINT), "");
}

TEST(Interruption, EndsByTheSignalAfterAWhileWhoeverDoesNotListen) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EXIT(
      {
        stop_when_interrupted();
        std::raise(SIGTERM);
        while (true) std::this_thread::sleep_for(std::chrono::seconds(1));
      },
      testing::KilledBySignal(SIGTERM), "interrupted: ended in the middle of its work");
  EXPECT_GE(std::chrono::steady_clock::now() - start, most_time_to_end_by_itself);
}

// The signal of the timer, sent by somebody else, says nothing of an interruption.
TEST(Interruption, IsNotTheSignalOfTheTimerFromOutside) {
  for (const int before : {0, SIGTERM}) {
    EXPECT_EXIT(
        {
          stop_when_interrupted();
          if (before != 0) std::raise(before);
          ::kill(::getpid(), SIGALRM);
          while (true) std::this_thread::sleep_for(std::chrono::seconds(1));
        },
        testing::KilledBySignal(SIGALRM), "^$");
  }
}

TEST(Interruption, LeavesAProcessThatIsNotArmedToTheSignal) {
  EXPECT_EXIT(std::raise(SIGTERM), testing::KilledBySignal(SIGTERM), "");
  EXPECT_NO_THROW(throw_if_interrupted());
}

}  // namespace
}  // namespace stepgate
