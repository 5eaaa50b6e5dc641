// SPDX-License-Identifier: MIT
// Compares steps of two plans to the bit. Host references carry out both.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "tests/numbers/step_by_hand.h"

namespace stepgate {

inline bool equal_to_the_bit(std::span<const float> one, std::span<const float> other) {
  return one.size() == other.size() && std::memcmp(one.data(), other.data(), one.size_bytes()) == 0;
}

// The buffers of these that differ after two steps.
inline std::string differences(const StepPlan& one, const StepPlan& other,
                               std::initializer_list<const char*> buffers) {
  StepByHand first(one), second(other);
  for (int step = 0; step < 2; ++step) {
    first.step();
    second.step();
  }
  std::string names;
  for (const std::string name : buffers)
    if (!equal_to_the_bit(first.numbers(name), second.numbers(name))) names += name + "; ";
  return names;
}

inline std::vector<Operation>::iterator operation_named(StepPlan& plan, const std::string& name) {
  const auto found = std::ranges::find(plan.operations, name, &Operation::name);
  EXPECT_NE(found, plan.operations.end()) << name;
  return found;
}

}  // namespace stepgate
