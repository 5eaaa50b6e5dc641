// SPDX-License-Identifier: MIT
// A number and its interval against the limit that it is held to, as a small SVG within HTML.
#pragma once

#include <optional>
#include <string>

#include "judge/verdict/verdict.h"
#include "report/html/html.h"

namespace stepgate {

// From where to where an axis goes.
struct Span {
  double low = 0;
  double high = 0;
};

struct DrawnInterval {
  double value = 0;
  std::optional<RatioInterval> interval;
  double limit = 0;
  Span allowed;  // the side of the limit on which the number should lie; infinite ends are open
  std::string value_words;  // below the axis; empty: no line of words
  std::string limit_words;  // above it
  Tone tone = Tone::none;
  std::optional<Span> axis;  // that several share; what lies beyond ends in an arrow
};

// Nothing where the numbers are not finite.
std::string draw_interval(const DrawnInterval&);

// Draws an assertion's interval against its limit. `relation` says which side is allowed, `within`
// how far a value may be off that should be about the limit; nothing for assertions without such a
// number.
std::string draw_interval(const AssertionVerdict&, const Expectation*, Tone);

}  // namespace stepgate
