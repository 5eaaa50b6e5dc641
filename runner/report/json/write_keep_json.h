// SPDX-License-Identifier: MIT
// Writes the answer of `stepgate keep`.
#pragma once

#include <iosfwd>

#include "compare/keep/candidates.h"

namespace stepgate {

struct KeepAnswer {
  Candidate candidate;
  double budget_left = 0;
  double seconds = 0;      // that this call took
  std::string check = {};  // what `stepgate kernel check` says of a library; empty: of a program
};

// Writes one JSON object on a line, a keep_line of docs/json_schema.json.
void write_keep_json(std::ostream&, const KeepAnswer&);

}  // namespace stepgate
