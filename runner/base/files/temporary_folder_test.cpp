// SPDX-License-Identifier: MIT
#include "base/files/temporary_folder.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>

namespace stepgate {
namespace {

// Sets the system's temporary folder to another one during a test.
class TemporaryFolderTest : public testing::Test {
 protected:
  TemporaryFolderTest() {
    if (const char* set = std::getenv("TMPDIR")) before_ = set;
    std::filesystem::create_directories(all);
    ::setenv("TMPDIR", all.c_str(), 1);
  }
  ~TemporaryFolderTest() override {
    before_ ? ::setenv("TMPDIR", before_->c_str(), 1) : ::unsetenv("TMPDIR");
    std::filesystem::remove_all(all);
  }

  std::ptrdiff_t count() const {
    return std::distance(std::filesystem::directory_iterator(all), {});
  }

  const std::filesystem::path all = std::filesystem::path(testing::TempDir()) /
                                    testing::UnitTest::GetInstance()->current_test_info()->name();

 private:
  std::optional<std::string> before_;
};

TEST_F(TemporaryFolderTest, IsGoneAtTheEndWithAllThatIsInIt) {
  {
    const TemporaryFolder folder;
    std::ofstream(folder.path() / "file") << "text";
    EXPECT_EQ(count(), 1);
  }
  EXPECT_EQ(count(), 0);
}

TEST_F(TemporaryFolderTest, OfAKilledProcessIsGoneWhenTheNextIsMadeAndOfALivingOneStays) {
  const TemporaryFolder living;
  std::ofstream(living.path() / "file") << "text";
  // The name of another program's folder may begin like ours.
  std::filesystem::create_directory(all / "stepgate.backup");
  std::ofstream(all / "stepgate.backup" / "dear") << "text";
  const pid_t killed = ::fork();
  ASSERT_GE(killed, 0);
  if (killed == 0) {
    const TemporaryFolder folder;
    std::ofstream(folder.path() / "file") << "text";
    ::raise(SIGKILL);
  }
  ::waitpid(killed, nullptr, 0);
  EXPECT_EQ(count(), 3);
  const TemporaryFolder next;
  EXPECT_EQ(count(), 3);  // the one in use, the new one and the foreign one
  EXPECT_TRUE(std::filesystem::exists(living.path() / "file"));
  EXPECT_TRUE(std::filesystem::exists(all / "stepgate.backup" / "dear"));
}

TEST_F(TemporaryFolderTest, SaysThatItCannotBeMade) {
  std::filesystem::remove(all);
  EXPECT_THROW(TemporaryFolder(), std::system_error);
}

}  // namespace
}  // namespace stepgate
