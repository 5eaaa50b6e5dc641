// SPDX-License-Identifier: MIT
#include "base/files/folder_lock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/interruption.h"
#include "base/text/diagnostic.h"

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
  int counted = 0;  // protected by nothing but the lock
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

// A process that holds the lock until it is killed.
class Holder {
 public:
  explicit Holder(const std::filesystem::path& folder, const std::string& work = {}) {
    int ready[2];
    if (::pipe(ready) != 0) return;
    process_ = ::fork();
    if (process_ == 0) {
      const FolderLock lock(folder, {.work = work});
      (void)!::write(ready[1], "x", 1);
      ::pause();
      ::_exit(0);
    }
    char byte = 0;
    (void)!::read(ready[0], &byte, 1);
    ::close(ready[0]);
    ::close(ready[1]);
  }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  ~Holder() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  std::string name() const { return "process " + std::to_string(process_); }

 private:
  pid_t process_ = -1;
};

TEST_F(FolderLockTest, SaysThatItWaitsAndGivesUpAfterAWhile) {
  using namespace std::chrono_literals;
  const Holder holder(folder);
  std::ostringstream words;
  try {
    const FolderLock lock(folder, {.silent = 20ms, .most = 200ms, .words = &words});
    FAIL() << "two hold it";
  } catch (const RequestError& error) {
    EXPECT_EQ(std::string(error.what()), folder.string() + ": cannot be locked: " + holder.name() +
                                             " has held it for 0 s; wait until that has ended, or "
                                             "name another folder");
  }
  EXPECT_EQ(words.str(),
            "waiting for " + folder.string() + ", which " + holder.name() + " has locked\n");
}

// Two ledgers of one folder wait for each other.
TEST_F(FolderLockTest, SaysWhatTheHolderDoes) {
  using namespace std::chrono_literals;
  const std::string longest(1000, 'l');
  for (const auto& [work, told] :
       {std::pair<std::string, std::string>{"other.ledger", " (other.ledger)"},
        {"a\x1b[2Jb", " (a\\x1b[2Jb)"},
        {longest, " (" + longest.substr(0, 256) + ")"}}) {
    const Holder holder(folder, work);
    std::ostringstream words;
    const auto lock = [&] {
      FolderLock(folder, {.silent = 20ms, .most = 100ms, .words = &words, .work = "own.ledger"});
    };
    EXPECT_THROW(lock(), RequestError);
    EXPECT_EQ(words.str(), "waiting for " + folder.string() + ", which " + holder.name() + told +
                               " has locked\n");
  }
}

// Another user of the folder may put a pipe there. A pipe names no holder of the lock.
TEST_F(FolderLockTest, WaitsForNoPipeInThePlaceOfItsFile) {
  using namespace std::chrono_literals;
  std::filesystem::create_directories(folder);
  const std::string path = folder / lock_file_name;
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const OpenFile held(::open(path.c_str(), O_RDWR));
  ASSERT_EQ(::flock(held.descriptor(), LOCK_EX), 0);
  std::ostringstream words;
  const auto lock = [&] { FolderLock(folder, {.silent = 20ms, .most = 200ms, .words = &words}); };
  EXPECT_THROW(lock(), RequestError);
}

// A run of many scenarios takes and releases the lock in quick turns.
TEST_F(FolderLockTest, IsNotKeptFromOthersByWhoWantsItAgainAtOnce) {
  using namespace std::chrono_literals;
  std::atomic<bool> had = false;
  std::thread greedy([&] {
    while (!had) {
      const FolderLock lock(folder);
      std::this_thread::sleep_for(50ms);
    }
  });
  std::this_thread::sleep_for(100ms);
  std::ostringstream words;
  EXPECT_NO_THROW(FolderLock(folder, {.silent = 5s, .most = 5s, .words = &words}));
  had = true;
  greedy.join();
  EXPECT_EQ(words.str(), "");
}

// A job that waits in the queue may have its workspace cleaned away, or something else put there.
TEST_F(FolderLockTest, SaysThatTheFolderIsGoneWhileItWaits) {
  using namespace std::chrono_literals;
  const std::filesystem::path moved = folder.string() + ".moved";
  const std::vector<std::function<void()>> replaces{
      [] {}, [&] { std::filesystem::create_symlink("nowhere", folder); },
      [&] { std::ofstream(folder) << "a file"; }};
  for (const auto& replace : replaces) {
    std::filesystem::remove_all(moved);
    std::filesystem::remove_all(folder);
    const Holder holder(folder);
    std::thread cleaner([&] {
      std::this_thread::sleep_for(50ms);
      std::filesystem::rename(folder, moved);  // at once, so that nobody locks it in between
      replace();
    });
    std::ostringstream words;
    std::string said;
    try {
      const FolderLock lock(folder, {.silent = 20s, .most = 20s, .words = &words});
    } catch (const RequestError& error) {
      said = error.what();
    }
    cleaner.join();
    std::filesystem::remove_all(moved);
    EXPECT_EQ(said.find(folder.string() + ": cannot be locked: "), 0U) << said;
  }
}

TEST_F(FolderLockTest, SaysThatTheFolderItIsCalledInIsGone) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::create_directories(folder);
  std::filesystem::current_path(folder);
  std::filesystem::remove(folder);
  EXPECT_THROW(FolderLock("."), RequestError);
  std::filesystem::current_path(before);
}

TEST_F(FolderLockTest, EndsItsWaitOnASignal) {
  const Holder holder(folder);
  interrupted = SIGTERM;
  EXPECT_THROW(FolderLock{folder}, Interrupted);
  interrupted = 0;
}

// A user who may only read the folder cannot block its writers.
TEST_F(FolderLockTest, IsAFileForThoseWhoMayWriteInTheFolder) {
  const FolderLock lock(folder / "own");
  const auto mode_of = [](const std::filesystem::path& path) {
    return std::filesystem::status(path).permissions();
  };
  EXPECT_EQ(mode_of(folder / "own" / ".stepgate.lock"), std::filesystem::perms{0600});
  std::filesystem::create_directory(folder / "shared");
  std::filesystem::permissions(folder / "shared", std::filesystem::perms{0770});
  const FolderLock shared(folder / "shared");
  EXPECT_EQ(mode_of(folder / "shared" / ".stepgate.lock"), std::filesystem::perms{0660});
  const OpenFile reader(::open((folder / "own").c_str(), O_RDONLY | O_DIRECTORY));
  EXPECT_EQ(::flock(reader.descriptor(), LOCK_EX | LOCK_NB), 0);
}

TEST_F(FolderLockTest, RefusesWhatIsNoFolder) {
  std::ofstream(folder) << "a file";
  EXPECT_THROW(FolderLock{folder}, RequestError);
  EXPECT_THROW(FolderLock{folder / "in a file"}, RequestError);
}

// The file gets its mode before its name. Otherwise a user in the group of the folder could open it
// too early and be refused.
TEST_F(FolderLockTest, HasItsModeFromTheFirstMomentOn) {
  std::filesystem::create_directories(folder);
  if (const OpenFile unnamed(::open(folder.c_str(), O_TMPFILE | O_RDWR, 0600));
      unnamed.descriptor() < 0)
    GTEST_SKIP() << "this file system knows no file without a name";
  std::filesystem::permissions(folder, std::filesystem::perms{0770});
  std::atomic<bool> ended = false;
  std::atomic<int> others = 0;
  std::thread looks([&] {
    while (!ended) {
      struct stat status {};
      if (::stat((folder / lock_file_name).c_str(), &status) == 0 &&
          (status.st_mode & 0777) != 0660)
        ++others;
    }
  });
  for (int turn = 0; turn < 3000; ++turn) const FolderLock lock(folder);
  ended = true;
  looks.join();
  EXPECT_EQ(others, 0);
}

}  // namespace
}  // namespace stepgate
