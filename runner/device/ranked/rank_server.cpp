// SPDX-License-Identifier: MIT
#include "device/ranked/rank_server.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <condition_variable>
#include <csignal>
#include <istream>
#include <mutex>
#include <ostream>
#include <thread>
#include <utility>

#include "base/fnv1a.h"
#include "base/process/child.h"
#include "base/process/one_cpu.h"
#include "base/random.h"
#include "base/text/diagnostic.h"
#include "device/ranked/meeting.h"
#include "device/ranked/plan_digest.h"
#include "device/ranked/rank_bounds.h"
#include "plan/derive/plan_of_rank.h"

namespace stepgate {
namespace {

constexpr std::chrono::seconds between_signs_of_life{1};

// Digest of the weights that every rank holds in full: after an update they are equal bit by bit on
// all ranks.
std::uint64_t digest_of_weights(const StepPlan& plan, const std::vector<Tensor>& tensors) {
  std::uint64_t hash = fnv1a_start;
  for (const Tensor& tensor : tensors) {
    const auto buffer = std::ranges::find(plan.buffers, tensor.name, &Buffer::name);
    const bool is_of_all_ranks = buffer != plan.buffers.end() &&
                                 buffer->purpose == Purpose::weights && buffer->pieces.empty();
    if (!is_of_all_ranks) continue;
    hash = fnv1a(tensor.name, hash);
    for (const float value : tensor.values)
      hash = fnv1a_word(std::bit_cast<std::uint32_t>(value), hash);
  }
  return hash;
}

// Sends heartbeats as long as it exists.
class SignsOfLife {
 public:
  SignsOfLife(std::ostream& out, std::mutex& writing)
      : out_(out), writing_(writing), thread_([this] { say(); }) {}
  ~SignsOfLife() {
    {
      const std::lock_guard lock(writing_);
      over_ = true;
    }
    ended_.notify_all();
    thread_.join();
  }
  SignsOfLife(const SignsOfLife&) = delete;
  SignsOfLife& operator=(const SignsOfLife&) = delete;

 private:
  void say() {
    std::unique_lock lock(writing_);
    while (!ended_.wait_for(lock, between_signs_of_life, [this] { return over_; }))
      out_ << alive_line << '\n' << std::flush;
  }

  std::ostream& out_;
  std::mutex& writing_;
  std::condition_variable ended_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace

PlayedFault played_fault(const std::string& text) {
  struct Named {
    std::string_view name;
    int signal;
  };
  constexpr std::array signals{Named{"KILL", SIGKILL}, Named{"SEGV", SIGSEGV},
                               Named{"STOP", SIGSTOP}, Named{"LIE", 0}};
  const std::string_view words = text;
  const std::size_t colon = words.find(':');
  const std::string_view at = words.substr(0, colon);
  if (colon != std::string_view::npos && (at == "load" || at == "run")) {
    const auto found = std::ranges::find(signals, words.substr(colon + 1), &Named::name);
    if (found != signals.end()) return {.at_run = at == "run", .signal = found->signal};
  }
  throw RequestError("there is no fault '" + text + "' to play", "say load:KILL or run:STOP");
}

RankServer::RankServer(Device& device, RankSubject subject)
    : device_(device), subject_(std::move(subject)) {
  for (const PlannedStep& plan : subject_.plans) by_digest_.emplace(digest_of(plan), plan);
}

RankAnswer RankServer::answer(const RankRequest& request) {
  RankAnswer answer;
  const auto failed = [&](RankFault fault, std::string_view message) {
    answer.value = RankError{.fault = fault, .message = std::string(message)};
  };
  try {
    answer.value = std::visit([this](const auto& asked) { return value_of(asked); }, request);
  } catch (const DeviceLost& error) {
    failed(RankFault::lost, error.what());
  } catch (const DeviceMemoryFull& error) {
    failed(RankFault::memory_full, error.what());
  } catch (const DeviceError& error) {
    failed(RankFault::device, error.what());
  } catch (const std::bad_alloc&) {
    failed(RankFault::host_memory, no_host_memory);
  }
  answer.now = device_.now();
  return answer;
}

RankValue RankServer::value_of(const ask::Hello&) {
  return RankHello{.rank = subject_.rank,
                   .build = subject_.build,
                   .host = name_of_this_host(),
                   .process = ::getpid(),
                   .identity = device_.identity(),
                   .reason_against_tracing = device_.reason_against_tracing(),
                   .plans = named_plans(subject_.plans)};
}

RankValue RankServer::value_of(const ask::MakeRendezvous&) {
  return Rendezvous{device_.make_rendezvous()};
}

RankValue RankServer::value_of(const ask::Join& join) {
  if (join.membership.rank != subject_.rank || join.membership.rank >= join.membership.count) {
    throw DeviceError(fmt::format("it is rank {}, and is to join as rank {} of {}", subject_.rank,
                                  join.membership.rank, join.membership.count));
  }
  device_.join(join.membership);
  return Done{};
}

RankValue RankServer::value_of(const ask::Libraries& libraries) {
  return device_.libraries_for(plan_of(libraries.digest));
}

RankValue RankServer::value_of(const ask::Load& load) {
  play(false);
  for (const auto& [step, other] : loaded_) {
    if (step == load.step || other.slot == load.slot)
      throw DeviceError(fmt::format("step {} is still loaded, into slot {}", step, other.slot));
  }
  const bool is_a_part = carries_a_part(device_.identity().kind);
  StepPlan plan = plan_of(load.digest);
  if (is_a_part && plan.ranks.count > 1) plan = plan_of_rank(std::move(plan), subject_.rank);
  plan.scenario = load.scenario;
  plan.variant = load.variant;
  LoadDraw draw = load.draw;
  // The loaders of several processes draw independently.
  if (is_a_part && subject_.rank > 0)
    draw.loader = random_bits(draw.loader, static_cast<std::uint64_t>(subject_.rank));
  Loaded loaded{
      .slot = load.slot, .plan = std::make_unique<StepPlan>(std::move(plan)), .step = nullptr};
  loaded.step = device_.load_into(load.slot, *loaded.plan, draw);
  Choices choices = loaded.step->choices();
  loaded_.insert_or_assign(load.step, std::move(loaded));
  return choices;
}

RankValue RankServer::value_of(const ask::Run& run) {
  const bool lies = subject_.fault && subject_.fault->at_run && subject_.fault->signal == 0;
  play(true);
  const Loaded& what = loaded(run.step);
  std::optional<OneCpu> pinned;
  if (run.observe.cpu_draw)
    pinned.emplace(*run.observe.cpu_draw, subject_.rank, what.plan->ranks.count);
  RankRan ran{.result = what.step->run(run.observe), .weights = {}};
  if (lies && ran.result.elapsed) ++*ran.result.elapsed;
  if (run.observe.tensors) ran.weights = digest_of_weights(*what.plan, ran.result.tensors);
  return ran;
}

RankValue RankServer::value_of(const ask::RunInterleaved& run) {
  if (const auto wrong = wrong_order(run.how, run.steps.size()))
    throw DeviceError("it is asked for " + *wrong);
  std::vector<LoadedStep*> steps;
  for (const std::int64_t step : run.steps) {
    LoadedStep* const one = loaded(step).step.get();
    if (std::ranges::find(steps, one) != steps.end())
      throw DeviceError(fmt::format("it is asked for step {} twice", step));
    steps.push_back(one);
  }
  return device_.run_interleaved(steps, run.how);
}

RankValue RankServer::value_of(const ask::Unload& unload) {
  loaded_.erase(unload.step);
  return Done{};
}

RankValue RankServer::value_of(const ask::Restart& restart) {
  return Restarted{loaded(restart.step).step->restart()};
}

RankValue RankServer::value_of(const ask::Environment&) {
  return device_.read_environment();
}

RankValue RankServer::value_of(const ask::End&) {
  loaded_.clear();
  return Done{};
}

RankValue RankServer::value_of(const ask::CommunicatesWith& with) {
  return device_.communication(with.uuids);
}

const PlannedStep& RankServer::plan_of(const std::string& digest) {
  auto found = by_digest_.find(digest);
  if (found == by_digest_.end() && subject_.more_plans) {
    for (const PlannedStep& plan : std::exchange(subject_.more_plans, {})())
      by_digest_.emplace(digest_of(plan), plan);
    found = by_digest_.find(digest);
  }
  if (found != by_digest_.end()) return found->second;
  throw DeviceError(fmt::format("it has no plan with the digest {}", digest));
}

RankServer::Loaded& RankServer::loaded(std::int64_t step) {
  const auto found = loaded_.find(step);
  if (found != loaded_.end()) return found->second;
  throw DeviceError(fmt::format("it has loaded no step {}", step));
}

void RankServer::play(bool at_run) {
  if (!subject_.fault || subject_.fault->at_run != at_run) return;
  if (const int signal = std::exchange(subject_.fault, {})->signal; signal != 0) std::raise(signal);
}

void serve_rank(std::istream& in, std::ostream& out, RankServer& server) {
  MessageReader reader(longest_request);
  std::mutex writing;
  std::vector<char> line(longest_rank_line + 1);  // and a zero
  while (in.getline(line.data(), static_cast<std::streamsize>(line.size()))) {
    const auto message = reader.take(line.data());
    if (!message) continue;
    const RankRequest request = read_rank_request(*message);
    std::string text;
    {
      const SignsOfLife signs(out, writing);
      text = message_of(server.answer(request));
    }
    for (const std::string& part : lines_of(text)) out << part << '\n';
    flush_answer(out);
    if (std::holds_alternative<ask::End>(request)) return;
  }
  if (!in.eof())
    throw RankProtocolError(fmt::format("said more than {} bytes in one line", longest_rank_line));
}

}  // namespace stepgate
