// SPDX-License-Identifier: MIT
// Writes the record file of this process (record_format.h). Every function may be called from any
// thread and from within a CUDA call: none of them calls CUDA or Python, takes a lock or throws.
#pragma once

#include "program/record_format.h"

namespace stepgate::attached {

// State of a thread. Most is of the CUDA call that is under way.
struct Thread {
  Record* next = nullptr;
  Record* end = nullptr;
  std::uint32_t generation = 0;  // of the file that `next` points into; a fork begins a new one
  std::uint32_t number = 0;
  std::uint64_t polls = 0;  // since the last record
  int depth = 0;            // calls within calls: the driver's inside the runtime's
  std::uint32_t nodes = 0;  // graph nodes made since the outermost call began
  bool inside = false;      // the library itself calls CUDA
  static constexpr int most_ranges = 16;
  std::uint64_t ranges[most_ranges] = {};  // names of the NVTX ranges around, outermost first
  int range_depth = 0;                     // may exceed most_ranges
};
Thread& this_thread();

// Null: nothing is recorded.
RecordFileHeader* header();

// Makes the file, once a process. False without a folder, or where the disk refuses.
bool open_record_file();
// A forked child records nothing, until it uses CUDA itself and the driver loads the library anew.
void watch_forks();
// The number of marks, for a reader while the program runs.
void tell_marks(std::uint64_t);
// Ends the recording of all threads.
void stop_recording();

// Appends a record and returns its sequence; 0 where there is no room.
std::uint64_t put(Thread&, RecordKind, std::uint16_t flags, std::uint64_t payload,
                  std::uint64_t detail, std::uint32_t call);
// Writes a record of the polls since the last one, if there are any. Polls are not recorded one by
// one, since a loop that waits by polling makes millions of them.
void put_polls(Thread&);
// The name of a key, once.
void put_name(std::uint64_t key, const char* name, std::uint64_t length);
// A line "key value" for the header.
void put_note(const char* key, const char* value);

// The file for lines of source, or -1.
int lines_file();

std::uint64_t nanoseconds_now();

}  // namespace stepgate::attached
