// SPDX-License-Identifier: MIT
#include "base/files/read_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <fstream>

#include "base/files/temporary_folder.h"

namespace stepgate {
namespace {

std::string said_of(const TextOrProblem& read) {
  const Diagnostic* problem = std::get_if<Diagnostic>(&read);
  return problem ? problem->message : "read: " + std::get<std::string>(read);
}

std::string said_of(int descriptor) {
  return said_of(read_open_file(OpenFile(descriptor), {"f", 0, 0}, "a file"));
}

TEST(ReadFile, ReadsWhatIsOrdinaryAndNotTooLarge) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "file";
  const auto said = [&] { return said_of(read_file(file, "a file")); };
  EXPECT_EQ(said(), "no such file");
  std::ofstream(file) << "text";
  EXPECT_EQ(said(), "read: text");
  std::ofstream(file) << std::string(largest_text_file_bytes, 'x');
  EXPECT_EQ(said().size(), 6u + largest_text_file_bytes);
  std::filesystem::resize_file(file, largest_text_file_bytes + 1);
  EXPECT_EQ(said(), "is 1 MiB");
  std::filesystem::resize_file(file, std::uintmax_t{3} << 30);  // sparse: takes no disk block
  EXPECT_EQ(said(), "is 3 GiB");
  std::filesystem::create_symlink("/dev/zero", folder.path() / "link");
  EXPECT_EQ(said_of(read_file(folder.path() / "link", "a file")), "is not an ordinary file");
  EXPECT_EQ(said_of(read_file(folder.path(), "a file")), "is a folder");
}

// read_open_file refuses everything but regular files, since a path may name something else by the
// time that it is opened.
TEST(ReadFile, WaitsForNothingThatIsOpen) {
  const TemporaryFolder folder;
  const std::string fifo = folder.path() / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(said_of(::open(fifo.c_str(), O_RDONLY | O_NONBLOCK)), "is not an ordinary file");
  EXPECT_EQ(said_of(::open("/dev/zero", O_RDONLY)), "is not an ordinary file");
  EXPECT_EQ(said_of(::open(folder.path().c_str(), O_RDONLY)), "is a folder");
  std::array<int, 2> sockets{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()), 0);
  const OpenFile other(sockets[1]);
  EXPECT_EQ(said_of(sockets[0]), "is not an ordinary file");
}

// stat reports size 0 for such files, however much they contain.
TEST(ReadFile, ReadsNoMoreThanItTakesWhateverTheSizeIsSaidToBe) {
  const OpenFile memory(::open("/proc/self/pagemap", O_RDONLY));
  if (memory.descriptor() < 0) GTEST_SKIP() << "there is no such file here";
  const std::string said = said_of(read_open_file(memory, {"f", 0, 0}, "a file"));
  EXPECT_TRUE(said.starts_with("is 1")) << said.substr(0, 100);
}

}  // namespace
}  // namespace stepgate
