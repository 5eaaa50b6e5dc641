// SPDX-License-Identifier: MIT
// Reads the record files that attached processes left. The files come from the user's program and
// are not trusted: sizes, offsets and texts are checked, and what does not fit is left out.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "program/record_format.h"

namespace stepgate {

// A line of Python source.
struct SourceLine {
  std::string file;
  std::int64_t line = 0;  // counted from 1; 0: there is none
  std::string function;
  auto operator<=>(const SourceLine&) const = default;
};

// The place at which a call was made.
struct CallPlace {
  SourceLine own;      // the innermost line of the user's own code
  SourceLine library;  // the innermost line of all, where that is in a library
  auto operator<=>(const CallPlace&) const = default;
};

struct RecordedProcess {
  std::uint64_t process = 0;
  std::string rank;  // RANK in its environment
  std::vector<std::string> command;
  std::string cupti_path;
  std::uint64_t cupti_version = 0;
  std::uint64_t driver_version = 0;
  std::uint64_t subscribed = 0;     // 0: CUPTI told of its calls (record_format.h)
  std::string holder;               // the tool that has CUPTI instead
  bool window_is_over = false;      // its later steps were not recorded
  std::uint64_t first_dropped = 0;  // sequence of the first record that is missing; 0: none is
  std::map<std::string, std::string> notes;  // of the Python hook: "torch", "gpu", "optimizer"
  std::map<std::uint64_t, std::string> names;
  std::vector<attached::Record> records;      // by sequence
  std::map<std::uint64_t, CallPlace> places;  // by sequence
};

inline std::uint64_t sequence_of(const attached::Record& record) {
  return record.head >> 24;
}
inline attached::RecordKind kind_of(const attached::Record& record) {
  return static_cast<attached::RecordKind>(record.head >> 16 & 0xff);
}
inline bool has(const attached::Record& record, attached::RecordFlag flag) {
  return (record.head & flag) != 0;
}

// All processes that left a file in the folder, in order of their process ids.
std::vector<RecordedProcess> read_records(const std::filesystem::path& folder);

// Whether all processes that opened a file have recorded their window, and there is one.
bool all_windows_are_over(const std::filesystem::path& folder);

// The place of the stack that the function faulthandler prints, innermost frame first.
CallPlace place_of_stack(std::string_view text);

}  // namespace stepgate
