// SPDX-License-Identifier: MIT
// Stored runs in the place of a BASE build: scenarios that say of every variant that it is as fast
// as its stored runs and does no more.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/files/temporary_folder.h"
#include "compare/gate/judge_gate.h"
#include "scenario/scenario.h"

namespace stepgate {

// Files that extend the scenarios by such assertions, as long as this lives. The assertions that
// the scenarios have already stay.
class StoredAssertions {
 public:
  // `margin`: how much longer than in the stored runs a step may take, unless the variant's own is
  // larger. What is planned only, or
  // calibrated anew by every run, is left out. `seed` is of the contents.
  StoredAssertions(std::span<const Scenario>, double margin, std::uint64_t seed);

  const std::vector<std::filesystem::path>& files() const { return files_; }
  // Where the scenarios that they extend lie, as STEPGATE_BASES has them.
  const std::string& bases() const { return bases_; }
  // Names of scenarios that have no file here.
  const std::vector<std::string>& left_out() const { return left_out_; }

  // Findings about one of these files are about the scenario and its variant: their kind, workload,
  // name and place become that, and texts name the scenario's own file.
  void translate(Finding&) const;

 private:
  struct Extended {
    std::filesystem::path file;
    Scenario scenario;
  };
  void extend(const Scenario&, double margin, std::uint64_t seed);

  TemporaryFolder folder_;
  std::vector<std::filesystem::path> files_;
  std::string bases_;
  std::vector<std::string> left_out_;
  std::vector<Extended> extended_;
};

}  // namespace stepgate
