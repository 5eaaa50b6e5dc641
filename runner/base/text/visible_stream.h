// SPDX-License-Identifier: MIT
// The one way by which text reaches people: whatever a verb or a library prints to std::cout and
// std::cerr is made visible (visible_text.h) on its way out. A value that should stay on one line
// goes through one_line() before.
#pragma once

#include <memory>
#include <ostream>

namespace stepgate {

// The stream without what VisibleStreams does: for protocols, for commands to GitHub that are ours,
// and to move the cursor. What was printed to the stream before comes first.
std::ostream& as_it_is(std::ostream&);

// Makes visible what is printed to std::cout and std::cerr while it lives. `colours` says whether
// colours of a terminal stay in them.
class VisibleStreams {
 public:
  VisibleStreams(bool colours_of_output, bool colours_of_errors);
  VisibleStreams(const VisibleStreams&) = delete;
  VisibleStreams& operator=(const VisibleStreams&) = delete;
  ~VisibleStreams();

 private:
  friend std::ostream& as_it_is(std::ostream&);
  class Buffer;
  std::unique_ptr<Buffer> output_;
  std::unique_ptr<Buffer> errors_;
};

}  // namespace stepgate
