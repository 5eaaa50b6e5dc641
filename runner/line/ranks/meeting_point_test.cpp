// SPDX-License-Identifier: MIT
// Tests that ranks find each other, whoever else connects to rank 0 or waits in its place.
#include "line/ranks/meeting_point.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <future>
#include <thread>
#include <vector>

#include "base/hmac_sha256.h"

namespace stepgate {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Others = std::vector<std::unique_ptr<LineSocket>>;

std::unique_ptr<LineSocket> connect_to_port(int port) {
  OpenFile socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(
      ::connect(socket.descriptor(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
      0);
  return std::make_unique<LineSocket>(std::move(socket));
}

// A process that listens where it should not.
class OtherListener {
 public:
  OtherListener() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(socket_.descriptor(), any, length), 0);
    EXPECT_EQ(::listen(socket_.descriptor(), 8), 0);
    EXPECT_EQ(::getsockname(socket_.descriptor(), any, &length), 0);
    port = ntohs(address.sin_port);
  }
  std::unique_ptr<LineSocket> accepted() const {
    return std::make_unique<LineSocket>(
        OpenFile(::accept4(socket_.descriptor(), nullptr, nullptr, SOCK_CLOEXEC)));
  }

  int port = 0;

 private:
  OpenFile socket_;
};

class MeetingPoints : public testing::Test {
 protected:
  static LaunchedAs as(int rank, int count = 2) {
    return {.rank = rank, .local_rank = rank, .count = count, .on_one_host = true, .job = "tests"};
  }
  std::future<std::unique_ptr<LineSocket>> coming(int rank, int count = 2,
                                                  std::chrono::milliseconds most = 20s) {
    return std::async(std::launch::async,
                      [=, this] { return find_leader(file_, as(rank, count), most); });
  }
  static bool all_are_there(const Others& others) {
    return std::all_of(others.begin() + 1, others.end(),
                       [](const auto& one) { return one != nullptr; });
  }
  static void look(MeetingPoint& point, Others& others, std::chrono::milliseconds most) {
    const auto deadline = Clock::now() + most;
    while (!all_are_there(others) && Clock::now() < deadline) point.look(20ms, others);
  }
  Meeting written() const { return read_meeting_file(file_).value(); }

  const TemporaryFolder folder_;
  std::filesystem::path file_ = folder_.path() / "meet";
};

TEST_F(MeetingPoints, ConnectEveryRankWithItsPlace) {
  for (const bool in_file : {true, false}) {
    if (!in_file) file_.clear();
    MeetingPoint point(file_, as(0, 4));
    Others others(4);
    auto third = coming(3, 4);
    auto first = coming(1, 4);
    auto second = coming(2, 4);
    look(point, others, 10s);
    ASSERT_TRUE(all_are_there(others));
    std::array ranks{first.get(), second.get(), third.get()};
    for (std::size_t rank = 1; rank < 4; ++rank) {
      ranks.at(rank - 1)->send("I am " + std::to_string(rank));
      EXPECT_EQ(others[rank]->take_within(5s), "I am " + std::to_string(rank));
      others[rank]->send(std::string(100'000, 'x'));
      EXPECT_EQ(ranks.at(rank - 1)->take_within(5s).value_or("").size(), 100'000U)
          << "a rank may say more than a stranger";
    }
  }
}

// More than may wait, and each kind of stranger that never proves itself.
TEST_F(MeetingPoints, AreNotKeptFromRanksByStrangers) {
  MeetingPoint point(file_, as(0));
  const int port = written().port;
  Others strangers;
  for (int each = 0; each < 50; ++each) {
    strangers.push_back(connect_to_port(port));  // says nothing
    strangers.push_back(connect_to_port(port));
    strangers.back()->send(introduction_of(unguessable_digits()));  // and never proves itself
  }
  Others others(2);
  for (int turn = 0; turn < 10; ++turn) point.look(1ms, others);
  auto rank = coming(1);
  const auto begin = Clock::now();
  look(point, others, 10s);
  EXPECT_TRUE(all_are_there(others));
  EXPECT_LT(Clock::now() - begin, 2s);
  EXPECT_NE(rank.get(), nullptr);
}

// The oldest go first, but not those that have introduced themselves.
TEST_F(MeetingPoints, KeepSixtyFourStrangersAtMost) {
  MeetingPoint point(file_, as(0));
  const int port = written().port;
  Others others(2);
  const auto first = connect_to_port(port);
  first->send(introduction_of(unguessable_digits()));
  for (int turn = 0; turn < 3; ++turn) point.look(20ms, others);
  Others silent;
  for (std::size_t each = 0; each < most_strangers + 10; ++each) {
    silent.push_back(connect_to_port(port));
    point.look(20ms, others);
  }
  const auto is_open = [](const auto& one) {
    (void)one->take();
    return !one->is_closed();
  };
  EXPECT_TRUE(is_open(first));
  EXPECT_EQ(std::ranges::count_if(silent, is_open), std::ptrdiff_t{most_strangers} - 1);
  EXPECT_FALSE(is_open(silent.front()));
  EXPECT_TRUE(is_open(silent.back()));
}

TEST_F(MeetingPoints, CloseConnectionsThatSayAnythingElse) {
  MeetingPoint point(file_, as(0));
  const Meeting meeting = written();
  const auto closes = [&](const std::vector<std::string>& lines) {
    const auto stranger = connect_to_port(meeting.port);
    for (const std::string& line : lines) stranger->send(line);
    Others others(2);
    const auto deadline = Clock::now() + 1s;  // before its time is over
    while (!stranger->is_closed() && Clock::now() < deadline) {
      point.look(10ms, others);
      (void)stranger->take();
    }
    return stranger->is_closed() && !others[1];
  };
  const std::string introduced = introduction_of(unguessable_digits());
  EXPECT_TRUE(closes({""}));
  EXPECT_TRUE(closes({"GET / HTTP/1.1"}));
  EXPECT_TRUE(closes({meeting.token + " 1 2"})) << "the token alone, as older builds sent it";
  EXPECT_TRUE(closes({std::string(100'000, 'x')}));
  EXPECT_TRUE(closes({introduced, introduced}));
  EXPECT_TRUE(closes({introduced, "proof 1 2 " + std::string(64, '0')}));
  EXPECT_TRUE(closes({introduced, "proof 0 2 x"}));
}

TEST_F(MeetingPoints, CloseConnectionsAfterTheirTime) {
  MeetingPoint point(file_, as(0));
  Others strangers;
  for (int each = 0; each < 3; ++each) strangers.push_back(connect_to_port(written().port));
  Others others(2);
  const auto begin = Clock::now();
  const auto are_closed = [&] {
    return std::ranges::all_of(strangers, [](const auto& one) {
      (void)one->take();
      return one->is_closed();
    });
  };
  while (!are_closed() && Clock::now() < begin + 10s) {
    point.look(10ms, others);
    strangers[0]->send("");  // sends lines without end, none of which is an introduction
    // Sends bytes without a line end.
    (void)::send(strangers[1]->descriptor(), "s", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  EXPECT_TRUE(are_closed());
  EXPECT_LT(Clock::now() - begin, most_time_to_introduce + 1s) << "all at once, and not in turn";
}

TEST_F(MeetingPoints, GiveNobodyAPlaceThatIsTakenOrThatIsNone) {
  MeetingPoint point(file_, as(0));
  Others others(2);
  auto rank = coming(1);
  look(point, others, 10s);
  ASSERT_NE(rank.get(), nullptr);
  for (const auto& [which, count] : {std::pair{1, 2}, {0, 2}, {2, 2}, {1, 3}, {-1, 2}}) {
    auto again = coming(which, count, 200ms);
    while (again.wait_for(0s) != std::future_status::ready) point.look(10ms, others);
    EXPECT_EQ(again.get(), nullptr) << which << " of " << count;
  }
}

// A process that has taken the port of a killed rank 0, and tries every answer.
TEST_F(MeetingPoints, AreNotTakenForOthersThatListenThere) {
  const OtherListener other;
  // A reader cannot know whether a writer of another host is alive. By this name, its own host is
  // another one.
  std::ofstream(file_) << text_of(
      Meeting{.host = "localhost", .port = other.port, .token = "secret"});
  auto rank = coming(1, 2, 500ms);
  for (const char* answer : {"welcome", "stepgate-leader", "proof", "end 0"}) {
    const auto connected = other.accepted();
    const std::string said = connected->take_within(5s).value_or("");
    EXPECT_TRUE(number_introduced(said)) << said;
    EXPECT_EQ(said.find("secret"), std::string::npos);
    const std::string once = *number_introduced(said);
    connected->send(answer == std::string("stepgate-leader")
                        ? answer_to({.of_rank = once, .of_leader = once}, "guess")
                        : answer);
    EXPECT_EQ(connected->take_within(5s), std::nullopt) << "nothing is said to who is not proved";
    EXPECT_TRUE(connected->is_closed());
  }
  EXPECT_EQ(rank.get(), nullptr);
}

TEST_F(MeetingPoints, AreFoundThoughAStrangerKeepsAnOldConnection) {
  const OtherListener silent;
  std::ofstream(file_) << text_of(
      Meeting{.host = "localhost", .port = silent.port, .token = "secret"});
  auto rank = coming(1);
  const auto held = silent.accepted();
  EXPECT_TRUE(held->take_within(5s));
  MeetingPoint point(file_, as(0));
  Others others(2);
  look(point, others, 5s);
  EXPECT_TRUE(all_are_there(others));
  EXPECT_NE(rank.get(), nullptr);
}

// A folder and a socket that everybody may enter, which they never are: the system still tells
// whose process connects.
TEST_F(MeetingPoints, TakeNobodyOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  ::setenv("XDG_RUNTIME_DIR", folder_.path().c_str(), 1);
  MeetingPoint point("", as(0));
  ::unsetenv("XDG_RUNTIME_DIR");
  std::filesystem::path place;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    if (entry.is_directory()) place = entry.path();
  }
  const std::filesystem::path path = place / socket_name(as(0));
  for (const auto& open : {folder_.path(), place, path})
    std::filesystem::permissions(open, std::filesystem::perms::all);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.string().copy(address.sun_path, sizeof address.sun_path - 1);
  const auto closes = [&](uid_t user) {
    const pid_t child = ::fork();
    if (child == 0) {
      char byte = 0;
      const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
      const bool is_there =
          ::setuid(user) == 0 &&
          ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
      ::_exit(is_there && ::recv(socket, &byte, 1, 0) == 0 ? 0 : 1);
    }
    Others others(2);
    int status = 0;
    const auto deadline = Clock::now() + 1s;  // before its time is over
    while (::waitpid(child, &status, WNOHANG) == 0) {
      point.look(10ms, others);
      if (Clock::now() < deadline) continue;
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      return false;
    }
    return status == 0;
  };
  constexpr uid_t another = 65534;
  EXPECT_TRUE(closes(another));
  EXPECT_FALSE(closes(0));
}

TEST_F(MeetingPoints, LeaveNothing) {
  { const MeetingPoint point(file_, as(0)); }
  EXPECT_FALSE(std::filesystem::exists(file_));
  ::setenv("XDG_RUNTIME_DIR", folder_.path().c_str(), 1);
  const auto entries = [&] {
    return std::distance(std::filesystem::directory_iterator(folder_.path()), {});
  };
  const auto before = entries();
  {
    const MeetingPoint point("", as(0));
    EXPECT_EQ(entries(), before + 1);
  }
  EXPECT_EQ(entries(), before);
  ::unsetenv("XDG_RUNTIME_DIR");
}

}  // namespace
}  // namespace stepgate
