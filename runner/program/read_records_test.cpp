// SPDX-License-Identifier: MIT
// Record files come from the user's program: whatever they hold, reading them ends, and gives no
// more than they have.
#include "program/read_records.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

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

TEST_F(Records, TwoRecordsWithOneNumberLeaveNoCount) {
  std::string file = good_file();
  char* record = file.data() + header_bytes + names_bytes + std::size_t{33} * sizeof(Record);
  std::memcpy(record, record - 3 * sizeof(Record), sizeof(std::uint64_t));
  const auto counted = count(file);
  EXPECT_NE(counted[0].problem.find("damaged: two records have the number"), std::string::npos)
      << counted[0].problem;
  EXPECT_TRUE(counted[0].hides_calls);
}

TEST_F(Records, AWindowWithoutALaunchIsNoZero) {
  std::string file = good_file();
  for (std::size_t step = 5; step < 40; ++step) {
    const std::uint64_t poll =
        (3 * step + 1) << 24 | static_cast<std::uint64_t>(record_kind(CallKind::poll)) << 16;
    std::memcpy(file.data() + header_bytes + names_bytes + 3 * step * sizeof(Record), &poll,
                sizeof poll);
  }
  EXPECT_NE(count(file)[0].problem.find("it launched no work in steps 11 to 30"), std::string::npos)
      << count(file)[0].problem;
}

TEST_F(Records, BytesBeyondAllMemoryAreShownAsTheyAre) {
  std::string file = good_file();
  for (std::size_t step = 0; step < 40; ++step) {
    const Record copy{(3 * step + 1) << 24 | static_cast<std::uint64_t>(record_kind(CallKind::copy))
                                                 << 16,
                      ~std::uint64_t{0}, 5, 1, 1};
    std::memcpy(file.data() + header_bytes + names_bytes + 3 * step * sizeof(Record), &copy,
                sizeof copy);
  }
  const auto counted = count(file);
  ASSERT_EQ(counted[0].problem, "");
  EXPECT_EQ(counted[0].mean[static_cast<std::size_t>(CallCount::copy_bytes)], 0x1p64);
}

TEST_F(Records, PlacesAreBoundedAndLinesAreThoseOfFiles) {
  std::ofstream lines(folder_.path() / "7-0.lines");
  for (int wait = 0; wait < 120; ++wait)
    lines << '#' << wait << "\n  File \"/x.py\", line " << (wait % 2 ? "99999999999" : "-5")
          << " in f\n";
  lines.close();
  const auto counted = count(good_file());
  for (const CountedPlace& place : counted[0].places) EXPECT_EQ(place.place.own.line, 0);
}

TEST_F(Records, KernelsWhoseNamesTakeForEverAreAReason) {
  std::string file = good_file();
  const std::uint64_t words[2] = {99, 1000};
  std::memcpy(file.data() + header_bytes, words, sizeof words);
  std::memset(file.data() + header_bytes + sizeof words, 'a', 1000);
  RecordFileHeader header{};
  std::memcpy(&header, file.data(), sizeof header);
  header.name_bytes = 1016;
  std::memcpy(file.data(), &header, sizeof header);
  EXPECT_EQ(count(file)[0].problem, "");
  const auto process = read_process(folder_.path() / "7-0.records");
  ASSERT_TRUE(process);
  StepChoice choice;
  choice.kernel = "aaa";
  EXPECT_EQ(count_steps(*process, choice).problem, "");
  choice.kernel = "(a+)+b";
  const CountedProcess late =
      count_steps(*process, choice, std::chrono::steady_clock::now() + std::chrono::seconds(1));
  EXPECT_NE(late.problem.find("could not be read in time"), std::string::npos) << late.problem;
  EXPECT_TRUE(late.hides_calls);
}

TEST_F(Records, AWindowThatEndedEarlyIsNoProgramWithFewerSteps) {
  std::string file = good_file();
  RecordFileHeader header{};
  std::memcpy(&header, file.data(), sizeof header);
  header.window_over = 1;
  std::memcpy(file.data(), &header, sizeof header);
  EXPECT_EQ(count(file)[0].problem, "");
  // The file has 20 of 40 steps.
  std::memset(file.data() + header_bytes + names_bytes + std::size_t{60} * sizeof(Record), 0,
              sizeof(Record));
  const auto counted = count(file);
  EXPECT_NE(counted[0].problem.find("its recording ended at 20 or more ends of optimizer.step"),
            std::string::npos)
      << counted[0].problem;
  EXPECT_TRUE(counted[0].hides_calls);
}

TEST(AllWindowsAreOver, WaitsForRanksAndForStepsThatWereBegun) {
  const auto own = static_cast<std::uint64_t>(::getpid());
  const ProcessProgress over{.process = 1, .is_over = true};
  EXPECT_FALSE(all_windows_are_over({}));
  EXPECT_FALSE(all_windows_are_over({{.process = own}}));
  EXPECT_TRUE(all_windows_are_over({over, {.process = own}}));
  EXPECT_FALSE(all_windows_are_over({over, {.process = own, .has_begun = true}}));
  // A process that ended, and one that became another program.
  EXPECT_TRUE(all_windows_are_over({over, {.process = 1ULL << 40, .has_begun = true}}));
  EXPECT_TRUE(all_windows_are_over({over, {.process = own, .has_begun = true}, {.process = own}}));
  const ProcessProgress first{.process = 1, .rank = "0", .world_size = 2, .is_over = true};
  EXPECT_FALSE(all_windows_are_over({first}));
  EXPECT_FALSE(all_windows_are_over({first, {.process = own, .rank = "1", .world_size = 2}}));
  EXPECT_TRUE(all_windows_are_over({first, {.process = 2, .rank = "1", .is_over = true}}));
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
