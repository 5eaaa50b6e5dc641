// SPDX-License-Identifier: MIT
// The file that an attached process writes while it runs (injected/recorder.h) and that stepgate
// reads afterwards (read_records.h): a header page, an area of names, then chunks of records, each
// chunk written by one thread. The file is mapped shared, so a killed process loses at most the
// call that was under way. Integers are little-endian.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "device/call_kind.h"

namespace stepgate::attached {

// Kinds of records. The first ones are calls, with the values of CallKind.
enum class RecordKind : std::uint8_t {
  mark = 32,      // payload: MarkSource; detail: the optimizer
  graph_created,  // payload: graph; detail: the graph that it is a clone of, or 0
  node_created,   // payload: graph; flags: CUgraphNodeType
  exec_created,   // payload: executable graph; detail: graph
};

constexpr RecordKind record_kind(CallKind kind) {
  return static_cast<RecordKind>(kind);
}

// Sources of step boundaries. A range begins a step; the others end one.
enum class MarkSource : std::uint64_t { range = 1, optimizer = 2, program = 3 };
constexpr std::uint64_t mark_source_count = 4;

// The source with marks whose steps are counted where the user names none: the program's own marks,
// else the ends of its optimizer, else its ranges. The library ends the window by the same rule by
// which the reader counts: `marks` are their numbers by source, all of which may be 0.
template <class Marks>
constexpr MarkSource leading_source(const Marks& marks) {
  for (const MarkSource source : {MarkSource::program, MarkSource::optimizer}) {
    if (marks[static_cast<std::uint64_t>(source)] > 0) return source;
  }
  return MarkSource::range;
}

// Flags of a call.
enum RecordFlag : std::uint16_t {
  runtime_call = 1,
  failed = 2,
  captured = 4,   // became a node of a graph instead of work
  can_block = 8,  // whatever its arguments are
  to_device = 16,
  from_device = 32,
  pageable = 64,      // an end of the copy is pageable host memory
  unknown_end = 128,  // where an end of the copy lies is not known
};

struct Record {
  std::uint64_t head;     // sequence << 24 | kind << 16 | flags; written last, never 0
  std::uint64_t payload;  // bytes; of a launch the kernel, of a graph launch the executable graph;
                          // of polls their number
  std::uint64_t detail;   // the name of the innermost NVTX range around the call; 0: none
  std::uint32_t call;     // key of its name less call_name_keys
  std::uint32_t thread;   // counted from 1
};
static_assert(sizeof(Record) == 32);

// A name: its key, its length in bytes, the bytes, padded to 8. Keys are addresses of kernels,
// hashes of ranges, and callback ids of calls.
constexpr std::uint64_t call_name_keys = 1ULL << 63;
constexpr std::uint64_t range_name_keys = 1ULL << 62;
constexpr std::uint64_t longest_name_bytes = 1024;

constexpr std::uint64_t record_file_magic = 0x3348'4341'5447'5453;  // "STGTACH3"
constexpr std::uint64_t header_bytes = 8192;
constexpr std::uint64_t names_bytes = 1 << 20;
constexpr std::uint64_t chunk_bytes = 64 << 10;
constexpr std::uint64_t records_per_chunk = chunk_bytes / sizeof(Record);
constexpr std::uint64_t largest_record_file_bytes = 256 << 20;

// Values of `subscribed` that CUPTI has not.
constexpr std::uint64_t no_cupti = 9001;
constexpr std::uint64_t not_subscribed_yet = 9002;

struct RecordFileHeader {
  std::uint64_t magic;
  std::uint64_t capacity_bytes;
  std::uint64_t process;
  std::uint64_t parent;
  std::uint64_t cupti_version;   // as cuptiGetVersion says it: 130001
  std::uint64_t driver_version;  // as cuDriverGetVersion says it: 13000
  std::uint64_t subscribed;      // CUptiResult: 0 where CUPTI tells us of calls
  std::uint64_t watched_calls;   // callbacks that are enabled
  std::uint64_t sequence;        // of the last record
  std::uint64_t chunks;
  std::uint64_t dropped;        // records for which the file or the disk had no room
  std::uint64_t first_dropped;  // sequence of the first of them
  std::uint64_t name_bytes;
  std::uint64_t threads;
  std::uint64_t window_over;  // 1: all steps of the window are there, and nothing more is recorded
  std::uint64_t notes_bytes;
  std::uint64_t marks;       // of the source whose steps are counted
  std::uint64_t world_size;  // ranks on this machine, or in all, as its environment says; 0: none
  char cupti_path[512];
  char holder[128];    // of CUPTI, where it is another tool
  char command[2048];  // words separated by 0
  char rank[32];       // RANK in its environment
  char notes[2048];    // lines "key value" from the Python hook
};
static_assert(sizeof(RecordFileHeader) <= header_bytes);

// Variables by which `stepgate attach` speaks to the library and the hook in the process.
inline constexpr const char* variable_beginning = "STEPGATE_ATTACH_";
inline constexpr const char* folder_variable = "STEPGATE_ATTACH_FOLDER";
inline constexpr const char* library_variable = "STEPGATE_ATTACH_LIBRARY";
inline constexpr const char* range_variable = "STEPGATE_ATTACH_RANGE";  // default_step_range
// "10+20": the steps that are skipped and counted; "10+20 range": of that MarkSource alone. Without
// it the window has no end.
inline constexpr const char* window_variable = "STEPGATE_ATTACH_WINDOW";
inline constexpr const char* window_of_ranges = " range";
inline constexpr const char* default_step_range = "step";
inline constexpr const char* record_file_ending = ".records";
inline constexpr const char* lines_file_ending = ".lines";

}  // namespace stepgate::attached
