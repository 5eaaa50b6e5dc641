// SPDX-License-Identifier: MIT
// The tensors that a model learns, which lie in one flat buffer, so that one launch can update them
// all; their gradients, and what the optimizer keeps of them, lie in others in the same places.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/compose/ranks/buckets.h"
#include "plan/step_plan.h"

namespace stepgate {

struct ParameterTensor {
  std::string name;
  std::int64_t first = 0;  // element of the flat buffer
  std::int64_t elements = 0;
  double centre = 0;  // of its initial numbers, uniform in [centre - scale, centre + scale)
  double scale = 0;
  int unit = 0;
};

class ParameterList {
 public:
  // The index of the new tensor, which begins where the last one ends.
  std::size_t add(std::string name, std::int64_t elements, double scale, double centre = 0);
  // Aligns the next tensor to a multiple of `elements`.
  void align(std::int64_t elements);

  // Tensors that follow are gathered together (ranks/buckets.h).
  void begin_unit() { ++unit_; }

  const std::vector<ParameterTensor>& tensors() const { return tensors_; }
  std::int64_t elements() const { return elements_; }  // with the gaps
  std::vector<FlatTensor> places() const;              // of the tensors
  // Initial numbers of the flat buffer; zeros in the gaps.
  std::vector<ContentPart> contents() const;

 private:
  std::vector<ParameterTensor> tensors_;
  std::int64_t elements_ = 0;
  int unit_ = 0;
};

}  // namespace stepgate
