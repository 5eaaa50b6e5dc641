// SPDX-License-Identifier: MIT
// Record files come from the user's program: whatever they hold, reading them ends, and gives no
// more than they have.
#include "program/read_records.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <fstream>
#include <random>

#include "base/files/temporary_folder.h"
#include "program/count_steps.h"

namespace stepgate {
namespace {

using namespace attached;

// Forty steps of a launch and a wait.
std::string good_file() {
  std::string file(header_bytes + names_bytes + chunk_bytes, '\0');
  RecordFileHeader header{};
  header.magic = record_file_magic;
  header.process = 7;
  header.chunks = 1;
  header.sequence = 120;
  std::memcpy(header.command, "python3\0train.py", 16);
  std::memcpy(file.data(), &header, sizeof header);
  std::uint64_t sequence = 0;
  char* at = file.data() + header_bytes + names_bytes;
  const auto put = [&](RecordKind kind, std::uint64_t payload) {
    const Record record{++sequence << 24 | static_cast<std::uint64_t>(kind) << 16, payload, 5, 1,
                        1};
    std::memcpy(at, &record, sizeof record);
    at += sizeof record;
  };
  for (int step = 0; step < 40; ++step) {
    put(record_kind(CallKind::launch), 99);
    put(record_kind(CallKind::wait_for_stream), 0);
    put(RecordKind::mark, static_cast<std::uint64_t>(MarkSource::optimizer));
  }
  return file;
}

class Records : public testing::Test {
 protected:
  std::vector<CountedProcess> count(const std::string& file) const {
    std::ofstream(folder_.path() / "7-0.records", std::ios::binary) << file;
    std::vector<CountedProcess> all;
    for (const RecordedProcess& process : read_records(folder_.path()))
      all.push_back(count_steps(process, {}));
    return all;
  }
  TemporaryFolder folder_;
};

TEST_F(Records, AWholeFileIsCounted) {
  const auto counted = count(good_file());
  ASSERT_EQ(counted.size(), 1U);
  EXPECT_EQ(counted[0].problem, "");
  EXPECT_EQ(counted[0].program, "train.py");
  EXPECT_EQ(counted[0].steps, 20);
  EXPECT_EQ(counted[0].mean[static_cast<std::size_t>(CallCount::waits)], 1);
}

TEST_F(Records, AFileThatIsCutNeverCountsMoreAndNeverFails) {
  const std::string whole = good_file();
  for (std::size_t size = 0; size < whole.size(); size += 4099) {
    for (const CountedProcess& process : count(whole.substr(0, size)))
      EXPECT_FALSE(process.problem.empty()) << size;
  }
}

TEST_F(Records, BytesOfChanceAreReadToTheEnd) {
  std::mt19937_64 random(5);
  for (int turn = 0; turn < 200; ++turn) {
    std::string file = good_file();
    const std::size_t most = turn % 2 == 0 ? sizeof(RecordFileHeader) : file.size();
    for (int byte = 0; byte < 40; ++byte)
      file[8 + random() % (most - 8)] = static_cast<char>(random());
    for (const CountedProcess& process : count(file)) EXPECT_LE(process.steps, 40);
  }
}

TEST_F(Records, WhatIsNoOrdinaryFileIsNotOpened) {
  ASSERT_EQ(::mkfifo((folder_.path() / "8-0.records").c_str(), 0600), 0);
  std::filesystem::create_symlink("/etc/passwd", folder_.path() / "9-0.records");
  EXPECT_TRUE(read_records(folder_.path()).empty());
}

TEST_F(Records, RecordsThatWereDroppedWithinTheWindowLeaveNoCount) {
  std::string file = good_file();
  RecordFileHeader header{};
  std::memcpy(&header, file.data(), sizeof header);
  header.first_dropped = 60;
  std::memcpy(file.data(), &header, sizeof header);
  EXPECT_NE(count(file)[0].problem.find("was full"), std::string::npos);
  header.first_dropped = 119;  // after the window
  std::memcpy(file.data(), &header, sizeof header);
  EXPECT_EQ(count(file)[0].problem, "");
}

TEST(PlaceOfStack, IsTheInnermostLineOfTheUsersCode) {
  const CallPlace place = place_of_stack(
      "Stack (most recent call first):\n"
      "  File \"/usr/lib/python3.12/site-packages/torch/_tensor.py\", line 12 in item\n"
      "  File \"/home/u/a \"b\".py\", line 88 in main\n"
      "  File \"<string>\", line 1 in <module>\n");
  EXPECT_EQ(place.own.file, "/home/u/a \"b\".py");
  EXPECT_EQ(place.own.line, 88);
  EXPECT_EQ(place.own.function, "main");
  EXPECT_EQ(place.library.line, 12);
  EXPECT_EQ(place_of_stack("  File \"x").own.line, 0);
  EXPECT_EQ(place_of_stack("  File \"<string>\", line 3 in f\n").own.line, 3);
}

}  // namespace
}  // namespace stepgate
