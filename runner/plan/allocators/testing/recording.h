// SPDX-License-Identifier: MIT
// A recorded sequence of requests to an allocator, and what the allocator was found to be after
// each: one JSON object a line, written by ci/record_allocator.py. Reading only; replay.h carries
// it out.
//
//   {"stepgate_allocator_recording":1, "pytorch":"2.9.0", "device":"NVIDIA H200", "seed":1,
//    "device_bytes":150000000000, "statistics":["num_ooms", ...],
//    "rules":{"expandable":false, "round_divisions":0, "split_max_bytes":null,
//             "garbage_collection_threshold":0.0}}
//   {"do":"allocate", "block":1, "bytes":1000, "stream":0, "refused":false, ...}
//   {"do":"free", "block":1, ...}           {"do":"record_stream", "block":1, "stream":2, ...}
//   {"do":"finish", "stream":2, ...}        all work issued on the stream so far is done
//   {"do":"empty_cache", ...}               {"do":"cap", "bytes":1000000000, ...}   null: none
//
// Each event may carry "changed", pairs [place in the head's statistics, value] of those that are
// not what they were, and "segments" with "gone": segments that are new or not what they were, and
// the addresses of those that are no more.
//   {"address":A, "bytes":B, "stream":0, "pool":"small", "expandable":false,
//    "blocks":[[512, "live", 100], [2096640, "free", 0]]}             live, pending or free
#pragma once

#include <filesystem>
#include <istream>
#include <string>
#include <utility>
#include <vector>

#include "plan/allocators/caching/caching_rules.h"

namespace stepgate {

enum class RecordedAction { allocate, free, record_stream, finish, empty_cache, cap };
enum class RecordedOutcome { unknown, served, refused };

struct RecordedEvent {
  RecordedAction action = RecordedAction::allocate;
  RecordedOutcome outcome = RecordedOutcome::unknown;
  StreamId stream = 0;
  std::size_t block = 0;  // index in the order of the requests
  std::int64_t bytes = 0;
  std::optional<std::int64_t> cap_bytes;
  int line = 0;
  std::optional<std::size_t> found;  // index into AllocationRecording::found
};

// State found after an event; contains only what has changed.
struct RecordedState {
  std::vector<std::pair<std::size_t, std::int64_t>> statistics;  // by index into the table of names
  std::vector<SegmentState> segments;
  std::vector<Address> gone;
};

struct AllocationRecording {
  std::string file;
  std::string pytorch;
  std::string device;
  std::int64_t device_bytes = 0;
  std::uint64_t seed = 0;
  CachingRules rules;
  std::vector<std::size_t> statistics;  // the recorded statistics
  bool has_segments = false;
  std::size_t blocks = 0;
  std::vector<RecordedEvent> events;
  std::vector<RecordedState> found;
};

// Throws RequestError, placed in the file, at the first error in it. In a valid recording every
// block that is freed or used is held.
AllocationRecording read_recording(const std::filesystem::path&);
AllocationRecording read_recording(std::istream&, const std::string& file);

}  // namespace stepgate
