// SPDX-License-Identifier: MIT
// The link to one rank: a child process, a network connection or, in tests, the same process.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace stepgate {

// The rank is gone. The message continues the rank's name: "was ended by signal 9 (Killed)".
class RankGone : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class RankLink {
 public:
  virtual ~RankLink() = default;
  // Sends a line without a line end. A rank that is gone or does not respond is noticed only in
  // `take`.
  virtual void send(std::string_view line) = 0;
  // Returns the next received line; nullopt where there is none yet. Does not wait. Throws
  // RankGone.
  virtual std::optional<std::string> take() = 0;
  // A file descriptor that is readable when `take` may have a line; negative: call `take`
  // regularly.
  virtual int descriptor() const = 0;
  // Waits briefly for a rank that was told to end.
  virtual void finish() = 0;
};

}  // namespace stepgate
