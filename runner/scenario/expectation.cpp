// SPDX-License-Identifier: MIT
// What a parsed sentence says about itself.
#include "scenario/expectation.h"

#include <algorithm>

namespace stepgate {

Evidence evidence_of(const Expectation& expectation) {
  Evidence least_exact = Evidence::plan;
  for (const Side* side : {&expectation.left, &expectation.right}) {
    for (const Product& product : *side) {
      for (const Factor& factor : product) {
        const auto* of = std::get_if<MetricOf>(&factor);
        if (of != nullptr) least_exact = std::max(least_exact, row_of(of->metric).evidence);
      }
    }
  }
  return least_exact;
}

}  // namespace stepgate
