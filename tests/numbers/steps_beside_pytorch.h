// SPDX-License-Identifier: MIT
// Tests of whole steps beside PyTorch share ways of running a step that change no number, and a
// look at the tensors that a device gives back.
#pragma once

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <string_view>

#include "device/device.h"
#include "scenario/scenario.h"

namespace stepgate {

inline std::span<const float> tensor_named(const StepResult& result, std::string_view name) {
  for (const Tensor& tensor : result.tensors) {
    if (tensor.name == name) return tensor.values;
  }
  ADD_FAILURE() << "no tensor is called " << name;
  return {};
}

struct Way {
  std::string name;
  void (*set)(Knobs&);
};

// Ways of running the step that change no number.
inline const Way ways[] = {
    {"as it is", [](Knobs&) {}},
    {"in an arena", [](Knobs& knobs) { knobs.alloc.with = Allocator::arena; }},
    {"allocated by operation",
     [](Knobs& knobs) {
       knobs.alloc.with = Allocator::caching;
       knobs.alloc.when = AllocWhen::op;
     }},
    {"zeroed", [](Knobs& knobs) { knobs.memory.zero_grad = ZeroGrad::memset; }}};

}  // namespace stepgate
