// SPDX-License-Identifier: MIT
// Reading recordings and carrying them out.
#include "plan/allocators/testing/replay.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "base/text/diagnostic.h"
#include "plan/allocators/caching/caching_allocator.h"

namespace stepgate {
namespace {

const std::filesystem::path recorded = STEPGATE_SOURCE_DIR "/runner/plan/allocators/recorded";

constexpr std::string_view head =
    R"({"stepgate_allocator_recording":1,"pytorch":"2","device":"none","seed":5,"device_bytes":100000000,)"
    R"("rules":{"expandable":false,"round_divisions":0,"split_max_bytes":null,)"
    R"("garbage_collection_threshold":0},"statistics":["num_ooms","reserved_bytes.all.current"]})";

AllocationRecording recording_of(const std::string& events) {
  std::istringstream in(std::string(head) + "\n" + events);
  return read_recording(in, "x.jsonl");
}

std::string complaint_about(const std::string& text) {
  std::istringstream in(text);
  try {
    read_recording(in, "x.jsonl");
  } catch (const RequestError& error) {
    return error.what();
  }
  return "nothing is wrong";
}
std::string complaint_about_event(const std::string& event) {
  return complaint_about(std::string(head) + "\n" +
                         R"({"do":"allocate","block":1,"bytes":1000,"stream":0})" + "\n" + event);
}

std::string first_difference(const AllocationRecording& recording) {
  RecordedMemory memory(recording);
  CachingAllocator allocator(memory, recording.rules);
  const ReplayResult result = replay(recording, memory, allocator);
  if (result.difference) return to_string(*result.difference, recording);
  EXPECT_EQ(result.events, recording.events.size());
  return "none";
}

TEST(Replay, EndsAsEveryRecordingDoes) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(recorded)) {
    if (entry.path().extension() != ".jsonl") continue;
    ++files;
    const AllocationRecording recording = read_recording(entry.path());
    EXPECT_GT(recording.events.size(), 10U) << entry.path();
    EXPECT_EQ(first_difference(recording), "none")
        << "recorded with PyTorch " << recording.pytorch << " and seed " << recording.seed;
  }
  EXPECT_GT(files, 0);
}

TEST(Replay, SaysWhichStatisticDiffersFirst) {
  AllocationRecording recording = read_recording(recorded / "by_hand.jsonl");
  recording.file = "x.jsonl";
  recording.found.at(6).statistics.at(0).second += 512;
  EXPECT_EQ(first_difference(recording),
            "x.jsonl:8:1: event 7: active_bytes.all.current is 5243904, but was recorded as "
            "5244416");
}

TEST(Replay, SaysWhichSegmentDiffersFirst) {
  AllocationRecording recording = read_recording(recorded / "by_hand.jsonl");
  recording.file = "x.jsonl";
  recording.found.at(4).segments.at(0).blocks.at(1).use = BlockUse::pending;
  EXPECT_EQ(first_difference(recording),
            "x.jsonl:6:1: event 5: segment 0x7efffe000000 is 20971520 bytes of large memory for "
            "stream 0: 5242880 pending for 5242880 5242880 live for 5242880 10485760 free, but was "
            "recorded as 20971520 bytes of large memory for stream 0: 5242880 pending for 5242880 "
            "5242880 pending for 5242880 10485760 free");
}

TEST(Replay, NoticesOtherRules) {
  AllocationRecording recording = read_recording(recorded / "by_hand.jsonl");
  recording.rules.segments = SegmentKind::expandable;
  EXPECT_NE(first_difference(recording), "none");
}

TEST(Replay, NoticesARequestThatWasRefusedInTheRecording) {
  const std::string request = R"({"do":"allocate","block":1,"bytes":1000,"stream":0,"refused":)";
  EXPECT_EQ(first_difference(recording_of(request + "false}")), "none");
  EXPECT_EQ(
      first_difference(recording_of(request + "true}")),
      "x.jsonl:2:1: event 1: a request for 1000 bytes is served, but was recorded as refused");
}

TEST(Replay, ComparesNothingWhereNothingWasRecorded) {
  EXPECT_EQ(
      first_difference(recording_of(R"({"do":"allocate","block":1,"bytes":20000000,"stream":0})"
                                    "\n\n"
                                    R"({"do":"record_stream","block":1,"stream":3})"
                                    "\n"
                                    R"({"do":"free","block":1})"
                                    "\n"
                                    R"({"do":"finish","stream":3})"
                                    "\n"
                                    R"({"do":"cap","bytes":null})"
                                    "\n"
                                    R"({"do":"empty_cache","changed":[[1,0]]})")),
      "none");
}

TEST(ReadRecording, SaysWhatIsWrongWithAFileAndWhere) {
  EXPECT_EQ(complaint_about(""), "x.jsonl: this recording is empty");
  EXPECT_EQ(
      complaint_about("{}"),
      "x.jsonl:1:1: this is no recording of an allocator; ci/record_allocator.py writes them");
  EXPECT_EQ(complaint_about(R"({"stepgate_allocator_recording":2})"),
            "x.jsonl:1:1: this recording is not of format 1; record it anew");
  EXPECT_EQ(complaint_about("{\"stepgate_alloc"),
            "x.jsonl:1:17: this is no JSON; the file was cut off or changed after it was recorded");
  EXPECT_EQ(
      complaint_about("{\"device_bytes\": 0.0001e999}"),
      "x.jsonl:1:1: this is JSON that nobody can pass; the file was cut off or changed after it "
      "was recorded");
  EXPECT_EQ(
      complaint_about(std::string(100000, '[')),
      "x.jsonl:1:1: this nests deeper than recordings do; the file was cut off or changed after "
      "it was recorded");
  EXPECT_EQ(complaint_about("[1]"), "x.jsonl:1:1: this is no JSON object; each line is one");
}

TEST(ReadRecording, SaysWhatIsWrongWithAnEventAndWhere) {
  EXPECT_EQ(complaint_about_event(R"({"do":"alocate"})"),
            "x.jsonl:3:1: 'alocate' is no event; did you mean 'allocate'?");
  EXPECT_EQ(complaint_about_event(R"({"do":"free"})"), "x.jsonl:3:1: 'block' is missing");
  EXPECT_EQ(complaint_about_event(R"({"do":"free","block":2})"),
            "x.jsonl:3:1: block 2 is not held here");
  EXPECT_EQ(complaint_about_event(R"({"do":"allocate","block":1,"bytes":1,"stream":0})"),
            "x.jsonl:3:1: block 1 is asked for while it is held");
  EXPECT_EQ(complaint_about_event(R"({"do":"allocate","block":2,"bytes":0,"stream":0})"),
            "x.jsonl:3:1: 'bytes' is 0, not a whole number from 1 to 9223372036854775807");
  EXPECT_EQ(complaint_about_event(
                R"({"do":"allocate","block":2,"bytes":18446744073709551615,"stream":0})"),
            "x.jsonl:3:1: 'bytes' is 18446744073709551615, not a whole number from 1 to "
            "9223372036854775807");
  EXPECT_EQ(complaint_about_event(R"({"do":"allocate","block":2,"bytes":1.5,"stream":0})"),
            "x.jsonl:3:1: 'bytes' is 1.5, not a whole number from 1 to 9223372036854775807");
  EXPECT_EQ(complaint_about_event(R"({"do":"empty_cache","changed":[[2,0]]})"),
            "x.jsonl:3:1: 'changed' is 2, not a whole number from 0 to 1");
  EXPECT_EQ(complaint_about_event(R"({"do":"empty_cache","changed":3})"),
            "x.jsonl:3:1: 'changed' is no list");
  EXPECT_EQ(complaint_about_event(
                R"({"do":"empty_cache","gone":[],"segments":[{"address":1,"bytes":1024,"stream":0,)"
                R"("pool":"small","expandable":false,"blocks":[[512,"live",1]]}]})"),
            "x.jsonl:3:1: the blocks of segment 1 do not fill it");
  EXPECT_EQ(complaint_about_event(
                R"({"do":"empty_cache","gone":[],"segments":[{"address":1,"bytes":512,"stream":0,)"
                R"("pool":"small","expandable":false,"blocks":[[512,"alive",1]]}]})"),
            "x.jsonl:3:1: 'alive' is no use of a block; did you mean 'live'?");
  const std::string block = R"("bytes":512,"stream":0,"pool":"small","expandable":false,)"
                            R"("blocks":[[512,"live",1]]})";
  EXPECT_EQ(complaint_about_event(R"({"do":"empty_cache","gone":[],"segments":[{"address":1000,)" +
                                  block + R"(,{"address":1511,)" + block + "]}"),
            "x.jsonl:3:1: segment 1511 overlaps the one before it");
}

TEST(ReadRecording, RefusesRulesThatAnAllocatorCannotHave) {
  const auto with = [](std::string_view from, std::string_view to) {
    std::string text(head);
    return complaint_about(text.replace(text.find(from), from.size(), to));
  };
  EXPECT_EQ(with("\"round_divisions\":0", "\"round_divisions\":3"),
            "x.jsonl:1:1: 'round_divisions' is no power of 2");
  EXPECT_EQ(with("\"split_max_bytes\":null", "\"split_max_bytes\":1048576"),
            "x.jsonl:1:1: 'split_max_bytes' is 1048576, not a whole number from 20971521 to "
            "1152921504606846976");
  EXPECT_EQ(with("threshold\":0", "threshold\":1"),
            "x.jsonl:1:1: 'garbage_collection_threshold' is no share from 0 to below 1");
  EXPECT_EQ(with("num_ooms", "num_oms"), "x.jsonl:1:1: there is no statistic \"num_oms\"");
}

TEST(ReadRecording, SaysThatAFileIsNotThere) {
  EXPECT_THROW(read_recording(std::filesystem::path("/nowhere/x.jsonl")), RequestError);
}

}  // namespace
}  // namespace stepgate
