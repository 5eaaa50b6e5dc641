// SPDX-License-Identifier: MIT
// Faults of scenarios by file. A file with [sweep] has several scenarios, and what matters to some
// of them matters to the file.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/text/diagnostic.h"
#include "scenario/scenario.h"

namespace stepgate {

class FaultsOfFiles {
 public:
  void add(const Scenario&, std::vector<Diagnostic> faults);

  // Each fault that all scenarios of its file have; a fault of an assertion is one that all have
  // which the assertion is about.
  std::vector<Diagnostic> all() const;

 private:
  struct Found {
    std::vector<Place> assertions;
    std::vector<Diagnostic> faults;
  };
  std::map<std::string, std::vector<Found>> by_file_;
};

}  // namespace stepgate
