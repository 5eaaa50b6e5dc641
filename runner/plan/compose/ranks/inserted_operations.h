// SPDX-License-Identifier: MIT
// Operations that are put between those of a model that is built already.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "plan/step_plan.h"

namespace stepgate {

class InsertedOperations {
 public:
  // Operations to insert before the operation of this index, which counts operations of the model
  // as it was.
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
