// SPDX-License-Identifier: MIT
// Reads the record files that attached processes left. The files come from the user's program and
// are not trusted: sizes, offsets and texts are checked, and what does not fit is left out.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
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
  std::uint64_t world_size = 0;     // record_format.h
  bool window_is_over = false;      // its later steps were not recorded
  std::string fault;                // why its records are not evidence, in words; empty: they are
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

// The record files in the folder, and the process that wrote one: nullopt for what is no record
// file. Where `is_whole` is false the header alone is read.
std::vector<std::filesystem::path> record_files(const std::filesystem::path& folder);
std::optional<RecordedProcess> read_process(const std::filesystem::path& file,
                                            bool is_whole = true);

// All processes that left a file in the folder, in order of their process ids.
std::vector<RecordedProcess> read_records(const std::filesystem::path& folder);

// How far a running process is.
struct ProcessProgress {
  std::uint64_t process = 0;
  std::string rank;
  std::uint64_t world_size = 0;  // record_format.h
  bool has_begun = false;        // its first step
  bool is_over = false;          // its window is recorded, or can be no further
};

// By the headers of the files alone, in their order.
std::vector<ProcessProgress> read_progress(const std::filesystem::path& folder);

// Whether all windows that will be recorded are. At least one is; so is that of every rank, as many
// as the environment of one says; and so is that of every other process that has begun a step and
// still runs. Processes that have begun none are not waited for, unless they are ranks.
bool all_windows_are_over(const std::vector<ProcessProgress>&);

// The place of the stack that the function faulthandler prints, innermost frame first.
CallPlace place_of_stack(std::string_view text);

}  // namespace stepgate
