// SPDX-License-Identifier: MIT
#include "support/files/folder_lock.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "support/text/diagnostic.h"

namespace stepgate {
namespace {

class FolderLockTest : public testing::Test {
 protected:
  FolderLockTest() { std::filesystem::remove_all(folder); }
  ~FolderLockTest() override { std::filesystem::remove_all(folder); }
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) /
      testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(FolderLockTest, LetsOneHolderInAtATimeAndMakesTheFolder) {
  std::atomic<int> inside = 0;
  int counted = 0;  // unprotected but for the lock
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&] {
      for (int turn = 0; turn < 50; ++turn) {
        const FolderLock lock(folder / "deeper");
        EXPECT_EQ(++inside, 1);
        ++counted;
        --inside;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counted, 400);
  EXPECT_TRUE(std::filesystem::is_empty(folder / "deeper"));
}

TEST_F(FolderLockTest, IsGivenBackByAHolderThatIsKilled) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t holder = ::fork();
  ASSERT_GE(holder, 0);
  if (holder == 0) {
    const FolderLock lock(folder);
    (void)!::write(ready[1], "x", 1);
    ::pause();
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ::kill(holder, SIGKILL);
  const FolderLock lock(folder);  // would wait for ever
  ::waitpid(holder, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(FolderLockTest, RefusesWhatIsNoFolder) {
  std::ofstream(folder) << "a file";
  EXPECT_THROW(FolderLock{folder}, RequestError);
  EXPECT_THROW(FolderLock{folder / "in a file"}, RequestError);
}

}  // namespace
}  // namespace stepgate
