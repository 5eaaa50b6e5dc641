// SPDX-License-Identifier: MIT
// Connects the processes of a launcher. Rank 0 leads and the others connect to it. Each starts its
// rank process when rank 0 requests it, and forwards lines. So a rank process is the same in every
// setup, and a process without a GPU notices when it ends.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/interruption.h"
#include "base/text/diagnostic.h"
#include "device/ranked/child_link.h"
#include "line/ranks/line_socket.h"
#include "line/ranks/meeting_point.h"
#include "line/ranks/rank_team.h"

namespace stepgate {
namespace {

using LaunchClock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds most_time_to_meet{60};
// Time limit for connecting at the end of a run, when other processes may not have started yet.
constexpr seconds most_time_to_meet_at_end{10};
constexpr milliseconds between_looks{50};
constexpr seconds most_time_to_stop{3};

constexpr std::string_view start_word = "start ";  // followed by the purpose and the seed
constexpr std::string_view to_word = "to ";        // followed by a line for the rank
constexpr std::string_view stop_word = "stop";
constexpr std::string_view stopped_word = ".";
constexpr std::string_view end_word = "end ";  // followed by the exit code
constexpr std::string_view gone_mark = "!";    // followed by the reason
constexpr std::string_view tracing_word = "tracing ";
constexpr std::string_view timing_word = "timing ";

template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
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
        point_(std::in_place, arguments.ranks.rendezvous, as),
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
    while (point_ && !all_are_there() && LaunchClock::now() < deadline && !interrupted)
      point_->look(between_looks, others_);
    if (all_are_there()) point_.reset();  // nobody else is to connect
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
  std::optional<MeetingPoint> point_;                // until all others are there
  std::vector<std::unique_ptr<LineSocket>> others_;  // by rank; null until connected
};

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
      const auto code = number_in<std::uint8_t>(after(end_word));
      code_ = code ? *code : left_;
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
    leader = find_leader(arguments.ranks.rendezvous, as, most_time_to_meet);
  } catch (const RequestError&) {
    return codes.refused;
  }
  if (leader) return Attendant(arguments, as, *leader, codes.left).serve();
  const auto place = arguments.ranks.rendezvous;
  throw DeviceError(
      fmt::format("rank {} of {} did not find rank 0 within {} s in {}; start the same command on "
                  "all, and name "
                  "a file that all of them see: --rendezvous FILE",
                  as.rank, name_of(as.launcher), most_time_to_meet.count(),
                  (place.empty() ? places_to_meet().front() : place).string()));
}

}  // namespace stepgate
