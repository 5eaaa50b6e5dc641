// SPDX-License-Identifier: MIT
// The file that `stepgate attach --accept` writes and `--against` reads: the counts that a step may
// have. It is committed and reviewed as code: more than it says fails, less is a note.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/text/diagnostic.h"
#include "program/count_steps.h"

namespace stepgate {

struct AcceptedPlace {
  CallCount count = CallCount::waits;
  std::string line;  // "train.py main: loss.item()"; line numbers change too easily
  double a_step = 0;
};

struct AcceptedCounts {
  std::string command;
  std::string steps;  // "20 from step 11 on, of 60 ends of AdamW.step"
  CallCounts counts{};
  std::map<std::string, std::string> versions;  // for counts that belong to them
  std::vector<AcceptedPlace> places;
  std::array<Place, call_count_count> lines{};  // of the counts in the file
};

// "train.py main: loss.item()": the file's name, its function and the text of the line, where the
// file can be read.
std::string line_in_words(const SourceLine&);
// The text of the line, without blanks around it; empty where it cannot be read.
std::string source_text(const SourceLine&);

// "gpu NVIDIA H200 -> NVIDIA L4": versions that differ; empty where none does.
std::string difference_in_words(const std::map<std::string, std::string>& accepted,
                                const std::map<std::string, std::string>& now);

// "train.py:88 loss.item()", or the NVTX range, or the call alone.
std::string place_in_words(const CountedPlace&);

AcceptedCounts accepted_of(const CountedProcess&, const std::string& command);
std::string to_text(const AcceptedCounts&);
// Throws RequestError.
AcceptedCounts read_accepted_counts(const std::filesystem::path&);

enum class CountChange { same, fewer, more, other_versions };
struct ComparedCount {
  const CallCountRow* row = nullptr;
  double accepted = 0;
  double now = 0;
  CountChange change = CountChange::same;
  std::string difference;                  // "gpu NVIDIA H200 -> NVIDIA L4", of other versions
  std::vector<const CountedPlace*> fresh;  // lines that are new or come more often
};

// Every count that is compared, in the order of the table.
std::vector<ComparedCount> compare_counts(const AcceptedCounts&, const CountedProcess&);

}  // namespace stepgate
