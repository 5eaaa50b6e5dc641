// SPDX-License-Identifier: MIT
// The way to one rank, whatever it is made of: a child process, a connection, or, in tests, the
// same process.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace stepgate {

// The rank is gone; the fact in words that go on after its name: "was ended by signal 9 (Killed)".
class RankGone : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class RankLink {
 public:
  virtual ~RankLink() = default;
  // A line, without its end. Who is gone or deaf shows when something is taken from it.
  virtual void send(std::string_view line) = 0;
  // The next line that it has said; nothing where there is none yet. Does not wait. Throws
  // RankGone.
  virtual std::optional<std::string> take() = 0;
  // Readable when `take` may have something new; below 0: ask it.
  virtual int descriptor() const = 0;
  // It was told to end: waits for that, a moment.
  virtual void finish() = 0;
};

}  // namespace stepgate
