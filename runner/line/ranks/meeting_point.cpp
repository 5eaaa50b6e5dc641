// SPDX-License-Identifier: MIT
#include "line/ranks/meeting_point.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/hmac_sha256.h"
#include "base/interruption.h"
#include "base/text/diagnostic.h"

namespace stepgate {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::string_view welcome_word = "welcome";
// A network that loses the first packets, or a full queue of connections, costs a try.
constexpr milliseconds most_time_to_connect{2500};
constexpr milliseconds between_tries{50};
// How often a rank that waits for an answer looks whether rank 0 is elsewhere by now.
constexpr milliseconds between_directions{250};

[[noreturn]] void throw_system_error(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

OpenFile new_socket(int family) {
  OpenFile made(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (made.descriptor() < 0) throw_system_error("make a socket");
  return made;
}

void start_listening(const OpenFile& socket) {
  constexpr int most_waiting = 128;
  if (::listen(socket.descriptor(), most_waiting) != 0) throw_system_error("listen");
}

// The address of a socket in an opened folder. It does not depend on the folder's path, which may
// be longer than an address and may name another folder by now.
sockaddr_un address_in(int folder, const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = fmt::format("/proc/self/fd/{}/{}", folder, name);
  std::memcpy(address.sun_path, path.c_str(), std::min(path.size(), sizeof address.sun_path - 1));
  return address;
}

template <class Address>
const sockaddr* any(const Address& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

bool is_of_this_user(const OpenFile& socket) {
  ucred other{};
  socklen_t length = sizeof other;
  return ::getsockopt(socket.descriptor(), SOL_SOCKET, SO_PEERCRED, &other, &length) == 0 &&
         other.uid == ::geteuid();
}

// Waits until a connection that is being made is there.
bool is_connected(const OpenFile& socket) {
  pollfd one{socket.descriptor(), POLLOUT, 0};
  int problem = 0;
  socklen_t length = sizeof problem;
  return ::poll(&one, 1, static_cast<int>(most_time_to_connect.count())) == 1 &&
         ::getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &problem, &length) == 0 &&
         problem == 0;
}

// Returns null where no process listens there.
std::unique_ptr<LineSocket> connect_to(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0)
    return nullptr;
  std::unique_ptr<LineSocket> connected;
  for (const addrinfo* each = found; each != nullptr && !connected; each = each->ai_next) {
    OpenFile socket = new_socket(each->ai_family);
    const bool is_done = ::connect(socket.descriptor(), each->ai_addr, each->ai_addrlen) == 0;
    if (is_done || (errno == EINPROGRESS && is_connected(socket)))
      connected = std::make_unique<LineSocket>(std::move(socket));
  }
  ::freeaddrinfo(found);
  return connected;
}

std::unique_ptr<LineSocket> connect_in(const OpenFile& folder, const std::string& name) {
  OpenFile socket = new_socket(AF_UNIX);
  const sockaddr_un address = address_in(folder.descriptor(), name);
  if (::connect(socket.descriptor(), any(address), sizeof address) != 0 || !is_of_this_user(socket))
    return nullptr;
  return std::make_unique<LineSocket>(std::move(socket));
}

// A place where rank 0 may be.
struct Candidate {
  std::unique_ptr<LineSocket> socket;
  std::string token;
};

// Connects to the first process that listens at the places where rank 0 may be.
Candidate connected_candidate(const std::filesystem::path& file, const std::string& name) {
  if (!file.empty()) {
    const auto meeting = read_meeting_file(file);
    if (!meeting) return {};
    return {.socket = connect_to(meeting->host, meeting->port), .token = meeting->token};
  }
  for (const OpenFile& folder : private_folders()) {
    if (auto socket = connect_in(folder, name)) return {.socket = std::move(socket), .token = ""};
  }
  return {};
}

// Returns what leads to rank 0, to be compared with what leads there later.
std::string directions(const std::filesystem::path& file, const std::string& name) {
  if (!file.empty()) {
    const auto meeting = read_meeting_file(file);
    return meeting ? text_of(*meeting) : "";
  }
  for (const OpenFile& folder : private_folders()) {
    struct stat socket {};
    if (::fstatat(folder.descriptor(), name.c_str(), &socket, AT_SYMLINK_NOFOLLOW) == 0)
      return fmt::format("{} {}", socket.st_dev, socket.st_ino);
  }
  return "";
}

}  // namespace

MeetingPoint::MeetingPoint(const std::filesystem::path& file, const LaunchedAs& as) {
  if (file.empty()) {
    listen_in_folder(as);
  } else {
    listen_on_port(file, as.on_one_host);
  }
}

MeetingPoint::~MeetingPoint() = default;

void MeetingPoint::listen_in_folder(const LaunchedAs& as) {
  const std::string name = socket_name(as);
  folder_ = make_private_folder();
  const OpenFile folder(::open(folder_->path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  listener_ = new_socket(AF_UNIX);
  const sockaddr_un address = address_in(folder.descriptor(), name);
  if (::bind(listener_.descriptor(), any(address), sizeof address) != 0) {
    throw RequestError(fmt::format("ranks cannot meet in {}: {}", folder_->path().generic_string(),
                                   std::strerror(errno)),
                       "name a file that only this start uses: --rendezvous FILE");
  }
  start_listening(listener_);
}

void MeetingPoint::listen_on_port(const std::filesystem::path& file, bool on_one_host) {
  token_ = unguessable_digits();
  listener_ = new_socket(AF_INET);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(on_one_host ? INADDR_LOOPBACK : INADDR_ANY);
  socklen_t length = sizeof address;
  if (::bind(listener_.descriptor(), any(address), length) != 0 ||
      ::getsockname(listener_.descriptor(), reinterpret_cast<sockaddr*>(&address), &length) != 0)
    throw_system_error("listen on a port");
  start_listening(listener_);
  file_ = std::make_unique<MeetingFile>(
      file, Meeting{.host = on_one_host ? "127.0.0.1" : name_of_this_host(),
                    .port = ntohs(address.sin_port),
                    .token = token_});
}

void MeetingPoint::look(milliseconds within, std::span<std::unique_ptr<LineSocket>> others) {
  std::vector<pollfd> news{{listener_.descriptor(), POLLIN, 0}};
  for (const Stranger& one : strangers_) news.push_back({one.socket->descriptor(), POLLIN, 0});
  ::poll(news.data(), news.size(), static_cast<int>(within.count()));
  // A connection that has waited is heard before others take its place.
  strangers_.remove_if([&](Stranger& one) { return is_done_with(one, others); });
  take_connections();
}

void MeetingPoint::take_connections() {
  for (std::size_t taken = 0; taken < most_strangers; ++taken) {
    OpenFile connected(
        ::accept4(listener_.descriptor(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (connected.descriptor() < 0) return;
    if (folder_ && !is_of_this_user(connected)) continue;
    if (strangers_.size() == most_strangers) {
      const auto silent = std::ranges::find_if(
          strangers_, [](const Stranger& one) { return one.once.of_rank.empty(); });
      strangers_.erase(silent == strangers_.end() ? strangers_.begin() : silent);
    }
    strangers_.push_back({.socket = std::make_unique<LineSocket>(std::move(connected)),
                          .deadline = Clock::now() + most_time_to_introduce});
  }
}

bool MeetingPoint::is_done_with(Stranger& stranger,
                                std::span<std::unique_ptr<LineSocket>> others) const {
  LineSocket& socket = *stranger.socket;
  while (const auto line = socket.take()) {
    if (stranger.once.of_rank.empty()) {
      const auto introduced = number_introduced(*line);
      if (!introduced) return true;
      stranger.once = {.of_rank = *introduced, .of_leader = unguessable_digits()};
      socket.send(answer_to(stranger.once, token_));
      continue;
    }
    const auto who = proven_rank(*line, stranger.once, token_);
    const auto rank = static_cast<std::size_t>(who ? who->rank : 0);
    const bool has_place = rank > 0 && rank < others.size() && !others[rank] &&
                           who->count == static_cast<int>(others.size());
    if (has_place) {
      socket.trust();
      socket.send(welcome_word);
      others[rank] = std::move(stranger.socket);
    }
    return true;
  }
  return socket.is_closed() || Clock::now() >= stranger.deadline;
}

std::unique_ptr<LineSocket> find_leader(const std::filesystem::path& file, const LaunchedAs& as,
                                        std::chrono::milliseconds most) {
  const std::string name = file.empty() ? socket_name(as) : "";
  const auto deadline = Clock::now() + most;
  for (; Clock::now() < deadline; std::this_thread::sleep_for(between_tries)) {
    const std::string led_by = directions(file, name);
    auto [socket, token] = connected_candidate(file, name);
    if (!socket) continue;
    const std::string once = unguessable_digits();
    socket->send(introduction_of(once));
    // Rank 0 answers when it needs the other ranks; this process waits while rank 0 plans. A
    // process that has taken rank 0's old port may never answer.
    bool is_proven = false;
    while (!socket->is_closed() && Clock::now() < deadline) {
      const auto line = socket->take_within(between_directions);
      if (!line) {
        if (directions(file, name) != led_by) break;
        continue;
      }
      if (is_proven && *line == welcome_word) {
        socket->trust();
        return std::move(socket);
      }
      const auto proof = proof_of_rank(*line, once, token, {.rank = as.rank, .count = as.count});
      if (is_proven || !proof) break;
      is_proven = true;
      socket->send(*proof);
    }
  }
  return nullptr;
}

}  // namespace stepgate
