// SPDX-License-Identifier: MIT
// Collects operations and inserts them between those of a model that is already built.
#pragma once

#include <cstddef>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "plan/step_plan.h"

namespace stepgate {

class InsertedOperations {
 public:
  // Operations to insert before operation `index` of the model as it was before any insertion.
  std::vector<Operation>& operator[](std::size_t index) { return before_[index]; }

  // Moves the collected operations into those of the model. To be called once.
  void put_into(std::vector<Operation>& all) {
    std::vector<Operation> merged;
    const auto append = [&](auto first, auto end) {
      merged.insert(merged.end(), std::make_move_iterator(first), std::make_move_iterator(end));
    };
    std::size_t taken = 0;
    for (auto& [index, operations] : before_) {
      append(all.begin() + static_cast<std::ptrdiff_t>(taken),
             all.begin() + static_cast<std::ptrdiff_t>(index));
      append(operations.begin(), operations.end());
      taken = index;
    }
    append(all.begin() + static_cast<std::ptrdiff_t>(taken), all.end());
    all = std::move(merged);
  }

 private:
  std::map<std::size_t, std::vector<Operation>> before_;
};

}  // namespace stepgate
