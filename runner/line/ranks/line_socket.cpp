// SPDX-License-Identifier: MIT
#include "line/ranks/line_socket.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace stepgate {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// A receiver that is blocked for this time counts as gone.
constexpr milliseconds most_time_to_send{10'000};

void wait_for(int descriptor, short what, milliseconds within) {
  pollfd one{descriptor, what, 0};
  ::poll(&one, 1, static_cast<int>(within.count()));
}

}  // namespace

LineSocket::LineSocket(OpenFile connected) : file_(std::move(connected)) {
  ::fcntl(descriptor(), F_SETFL, O_NONBLOCK);
  const int yes = 1;  // answers are urgent; a UNIX socket does not know the option
  ::setsockopt(descriptor(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

void LineSocket::send(std::string_view line) {
  const std::string text = std::string(line) + '\n';
  const auto deadline = Clock::now() + most_time_to_send;
  std::size_t sent = 0;
  while (sent < text.size() && !closed_) {
    const auto length = ::send(descriptor(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (length >= 0) {
      sent += static_cast<std::size_t>(length);
    } else if (errno != EAGAIN || Clock::now() >= deadline) {
      closed_ = true;
    } else {
      wait_for(descriptor(), POLLOUT, milliseconds(100));
    }
  }
}

std::optional<std::string> LineSocket::take() {
  while (true) {
    const std::size_t end = received_.find('\n', searched_);
    if (end != std::string::npos) {
      std::string line = received_.substr(0, end);
      received_.erase(0, end + 1);
      searched_ = 0;
      return line;
    }
    searched_ = received_.size();
    if (received_.size() > most_bytes_) closed_ = true;
    if (closed_) return std::nullopt;
    std::array<char, 1 << 16> chunk;
    const auto length =
        ::recv(descriptor(), chunk.data(), std::min(chunk.size(), most_bytes_ + 1), 0);
    if (length > 0) received_.append(chunk.data(), static_cast<std::size_t>(length));
    if (length < 0 && errno == EAGAIN) return std::nullopt;
    if (length <= 0) closed_ = true;
  }
}

std::optional<std::string> LineSocket::take_within(milliseconds time) {
  const auto deadline = Clock::now() + time;
  while (true) {
    auto line = take();
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
    if (line || closed_ || left <= milliseconds(0)) return line;
    wait_for(descriptor(), POLLIN, left);
  }
}

}  // namespace stepgate
