// SPDX-License-Identifier: MIT
// Speaks with the hook over a UNIX socket in a private folder: launchers such as torchrun close
// other descriptors. The other end is the user's program, which is not trusted.
#include "program/held.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>
#include <thread>
#include <utility>

#include "base/files/write_file.h"
#include "base/interruption.h"
#include "base/process/child.h"
#include "base/process/masked_words.h"
#include "base/record/fields.h"
#include "base/record/json_forms.h"
#include "base/text/diagnostic.h"
#include "base/text/json_line.h"
#include "base/text/units.h"

namespace stepgate {

namespace held_wire {

inline constexpr Text name{1, 200};
inline constexpr Text name_if_any{0, 200};
inline constexpr Whole bytes{0, 1'000'000'000'000'000};
inline constexpr std::int64_t most_held_ranks = 1024;

struct Hello {
  std::string program;
  std::string device;
  std::string steps;
  std::int64_t device_memory_bytes = 0;
};
// The timed steps begin.
struct Begun {
  std::int64_t begun = 0;
};
struct Ran {
  std::int64_t steps = 0;
  std::chrono::nanoseconds elapsed{0};
  std::int64_t peak_memory_bytes = 0;
  std::int64_t reserved_memory_bytes = 0;
};
// Rank 0 has written its trace.
struct Traced {
  std::int64_t ranks = 1;  // on this machine
};

}  // namespace held_wire

template <>
inline constexpr auto fields_of<held_wire::Hello> = fields<
    described<&held_wire::Hello::program, held_wire::name>,
    described<&held_wire::Hello::device, held_wire::name_if_any>,
    described<&held_wire::Hello::steps, held_wire::name>,
    described<&held_wire::Hello::device_memory_bytes, Named("device_bytes"), held_wire::bytes>>;
template <>
inline constexpr auto fields_of<held_wire::Begun> =
    fields<described<&held_wire::Begun::begun, Whole{1, 1'000'000'000}>>;
template <>
inline constexpr auto fields_of<held_wire::Traced> = fields<
    described<&held_wire::Traced::ranks, Named("traced"), Whole{1, held_wire::most_held_ranks}>>;
template <>
inline constexpr auto fields_of<held_wire::Ran> = fields<
    described<&held_wire::Ran::steps, Whole{1, 1'000'000'000}>,
    described<&held_wire::Ran::elapsed, Named("elapsed_ns"), Whole{1, 3'600'000'000'000}>,
    described<&held_wire::Ran::peak_memory_bytes, Named("peak_bytes"), held_wire::bytes>,
    described<&held_wire::Ran::reserved_memory_bytes, Named("reserved_bytes"), held_wire::bytes>>;

namespace {

using std::chrono::nanoseconds;

constexpr std::size_t longest_held_line = 4096;
constexpr int held_look_around_milliseconds = 100;
constexpr std::chrono::milliseconds time_to_report_end{500};
// Two clocks may differ by this share, and each of their readings by a millisecond.
constexpr double clock_disagreement = 0.01;
constexpr nanoseconds clock_granularity = std::chrono::milliseconds(1);
// On a busy machine stepgate reads an answer late. This much more than the program says has another
// cause.
constexpr double late_share = 0.25;
constexpr nanoseconds late_once = std::chrono::milliseconds(50);
// A busy machine is late in some runs, and a clock that runs slowly in each by the same share. So
// much more in each of so many runs of this length has that cause.
constexpr double always_late_share = 0.05;
constexpr nanoseconds always_late = std::chrono::milliseconds(2);
constexpr nanoseconds long_run = std::chrono::milliseconds(20);
constexpr std::int64_t late_runs_to_tell = 8;

// The other ranks are this late at most where they wait for each other in collectives.
constexpr std::chrono::seconds most_wait_for_ranks{1};
constexpr std::chrono::microseconds between_looks_at_ranks{200};
// After two steps the clocks of the device have risen again too.
constexpr std::int64_t fewest_steps_to_settle = 2;
constexpr std::int64_t most_steps_to_settle = 16;

constexpr const char* way_out_of_clock =
    "not comparable: the clock stops before the work is done; let the program neither replace "
    "Python's clocks nor torch.cuda.synchronize";

std::string in_seconds(nanoseconds time) {
  return seconds_text(std::chrono::duration<double>(time).count());
}

int milliseconds_until(std::chrono::steady_clock::time_point deadline) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, held_look_around_milliseconds));
}

std::filesystem::path socket_in(const TemporaryFolder& folder) {
  return folder.path() / "hold";
}

std::filesystem::path trace_of(const TemporaryFolder& folder, std::int64_t rank) {
  return fmt::format("{}.rank{}.json", socket_in(folder).string(), rank);
}

// The ranks share the last end of a step to which they may go, and the first and the last one
// of a trace, which the hook of rank 0 writes. Each other rank writes behind them where it is held:
// one more than that end, and 0 before it was held.
using SharedNumbers = std::array<std::int64_t, 3 + held_wire::most_held_ranks>;

std::filesystem::path shared_numbers_in(const TemporaryFolder& folder) {
  return socket_in(folder).string() + ".steps";
}

void make_shared_numbers(const TemporaryFolder& folder) {
  write_file(shared_numbers_in(folder), std::string(sizeof(SharedNumbers), '\0'));
}

bool all_ranks_are_held(const TemporaryFolder& folder) {
  SharedNumbers numbers{};
  std::ifstream file(shared_numbers_in(folder), std::ios::binary);
  file.read(reinterpret_cast<char*>(numbers.data()), sizeof numbers);
  return std::all_of(numbers.begin() + 3, numbers.end(),
                     [&](std::int64_t held) { return held == 0 || held == numbers.front() + 1; });
}

OwnedDescriptor listen_in(const TemporaryFolder& folder) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = socket_in(folder).string();
  if (path.size() >= sizeof address.sun_path) {
    throw RequestError(fmt::format("'{}' is too long for the name of a socket", path),
                       "set TMPDIR to a folder with a short name");
  }
  std::ranges::copy(path, address.sun_path);
  const OwnedDescriptor made(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  OwnedDescriptor listening = copy_of(made.get());
  constexpr int others = 16;  // more of them are refused, and run on
  if (::bind(listening.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listening.get(), others) != 0)
    throw std::system_error(errno, std::generic_category(), "make the socket of a held program");
  return listening;
}

std::vector<std::string> environment_of(const HeldRequest& request, const AttachFiles& files,
                                        const TemporaryFolder& folder) {
  std::vector<std::string> added{fmt::format("{}={}", hold_variable, socket_in(folder).string())};
  if (!request.caches.empty()) {
    for (const auto& [name, cache] : cache_variables(request.caches))
      added.push_back(fmt::format("{}={}", name, cache));
  }
  return hooked_environment(request.variables, files, added);
}

std::string end_in_words(int status) {
  return WIFSIGNALED(status) ? fmt::format("was ended by signal {}", WTERMSIG(status))
                             : fmt::format("ended with exit code {}", WEXITSTATUS(status));
}

}  // namespace

std::vector<std::pair<std::string, std::string>> cache_variables(
    const std::filesystem::path& folder) {
  std::vector<std::pair<std::string, std::string>> variables;
  for (const auto& [name, cache] : {std::pair{"TORCHINDUCTOR_CACHE_DIR", "inductor"},
                                    {"TRITON_CACHE_DIR", "triton"},
                                    {"CUDA_CACHE_PATH", "cuda"},
                                    {"TORCH_EXTENSIONS_DIR", "extensions"},
                                    {"PYTORCH_KERNEL_CACHE_PATH", "kernels"}})
    variables.emplace_back(name, (folder / cache).string());
  return variables;
}

HeldError::HeldError(const std::string& thing, const std::string& fact, const std::string& way_out,
                     bool is_about_clock)
    : std::runtime_error(fmt::format("'{}' {}; {}", thing, fact, way_out)),
      is_about_clock_(is_about_clock) {}

void HeldProgram::fail(const std::string& fact, const std::string& way_out,
                       bool is_about_clock) const {
  throw HeldError(printable(to_text(masked(request_.command))), fact, way_out, is_about_clock);
}

HeldProgram::HeldProgram(const HeldRequest& request, const AttachFiles& files)
    : request_(request), listening_(listen_in(folder_)) {
  refuse_other_tools(request.variables);
  make_shared_numbers(folder_);
  program_.emplace(request.command, environment_of(request, files, folder_),
                   streams_of_program(shown_, request.quiet, false), request.folder);
  shown_.close_stream();
  start_ = Clock::now();
}

// Waits for news of the descriptor or the program, until the deadline or for look_around.
void HeldProgram::look_around(int descriptor, Clock::time_point deadline) {
  std::array<pollfd, 2> events{pollfd{descriptor, POLLIN, 0},
                               pollfd{program_->descriptor(), POLLIN, 0}};
  ::poll(events.data(), events.size(), milliseconds_until(deadline));
  // Its last answer is read before its end.
  if (events[1].revents != 0 && events[0].revents == 0) program_->take_report();
  throw_if_interrupted();
  if (program_->start_problem()) {
    throw RequestError(fmt::format("'{}' cannot be started: {}", masked(request_.command).front(),
                                   std::strerror(*program_->start_problem())),
                       "check its path and the folder in which it runs");
  }
}

void HeldProgram::accept_process(Clock::time_point deadline) {
  while (true) {
    pollfd news{listening_.get(), POLLIN, 0};
    if (::poll(&news, 1, 0) > 0) break;
    if (program_->status()) {
      fail(end_in_words(*program_->status()) + " before a step of its ended",
           "let it make steps with an optimizer of PyTorch, with the Python that runs "
           "sitecustomize");
    }
    if (Clock::now() >= deadline) {
      fail(fmt::format("ended no step within {}", in_seconds(request_.start_limit)),
           "let it make steps with an optimizer of PyTorch in rank 0, or give it more time");
    }
    look_around(listening_.get(), deadline);
  }
  const OwnedDescriptor accepted(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (accepted.get() < 0) fail("cannot be spoken with", "start it again");
  connection_ = copy_of(accepted.get());
  listening_.close();  // other processes that are waiting run on
  ::unlink(socket_in(folder_).c_str());
}

// A rank that ends its steps much later than rank 0 is stopped where it is.
void HeldProgram::wait_for_ranks(Clock::time_point deadline) {
  const Clock::time_point until = std::min(deadline, Clock::now() + most_wait_for_ranks);
  while (!all_ranks_are_held(folder_) && Clock::now() < until)
    std::this_thread::sleep_for(between_looks_at_ranks);
}

void HeldProgram::stop(Clock::time_point deadline) {
  wait_for_ranks(deadline);
  stopped_ = program_->stop();
  most_children_ = std::max(most_children_, static_cast<std::int64_t>(stopped_.most_children));
  if (stopped_.running) {
    fail(fmt::format("has a process {} that cannot be stopped while others are timed",
                     *stopped_.running),
         "let it start no process of another user", true);
  }
}

void HeldProgram::go_on() {
  let_go_on(std::exchange(stopped_, {}));
}

std::int64_t HeldProgram::steps_to_settle() const {
  return std::clamp(most_children_, fewest_steps_to_settle, most_steps_to_settle);
}

void HeldProgram::send(std::string_view line) {
  const std::string text = std::string(line) + '\n';
  // The wait for the answer says why nobody reads it.
  (void)::send(connection_.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

std::string HeldProgram::take_line(Clock::time_point deadline, const std::string& late) {
  while (true) {
    const std::size_t end = unread_.find('\n');
    if (end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    if (unread_.size() > longest_held_line)
      fail(fmt::format("wrote `{}` to the socket of stepgate's hook", printable(unread_)),
           "leave " + std::string(hold_variable) + " to the hook");
    std::array<char, longest_held_line> chunk{};
    const auto length = ::recv(connection_.get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
    if (length > 0) {
      unread_.append(chunk.data(), static_cast<std::size_t>(length));
      continue;
    }
    const bool is_closed = length == 0 || (errno != EAGAIN && errno != EINTR);
    if (is_closed || program_->status()) {
      const Clock::time_point reported = Clock::now() + time_to_report_end;
      while (!program_->status() && Clock::now() < reported) look_around(-1, reported);
      fail((program_->status() ? end_in_words(*program_->status())
                               : std::string("ended by itself in the held process")) +
               " before it made the steps that it was asked for",
           "let it run more steps");
    }
    if (Clock::now() >= deadline) fail(late, "give it more time, or look what it waits for");
    look_around(connection_.get(), deadline);
  }
}

template <class Value>
Value HeldProgram::answer(Clock::time_point deadline, const std::string& late) {
  const std::string line = take_line(deadline, late);
  try {
    return record_from<Value>(parsed_object(line));
  } catch (const WrongRecord& wrong) {
    fail(fmt::format("wrote `{}` to the socket of stepgate's hook, which {}", printable(line),
                     wrong.what()),
         "leave " + std::string(hold_variable) + " to the hook");
  }
}

const HeldHello& HeldProgram::hello() {
  if (hello_) return *hello_;
  const Clock::time_point deadline = start_ + request_.start_limit;
  accept_process(deadline);
  held_wire::Hello said = answer<held_wire::Hello>(
      deadline, fmt::format("said nothing within {}", in_seconds(request_.start_limit)));
  hello_ = HeldHello{.program = std::move(said.program),
                     .device = std::move(said.device),
                     .steps = std::move(said.steps),
                     .device_memory_bytes = said.device_memory_bytes};
  return *hello_;
}

HeldRun HeldProgram::run(std::int64_t steps, std::int64_t wash_out) {
  (void)hello();
  const std::string late = fmt::format("did not make {} steps within {}", steps + wash_out,
                                       in_seconds(request_.answer_limit));
  const Clock::time_point asked = Clock::now();
  const Clock::time_point deadline = asked + request_.answer_limit;
  send(json_line({{"steps", steps}, {"wash_out", wash_out}}));
  go_on();
  (void)answer<held_wire::Begun>(deadline, late);
  const Clock::time_point begun = Clock::now();
  const held_wire::Ran ran = answer<held_wire::Ran>(deadline, late);
  const Clock::time_point end = Clock::now();
  if (ran.steps != steps)
    fail(fmt::format("made {} steps when asked for {}", ran.steps, steps),
         "leave " + std::string(hold_variable) + " to the hook");
  const HeldRun run{.steps = steps,
                    .elapsed = ran.elapsed,
                    .wall = end - asked,
                    .peak_memory_bytes = ran.peak_memory_bytes,
                    .reserved_memory_bytes = ran.reserved_memory_bytes};
  check_clock(run, end - begun);
  stop(deadline);
  return run;
}

std::vector<std::filesystem::path> HeldProgram::trace(std::int64_t steps, std::int64_t wash_out) {
  (void)hello();
  const std::string late =
      fmt::format("wrote no trace within {}", in_seconds(request_.answer_limit));
  const Clock::time_point deadline = Clock::now() + request_.answer_limit;
  std::error_code unreadable;  // a program may leave anything there, and is then waited for
  for (std::int64_t rank = 0; rank < held_wire::most_held_ranks; ++rank)
    std::filesystem::remove(trace_of(folder_, rank), unreadable);
  send(json_line({{"steps", steps}, {"wash_out", wash_out}, {"trace", true}}));
  go_on();
  const auto traced = answer<held_wire::Traced>(deadline, late);
  std::vector<std::filesystem::path> traces;
  for (std::int64_t rank = 0; rank < traced.ranks; ++rank) {
    traces.push_back(trace_of(folder_, rank));
    while (!std::filesystem::is_regular_file(
        std::filesystem::symlink_status(traces.back(), unreadable))) {
      if (Clock::now() >= deadline) fail(late, "give it more time");
      look_around(-1, deadline);
    }
  }
  stop(deadline);
  return traces;
}

// `between`: from the message that the timed steps begin to the answer.
void HeldProgram::check_clock(const HeldRun& run, nanoseconds between) {
  const auto share_of = [](nanoseconds time, double share) {
    return std::chrono::duration_cast<nanoseconds>(time * share);
  };
  if (run.elapsed > run.wall + share_of(run.wall, clock_disagreement) + clock_granularity) {
    fail(fmt::format("says that its steps took {}, but answered within {}", in_seconds(run.elapsed),
                     in_seconds(run.wall)),
         way_out_of_clock, true);
  }
  claimed_ += run.elapsed + clock_granularity;
  passed_ += between;
  if (between >= long_run) {
    ++long_runs_;
    was_in_time_ = was_in_time_ ||
                   between <= run.elapsed + share_of(run.elapsed, always_late_share) + always_late;
  }
  if (passed_ > claimed_ + share_of(claimed_, late_share) + late_once ||
      (!was_in_time_ && long_runs_ >= late_runs_to_tell)) {
    fail(fmt::format("says that its steps took {}, and {} passed", in_seconds(claimed_),
                     in_seconds(passed_)),
         way_out_of_clock, true);
  }
}

void HeldProgram::quit() {
  if (connection_.get() >= 0) {
    send(json_line({{"quit", true}}));
    go_on();
    const Clock::time_point deadline = Clock::now() + time_to_report_end;
    while (!program_->status() && Clock::now() < deadline) look_around(-1, deadline);
  }
  program_.reset();
}

}  // namespace stepgate
