// SPDX-License-Identifier: MIT
// Collects operations and inserts them between those of a model that is already built.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "plan/step_plan.h"

namespace stepgate {

class InsertedOperations {
 public:
  // Operations to insert before operation `index` of the model as it was before any insertion.
  std::vector<Operation>& operator[](std::size_t index) { return before_[index]; }

  // Inserts from the back, so that indices stay valid.
  void put_into(std::vector<Operation>& all) const {
    for (auto place = before_.rbegin(); place != before_.rend(); ++place) {
      all.insert(all.begin() + static_cast<std::ptrdiff_t>(place->first), place->second.begin(),
                 place->second.end());
    }
  }

 private:
  std::map<std::size_t, std::vector<Operation>> before_;
};

}  // namespace stepgate
