// SPDX-License-Identifier: MIT
#include "base/files/temporary_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

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

// A process may be killed at any moment: before it locks its folder, with files in it or with none.
TEST_F(TemporaryFolderTest, TakesAwayWhateverAKilledProcessLeftAndNothingOfAUser) {
  const std::vector<std::string> left{"stepgate.0123456789abcdef", "stepgate.ffffffffffffffff"};
  for (const std::string& name : left) std::filesystem::create_directory(all / name);
  std::ofstream(all / left.back() / "file") << "text";
  const std::vector<std::string> kept{"stepgate.backup",            // six letters, as mkdtemp gives
                                      "stepgate.backup-2026-11",    // sixteen characters
                                      "stepgate.0123456789ABCDEF",  // capitals are not ours
                                      "stepgate.0123456789abcdef.old",
                                      "stepgate.0123456789abcde",
                                      "stepgate"};
  for (const std::string& name : kept) {
    std::filesystem::create_directory(all / name);
    std::filesystem::permissions(all / name, std::filesystem::perms{0700});
    std::ofstream(all / name / "dear") << "text";
  }
  std::filesystem::create_directory(all / "elsewhere");
  std::filesystem::create_directory_symlink("elsewhere", all / "stepgate.00000000000000aa");
  std::ofstream(all / "stepgate.00000000000000bb") << "no folder";
  ASSERT_EQ(::mkfifo((all / "stepgate.00000000000000dd").c_str(), 0600), 0);  // is not waited for
  const std::filesystem::path foreign = all / "stepgate.00000000000000cc";
  std::filesystem::create_directory(foreign);
  const bool is_root = ::chown(foreign.c_str(), 65534, 65534) == 0;
  const TemporaryFolder folder;
  for (const std::string& name : left) EXPECT_FALSE(std::filesystem::exists(all / name)) << name;
  for (const std::string& name : kept)
    EXPECT_TRUE(std::filesystem::exists(all / name / "dear")) << name;
  EXPECT_TRUE(std::filesystem::is_symlink(all / "stepgate.00000000000000aa"));
  EXPECT_TRUE(std::filesystem::exists(all / "elsewhere"));
  EXPECT_TRUE(std::filesystem::exists(all / "stepgate.00000000000000bb"));
  EXPECT_TRUE(std::filesystem::exists(all / "stepgate.00000000000000dd"));
  EXPECT_TRUE(!is_root || std::filesystem::exists(foreign));
}

TEST_F(TemporaryFolderTest, TakesFilesOfItsOwnUserAlone) {
  const TemporaryFolder folder;
  EXPECT_TRUE(write_temporary_file(folder.path() / "0", "text"));
  std::ofstream(all / "secret") << "secret";
  std::filesystem::create_symlink(all / "secret", folder.path() / "link");
  std::filesystem::create_symlink(all / "new", folder.path() / "dangling");
  std::filesystem::create_hard_link(all / "secret", folder.path() / "hard");
  for (const char* name : {"0", "link", "dangling", "hard"})
    EXPECT_FALSE(write_temporary_file(folder.path() / name, "more")) << name;
  EXPECT_EQ(std::filesystem::file_size(all / "secret"), 6U);
  EXPECT_FALSE(std::filesystem::exists(all / "new"));

  // The folder was removed, and something else has its name.
  const std::filesystem::path gone = all / "stepgate.0123456789abcdef";
  EXPECT_FALSE(write_temporary_file(gone / "0", "text"));
  EXPECT_FALSE(std::filesystem::exists(gone)) << "nobody makes it anew";
  std::filesystem::create_directory_symlink(folder.path(), gone);
  EXPECT_FALSE(write_temporary_file(gone / "1", "text"));
  std::filesystem::remove(gone);
  std::filesystem::create_directory(gone);
  for (const int mode : {0755, 0770, 0701}) {
    std::filesystem::permissions(gone, std::filesystem::perms(mode));
    EXPECT_FALSE(write_temporary_file(gone / "1", "text")) << mode;
  }
  std::filesystem::permissions(gone, std::filesystem::perms{0700});
  if (::chown(gone.c_str(), 65534, 65534) == 0) {
    EXPECT_FALSE(write_temporary_file(gone / "1", "text")) << "of another user";
  }
  EXPECT_TRUE(std::filesystem::is_empty(gone));
}

TEST_F(TemporaryFolderTest, SaysThatItCannotBeMade) {
  std::filesystem::remove(all);
  EXPECT_THROW(TemporaryFolder(), std::system_error);
}

}  // namespace
}  // namespace stepgate
