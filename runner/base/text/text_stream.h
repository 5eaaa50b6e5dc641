// SPDX-License-Identifier: MIT
// A std::ostringstream that throws where memory runs out. A standard one goes on without the text
// that did not fit, and what it returns in the end is half of a report.
#pragma once

#include <sstream>

namespace stepgate {

class TextStream : public std::ostringstream {
 public:
  TextStream() { exceptions(std::ios::badbit); }
};

}  // namespace stepgate
