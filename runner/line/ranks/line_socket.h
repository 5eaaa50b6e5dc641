// SPDX-License-Identifier: MIT
// Sends lines between processes of a launcher, over TCP or a UNIX socket.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/files/open_file.h"

namespace stepgate {

// The most bytes that a line may have, before the other end has proved who it is and afterwards.
constexpr std::size_t most_bytes_of_a_stranger = 512;
constexpr std::size_t most_bytes_of_a_rank = std::size_t{1} << 22;

// The destructor closes the connection.
class LineSocket {
 public:
  explicit LineSocket(OpenFile connected);

  // Lets lines be as long as those of a rank.
  void trust() { most_bytes_ = most_bytes_of_a_rank; }

  // Sends the line with a line end. If the receiver is gone or blocked for long, the line is lost
  // and `is_closed` returns true.
  void send(std::string_view line);
  // Returns the next received line; nullopt where there is none yet. Does not wait.
  std::optional<std::string> take();
  // Returns the next line, waiting up to this time.
  std::optional<std::string> take_within(std::chrono::milliseconds);
  // Returns whether no more lines will come.
  bool is_closed() const { return closed_; }
  int descriptor() const { return file_.descriptor(); }

 private:
  OpenFile file_;
  std::string received_;
  std::size_t searched_ = 0;
  std::size_t most_bytes_ = most_bytes_of_a_stranger;
  bool closed_ = false;
};

}  // namespace stepgate
