// SPDX-License-Identifier: MIT
// Lines over TCP, between processes that a launcher started.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace stepgate {

// Closed at the end of its life.
class LineSocket {
 public:
  explicit LineSocket(int descriptor);
  ~LineSocket();
  LineSocket(const LineSocket&) = delete;
  LineSocket& operator=(const LineSocket&) = delete;

  // Adds the end of the line. To who is gone or takes nothing for long it is lost: `is_closed`.
  void send(std::string_view line);
  // The next line that came; nothing where there is none yet. Does not wait.
  std::optional<std::string> take();
  // The same, waiting for so long.
  std::optional<std::string> take_within(std::chrono::milliseconds);
  // Nothing more will come.
  bool is_closed() const { return closed_; }
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
  std::string received_;
  std::size_t searched_ = 0;
  bool closed_ = false;
};

// A port of this host that others may connect to.
class Listener {
 public:
  // Any free one; of this host alone, or of all its networks. Throws std::system_error.
  explicit Listener(bool only_this_host);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  int port() const { return port_; }
  // Waits so long for somebody to connect; null where nobody does.
  std::unique_ptr<LineSocket> accept_within(std::chrono::milliseconds) const;

 private:
  int descriptor_ = -1;
  int port_ = 0;
};

// Null where nobody listens there.
std::unique_ptr<LineSocket> connect_to(const std::string& host, int port);

}  // namespace stepgate
