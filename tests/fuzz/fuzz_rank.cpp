// SPDX-License-Identifier: MIT
// libFuzzer: reads lines as what the processes of ranks say to each other, up to an empty line as
// requests to a rank, and behind it as answers to the process that leads two ranks. A line is
// refused, or is written again unchanged. A rank answers within the bounds of its protocol,
// whatever it is asked, and the leader refuses its ranks or has the results of the steps that it
// asked for.
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include "device/ranked/plan_digest.h"
#include "device/ranked/rank_bounds.h"
#include "device/ranked/rank_server.h"
#include "device/ranked/ranked_device.h"
#include "device/simulated/simulated_device.h"
#include "plan/count/facts_of.h"
#include "plan/testing/plan_by_hand.h"
#include "tests/fuzz/fuzz_input.h"

namespace {

using namespace stepgate;

// In the input: the digest of the first plan, and the answer that a rank really gives.
constexpr std::string_view digest_here = "PLAN";
constexpr std::string_view true_answer = "!";
constexpr std::int64_t most_steps = 64;

// The steps of one rank and of two.
const std::vector<PlannedStep>& plans() {
  static const std::vector<PlannedStep> built = [] {
    Knobs knobs = small_mlp();
    knobs.model.layers = 1;
    Scenario scenario = scenario_of(knobs);
    knobs.ranks.count = 2;
    scenario.variants.push_back({"two", knobs, {"by_hand.toml", 4, 1}});
    return with_facts(build_step_plans(scenario, 1));
  }();
  return built;
}

// A rank on a simulated device, which is made when it is first asked.
class OwnRank {
 public:
  explicit OwnRank(int rank) : rank_(rank) {}

  RankAnswer answer(const RankRequest& request) {
    static const DeviceProfile profile =
        read_profile(STEPGATE_SOURCE_DIR "/baselines/nvidia-h200/device.toml");
    if (!server_) {
      device_ = make_simulated_device(profile, {.seed = 1});
      server_.emplace(*device_, RankSubject{.rank = rank_, .build = "b", .plans = plans()});
    }
    return server_->answer(request);
  }

 private:
  int rank_;
  std::unique_ptr<Device> device_;
  std::optional<RankServer> server_;
};

bool takes_long(const Observe& observe) {
  return observe.wash_out_steps + observe.steps > most_steps;
}
bool takes_long(const RankRequest& request) {
  if (const auto* run = std::get_if<ask::Run>(&request)) return takes_long(run->observe);
  const auto* together = std::get_if<ask::RunInterleaved>(&request);
  if (together == nullptr) return false;
  const Interleaving& how = together->how;
  return how.order.size() > 16 || how.wash_out_steps + how.steps > most_steps;
}

std::string with_digest(std::string_view line) {
  std::string text(line);
  const std::size_t at = text.find(digest_here);
  if (at != std::string::npos) {
    static const std::string digest = digest_of(plans().front());
    text.replace(at, digest_here.size(), digest);
  }
  return text;
}

template <auto read>
std::optional<std::string> message_again(std::string_view text) {
  try {
    return message_of(read(text));
  } catch (const RankProtocolError&) {
    return std::nullopt;
  }
}

void ask_rank(OwnRank& rank, std::string_view line) {
  const auto text = check_reads_back(line, message_again<read_rank_request>);
  if (!text) return;
  const RankRequest request = read_rank_request(*text);
  if (takes_long(request)) return;
  const RankAnswer answer = read_rank_answer(message_of(rank.answer(request)));
  const auto* run = std::get_if<ask::Run>(&request);
  const auto* ran = std::get_if<RankRan>(&answer.value);
  if (run == nullptr || ran == nullptr) return;
  const std::size_t operations =
      std::max(plans()[0]->operations.size(), plans()[1]->operations.size());
  require(!wrong_answer(ran->result, run->observe, operations), "a rank runs what it is asked for");
}

// The lines that are left of the answers, for both ranks together.
std::string_view next_line(std::string_view& lines) {
  const std::string_view line = lines.substr(0, lines.find('\n'));
  lines.remove_prefix(std::min(line.size() + 1, lines.size()));
  return line;
}

class FuzzedLink : public RankLink {
 public:
  FuzzedLink(int rank, std::string_view& answers) : rank_(rank), answers_(answers) {}
  void send(std::string_view line) override {
    if (auto message = reader_.take(line)) asked_ = std::move(message);
  }
  std::optional<std::string> take() override {
    if (!asked_ || answers_.empty()) throw RankGone("has nothing more to say");
    const std::string_view line = next_line(answers_);
    if (line != true_answer) return with_digest(line);
    const RankRequest request = read_rank_request(*asked_);
    asked_.reset();
    return '=' + message_of(rank_.answer(request));
  }
  int descriptor() const override { return -1; }
  void finish() override {}

 private:
  OwnRank rank_;
  std::string_view& answers_;
  MessageReader reader_{longest_request};
  std::optional<std::string> asked_;
};

void lead(std::string_view answers) try {
  std::vector<std::unique_ptr<RankLink>> links;
  for (int rank = 0; rank < 2; ++rank) links.push_back(std::make_unique<FuzzedLink>(rank, answers));
  RankedDevice device(std::move(links), {.clock = {}});
  device.refuse_other_plans(named_plans(plans()));
  (void)device.reason_against_tracing();
  (void)device.identity();
  for (const PlannedStep& plan : plans()) {
    (void)device.libraries_for(plan);
    const auto step = device.load(plan, {});
    for (const bool traced : {false, true}) {
      const Observe observe{
          .wash_out_steps = 1, .steps = 2, .tensors = true, .trace = traced, .gradients = true};
      const StepResult result = step->run(observe);
      require(result.steps == observe.steps, "these are the steps that were asked for");
    }
    (void)device.read_environment();
    (void)step->choices();
    (void)step->restart();
    if (plan->ranks.count > 1) continue;
    LoadedStep* const steps[] = {step.get()};
    require(device.run_interleaved(steps, {.order = {0, 0}, .unscored = 1}).size() == 1,
            "every step has a result");
  }
} catch (const DeviceError&) {  // the leader refuses its ranks
}

// The first input is a whole conversation in both directions.
std::string conversation() {
  std::string text;
  const auto ask = [&](const RankRequest& request) { text += message_of(request) + '\n'; };
  ask(ask::Hello{});
  ask(ask::Libraries{std::string(digest_here)});
  for (const int slot : {0, 1}) {
    ask(ask::Load{.step = slot,
                  .slot = slot,
                  .digest = std::string(digest_here),
                  .scenario = "s",
                  .variant = "v",
                  .draw = {}});
  }
  ask(ask::Run{.step = 0, .observe = {.wash_out_steps = 1, .steps = 2, .trace = true}});
  ask(ask::RunInterleaved{.steps = {0, 1}, .how = {.order = {0, 1, 0}, .unscored = 1}});
  ask(ask::Join{{.rank = 0, .count = 2, .rendezvous = "x"}});
  ask(ask::CommunicatesWith{{"GPU-a", "GPU-b"}});
  ask(ask::Restart{.step = 0});
  ask(ask::Environment{});
  ask(ask::Unload{.step = 0});
  text += '\n';
  OwnRank own(0);
  const auto said = [&](const RankRequest& request) {
    return '=' + message_of(own.answer(request)) + '\n';
  };
  const std::string truth = std::string(true_answer) + '\n';
  text += said(ask::Hello{}) + truth;                        // hello
  text += said(ask::Libraries{digest_of(plans().front())});  // libraries
  for (int answer = 0; answer < 40; ++answer) text += truth;
  return text;
}

}  // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned int) {
  static const std::string first = conversation();
  if (size > 1 || first.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::memcpy(data, first.data(), first.size());
  return first.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text = fuzzed_text(data, size);
  OwnRank rank(0);
  while (!text.empty() && text.front() != '\n') ask_rank(rank, with_digest(next_line(text)));
  (void)next_line(text);
  for (std::string_view answers = text; !answers.empty();) {
    const std::string line = with_digest(next_line(answers));
    check_reads_back(std::string_view(line).substr(line.starts_with('=') ? 1 : 0),
                     message_again<read_rank_answer>);
  }
  lead(text);
  return 0;
}
