// SPDX-License-Identifier: MIT
// Uses stored runs instead of a BASE build: scenarios which assert that every variant is as fast as
// its stored runs, and does no more than they did.
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

// Temporary files that extend the scenarios by such assertions, removed by the destructor. The
// scenarios' own assertions remain.
class StoredAssertions {
 public:
  // `margin` is the allowed increase of the step time over the stored runs, unless the variant's
  // own margin is larger. Planned-only and calibrated scenarios are left out. The points of a sweep
  // follow each other. `seed` is that of the contents.
  StoredAssertions(std::span<const Scenario>, double margin, std::uint64_t seed);

  const std::vector<std::filesystem::path>& files() const { return files_; }
  // The folders of the extended scenarios, in the format of STEPGATE_BASES.
  const std::string& bases() const { return bases_; }

  // Changes findings about a temporary file into findings about the scenario and its variant: kind,
  // workload, name, place and the file name in texts.
  void translate(Finding&) const;

 private:
  struct Extended {
    std::filesystem::path file;
    Scenario scenario;
  };
  // Extends one file, whose scenario is given, or the points of its sweep.
  void extend(std::span<const Scenario> points, double margin, std::uint64_t seed);

  TemporaryFolder folder_;
  std::vector<std::filesystem::path> files_;
  std::string bases_;
  std::vector<Extended> extended_;
};

// Does the same for an assertion of a temporary file, of which there is no finding where it passes.
void translate(HeadAssertion&, std::span<const Scenario>);

}  // namespace stepgate
