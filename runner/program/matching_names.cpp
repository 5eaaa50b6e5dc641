// SPDX-License-Identifier: MIT
#include "program/matching_names.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <regex>
#include <system_error>

#include "base/process/supervised.h"
#include "device/cuda/cupti/kernel_name.h"
#include "program/record_format.h"

namespace stepgate {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t most_added_bytes = 32 << 20;
constexpr std::chrono::seconds longest_name{5};
constexpr int answer_wait_milliseconds = 100;

// Without memory the demangler goes on and throws its text away: its time is bounded apart.
void bound_memory() {
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const auto bytes = static_cast<rlim_t>(pages) * static_cast<rlim_t>(::getpagesize());
  const rlimit memory{bytes + most_added_bytes, bytes + most_added_bytes};
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_AS, &memory);
  ::setrlimit(RLIMIT_CORE, &none);
}

[[noreturn]] void answer(const std::vector<std::string>& symbols, const std::regex& expression,
                         int into) {
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE}) ::signal(signal, SIG_DFL);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  bound_memory();
  try {
    for (const std::string& symbol : symbols) {
      // The matcher recurses with the length of the text.
      const std::string name =
          readable_kernel_name(symbol.c_str()).substr(0, attached::longest_name_bytes);
      const char found = std::regex_search(name, expression) ? 1 : 0;
      if (::write(into, &found, 1) != 1) break;
    }
  } catch (...) {  // no memory, or an expression that is too much for the matcher
  }
  ::_exit(0);
}

class Answerer {
 public:
  explicit Answerer(pid_t process) : process_(process) {}
  Answerer(const Answerer&) = delete;
  Answerer& operator=(const Answerer&) = delete;
  ~Answerer() {
    ::kill(process_, SIGKILL);
    while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }

 private:
  pid_t process_;
};

}  // namespace

std::optional<std::vector<bool>> matching_names(const std::vector<std::string>& symbols,
                                                const std::string& expression,
                                                Clock::time_point deadline) {
  const std::regex compiled(expression);
  std::vector<bool> found;
  if (symbols.empty()) return found;
  Pipe pipe = make_pipe();
  const pid_t child = ::fork();
  if (child < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (child == 0) answer(symbols, compiled, pipe.write.get());
  const Answerer answerer(child);
  pipe.write.close();
  std::array<char, 4096> bytes{};
  Clock::time_point last = Clock::now();
  while (found.size() < symbols.size() && Clock::now() < std::min(deadline, last + longest_name)) {
    pollfd news{pipe.read.get(), POLLIN, 0};
    if (::poll(&news, 1, answer_wait_milliseconds) <= 0) continue;
    const ssize_t got = ::read(pipe.read.get(), bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    last = Clock::now();
    for (ssize_t at = 0; at < got; ++at) found.push_back(bytes[static_cast<std::size_t>(at)] != 0);
  }
  if (found.size() < symbols.size()) return std::nullopt;
  return found;
}

}  // namespace stepgate
