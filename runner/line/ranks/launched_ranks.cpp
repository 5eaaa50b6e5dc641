// SPDX-License-Identifier: MIT
// Connects the processes of a launcher. Rank 0 leads and the others connect to it. Each starts its
// rank process when rank 0 requests it, and forwards lines. So a rank process is the same in every
// setup, and a process without a GPU notices when it ends.
#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "base/interruption.h"
#include "base/text/diagnostic.h"
#include "device/ranked/child_link.h"
#include "device/ranked/meeting.h"
#include "line/ranks/rank_team.h"

namespace stepgate {
namespace {

// Sends lines over TCP between processes of a launcher.

// The destructor closes the connection.
class LineSocket {
 public:
  explicit LineSocket(int descriptor);
  ~LineSocket();
  LineSocket(const LineSocket&) = delete;
  LineSocket& operator=(const LineSocket&) = delete;

  // Sends the line with a line end. If the receiver is gone or blocked for long, the line is lost
  // and `is_closed` returns true.
  void send(std::string_view line);
  // Returns the next received line; nullopt where there is none yet. Does not wait.
  std::optional<std::string> take();
  // Returns the next line, waiting up to this time.
  std::optional<std::string> take_within(std::chrono::milliseconds);
  // Returns whether no more lines will come.
  bool is_closed() const { return closed_; }
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
  std::string received_;
  std::size_t searched_ = 0;
  bool closed_ = false;
};

// Listens for connections on a port of this host.
class Listener {
 public:
  // Chooses any free port, on this host only or on all its networks. Throws std::system_error.
  explicit Listener(bool only_this_host);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  int port() const { return port_; }
  // Waits up to this time for a connection; null where none comes.
  std::unique_ptr<LineSocket> accept_within(std::chrono::milliseconds) const;

 private:
  int descriptor_ = -1;
  int port_ = 0;
};

using SocketClock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// A receiver that is blocked for this time counts as gone.
constexpr milliseconds most_time_to_send{10'000};
constexpr std::size_t most_waiting_bytes = std::size_t{1} << 22;

bool is_ready(int descriptor, short what, milliseconds within) {
  pollfd one{descriptor, what, 0};
  return ::poll(&one, 1, static_cast<int>(within.count())) > 0;
}

[[noreturn]] void throw_system_error(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

LineSocket::LineSocket(int descriptor) : descriptor_(descriptor) {
  ::fcntl(descriptor_, F_SETFL, O_NONBLOCK);
  ::fcntl(descriptor_, F_SETFD, FD_CLOEXEC);
  const int yes = 1;  // answers are urgent
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

using LaunchClock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds most_time_to_meet{60};
// Time limit for connecting at the end of a run, when other processes may not have started yet.
constexpr seconds most_time_to_meet_at_end{10};
constexpr milliseconds most_time_to_introduce{2000};
constexpr milliseconds between_looks{50};
constexpr seconds most_time_to_stop{3};

constexpr std::string_view start_word = "start ";  // followed by the purpose and the seed
constexpr std::string_view to_word = "to ";        // followed by a line for the rank
constexpr std::string_view stop_word = "stop";
constexpr std::string_view stopped_word = ".";
constexpr std::string_view end_word = "end ";  // followed by the exit code
constexpr std::string_view gone_mark = "!";    // followed by the reason
constexpr std::string_view welcome_word = "welcome";
constexpr std::string_view tracing_word = "tracing ";
constexpr std::string_view timing_word = "timing ";

template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string name_of_this_host() {
  std::array<char, 256> host{};
  return ::gethostname(host.data(), host.size() - 1) == 0 ? host.data() : "localhost";
}

std::filesystem::path meeting_file(const LineArguments& arguments, const LaunchedAs& as) {
  return arguments.ranks.rendezvous.empty() ? default_meeting_file(as) : arguments.ranks.rendezvous;
}

// Link to a rank whose process was started by another process of the launcher.
class RemoteLink : public RankLink {
 public:
  RemoteLink(LineSocket& socket, const std::string& start) : socket_(socket) {
    socket_.send(start);
  }
  ~RemoteLink() override {
    socket_.send(stop_word);
    const auto deadline = LaunchClock::now() + most_time_to_stop;
    while (!socket_.is_closed() && LaunchClock::now() < deadline) {
      const auto line = socket_.take_within(between_looks);
      if (line == stopped_word) return;
    }
  }
  RemoteLink(const RemoteLink&) = delete;
  RemoteLink& operator=(const RemoteLink&) = delete;

  void send(std::string_view line) override { socket_.send(std::string(to_word).append(line)); }

  std::optional<std::string> take() override {
    auto line = socket_.take();
    if (line && line->starts_with(gone_mark)) throw RankGone(line->substr(gone_mark.size()));
    if (!line && socket_.is_closed()) throw RankGone("closed its connection");
    return line;
  }

  int descriptor() const override { return socket_.descriptor(); }

  void finish() override {
    const auto deadline = LaunchClock::now() + most_time_to_stop;
    try {
      while (LaunchClock::now() < deadline) {
        if (take()) continue;
        pollfd news{descriptor(), POLLIN, 0};
        ::poll(&news, 1, static_cast<int>(between_looks.count()));
      }
    } catch (const RankGone&) {  // expected at the end
    }
  }

 private:
  LineSocket& socket_;
};

class Leader : public RankTeam {
 public:
  Leader(const LineArguments& arguments, const LaunchedAs& as)
      : arguments_(arguments),
        as_(as),
        listener_(as.on_one_host),
        token_(make_token()),
        file_(meeting_file(arguments, as),
              {.host = as.on_one_host ? "127.0.0.1" : name_of_this_host(),
               .port = listener_.port(),
               .token = token_}),
        others_(static_cast<std::size_t>(as.count)) {}

  int count() const override { return as_.count; }

  void gather() override {
    meet(most_time_to_meet);
    refuse_missing_ranks();
  }

  std::unique_ptr<RankedDevice> assemble(std::uint64_t seed, RanksFor what) override {
    gather();
    std::vector<std::unique_ptr<RankLink>> links;
    links.push_back(start_rank(rank_job(arguments_, seed, what, 0, as_.local_rank)));
    const std::string start = fmt::format(
        "{}{}{}", start_word, what == RanksFor::tracing ? tracing_word : timing_word, seed);
    for (int rank = 1; rank < as_.count; ++rank)
      links.push_back(std::make_unique<RemoteLink>(*other(rank), start));
    RankedSettings settings = ranked_settings(arguments_);
    settings.launcher = name_of(as_.launcher);
    return std::make_unique<RankedDevice>(std::move(links), std::move(settings));
  }

  void end(int code) override {
    meet(most_time_to_meet_at_end);
    for (const auto& one : others_) {
      if (one) one->send(fmt::format("{}{}", end_word, code));
    }
  }

 private:
  std::unique_ptr<LineSocket>& other(int rank) { return others_[static_cast<std::size_t>(rank)]; }

  bool all_are_there() const {
    return std::all_of(others_.begin() + 1, others_.end(),
                       [](const auto& one) { return one != nullptr; });
  }

  void meet(seconds most) {
    const auto deadline = LaunchClock::now() + most;
    while (!all_are_there() && LaunchClock::now() < deadline && !interrupted) {
      if (auto socket = listener_.accept_within(between_looks)) introduce(std::move(socket));
    }
  }

  // Reads "<token> <rank> <count>". Closes connections that send anything else.
  void introduce(std::unique_ptr<LineSocket> socket) {
    const std::string line = socket->take_within(most_time_to_introduce).value_or("");
    const std::size_t first = line.find(' ');
    const std::size_t second = line.rfind(' ');
    if (first == std::string::npos || second == first || line.substr(0, first) != token_) return;
    const auto rank = number_in<int>(std::string_view(line).substr(first + 1, second - first - 1));
    const auto count = number_in<int>(std::string_view(line).substr(second + 1));
    if (!rank || *rank <= 0 || *rank >= as_.count || count != as_.count || other(*rank)) return;
    socket->send(welcome_word);
    other(*rank) = std::move(socket);
  }

  void refuse_missing_ranks() const {
    throw_if_interrupted();
    std::vector<std::size_t> missing;
    for (std::size_t rank = 1; rank < others_.size(); ++rank) {
      if (!others_[rank]) missing.push_back(rank);
    }
    if (missing.empty()) return;
    throw DeviceLost(fmt::format(
        "of the {} ranks that {} started, {} did not come within {} s; start the same command on "
        "all, and name a file that all of them see: --rendezvous FILE",
        as_.count, name_of(as_.launcher), fmt::join(missing, ", "), most_time_to_meet.count()));
  }

  const LineArguments& arguments_;
  LaunchedAs as_;
  Listener listener_;
  std::string token_;
  MeetingFile file_;
  std::vector<std::unique_ptr<LineSocket>> others_;  // by rank; null until connected
};

// Connects to rank 0 and waits until rank 0 has accepted this rank. A file that an earlier start
// has left leads to no process, or to one that closes the connection. Null after the time limit.
std::unique_ptr<LineSocket> find_leader(const LineArguments& arguments, const LaunchedAs& as) {
  const std::filesystem::path file = meeting_file(arguments, as);
  const auto deadline = LaunchClock::now() + most_time_to_meet;
  for (; LaunchClock::now() < deadline; std::this_thread::sleep_for(between_looks)) {
    const auto meeting = read_meeting_file(file);
    if (!meeting) continue;
    auto socket = connect_to(meeting->host, meeting->port);
    if (!socket) continue;
    socket->send(fmt::format("{} {} {}", meeting->token, as.rank, as.count));
    // Rank 0 accepts when it needs the other ranks; this process waits while rank 0 plans.
    while (!socket->is_closed() && LaunchClock::now() < deadline) {
      if (socket->take_within(between_looks) == welcome_word) return socket;
    }
  }
  return nullptr;
}

// Runs one rank process at a time, as rank 0 requests.
class Attendant {
 public:
  Attendant(const LineArguments& arguments, const LaunchedAs& as, LineSocket& leader, int left)
      : arguments_(arguments), as_(as), leader_(leader), left_(left) {}

  // Serves until the end and returns the exit code.
  int serve() {
    while (!code_) {
      while (auto line = leader_.take()) obey(*line);
      if (leader_.is_closed() && !code_) return left_;
      pass_on();
      wait();
    }
    return *code_;
  }

 private:
  void obey(std::string_view line) {
    const auto after = [&](std::string_view word) { return line.substr(word.size()); };
    if (line.starts_with(to_word)) {
      if (rank_) rank_->send(after(to_word));
    } else if (line.starts_with(start_word)) {
      start(after(start_word));
    } else if (line == stop_word) {
      rank_.reset();
      leader_.send(stopped_word);
    } else if (line.starts_with(end_word)) {
      code_ = number_in<int>(after(end_word)).value_or(left_);
    }
  }

  void start(std::string_view words) {
    const bool traces = words.starts_with(tracing_word);
    words.remove_prefix(std::min(words.size(), (traces ? tracing_word : timing_word).size()));
    const auto seed = number_in<std::uint64_t>(words);
    if (!seed) return;
    rank_ = start_rank(rank_job(arguments_, *seed, traces ? RanksFor::tracing : RanksFor::timing,
                                as_.rank, as_.local_rank));
  }

  void pass_on() {
    if (!rank_) return;
    try {
      while (auto line = rank_->take()) leader_.send(*line);
    } catch (const RankGone& gone) {
      std::string what = gone.what();
      std::ranges::replace(what, '\n', ' ');
      leader_.send(std::string(gone_mark) + what);
      rank_.reset();
    }
  }

  void wait() const {
    std::array<pollfd, 2> news{pollfd{leader_.descriptor(), POLLIN, 0},
                               pollfd{rank_ ? rank_->descriptor() : -1, POLLIN, 0}};
    constexpr int look_around_milliseconds = 100;
    const bool must_ask = rank_ && rank_->descriptor() < 0;
    ::poll(news.data(), news.size(), must_ask ? 1 : look_around_milliseconds);
  }

  const LineArguments& arguments_;
  const LaunchedAs& as_;
  LineSocket& leader_;
  int left_;
  std::unique_ptr<RankLink> rank_;
  std::optional<int> code_;
};

}  // namespace

std::unique_ptr<RankTeam> lead(const LineArguments& arguments, const LaunchedAs& as) {
  if (arguments.ranks.count) {
    throw RequestError(fmt::format("--ranks {} starts ranks, and {} has started {} already",
                                   *arguments.ranks.count, name_of(as.launcher), as.count),
                       "leave --ranks out, or start it without the launcher");
  }
  refuse_one_gpu(arguments);
  return std::make_unique<Leader>(arguments, as);
}

int attend(const LineArguments& arguments, const LaunchedAs& as, CodesWithoutLeader codes) {
  // Rank 0 refuses this request too, and reports the reason.
  if (arguments.ranks.count) return codes.refused;
  std::unique_ptr<LineSocket> leader;
  try {
    refuse_one_gpu(arguments);
    leader = find_leader(arguments, as);
  } catch (const RequestError&) {
    return codes.refused;
  }
  if (leader) return Attendant(arguments, as, *leader, codes.left).serve();
  throw DeviceError(
      fmt::format("rank {} of {} did not find rank 0 within {} s in {}; start the same command on "
                  "all, and name "
                  "a file that all of them see: --rendezvous FILE",
                  as.rank, name_of(as.launcher), most_time_to_meet.count(),
                  meeting_file(arguments, as).string()));
}

}  // namespace stepgate
