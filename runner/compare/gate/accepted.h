// SPDX-License-Identifier: MIT
// Reads the changes that a team has accepted from a file of its repository, so that reviewers see
// them. An entry says who accepts, why, and until when. Only such an entry makes a gate pass
// despite a finding.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/text/diagnostic.h"

namespace stepgate {

// One [[accepted]] entry of the file.
struct Accepted {
  std::string workload;  // pattern (*, ?, [a-z]) of "scenario/variant", or of a scenario's name
  // "time", "kernel_us(layer_norm)", "losses", "scenario", an assertion's name, or that of a metric
  std::string what;
  // The limit of a time is relative: 0.05 is 5 % longer. The limit of a metric is in base units. It
  // is the largest allowed value; for arithmetic, where a decrease blocks, it is the smallest.
  double limit = 0;
  std::string limit_text = {};  // as written; empty where no limit is needed
  std::string who;
  std::string why;
  std::string until;  // "2026-12-31": the last day on which it counts
  Place place;
};

// Throws RequestError with all errors of the file. An entry may last at most a year from `day`,
// which is today.
std::vector<Accepted> read_accepted(const std::filesystem::path&, const std::string& day);

// Returns whether the entry covers this workload and subject, ignoring its limit and date.
bool speaks_of(const Accepted&, const std::string& workload, const std::string& what);

// Returns whether the entry is about the time of a step or of a kernel.
bool is_of_time(const Accepted&);

// Returns whether the entry is still valid on `day`, a date or a date with a time.
bool counts_on(const Accepted&, const std::string& day);

}  // namespace stepgate
