// SPDX-License-Identifier: MIT
#include "base/process/stop_processes.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <string>
#include <thread>

#include "base/files/temporary_folder.h"

namespace stepgate {
namespace {

using std::chrono::milliseconds;

std::string state_in_proc(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string number, name, state;
  file >> number >> name >> state;
  return state;
}

// A shell of which one child is in a session of its own, with a child there; below this process.
class StopProcesses : public testing::Test {
 protected:
  void SetUp() override {
    parent_ = ::fork();
    if (parent_ == 0) {
      const std::string text =
          "sleep 60 & setsid sh -c 'sleep 60 & echo > " + begun() + "; wait' & wait";
      ::execl("/bin/sh", "sh", "-c", text.c_str(), nullptr);
      ::_exit(1);
    }
    for (int turn = 0; turn < 1000 && !std::filesystem::exists(begun()); ++turn)
      std::this_thread::sleep_for(milliseconds(10));
    ASSERT_TRUE(std::filesystem::exists(begun()));
  }
  void TearDown() override {
    ::kill(parent_, SIGKILL);
    ::waitpid(parent_, nullptr, 0);
    for (const pid_t process : stopped_.processes) ::kill(process, SIGKILL);
  }
  std::string begun() const { return (folder_.path() / "begun").string(); }

  TemporaryFolder folder_;
  pid_t parent_ = 0;
  StoppedProcesses stopped_;
};

TEST_F(StopProcesses, EveryDescendantStopsAndGoesOnWhateverItsSession) {
  stopped_ = stop_descendants(parent_);
  ASSERT_EQ(stopped_.processes.size(), 3U);
  EXPECT_EQ(stopped_.most_children, 1U);
  EXPECT_FALSE(stopped_.running);
  for (const pid_t process : stopped_.processes) EXPECT_EQ(state_in_proc(process), "T");
  EXPECT_NE(state_in_proc(parent_), "T") << "the process itself runs on";
  let_go_on(stopped_);
  for (const pid_t process : stopped_.processes) EXPECT_NE(state_in_proc(process), "T");
}

TEST_F(StopProcesses, OneThatCannotBeStoppedIsNamed) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  constexpr uid_t nobody = 65534;
  const pid_t other = ::fork();
  if (other == 0) {
    const bool is_other = ::setresuid(nobody, nobody, nobody) == 0;
    ::_exit(is_other && stop_descendants(parent_).running ? 0 : 1);
  }
  int status = -1;
  ::waitpid(other, &status, 0);
  EXPECT_EQ(status, 0);
  stopped_ = stop_descendants(parent_);  // for them to end
}

TEST(StopDescendants, OfAProcessThatHasEndedThereAreNone) {
  const pid_t ended = ::fork();
  if (ended == 0) ::_exit(0);
  ::waitpid(ended, nullptr, 0);
  EXPECT_TRUE(stop_descendants(ended).processes.empty());
}

}  // namespace
}  // namespace stepgate
