// SPDX-License-Identifier: MIT
#include "device/ranked/ranked_device.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/interruption.h"
#include "base/process/child.h"
#include "base/require.h"
#include "base/text/units.h"
#include "base/time_of_scope.h"
#include "device/ranked/combine_ranks.h"
#include "device/ranked/plan_digest.h"
#include "device/ranked/rank_bounds.h"
#include "device/ranked/rank_server.h"
#include "plan/analyse/access.h"

namespace stepgate {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// Interval at which a wait checks for signals, since a signal may come just before the wait begins.
constexpr milliseconds look_around{100};
constexpr std::chrono::seconds longest_look{1};
// When one rank has failed, the others may wait for it and never answer. They get this much more
// time, in which a rank that is gone may be noticed: its loss would explain more.
constexpr std::chrono::seconds patience_after_error{3};
// A signal to a whole job reaches its processes one after the other. A rank that has gone is no
// failure where this process is told to stop within this time.
constexpr milliseconds patience_for_stop{300};

// Formats rank numbers as "ranks 0, 1 and 3" or "rank 2".
std::string numbers_in_words(const std::vector<std::size_t>& numbers) {
  const std::size_t last = numbers.size() - 1;
  if (last == 0) return fmt::format("rank {}", numbers.front());
  return fmt::format(
      "ranks {} and {}",
      fmt::join(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(last), ", "),
      numbers.back());
}

// Returns the keys with different values in the other list.
std::vector<DeviceKey> differences(const std::vector<DeviceKey>& list,
                                   const std::vector<DeviceKey>& other) {
  std::vector<DeviceKey> found;
  for (const DeviceKey& key : other) {
    if (std::ranges::find(list, key) == list.end()) found.push_back(key);
  }
  for (const DeviceKey& key : list) {
    if (std::ranges::find(other, key.name, &DeviceKey::name) == other.end())
      found.push_back({key.name, "not set"});
  }
  return found;
}

// Returns the number of steps in which the rarest work of the plan happens once.
std::int64_t rarest_work(const StepPlan& plan) {
  std::int64_t rarest = std::max<std::int64_t>(plan.loader.restart_every, 1);
  for (const Operation& operation : plan.operations) rarest = std::max(rarest, operation.every);
  return rarest;
}

[[noreturn]] void throw_fault(RankFault fault, const std::string& message) {
  switch (fault) {
    case RankFault::memory_full:
      throw DeviceMemoryFull(message);
    case RankFault::host_memory:
      throw std::bad_alloc();
    default:
      throw DeviceError(message);
  }
}

}  // namespace

// A step that all ranks of its plan have loaded.
class RankedDevice::Step : public LoadedStep {
 public:
  Step(RankedDevice& device, std::size_t ranks, std::int64_t number, const StepPlan& plan)
      : device_(device),
        ranks_(ranks),
        number_(number),
        name_(fmt::format("'{}'", plan.variant)),
        operations_(plan.operations.size()),
        rarest_(rarest_work(plan)),
        ahead_(prefetch_depth(plan)),
        shards_updates_(plan.shards_updates) {}
  ~Step() override {
    if (communicates_) --device_.communicating_[static_cast<int>(ranks_)];
    try {
      if (device_.lost_.empty()) device_.all(ranks_, ask::Unload{.step = number_});
    } catch (const std::exception&) {  // the next request reports it
    }
  }
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  std::vector<KernelChoice> choices() const override { return choices_; }
  StepResult run(const Observe& observe) override { return device_.run(*this, observe); }
  bool restart() override {
    const auto answers = device_.all_values<Restarted>(ranks_, ask::Restart{.step = number_});
    return std::ranges::all_of(answers, &Restarted::in_place);
  }

  // Copies of later batches and of results may still run when the last step is over.
  std::int64_t unfinished_steps() const { return ahead_ + 1; }

 private:
  friend class RankedDevice;
  RankedDevice& device_;
  std::size_t ranks_;
  std::int64_t number_;
  std::string name_;  // "'fix'"
  std::size_t operations_;
  std::int64_t rarest_;  // some work happens once in so many steps
  int ahead_;            // steps whose batches are copied ahead
  bool shards_updates_;
  bool communicates_ = false;
  std::vector<KernelChoice> choices_;
};

RankedDevice::RankedDevice(std::vector<std::unique_ptr<RankLink>> links, RankedSettings settings)
    : settings_(std::move(settings)) {
  require(!links.empty(), "a device of ranks has at least one");
  for (std::size_t rank = 0; rank < links.size(); ++rank)
    ranks_.push_back({.link = std::move(links[rank]), .name = name_of_rank(rank)});
  const auto hellos = all_values<RankHello>(ranks_.size(), ask::Hello{});
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    ranks_[rank].hello = hellos[rank];
    const bool is_elsewhere = hellos[rank].host != hellos.front().host;
    ranks_[rank].name = fmt::format("{} (process {}{})", name_of_rank(rank), hellos[rank].process,
                                    is_elsewhere ? " on " + hellos[rank].host : "");
  }
  have_parts_ = carries_a_part(hellos.front().identity.kind);
  check_one_program();
  if (have_parts_) ask_what_they_communicate_with();
}

std::string RankedDevice::name_of_rank(std::size_t rank) const {
  return settings_.only.empty() ? fmt::format("rank {}", rank) : settings_.only;
}

RankedDevice::~RankedDevice() {
  for (Rank& rank : ranks_) {
    if (!lost_.empty()) break;
    send(rank, ask::End{});
  }
  for (Rank& rank : ranks_) {
    if (rank.link) rank.link->finish();
  }
}

void RankedDevice::check_one_program() {
  const Rank& first = ranks_.front();
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    const RankHello& hello = ranks_[rank].hello;
    if (hello.rank != static_cast<int>(rank))
      lose(fmt::format("{} says that it is rank {}", ranks_[rank].name, hello.rank));
    if (hello.build != first.hello.build) {
      lose(
          fmt::format("{} is another program than rank 0: its build is {} and not {}; start the "
                      "same file everywhere",
                      ranks_[rank].name, hello.build, first.hello.build));
    }
    const DeviceIdentity& own = hello.identity;
    const DeviceIdentity& other = first.hello.identity;
    if (own.kind != other.kind || own.name != other.name || own.driver != other.driver) {
      lose(fmt::format("{} has {}, and rank 0 has {}; ranks need the same device and driver",
                       ranks_[rank].name, in_words(own), in_words(other)));
    }
  }
}

void RankedDevice::refuse_other_plans(std::span<const NamedPlan> plans) {
  for (const Rank& rank : ranks_) {
    const std::vector<NamedPlan>& own = rank.hello.plans;
    const auto [expected, planned] = std::ranges::mismatch(plans, own);
    if (expected == plans.end() && planned == own.end()) continue;
    const auto in_quotes = [](const NamedPlan& plan) {
      return fmt::format("'{}' of '{}'", plan.variant, plan.scenario);
    };
    const char* way_out = "start all with the same files, --set and --seed";
    if (planned == own.end())
      lose(fmt::format("{} has not planned {}; {}", rank.name, in_quotes(*expected), way_out));
    if (expected == plans.end())
      lose(fmt::format("{} has also planned {}; {}", rank.name, in_quotes(*planned), way_out));
    if (expected->variant != planned->variant || expected->scenario != planned->scenario) {
      lose(fmt::format("{} has planned {} in the place of {}; {}", rank.name, in_quotes(*planned),
                       in_quotes(*expected), way_out));
    }
    lose(fmt::format("{} has planned another step for {}; {}", rank.name, in_quotes(*planned),
                     way_out));
  }
}

DeviceIdentity RankedDevice::identity() const {
  DeviceIdentity identity = ranks_.front().hello.identity;
  identity.gpus = count();
  if (!have_parts_) return identity;
  for (const Rank& rank : ranks_) {
    identity.ranks.push_back({.host = rank.hello.host,
                              .uuid = rank.hello.identity.uuid,
                              .communication = rank.communication});
  }
  identity.launcher = settings_.launcher;
  return identity;
}

void RankedDevice::ask_what_they_communicate_with() {
  ask::CommunicatesWith ask;
  for (const Rank& rank : ranks_) ask.uuids.push_back(rank.hello.identity.uuid);
  auto values = all_values<Communication>(ranks_.size(), ask);
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
    ranks_[rank].communication = std::move(values[rank]);
}

// The libraries of rank 0, plus those of other ranks that differ.
std::vector<DeviceKey> RankedDevice::libraries_for(const StepPlan& plan) {
  const std::size_t count = have_parts_ ? ranks_of(plan) : 1;
  const auto of_ranks = all_values<Libraries>(count, ask::Libraries{.digest = digest_of(plan)});
  Libraries all = of_ranks.front();
  for (std::size_t rank = 1; rank < of_ranks.size(); ++rank) {
    for (const DeviceKey& other : differences(of_ranks.front(), of_ranks[rank]))
      all.push_back({fmt::format("{} on rank {}", other.name, rank), other.value});
  }
  return all;
}

std::string RankedDevice::reason_against_tracing() const {
  for (const Rank& rank : ranks_) {
    if (!rank.hello.reason_against_tracing.empty())
      return fmt::format("{}: {}", rank.name, rank.hello.reason_against_tracing);
  }
  return "";
}

std::chrono::nanoseconds RankedDevice::now() const {
  return identity().kind == DeviceKind::simulated ? now_ : Device::now();
}

std::optional<EnvironmentReading> RankedDevice::read_environment() {
  try {
    std::vector<EnvironmentReading> readings;
    const std::size_t count = have_parts_ ? ranks_.size() : 1;
    for (Surroundings& own : all_values<Surroundings>(count, ask::Environment{})) {
      if (own) readings.push_back(std::move(*own));
    }
    if (readings.empty()) return std::nullopt;
    return combined(readings);
  } catch (const DeviceError& error) {  // the next request reports it
    return EnvironmentReading{.unavailable = error.what()};
  }
}

// A simulated device computes all ranks of a plan in every process, also for a plan of one rank.
// Otherwise later results would differ, since its noise continues from step to step.
std::size_t RankedDevice::ranks_of(const StepPlan& plan) const {
  if (plan.ranks.count > count()) {
    throw DeviceError(fmt::format("it needs {} ranks, and there {} {}", plan.ranks.count,
                                  count() == 1 ? "is" : "are", count()));
  }
  return have_parts_ ? static_cast<std::size_t>(plan.ranks.count) : ranks_.size();
}

std::unique_ptr<LoadedStep> RankedDevice::load(const StepPlan& plan, const LoadDraw& draw) {
  return load_into(only_slot, plan, draw);
}

std::unique_ptr<LoadedStep> RankedDevice::load_into(int slot, const StepPlan& plan,
                                                    const LoadDraw& draw) {
  const TimeOfScope loading(time_loading_);
  const std::size_t count = ranks_of(plan);
  if (have_parts_ && plan.ranks.count > 1) connect(plan.ranks.count);
  const std::int64_t number = next_step_++;
  const bool communicates = have_parts_ && plan.ranks.count > 1;
  // From here on, the step's destructor unloads it on every rank that loaded it, even if another
  // rank could not.
  auto step = std::make_unique<Step>(*this, count, number, plan);
  step->communicates_ = communicates;
  if (communicates) ++communicating_[plan.ranks.count];
  step->choices_ = all_values<Choices>(count, ask::Load{.step = number,
                                                        .slot = slot,
                                                        .digest = digest_of(plan),
                                                        .scenario = plan.scenario,
                                                        .variant = plan.variant,
                                                        .draw = draw})
                       .front();
  return step;
}

void RankedDevice::refuse_claims(const Rank& slowest, const std::string& steps, nanoseconds asked,
                                 ClaimedTime time) {
  if (!settings_.clock || identity().kind != DeviceKind::cuda || time.claimed.count() == 0) return;
  time.waited = settings_.clock() - asked - std::exchange(away_, nanoseconds(0));
  const auto problem = claimed_times_.problem_with(steps, time);
  if (problem) lose(fmt::format("{} {}", slowest.name, *problem));
}

StepResult RankedDevice::run(Step& step, const Observe& observe) {
  away_ = nanoseconds(0);
  const nanoseconds asked = settings_.clock ? settings_.clock() : nanoseconds(0);
  auto ran = all_values<RankRan>(step.ranks_, ask::Run{.step = step.number_, .observe = observe});
  for (std::size_t rank = 0; rank < ran.size(); ++rank) {
    const auto wrong = wrong_answer(ran[rank].result, observe, step.operations_);
    if (wrong) lose(fmt::format("{} {}", ranks_[rank].name, *wrong));
  }
  const bool is_timed =
      !observe.trace && !observe.tensors && !observe.gradients && observe.audit == 0;
  if (is_timed && step.rarest_ <= observe.steps) {
    const auto slowest =
        std::ranges::max_element(ran, {}, [](const RankRan& one) { return one.result.elapsed; });
    refuse_claims(ranks_[static_cast<std::size_t>(slowest - ran.begin())], step.name_, asked,
                  {.claimed = slowest->result.elapsed.value_or(nanoseconds(0)),
                   .explained = static_cast<double>(observe.wash_out_steps + observe.steps +
                                                    step.unfinished_steps()) /
                                static_cast<double>(observe.steps)});
  }
  if (!have_parts_) {
    refuse_disagreement(ran, step.name_);
    return std::move(ran.front().result);
  }
  for (std::size_t rank = 1; rank < ran.size(); ++rank) {
    if (ran[rank].result.losses.size() != ran.front().result.losses.size())
      lose(fmt::format("{} ran {} steps of {}, and rank 0 ran {}", ranks_[rank].name,
                       ran[rank].result.losses.size(), step.name_,
                       ran.front().result.losses.size()));
  }
  if (const auto rank = other_weights(ran)) {
    lose(fmt::format("{} does not agree with rank 0: its weights after {} steps of {} are others",
                     ranks_[*rank].name, ran.front().result.losses.size(), step.name_));
  }
  const std::span<const Rank> ranks(ranks_.data(), ran.size());
  const bool one_host = std::ranges::all_of(
      ranks, [&](const Rank& rank) { return rank.hello.host == ranks.front().hello.host; });
  return combined(std::move(ran), one_host ? Clocks::one : Clocks::several,
                  step.shards_updates_ ? Updates::shared_out : Updates::whole);
}

void RankedDevice::refuse_disagreement(std::span<const RankRan> ran, const std::string& step) {
  if (const auto differs = disagreement(ran)) {
    lose(fmt::format("{} does not agree with rank 0: its {} of {} are others",
                     ranks_[differs->rank].name, differs->about, step));
  }
}

std::vector<StepResult> RankedDevice::run_interleaved(std::span<LoadedStep* const> steps,
                                                      const Interleaving& how) {
  ask::RunInterleaved run{.steps = {}, .how = how};
  std::size_t count = 1;
  for (LoadedStep* step : steps) {
    const auto& own = dynamic_cast<const Step&>(*step);
    run.steps.push_back(own.number_);
    count = std::max(count, own.ranks_);
  }
  require(!have_parts_ || count == 1, "steps of several ranks are not interleaved");
  away_ = nanoseconds(0);
  const nanoseconds asked = settings_.clock ? settings_.clock() : nanoseconds(0);
  std::vector<RanTogether> ran = all_values<RanTogether>(count, run);
  for (std::size_t rank = 0; rank < ran.size(); ++rank) {
    if (const auto wrong = wrong_answer(ran[rank], how, steps.size()))
      lose(fmt::format("{} {}", ranks_[rank].name, *wrong));
  }
  refuse_claims_of_turns(steps, how, asked, ran.front());
  for (std::size_t step = 0; step < steps.size(); ++step) {
    std::vector<RankRan> of_step;
    for (const RanTogether& rank : ran) of_step.push_back({.result = rank.at(step), .weights = {}});
    refuse_disagreement(of_step, dynamic_cast<const Step&>(*steps[step]).name_);
  }
  return std::move(ran.front());
}

void RankedDevice::refuse_claims_of_turns(std::span<LoadedStep* const> steps,
                                          const Interleaving& how, nanoseconds asked,
                                          const RanTogether& ran) {
  std::vector<std::string> names;
  nanoseconds claimed(0);
  double of_all_turns = 0;
  for (std::size_t index = 0; index < steps.size(); ++index) {
    const auto& step = dynamic_cast<const Step&>(*steps[index]);
    const auto turns = std::ranges::count(how.order, static_cast<int>(index));
    const std::int64_t scored = ran[index].steps;
    if (scored == 0 || step.rarest_ > scored) return;
    const nanoseconds own = ran[index].elapsed.value_or(nanoseconds(0));
    const auto all = turns * (how.wash_out_steps + how.steps) + step.unfinished_steps();
    names.push_back(step.name_);
    claimed += own;
    of_all_turns +=
        static_cast<double>(own.count()) * static_cast<double>(all) / static_cast<double>(scored);
  }
  refuse_claims(ranks_.front(), fmt::format("{}", fmt::join(names, " and ")), asked,
                {.claimed = claimed,
                 .explained = of_all_turns /
                              static_cast<double>(std::max<std::int64_t>(claimed.count(), 1))});
}

void RankedDevice::connect(int count) {
  if (joined_.contains(count)) return;
  if (communicating_[count] > 0) {
    throw DeviceError(
        fmt::format("the {} ranks have lost each other in an earlier step, and steps of theirs are "
                    "still loaded",
                    count));
  }
  const std::string rendezvous = all_values<Rendezvous>(1, ask::MakeRendezvous{}).front().bytes;
  std::span<Rank> together(ranks_.data(), static_cast<std::size_t>(count));
  for (int rank = 0; rank < count; ++rank) {
    send(together[static_cast<std::size_t>(rank)],
         ask::Join{{.rank = rank, .count = count, .rendezvous = rendezvous}});
  }
  taken(together, ask::Join{});
  joined_.insert(count);
}

void RankedDevice::end_all(const std::string& why) {
  lost_ = why;
  for (Rank& rank : ranks_) rank.link.reset();  // does not wait for lost ranks
}

void RankedDevice::lose(const std::string& assertion) {
  if (settings_.stopped && settings_.stopped()) interrupt();
  end_all(assertion);
  throw DeviceLost(assertion);
}

void RankedDevice::interrupt() {
  is_interrupted_ = true;
  end_all("the run was interrupted");
  throw Interrupted();
}

void RankedDevice::interrupt_if_told_soon() {
  const Clock::time_point deadline = Clock::now() + patience_for_stop;
  while (settings_.stopped && Clock::now() < deadline) {
    if (settings_.stopped()) interrupt();
    std::this_thread::sleep_for(milliseconds(10));
  }
}

void RankedDevice::send(Rank& rank, const RankRequest& request) {
  rank.answer.reset();
  rank.last_sign = Clock::now();
  for (const std::string& line : lines_of(message_of(request))) rank.link->send(line);
}

std::vector<RankAnswer> RankedDevice::all(std::size_t count, const RankRequest& request) {
  if (is_interrupted_) throw Interrupted();
  if (!lost_.empty()) throw DeviceLost(lost_);
  const std::span<Rank> asked(ranks_.data(), count);
  for (Rank& rank : asked) send(rank, request);
  return taken(asked, request);
}

template <class Value>
std::vector<Value> RankedDevice::all_values(std::size_t count, const RankRequest& request) {
  std::vector<Value> values;
  for (RankAnswer& answer : all(count, request)) {
    Value* value = std::get_if<Value>(&answer.value);
    if (value == nullptr) {
      lose(fmt::format("{} answered '{}' with something else", ranks_[values.size()].name,
                       name_of(request)));
    }
    values.push_back(std::move(*value));
  }
  return values;
}

// Waits until all ranks have answered.
std::vector<RankAnswer> RankedDevice::taken(std::span<Rank> asked, const RankRequest& request) {
  Clock::time_point looked = Clock::now();
  Clock::time_point deadline = looked + settings_.stall;
  std::optional<Clock::time_point> patience;
  while (true) {
    take_all(asked, request);
    if (std::ranges::all_of(asked, [](const Rank& rank) { return rank.answer.has_value(); })) break;
    if (settings_.stopped && settings_.stopped()) interrupt();
    const Clock::time_point now = Clock::now();
    // If this process was stopped, as a whole job may be, the time does not count as waiting.
    if (const auto away = now - looked; away > longest_look) {
      away_ += away;
      deadline += away;
      if (patience) *patience += away;
      for (Rank& rank : asked) rank.last_sign += away;
    }
    looked = now;
    if (!patience && std::ranges::any_of(asked, has_failed)) patience = now + patience_after_error;
    if (patience && now >= *patience) give_up_after_error(asked, request);
    if (now >= deadline) give_up(asked, request);
    give_up_silent(asked, request);
    wait_for_news(asked);
  }
  refuse_errors(asked);
  std::vector<RankAnswer> answers;
  for (Rank& rank : asked) answers.push_back(std::move(*rank.answer));
  now_ = answers.front().now;
  return answers;
}

bool RankedDevice::has_failed(const Rank& rank) {
  return rank.answer && std::holds_alternative<RankError>(rank.answer->value);
}

void RankedDevice::wait_for_news(std::span<const Rank> asked) {
  std::vector<pollfd> news;
  for (const Rank& rank : asked) {
    if (!rank.answer) news.push_back({rank.link->descriptor(), POLLIN, 0});
  }
  const bool must_ask = std::ranges::any_of(news, [](const pollfd& one) { return one.fd < 0; });
  ::poll(news.data(), news.size(), must_ask ? 1 : static_cast<int>(look_around.count()));
}

void RankedDevice::take_all(std::span<Rank> asked, const RankRequest& request) {
  for (Rank& rank : asked) {
    try {
      while (!rank.answer) {
        const auto line = rank.link->take();
        if (!line) break;
        rank.last_sign = Clock::now();
        if (*line == alive_line) continue;
        if (line->starts_with(crash_mark)) {
          rank.crashed_in = ' ' + line->substr(1) + ',';
          continue;
        }
        if (const auto message = rank.reader.take(*line)) rank.answer = read_rank_answer(*message);
      }
    } catch (const RankProtocolError& error) {
      lose(fmt::format("{} answered '{}' with what {}", rank.name, name_of(request), error.what()));
    } catch (const RankGone& gone) {
      interrupt_if_told_soon();
      lose(fmt::format("{} {}{} instead of answering '{}'{}", rank.name, gone.what(),
                       rank.crashed_in, name_of(request), answered_in_words(asked)));
    }
  }
}

// Formats the ranks that answered: "; ranks 0, 1 and 3 did", "; no other rank did".
std::string RankedDevice::answered_in_words(std::span<const Rank> asked) {
  std::vector<std::size_t> answered;
  for (std::size_t number = 0; number < asked.size(); ++number) {
    if (asked[number].answer) answered.push_back(number);
  }
  if (asked.size() == 1) return "";
  return answered.empty() ? "; no other rank did"
                          : fmt::format("; {} did", numbers_in_words(answered));
}

// Gives up on ranks without heartbeats: a working rank sends them, however long its answer takes. A
// starting process does not send any yet.
void RankedDevice::give_up_silent(std::span<const Rank> asked, const RankRequest& request) {
  if (std::holds_alternative<ask::Hello>(request)) return;
  const Clock::time_point now = Clock::now();
  std::vector<std::string> silent;
  for (const Rank& rank : asked) {
    if (!rank.answer && now - rank.last_sign > settings_.silence) silent.push_back(rank.name);
  }
  if (silent.empty()) return;
  lose(fmt::format("{} gave no sign of life for {} instead of answering '{}'{}",
                   fmt::join(silent, " and "),
                   seconds_text(std::chrono::duration<double>(settings_.silence).count()),
                   name_of(request), answered_in_words(asked)));
}

// Names the ranks without heartbeats, and not those that wait for them. If all are alive, names the
// ranks that have not answered.
void RankedDevice::give_up(std::span<const Rank> asked, const RankRequest& request) {
  const auto longest = std::min(settings_.silence, settings_.stall * 3 / 4);
  const Clock::time_point now = Clock::now();
  std::vector<std::string> silent;
  std::vector<std::string> missing;
  for (const Rank& rank : asked) {
    if (rank.answer) continue;
    missing.push_back(rank.name);
    if (now - rank.last_sign > longest) silent.push_back(rank.name);
  }
  const std::vector<std::string>& to_blame = silent.empty() ? missing : silent;
  lose(fmt::format("{} did not answer '{}' within {}{}", fmt::join(to_blame, " and "),
                   name_of(request),
                   seconds_text(std::chrono::duration<double>(settings_.stall).count()),
                   answered_in_words(asked)));
}

void RankedDevice::give_up_after_error(std::span<const Rank> asked, const RankRequest& request) {
  const auto failed = std::ranges::find_if(asked, has_failed);
  lose(fmt::format("{} failed at '{}', and others wait for it in vain: {}", failed->name,
                   name_of(request), std::get<RankError>(failed->answer->value).message));
}

// If one rank cannot carry out a request, the request fails on all ranks.
void RankedDevice::refuse_errors(std::span<const Rank> asked) {
  const auto failed = std::ranges::find_if(asked, has_failed);
  if (failed == asked.end()) return;
  joined_.clear();  // a failed rank may have lost its communicators
  const auto& error = std::get<RankError>(failed->answer->value);
  const std::string message =
      ranks_.size() == 1 ? error.message : fmt::format("{}: {}", failed->name, error.message);
  if (error.fault == RankFault::lost) lose(message);
  throw_fault(error.fault, message);
}

}  // namespace stepgate
