// SPDX-License-Identifier: MIT
#include "base/files/write_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/files/read_file.h"
#include "base/interruption.h"
#include "base/text/diagnostic.h"

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

TEST_F(WriteFile, WritesANewFileAsTheUmaskSaysAndMakesItsFolders) {
  const mode_t before = ::umask(027);
  write_new_file(folder / "b" / "c" / "a.txt", "text");
  ::umask(before);
  EXPECT_EQ(content(folder / "b" / "c" / "a.txt"), "text");
  struct stat made {};
  ASSERT_EQ(::stat((folder / "b" / "c" / "a.txt").c_str(), &made), 0);
  EXPECT_EQ(made.st_mode & 0777, 0640U);
}

TEST_F(WriteFile, WritesNoNewFileWhereSomethingIs) {
  write_file(folder / "a.txt", "first");
  std::filesystem::create_symlink("a.txt", folder / "link");
  std::filesystem::create_symlink("nowhere", folder / "dangling");
  std::filesystem::create_directory(folder / "inside");
  for (const char* name : {"a.txt", "link", "dangling", "inside"})
    EXPECT_THROW(write_new_file(folder / name, "second"), RequestError) << name;
  EXPECT_EQ(content(folder / "a.txt"), "first");
  EXPECT_FALSE(std::filesystem::exists(folder / "nowhere"));
  EXPECT_EQ(files(), 4);
}

// Several threads write the same new file: one succeeds, and its text stays.
TEST_F(WriteFile, LetsOneOfSeveralMakeANewFile) {
  std::atomic<int> written = 0;
  std::vector<std::thread> writers;
  for (const char letter : {'a', 'b', 'c', 'd'}) {
    writers.emplace_back([&, letter] {
      try {
        write_new_file(folder / "a.txt", std::string(1000, letter));
        ++written;
      } catch (const RequestError&) {
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(written, 1);
  const std::string text = content(folder / "a.txt");
  EXPECT_EQ(text, std::string(1000, text.front()));
}

// A rename over /dev/null by root would remove the device from the machine.
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

TEST_F(WriteFile, WritesThroughALinkBesideItsTargetWhetherThatIsThereOrNot) {
  std::filesystem::create_directories(folder / "deep");
  std::filesystem::create_symlink("deep/real", folder / "one");
  std::filesystem::create_symlink(folder / "one", folder / "link");
  for (const char* text : {"first", "second"}) {
    check_writable(folder / "link");
    write_file(folder / "link", text);
    EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
    EXPECT_TRUE(std::filesystem::is_symlink(folder / "one"));
    EXPECT_EQ(content(folder / "deep" / "real"), text);
  }
  std::filesystem::create_symlink("circle", folder / "circle");
  EXPECT_THROW(write_file(folder / "circle", "text"), RequestError);
}

// write_file waits until a pipe has a reader. Checking the pipe must not open it: closing it again
// would signal the end to the reader.
TEST_F(WriteFile, WritesIntoAPipeMoreThanItPasses) {
  const std::filesystem::path pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::string text(1 << 20, 'x');
  std::string read;
  std::thread reader([&] {
    std::ifstream stream(pipe, std::ios::binary);
    read.assign(std::istreambuf_iterator<char>(stream), {});
  });
  check_writable(pipe);
  write_file(pipe, text);
  reader.join();
  EXPECT_EQ(read, text);
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  EXPECT_TRUE(is_stream(pipe));
}

TEST_F(WriteFile, EndsItsWaitForAReaderOnASignal) {
  const std::filesystem::path pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  interrupted = SIGINT;
  EXPECT_THROW(write_file(pipe, "text"), Interrupted);
  interrupted = 0;
}

mode_t mode_of(const std::filesystem::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
}

TEST_F(WriteFile, HasTheModeOfTheUmaskOrOfTheFileThatIsThere) {
  for (const mode_t mask : {mode_t{022}, mode_t{077}}) {
    const mode_t before = ::umask(mask);
    write_file(folder / std::to_string(mask), "text");
    ::umask(before);
    EXPECT_EQ(mode_of(folder / std::to_string(mask)), 0666 & ~mask);
  }
  for (const mode_t mode : {mode_t{0600}, mode_t{0664}, mode_t{0444}}) {
    const std::filesystem::path there = folder / ("there" + std::to_string(mode));
    std::ofstream(there) << "old";
    ASSERT_EQ(::chmod(there.c_str(), mode), 0);
    const std::filesystem::path link = folder / ("link" + std::to_string(mode));
    std::filesystem::create_symlink(there, link);
    write_file(link, "new");
    EXPECT_EQ(mode_of(there), mode);
    EXPECT_EQ(content(there), "new");
  }
}

TEST_F(WriteFile, TakesAwayWhatKilledWritersLeftAndNothingOfALivingOne) {
  std::ofstream(folder / "a.txt.unfinished-0123456789abcdef") << "half a te";
  std::ofstream(folder / "b.txt.unfinished-0123456789abcdef") << "of another file";
  const std::vector<std::string> of_a_user{"a.txt.unfinished",
                                           "a.txt.unfinished-backup",
                                           "a.txt.unfinished-261127",
                                           "a.txt.unfinished-Ab3dE9",
                                           "a.txt.unfinished-0123456789ABCDEF",
                                           "a.txt.unfinished-2026-11-27-notes"};
  for (const std::string& name : of_a_user) std::ofstream(folder / name) << "dear";
  std::filesystem::create_directory(folder / "a.txt.unfinished-00000000000000bb");
  ASSERT_EQ(::mkfifo((folder / "a.txt.unfinished-00000000000000cc").c_str(), 0600), 0);
  const std::filesystem::path living = folder / "a.txt.unfinished-00000000000000aa";
  std::ofstream(living) << "being wr";
  const OpenFile writer(::open(living.c_str(), O_WRONLY));
  ASSERT_EQ(::flock(writer.descriptor(), LOCK_EX), 0);
  check_writable(folder / "a.txt");
  EXPECT_FALSE(std::filesystem::exists(folder / "a.txt.unfinished-0123456789abcdef"));
  write_file(folder / "a.txt", "text");
  EXPECT_TRUE(std::filesystem::exists(living));
  EXPECT_TRUE(std::filesystem::exists(folder / "b.txt.unfinished-0123456789abcdef"));
  for (const std::string& name : of_a_user) EXPECT_EQ(content(folder / name), "dear") << name;
  EXPECT_TRUE(std::filesystem::exists(folder / "a.txt.unfinished-00000000000000bb"));
  EXPECT_TRUE(std::filesystem::exists(folder / "a.txt.unfinished-00000000000000cc"));
}

// From now on the system refuses this thread to change modes and owners of open files, as CIFS and
// exFAT do.
bool refuse_changes_of_modes() {
  const auto refuse = [](std::uint32_t call) {
    return std::array{sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
                      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)};
  };
  std::vector<sock_filter> rules{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const std::uint32_t call : {__NR_fchmod, __NR_fchown})
    std::ranges::copy(refuse(call), std::back_inserter(rules));
  rules.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog program{.len = static_cast<unsigned short>(rules.size()),
                           .filter = rules.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST_F(WriteFile, ReplacesAFileWhereTheSystemRefusesToChangeModesThatAreRightAlready) {
  bool is_filtered = false;
  bool can_change = true;
  std::map<mode_t, bool> written;
  // A thread of its own: the filter lasts as long as the thread does.
  std::thread([&] {
    for (const mode_t mode : {mode_t{0600}, mode_t{0644}, mode_t{0640}}) {
      const auto file = folder / std::to_string(mode);
      std::ofstream(file) << "old";
      ASSERT_EQ(::chmod(file.c_str(), mode), 0);
      written[mode] = false;
    }
    const mode_t before = ::umask(022);
    is_filtered = refuse_changes_of_modes();
    const OpenFile file(::open((folder / "384").c_str(), O_RDONLY));
    can_change = ::fchmod(file.descriptor(), 0600) == 0;
    for (auto& [mode, is_written] : written) {
      try {
        write_file(folder / std::to_string(mode), "new");
        is_written = true;
      } catch (const RequestError&) {
      }
    }
    ::umask(before);
  }).join();
  if (!is_filtered) GTEST_SKIP() << "this system has no filters of calls";
  EXPECT_FALSE(can_change) << "the planted refusal works";
  for (const auto& [mode, is_written] : written) {
    EXPECT_TRUE(is_written) << mode;
    EXPECT_EQ(mode_of(folder / std::to_string(mode)), mode);
  }
}

TEST_F(WriteFile, RemembersWhatItHasWritten) {
  write_file(folder / "empty", "");
  write_file(folder / "full", "text");
  write_file(folder / "full", "text");
  const auto& files = files_written();
  EXPECT_EQ(std::count(files.begin(), files.end(), folder / "full"), 1);
  EXPECT_EQ(std::count(files.begin(), files.end(), folder / "empty"), 0);
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

// Between the check and the write another user puts a link or a pipe in the file's place.
TEST_F(WriteFile, NeitherFollowsNorWaitsForWhatIsPutInThePlaceOfACheckedFile) {
  const auto secret = folder / "secret";
  write_file(secret, "secret");
  const std::vector<std::function<void(const std::string&)>> spoils{
      [&](const std::string& file) { std::filesystem::create_symlink(secret, file); },
      [](const std::string& file) { std::filesystem::create_symlink("/dev/full", file); },
      [](const std::string& file) { ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0); },
      [&](const std::string& file) { std::filesystem::create_hard_link(secret, file); }};
  for (std::size_t number = 0; number < spoils.size(); ++number) {
    for (const bool was_there : {false, true}) {
      const std::string file = folder / (std::to_string(number) + (was_there ? "a" : "b"));
      if (was_there) write_file(file, "before");
      check_writable(file);
      std::filesystem::remove(file);
      spoils[number](file);
      write_file(file, "text");
      EXPECT_TRUE(std::filesystem::is_regular_file(std::filesystem::symlink_status(file))) << file;
      EXPECT_EQ(content(file), "text") << file;
      EXPECT_EQ(content(secret), "secret") << file;
    }
  }
  // A path that was a link or a pipe when it was checked stays one.
  const auto link = folder / "link";
  std::filesystem::create_symlink(folder / "target", link);
  check_writable(link);
  write_file(link, "through");
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(content(folder / "target"), "through");
  check_writable("/dev/null");
  write_file("/dev/null", "text");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST_F(WriteFile, RefusesBeforehandWhatItCouldNotWrite) {
  EXPECT_THROW(check_writable(folder), RequestError);
  std::ofstream(folder / "file") << "x";
  EXPECT_THROW(check_writable(folder / "file" / "a.txt"), RequestError);
}

}  // namespace
}  // namespace stepgate
