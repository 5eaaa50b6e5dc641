// SPDX-License-Identifier: MIT
#include "tests/ranks/forked_ranks.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <system_error>

#include "device/cuda/cuda_device.h"
#include "device/cuda/nccl/nccl.h"

namespace stepgate {
namespace {

using std::chrono::steady_clock;

constexpr char has_failed = 'E';
constexpr char has_answered = 'A';

[[noreturn]] void throw_errno(const char* doing) {
  throw std::system_error(errno, std::generic_category(), doing);
}

void write_all(int file, const void* bytes, std::size_t size) {
  const auto* from = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t written = ::send(file, from, size, MSG_NOSIGNAL);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) throw_errno("write to a rank");
    from += written;
    size -= static_cast<std::size_t>(written);
  }
}

void wait_for_any(std::vector<pollfd>& files, steady_clock::time_point end) {
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - steady_clock::now()).count();
    const int ready =
        ::poll(files.data(), files.size(), static_cast<int>(std::max<std::int64_t>(left, 0)));
    if (ready > 0) return;
    if (ready < 0 && errno != EINTR) throw_errno("wait for a rank");
    if (ready == 0) throw std::runtime_error("no answer came in time");
  }
}

void read_all(int file, void* bytes, std::size_t size, steady_clock::time_point end) {
  auto* to = static_cast<char*>(bytes);
  std::vector<pollfd> waited{{.fd = file, .events = POLLIN, .revents = 0}};
  while (size > 0) {
    wait_for_any(waited, end);
    const ssize_t got = ::read(file, to, size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno("read from a rank");
    if (got == 0) throw std::runtime_error("it ended without an answer");
    to += got;
    size -= static_cast<std::size_t>(got);
  }
}

// Writes the length and then the text.
void write_text(int file, std::string_view text) {
  const std::uint64_t size = text.size();
  write_all(file, &size, sizeof size);
  write_all(file, text.data(), text.size());
}

std::string read_text(int file, steady_clock::time_point end) {
  std::uint64_t size = 0;
  read_all(file, &size, sizeof size, end);
  std::string text(size, '\0');
  read_all(file, text.data(), text.size(), end);
  return text;
}

[[noreturn]] void be_a_rank(const RankChannel& channel, int file, const RankWork& work) {
  std::string answer;
  try {
    answer = has_answered + work(channel);
  } catch (const std::exception& error) {
    answer = has_failed + std::string(error.what());
  }
  try {
    write_text(file, answer);
  } catch (const std::exception&) {
    ::_exit(1);
  }
  (void)std::fflush(stdout);
  ::_exit(0);  // runs no exit handlers of the test
}

class Ranks {
 public:
  Ranks(int count, const RankWork& work) {
    (void)std::fflush(stdout);  // or a child would write it again
    for (int rank = 0; rank < count; ++rank) {
      int ends[2];
      if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        throw_errno("make a channel to a rank");
      const pid_t child = ::fork();
      if (child < 0) throw_errno("start a rank");
      if (child == 0) {
        for (const int other : files_) ::close(other);
        ::close(ends[0]);
        be_a_rank({rank, count, ends[1]}, ends[1], work);
      }
      ::close(ends[1]);
      files_.push_back(ends[0]);
      children_.push_back(child);
    }
  }
  ~Ranks() {
    for (const int file : files_) ::close(file);
    for (const pid_t child : children_) {
      if (!all_answered_) (void)::kill(child, SIGKILL);
      (void)::waitpid(child, nullptr, 0);
    }
  }
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  void share(steady_clock::time_point end) const {
    const std::string of_rank_0 = told(end).front();
    for (const int file : files_) write_text(file, of_rank_0);
  }

  std::vector<std::string> answers(steady_clock::time_point end) {
    std::vector<std::string> all = told(end);
    all_answered_ = true;
    return all;
  }

 private:
  // Returns the next text of every rank. The first rank that fails ends the wait, since the others
  // may be waiting for it.
  std::vector<std::string> told(steady_clock::time_point end) const {
    std::vector<std::string> all(files_.size());
    std::vector<pollfd> waited;
    for (const int file : files_) waited.push_back({.fd = file, .events = POLLIN, .revents = 0});
    for (std::size_t left = files_.size(); left > 0;) {
      wait_for_any(waited, end);
      for (std::size_t rank = 0; rank < waited.size(); ++rank) {
        if (waited[rank].fd < 0 || waited[rank].revents == 0) continue;
        all[rank] = told_by(rank, end);
        waited[rank].fd = -1;
        --left;
      }
    }
    return all;
  }

  std::string told_by(std::size_t rank, steady_clock::time_point end) const {
    std::string told;
    try {
      told = read_text(files_[rank], end);
    } catch (const std::exception& error) {
      throw std::runtime_error(fmt::format("rank {}: {}", rank, error.what()));
    }
    if (told.starts_with(has_failed))
      throw std::runtime_error(fmt::format("rank {}: {}", rank, told.substr(1)));
    return told.substr(1);
  }

  std::vector<int> files_;
  std::vector<pid_t> children_;
  bool all_answered_ = false;
};

}  // namespace

std::string RankChannel::share(std::string_view of_rank_0) const {
  write_text(file_, has_answered + std::string(rank_ == 0 ? of_rank_0 : std::string_view()));
  return read_text(file_, steady_clock::now() + std::chrono::seconds(120));
}

std::vector<std::string> run_ranks(int count, int shares, const RankWork& work,
                                   std::chrono::seconds limit) {
  const auto end = steady_clock::now() + limit;
  Ranks ranks(count, work);
  for (int share = 0; share < shares; ++share) ranks.share(end);
  return ranks.answers(end);
}

std::string reason_against_ranks_here(int count) {
  return run_ranks(1, 0,
                   [count](const RankChannel&) -> std::string {
                     const int visible = visible_gpus();
                     if (visible < count)
                       return fmt::format("{} ranks need as many GPUs, and {} are visible", count,
                                          visible);
                     return Nccl().unavailable();
                   })
      .front();
}

}  // namespace stepgate
