// SPDX-License-Identifier: MIT
// The tensors that a model learns. They lie in one flat buffer, so that one launch can update them
// all. Gradients and optimizer state lie in other flat buffers at the same positions.
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
  double centre = 0;  // of the initial numbers, uniform in [centre - scale, centre + scale)
  double scale = 0;
  int unit = 0;
};

class ParameterList {
 public:
  // Adds a tensor that begins where the last one ends, and returns its index.
  std::size_t add(std::string name, std::int64_t elements, double scale, double centre = 0);
  // Moves the start of the next tensor to a multiple of 64 elements, so that operands are aligned
  // to 128 bytes.
  void align();

  // Starts a new unit: later tensors are gathered together (ranks/buckets.h).
  void begin_unit() { ++unit_; }

  const std::vector<ParameterTensor>& tensors() const { return tensors_; }
  std::int64_t elements() const { return elements_; }  // including gaps
  std::vector<FlatTensor> places() const;              // of all tensors
  // The initial numbers of the flat buffer; gaps are zero.
  std::vector<ContentPart> contents() const;

 private:
  std::vector<ParameterTensor> tensors_;
  std::int64_t elements_ = 0;
  int unit_ = 0;
};

}  // namespace stepgate
