// SPDX-License-Identifier: MIT
// System calls.
#include "verbs/ranks/line_socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace stepgate {
namespace {

using SocketClock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// A receiver that takes nothing for so long is as good as gone.
constexpr milliseconds most_time_to_send{10'000};
constexpr std::size_t most_waiting_bytes = std::size_t{1} << 22;

bool is_ready(int descriptor, short what, milliseconds within) {
  pollfd one{descriptor, what, 0};
  return ::poll(&one, 1, static_cast<int>(within.count())) > 0;
}

[[noreturn]] void throw_system_error(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

LineSocket::LineSocket(int descriptor) : descriptor_(descriptor) {
  ::fcntl(descriptor_, F_SETFL, O_NONBLOCK);
  ::fcntl(descriptor_, F_SETFD, FD_CLOEXEC);
  const int yes = 1;  // lines are answers that somebody waits for
  ::setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

LineSocket::~LineSocket() {
  ::close(descriptor_);
}

void LineSocket::send(std::string_view line) {
  const std::string text = std::string(line) + '\n';
  const auto deadline = SocketClock::now() + most_time_to_send;
  std::size_t sent = 0;
  while (sent < text.size() && !closed_) {
    const auto length = ::send(descriptor_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (length >= 0) {
      sent += static_cast<std::size_t>(length);
    } else if (errno != EAGAIN || SocketClock::now() >= deadline) {
      closed_ = true;
    } else {
      is_ready(descriptor_, POLLOUT, milliseconds(100));
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
    if (closed_) return std::nullopt;
    std::array<char, 1 << 16> chunk;
    const auto length = ::recv(descriptor_, chunk.data(), chunk.size(), 0);
    if (length > 0) received_.append(chunk.data(), static_cast<std::size_t>(length));
    if (length < 0 && errno == EAGAIN) return std::nullopt;
    if (length <= 0 || received_.size() > most_waiting_bytes) closed_ = true;
  }
}

std::optional<std::string> LineSocket::take_within(milliseconds time) {
  const auto deadline = SocketClock::now() + time;
  while (true) {
    auto line = take();
    const auto left = std::chrono::ceil<milliseconds>(deadline - SocketClock::now());
    if (line || closed_ || left <= milliseconds(0)) return line;
    is_ready(descriptor_, POLLIN, left);
  }
}

Listener::Listener(bool only_this_host) {
  descriptor_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor_ < 0) throw_system_error("make a socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(only_this_host ? INADDR_LOOPBACK : INADDR_ANY);
  socklen_t length = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  constexpr int most_waiting = 128;
  if (::bind(descriptor_, any, length) != 0 || ::listen(descriptor_, most_waiting) != 0 ||
      ::getsockname(descriptor_, any, &length) != 0) {
    const int problem = errno;
    ::close(descriptor_);
    errno = problem;
    throw_system_error("listen on a port");
  }
  port_ = ntohs(address.sin_port);
}

Listener::~Listener() {
  ::close(descriptor_);
}

std::unique_ptr<LineSocket> Listener::accept_within(milliseconds time) const {
  if (!is_ready(descriptor_, POLLIN, time)) return nullptr;
  const int descriptor = ::accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC);
  return descriptor < 0 ? nullptr : std::make_unique<LineSocket>(descriptor);
}

std::unique_ptr<LineSocket> connect_to(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0)
    return nullptr;
  std::unique_ptr<LineSocket> connected;
  for (const addrinfo* each = found; each != nullptr && !connected; each = each->ai_next) {
    const int descriptor =
        ::socket(each->ai_family, each->ai_socktype | SOCK_CLOEXEC, each->ai_protocol);
    if (descriptor < 0) continue;
    if (::connect(descriptor, each->ai_addr, each->ai_addrlen) == 0) {
      connected = std::make_unique<LineSocket>(descriptor);
    } else {
      ::close(descriptor);
    }
  }
  ::freeaddrinfo(found);
  return connected;
}

}  // namespace stepgate
