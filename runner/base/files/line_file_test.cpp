// SPDX-License-Identifier: MIT
#include "base/files/line_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <variant>

#include "base/files/read_file.h"
#include "base/files/temporary_folder.h"
#include "base/text/diagnostic.h"

namespace stepgate {
namespace {

std::string text_of(const std::filesystem::path& path) {
  return std::get<std::string>(read_file(path, "a report"));
}

TEST(LineFile, HasEveryLineAsSoonAsItIsWrittenAndForgetsAnEarlierRun) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "new" / "report.json";
  {
    LineFile file(path);
    file.append("one\n");
    EXPECT_EQ(text_of(path), "one\n");
    file.append("two\n");
    EXPECT_EQ(text_of(path), "one\ntwo\n");
  }
  LineFile again(path);
  EXPECT_EQ(text_of(path), "");
}

TEST(LineFile, SaysWhereItCannotBe) {
  const TemporaryFolder folder;
  EXPECT_THROW(LineFile(folder.path()), RequestError);
}

TEST(LineFile, GoesIntoAPipe) {
  const TemporaryFolder folder;
  const std::filesystem::path pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::string read;
  std::thread reader([&] {
    std::ifstream stream(pipe);
    read.assign(std::istreambuf_iterator<char>(stream), {});
  });
  {
    LineFile file(pipe);
    file.append("one\n");
    file.append("two\n");
  }
  reader.join();
  EXPECT_EQ(read, "one\ntwo\n");
}

TEST(LineFile, SaysWhenTheDiskIsFull) {
  LineFile full("/dev/full");
  EXPECT_THROW(full.append("line\n"), RequestError);
}

}  // namespace
}  // namespace stepgate
