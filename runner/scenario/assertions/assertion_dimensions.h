// SPDX-License-Identifier: MIT
// Dimensions of the values in a sentence, so that bytes are never compared with seconds.
#pragma once

#include <string>

#include "base/text/units.h"
#include "scenario/assertions/metric.h"

namespace stepgate {

// Powers of the two base units. A literal 0 fits everything.
struct Powers {
  enum class Fit { exactly, anything };

  int bytes = 0;
  int seconds = 0;
  Fit fit = Fit::exactly;
};

// Counts, ratios and rates per second are plain: "fix.samples_per_s >= 1000" needs no unit.
Powers powers_of(MetricUnit);
Powers powers_of(const Quantity&);

// Powers of a product of the two.
Powers times(const Powers&, const Powers&);

// Whether the two may be added and compared.
bool compatible(const Powers&, const Powers&);

// "a size", "a time", ...: for messages.
std::string powers_text(const Powers&);

// How to give a number these powers: "write its unit, as in 64 KiB".
std::string unit_hint(const Powers&);

}  // namespace stepgate
