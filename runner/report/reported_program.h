// SPDX-License-Identifier: MIT
// The counts of an attached program in words, for every writer.
#pragma once

#include <string>
#include <vector>

#include "program/count_steps.h"

namespace stepgate {

struct ReportedProgram {
  std::vector<std::string> lines;  // which processes and steps were counted, and which were not
  // A row a count, with a column for each process (of more than four: the least and the most), and
  // the lines that the calls come from; further lines of a count have rows of their own.
  std::vector<std::vector<std::string>> counts;
};

ReportedProgram reported_program(const std::vector<CountedProcess>&);

}  // namespace stepgate
