// SPDX-License-Identifier: MIT
// Reads the changes that a team has accepted from a file of its repository that a reviewer sees. An
// entry says who accepts, why, and until when. Nothing else makes a gate pass what it found.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/text/diagnostic.h"

namespace stepgate {

// One [[accepted]] of the file.
struct Accepted {
  std::string workload;  // pattern (*, ?, [a-z]) of "scenario/variant", or of a scenario's name
  std::string what;      // "time", "losses", "scenario", an assertion's name, or that of a metric
  // The limit of a time is relative: 0.05 is 5 % longer. The limit of a metric is in base units. It
  // is the most allowed; for arithmetic, where less blocks, it is the least.
  double limit = 0;
  std::string limit_text = {};  // as written; empty where there is nothing to limit
  std::string who;
  std::string why;
  std::string until;  // "2026-12-31": the last day on which it counts
  Place place;
};

// Throws RequestError with everything that is wrong with the file. An entry lasts for a year from
// `day`, today, at most.
std::vector<Accepted> read_accepted(const std::filesystem::path&, const std::string& day);

// Whether the entry speaks of it at all.
bool speaks_of(const Accepted&, const std::string& workload, const std::string& what);

// "2026-11-23" is not after "2026-12-31". `day` is a date, or a date and a time.
bool counts_on(const Accepted&, const std::string& day);

}  // namespace stepgate
