// SPDX-License-Identifier: MIT
#include "support/files/write_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <iterator>
#include <string>

#include "support/files/read_file.h"
#include "support/text/diagnostic.h"

namespace stepgate {
namespace {

class WriteFile : public testing::Test {
 protected:
  WriteFile() { std::filesystem::create_directories(folder); }
  ~WriteFile() override { std::filesystem::remove_all(folder); }

  std::string content(const std::filesystem::path& path) {
    return std::get<std::string>(read_file(path, "a file"));
  }

  std::ptrdiff_t files() { return std::distance(std::filesystem::directory_iterator(folder), {}); }

  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) /
      testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(WriteFile, ReplacesWhatWasThereAndLeavesNothingBeside) {
  write_file(folder / "a.txt", "a longer first text");
  write_file(folder / "a.txt", "second");
  EXPECT_EQ(content(folder / "a.txt"), "second");
  EXPECT_EQ(files(), 1);
}

TEST_F(WriteFile, MakesMissingFolders) {
  write_file(folder / "b" / "c" / "a.txt", "text");
  EXPECT_EQ(content(folder / "b" / "c" / "a.txt"), "text");
}

TEST_F(WriteFile, SaysWhichFileItCouldNotReplaceAndLeavesNothingBeside) {
  std::filesystem::create_directories(folder / "taken" / "inside");
  try {
    write_file(folder / "taken", "text");
    FAIL() << "a folder was replaced";
  } catch (const RequestError& error) {
    EXPECT_EQ(std::string(error.what()),
              (folder / "taken").string() +
                  ": cannot be written: Is a directory; check the folder's permissions and free "
                  "space");
  }
  EXPECT_EQ(files(), 1);
}

// A rename over /dev/null by root would leave a machine without one.
TEST_F(WriteFile, WritesIntoADeviceAndLeavesItOne) {
  const std::filesystem::path link = folder / "nothing";
  std::filesystem::create_symlink("/dev/null", link);
  check_writable(link);
  write_file(link, "text");
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_TRUE(std::filesystem::is_character_file(link));
  const std::filesystem::path full = folder / "full";
  std::filesystem::create_symlink("/dev/full", full);
  check_writable(full);
  EXPECT_THROW(write_file(full, "text"), RequestError);
  EXPECT_TRUE(std::filesystem::is_character_file(full));
}

TEST_F(WriteFile, WritesThroughALinkAndRefusesAPipe) {
  std::ofstream(folder / "real") << "old";
  std::filesystem::create_symlink("real", folder / "link");
  write_file(folder / "link", "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(content(folder / "real"), "new");
  const std::filesystem::path pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THROW(check_writable(pipe), RequestError);
  EXPECT_THROW(write_file(pipe, "text"), RequestError);
}

TEST_F(WriteFile, RefusesAFolderThatCannotBeMade) {
  std::ofstream(folder / "file") << "x";
  EXPECT_THROW(write_file(folder / "file" / "a.txt", "text"), RequestError);
}

TEST_F(WriteFile, ChecksAPathAndLeavesItAsItWas) {
  check_writable(folder / "new.txt");
  EXPECT_EQ(files(), 0);
  write_file(folder / "old.txt", "old");
  check_writable(folder / "old.txt");
  EXPECT_EQ(content(folder / "old.txt"), "old");
  EXPECT_EQ(files(), 1);
}

TEST_F(WriteFile, RefusesBeforehandWhatItCouldNotWrite) {
  EXPECT_THROW(check_writable(folder), RequestError);
  std::ofstream(folder / "file") << "x";
  EXPECT_THROW(check_writable(folder / "file" / "a.txt"), RequestError);
}

}  // namespace
}  // namespace stepgate
