// SPDX-License-Identifier: MIT
// Tests ranks in the same process, each with a fake device of its own.
#include "device/ranked/ranked_device.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <cmath>
#include <deque>
#include <map>
#include <sstream>
#include <utility>
#include <variant>

#include "base/interruption.h"
#include "base/record/members.h"
#include "device/ranked/combine_ranks.h"
#include "device/ranked/plan_digest.h"
#include "device/ranked/rank_server.h"
#include "judge/mechanism/diagnose.h"
#include "measure/planned_subject.h"
#include "measure/testing/fake_device.h"
#include "measure/testing/trace_by_hand.h"
#include "measure/trace/conformance.h"
#include "measure/trace/trace_rounds.h"
#include "report/writers.h"

namespace stepgate {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// A fake GPU that communicates with others.
class PlayedGpu : public FakeDevice {
 public:
  using FakeDevice::FakeDevice;
  DeviceIdentity identity() const override {
    DeviceIdentity identity = FakeDevice::identity();
    identity.kind = kind;
    identity.uuid = own;
    return identity;
  }
  std::string make_rendezvous() override { return std::string("meet\0here", 9); }
  void join(const RankMembership& membership) override { joined.push_back(membership); }
  std::unique_ptr<LoadedStep> load(const StepPlan& plan, const LoadDraw& draw) override {
    loaded.push_back(plan);
    if (!load_error.empty()) throw DeviceMemoryFull(load_error);
    return std::make_unique<Step>(*this, FakeDevice::load(plan, draw));
  }

  std::string reason_against_tracing() const override { return ""; }
  std::vector<DeviceKey> libraries_for(const StepPlan&) override { return libraries; }
  Communication communication(std::span<const std::string> uuids) override {
    Communication with{.library = "NCCL 2.28.9", .file = "libnccl.so.2", .settings = libraries};
    for (const std::string& uuid : uuids) with.links.push_back(uuid == own ? "" : link + uuid);
    return with;
  }

  std::vector<StepResult> run_interleaved(std::span<LoadedStep* const> steps,
                                          const Interleaving& how) override {
    std::vector<StepResult> results = FakeDevice::run_interleaved(steps, how);
    if (loses_results) results.pop_back();
    return results;
  }

  std::vector<DeviceKey> libraries;
  bool loses_results = false;
  std::string own;  // UUID
  std::string link = "over ";
  DeviceKind kind = DeviceKind::cuda;
  std::optional<Trace> trace;
  std::vector<RankMembership> joined;
  std::vector<StepPlan> loaded;
  std::string load_error;
  std::function<void(StepResult&)> lie;
  float weight = 1;
  int unloaded = 0;

 private:
  class Step : public LoadedStep {
   public:
    Step(PlayedGpu& gpu, std::unique_ptr<LoadedStep> step) : gpu_(gpu), step_(std::move(step)) {}
    ~Step() override { ++gpu_.unloaded; }
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;
    StepResult run(const Observe& observe) override {
      StepResult result = step_->run(observe);
      if (observe.tensors) result.tensors = {{.name = "w", .values = {gpu_.weight}}};
      if (observe.trace && gpu_.trace) {
        result.trace = gpu_.trace;
      } else if (observe.trace) {
        result.trace = Trace{.first_step = result.elapsed->count(), .steps = 1};
      }
      if (gpu_.lie) gpu_.lie(result);
      return result;
    }

   private:
    PlayedGpu& gpu_;
    std::unique_ptr<LoadedStep> step_;
  };
};

// The behaviour of a rank.
enum class Manner { proper, silent, alive_only, gone_at_run, crashes_in_library, nonsense };

class LocalLink : public RankLink {
 public:
  LocalLink(RankServer& server, const Manner& manner) : server_(server), manner_(manner) {}

  void send(std::string_view line) override {
    const auto message = reader_.take(line);
    if (!message) return;
    const RankRequest request = read_rank_request(*message);
    is_run_ = std::holds_alternative<ask::Run>(request);
    if (is_run_ && manner_ != Manner::proper) return;
    for (std::string& part : lines_of(message_of(server_.answer(request))))
      said_.push_back(std::move(part));
  }
  std::optional<std::string> take() override {
    if (is_run_ && manner_ == Manner::gone_at_run) throw RankGone("was ended by signal 9 (Killed)");
    if (is_run_ && manner_ == Manner::crashes_in_library) {
      if (std::exchange(has_crashed_, true)) throw RankGone("was ended by signal 6 (Aborted)");
      return crash_mark + std::string("in 'norm', which is 'f' of 'x.so'");
    }
    if (is_run_ && manner_ == Manner::alive_only) {
      is_run_ = ++lives_ < 100'000;
      return lives_ % 2 == 0 ? std::nullopt : std::optional<std::string>(alive_line);
    }
    if (is_run_ && manner_ == Manner::nonsense) return "=nonsense";
    if (said_.empty()) return std::nullopt;
    std::string line = std::move(said_.front());
    said_.pop_front();
    return line;
  }
  int descriptor() const override { return -1; }
  void finish() override {}

 private:
  RankServer& server_;
  const Manner& manner_;
  MessageReader reader_{longest_request};
  std::deque<std::string> said_;
  bool is_run_ = false;
  bool has_crashed_ = false;
  int lives_ = 0;
};

class RankedDevices : public testing::Test {
 protected:
  struct Rank {
    Script script;
    std::unique_ptr<PlayedGpu> gpu;
    std::unique_ptr<RankServer> server;
    Manner manner = Manner::proper;
    std::string build = "b";
    std::vector<PlannedStep> plans;
  };

  RankedDevices() {
    for (int rank = 0; rank < 3; ++rank) {
      auto& one = *ranks_.emplace_back(std::make_unique<Rank>());
      one.script.step_time = [rank](const std::string&, std::int64_t step) {
        // Rank 1 is the slowest at odd steps; rank 2 at even steps and in total.
        return nanoseconds(milliseconds(10 + (step % 2 == 1 ? (rank == 1 ? 2 : 0) : 2 * rank)));
      };
      one.script.loss = [rank](const std::string&, std::int64_t) {
        return 1.0F + static_cast<float>(rank);
      };
      one.gpu = std::make_unique<PlayedGpu>(one.script);
      one.plans = plans();
    }
  }

  static std::vector<PlannedStep> plans() {
    std::vector<StepPlan> plans = plans_named({"one", "two", "all"});
    plans[1].ranks.count = 2;
    plans[2].ranks.count = 3;
    for (StepPlan& plan : plans) {
      plan.buffers = {{.name = "w", .purpose = Purpose::weights, .bytes = 64}};
      plan.operations = {
          {.name = "fill",
           .action =
               FillZero{{.buffer = 0, .offset_bytes = 0, .bytes = 4, .rank_stride_bytes = 4}}}};
      if (plan.ranks.count == 1) plan.operations.clear();
    }
    return with_facts(plans);
  }

  Rank& rank(std::size_t number) { return *ranks_[number]; }

  std::unique_ptr<RankedDevice> device(milliseconds stall = milliseconds(60),
                                       milliseconds silence = std::chrono::seconds(8)) {
    std::vector<std::unique_ptr<RankLink>> links;
    for (std::size_t number = 0; number < ranks_.size(); ++number) {
      Rank& one = rank(number);
      one.server = std::make_unique<RankServer>(
          *one.gpu,
          RankSubject{.rank = static_cast<int>(number), .build = one.build, .plans = one.plans});
      links.push_back(std::make_unique<LocalLink>(*one.server, one.manner));
    }
    return std::make_unique<RankedDevice>(
        std::move(links),
        RankedSettings{.stall = stall, .silence = silence, .stopped = stopped_, .clock = clock_});
  }

  // Returns the error when every rank loads and runs the step.
  std::string failure_of_run(milliseconds stall = milliseconds(60),
                             milliseconds silence = std::chrono::seconds(8)) {
    const auto all = device(stall, silence);
    const auto step = all->load(plans_[2], {});
    try {
      step->run({});
    } catch (const DeviceLost& error) {
      try {
        all->load(plans_[2], {});
        ADD_FAILURE() << "nothing can be loaded any more";
      } catch (const DeviceLost& again) {
        EXPECT_STREQ(again.what(), error.what());
      }
      return error.what();
    }
    return "";
  }

  static std::string without_process(std::string text) {
    const std::string name = " (process " + std::to_string(::getpid()) + ")";
    for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name))
      text.erase(at, name.size());
    return text;
  }

  std::vector<PlannedStep> plans_ = plans();
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::function<bool()> stopped_;
  std::function<nanoseconds()> clock_;  // empty: the ranks' times are not those of this machine
};

TEST_F(RankedDevices, GiveEachRankItsPart) {
  const auto all = device();
  const auto step = all->load(plans_[2], LoadDraw{.first_step = 4, .loader = 9});
  for (std::size_t number = 0; number < 3; ++number) {
    const PlayedGpu& gpu = *rank(number).gpu;
    ASSERT_EQ(gpu.loaded.size(), 1U);
    const StepPlan& plan = gpu.loaded.front();
    EXPECT_EQ(plan.ranks.rank, static_cast<int>(number));
    const auto& fill = std::get<FillZero>(plan.operations.at(0).action);
    EXPECT_EQ(fill.what.offset_bytes, 4 * static_cast<std::int64_t>(number));
    EXPECT_EQ(rank(number).script.draws.at(0).first_step, 4);
    ASSERT_EQ(gpu.joined.size(), 1U);
    EXPECT_EQ(gpu.joined[0].rank, static_cast<int>(number));
    EXPECT_EQ(gpu.joined[0].count, 3);
    EXPECT_EQ(gpu.joined[0].rendezvous, std::string("meet\0here", 9));
  }
  EXPECT_EQ(rank(0).script.draws[0].loader, 9U) << "as one process would draw";
  EXPECT_NE(rank(1).script.draws[0].loader, 9U);
  EXPECT_NE(rank(1).script.draws[0].loader, rank(2).script.draws[0].loader);
}

TEST_F(RankedDevices, LetOthersIdleWhereAPlanHasFewerRanks) {
  const auto all = device();
  all->load(plans_[0], {})->run({});
  all->load(plans_[1], {})->run({});
  EXPECT_EQ(rank(0).script.runs.size(), 2U);
  EXPECT_EQ(rank(1).script.runs.size(), 1U);
  EXPECT_EQ(rank(2).script.runs.size(), 0U);
  EXPECT_EQ(rank(1).gpu->joined.at(0).count, 2);
  EXPECT_EQ(rank(2).gpu->joined.size(), 0U);
  EXPECT_EQ(rank(0).gpu->unloaded, 2);
  EXPECT_EQ(rank(1).gpu->unloaded, 1);
  StepPlan too_many = plans_[2];
  too_many.ranks.count = 4;
  EXPECT_THROW(all->load(too_many, {}), DeviceError);
}

TEST_F(RankedDevices, SayWhatEachOfThemCommunicatesWith) {
  for (std::size_t number = 0; number < 3; ++number) {
    rank(number).gpu->own = std::string("GPU-") + static_cast<char>('a' + number);
    rank(number).gpu->libraries = {{"NCCL", "2.28.9"}};
  }
  rank(0).gpu->libraries.push_back({"NCCL_ALGO", "Ring"});
  rank(2).gpu->libraries = {{"NCCL", "2.27.3"}, {"NCCL_ALGO", "Ring"}, {"NCCL_PROTO", "LL"}};
  const auto all = device();
  const DeviceIdentity identity = all->identity();
  ASSERT_EQ(identity.ranks.size(), 3U);
  EXPECT_EQ(identity.ranks[1].uuid, "GPU-b");
  EXPECT_EQ(identity.ranks[1].communication.file, "libnccl.so.2");
  EXPECT_EQ(link_between(identity, 0, 2), "over GPU-c");
  EXPECT_EQ(link_between(identity, 1, 1), "");
  EXPECT_EQ(link_between(identity, 1, 3), "");
  using Keys = std::vector<DeviceKey>;
  EXPECT_EQ(all->libraries_for(plans_[0]), (Keys{{"NCCL", "2.28.9"}, {"NCCL_ALGO", "Ring"}}));
  EXPECT_EQ(all->libraries_for(plans_[2]), (Keys{{"NCCL", "2.28.9"},
                                                 {"NCCL_ALGO", "Ring"},
                                                 {"NCCL_ALGO on rank 1", "not set"},
                                                 {"NCCL on rank 2", "2.27.3"},
                                                 {"NCCL_PROTO on rank 2", "LL"}}));
}

TEST_F(RankedDevices, TakeTheSlowestRanksTimesAndTheMeanOfLosses) {
  const auto all = device();
  const auto step = all->load(plans_[2], {});
  const StepResult result = step->run({.wash_out_steps = 1, .steps = 3, .trace = true});
  // In steps 1, 2 and 3, rank 0 takes 10, 10, 10; rank 1 takes 12, 12, 12; rank 2 takes 10, 14, 10.
  EXPECT_EQ(result.step_times,
            (std::vector<nanoseconds>{milliseconds(12), milliseconds(14), milliseconds(12)}));
  EXPECT_EQ(result.elapsed, milliseconds(36));
  EXPECT_EQ(result.losses, std::vector<float>(4, 2.0F));
  EXPECT_EQ(result.host_busy, milliseconds(9)) << "of rank 1, the slowest";
  const std::vector<Trace> traces = take_traces(StepResult(result));
  ASSERT_EQ(traces.size(), 3U) << "of every rank";
  EXPECT_EQ(traces[0].first_step, 30'000'000);
  EXPECT_EQ(traces[1].first_step, 36'000'000);
  for (int each = 0; each < 3; ++each) EXPECT_EQ(traces[static_cast<std::size_t>(each)].rank, each);
}

// The clock of the test goes on while rank 0 runs its steps, and nowhere else.
TEST_F(RankedDevices, AreNotBelievedWhereARankClaimsShorterTimesThanItTakes) {
  clock_ = [&] { return rank(0).script.now; };
  const auto all = device();
  const auto step = all->load(plans_[0], {});
  const Observe observe{.wash_out_steps = 2, .steps = 20};
  for (int run = 0; run < 40; ++run) EXPECT_TRUE(step->run(observe).elapsed);
  rank(0).gpu->lie = [](StepResult& result) { *result.elapsed /= 2; };
  for (int run = 0; run < 9; ++run) EXPECT_TRUE(step->run(observe).elapsed);
  try {
    step->run(observe);
    ADD_FAILURE() << "it lied ten times in a row";
  } catch (const DeviceLost& error) {
    EXPECT_EQ(without_process(error.what()),
              "rank 0 says that steps of 'one' took 1.15 s, and answered after 2.2 s, 10 "
              "times in a row later than it says; its clock cannot be believed");
  }
}

TEST_F(RankedDevices, AreNotBelievedWhereARankClaimsLongerTimesThanItTakes) {
  clock_ = [&] { return rank(0).script.now; };
  rank(0).gpu->lie = [](StepResult& result) { *result.elapsed *= 2; };
  const auto all = device();
  const auto step = all->load(plans_[0], {});
  EXPECT_THROW(step->run({.steps = 20}), DeviceLost);
}

TEST_F(RankedDevices, AreNotBelievedWhereInterleavedTimesAreShorterThanTheyTake) {
  clock_ = [&] { return 2 * rank(0).script.now; };
  const auto all = device();
  const auto step = all->load(plans_[0], {});
  LoadedStep* const steps[] = {step.get()};
  const Interleaving how{.order = std::vector<int>(12, 0), .unscored = 2};
  for (int run = 0; run < 9; ++run) EXPECT_EQ(all->run_interleaved(steps, how).size(), 1U);
  EXPECT_THROW(all->run_interleaved(steps, how), DeviceLost);
}

// Reading back and recording take time that no step has.
TEST_F(RankedDevices, AreBelievedWhereTheyReadBackNumbersToo) {
  clock_ = [&] { return 2 * rank(0).script.now; };
  const auto all = device();
  const auto step = all->load(plans_[0], {});
  for (int run = 0; run < 20; ++run) {
    EXPECT_TRUE(step->run({.steps = 20, .gradients = true}).elapsed);
    EXPECT_TRUE(step->run({.steps = 20, .trace = true}).elapsed);
  }
}

// A step with two kernels and an all-reduce with given begin and end.
PlannedStep step_that_reduces() {
  StepPlan plan = plan_by_hand();
  const Operation math = plan.operations[by_hand::math];
  const Operation memory = plan.operations[by_hand::memory];
  plan.ranks.count = 3;
  plan.operations = {math,
                     {.name = "reduce",
                      .phase = Phase::backward,
                      .stream = side_stream,
                      .action = Collective{.from = {2, 0, 4096}, .to = {2, 0, 4096}}},
                     memory};
  return with_facts(std::move(plan));
}
Trace trace_that_reduces(std::int64_t begin, std::int64_t end, int launches = 1) {
  TraceByHand by_hand_trace(1);
  std::uint32_t correlation = 1;
  by_hand_trace.call(0, 0, launch(correlation), 0, 1)
      .work(0, 0, caused_by(correlation), 1, 100)
      .work(1, 0,
            {.kind = WorkKind::collective, .bytes = 4096, .collective = CollectiveKind::all_reduce},
            begin, end);
  for (int each = 0; each < launches; ++each)
    by_hand_trace.call(2, 0, launch(++correlation), 2 + each, 3 + each);
  by_hand_trace.work(2, 0, caused_by(correlation), 180, 200);
  return by_hand_trace.trace();
}

TEST_F(RankedDevices, AreJudgedByTheWorstRankOfEachTracedMetric) {
  const std::vector<PlannedStep> planned{step_that_reduces()};
  for (const auto& one : ranks_) one->plans = planned;
  rank(0).gpu->trace = trace_that_reduces(50, 130);  // 30 of 80 exposed
  rank(1).gpu->trace = trace_that_reduces(10, 170);  // 70 of 160
  rank(2).gpu->trace = trace_that_reduces(90, 150);  // 50 of 60
  const auto all = device(std::chrono::minutes(1));
  Traced traced = trace_rounds(*all, planned, {.rounds = 2});
  ASSERT_EQ(traced.rounds.size(), 2U) << traced.unavailable;
  EXPECT_EQ(reason_against_conformance(planned, traced), std::nullopt);
  const VariantMechanism mechanism =
      mechanism_of(subjects_of(planned), traced, {}, {}).variants.at(0);
  EXPECT_NEAR(mechanism.values.at(Metric::exposed_comm_us), 70 * microsecond, close);
  EXPECT_NEAR(mechanism.values.at(Metric::comm_overlap), 10. / 60, close);
  ASSERT_TRUE(mechanism.ranks);
  EXPECT_EQ(mechanism.ranks->metrics.at(Metric::exposed_comm_us), 1);
  EXPECT_EQ(mechanism.ranks->metrics.at(Metric::comm_overlap), 2);
  EXPECT_EQ(mechanism.ranks->shown, 2) << "which comes last";
  EXPECT_FALSE(mechanism.ranks->metrics.contains(Metric::skew_us)) << "which all of them have";
  std::ostringstream printed;
  print_mechanism(printed, reported_mechanism({.rounds = 2, .steps = 1, .variants = {mechanism}}),
                  Style::plain);
  EXPECT_NE(printed.str().find("; rank 1 at comm_us, exposed_comm_us"), std::string::npos)
      << printed.str();
  EXPECT_NE(printed.str().find("; rank 2 at comm_overlap"), std::string::npos) << printed.str();
}

TEST_F(RankedDevices, AreRefusedByTheRankThatCountsSomethingElse) {
  const std::vector<PlannedStep> planned{step_that_reduces()};
  for (const auto& one : ranks_) {
    one->plans = planned;
    one->gpu->trace = trace_that_reduces(50, 130);
  }
  rank(1).gpu->trace = trace_that_reduces(50, 130, 2);
  const auto all = device(std::chrono::minutes(1));
  const Traced traced = trace_rounds(*all, planned, {.rounds = 1});
  EXPECT_EQ(
      reason_against_conformance(planned, traced),
      "the trace of 'by hand' is not its plan: launches_per_step is 3 on rank 1 in traced "
      "round 1 and 2 by the plan; in 'memory' the timeline has 2 a step (cudaLaunchKernel), the "
      "plan 1");
}

TEST_F(RankedDevices, NameTheRankWhoseWeightsDiffer) {
  {
    const auto all = device();
    const auto step = all->load(plans_[2], {});
    EXPECT_EQ(step->run({.tensors = true}).tensors.at(0).values.at(0), 1.0F);
  }
  rank(2).gpu->weight = 1.0000001F;
  const auto all = device();
  const auto step = all->load(plans_[2], {});
  try {
    step->run({.tensors = true});
    FAIL();
  } catch (const DeviceLost& error) {
    EXPECT_EQ(without_process(error.what()),
              "rank 2 does not agree with rank 0: its weights after 1 steps of 'all' are others");
  }
}

// Here each rank has the whole gradient; the parts of several ranks would be combined.
TEST_F(RankedDevices, HandOnTheGradientsOfEveryRank) {
  for (std::size_t number = 0; number < 3; ++number) {
    rank(number).script.gradients = [number](const std::string&, std::int64_t) {
      std::vector<GradientSketch> sketches(number == 1 ? 0 : 2);
      for (GradientSketch& sketch : sketches) sketch.elements = static_cast<int>(number) + 1;
      return sketches;
    };
  }
  const auto all = device();
  const auto step = all->load(plans_[2], {});
  EXPECT_TRUE(step->run({}).other_gradients.empty());
  const StepResult result = step->run({.gradients = true});
  EXPECT_EQ(result.gradients.at(1).elements, 1);
  ASSERT_EQ(result.other_gradients.size(), 2U);
  EXPECT_EQ(result.other_gradients[0].at(1).elements, 0) << "that rank has read none";
  EXPECT_EQ(result.other_gradients[1].at(1).elements, 3);
}

// The combined gradient differs from that of a variant where all ranks have read theirs.
TEST(CombinedRanks, MissThePartOfARankThatHasReadNoGradients) {
  std::vector<RankRan> ranks(3);
  for (RankRan& rank : ranks) rank.result.steps = 1;
  for (const std::size_t rank : {1U, 2U}) {
    ranks[rank].result.gradients.resize(2);
    for (GradientSketch& sketch : ranks[rank].result.gradients) sketch.elements = 10;
  }
  const StepResult result = combined(ranks, Clocks::one, Updates::shared_out);
  ASSERT_EQ(result.gradients.size(), 2U);
  EXPECT_EQ(result.gradients[1].elements, 20);
  const StepResult whole = combined(ranks, Clocks::one, Updates::whole);
  ASSERT_EQ(whole.gradients.size(), 2U) << "rank 0 has read none";
  EXPECT_EQ(whole.gradients[1].elements, 0);
  ASSERT_EQ(whole.other_gradients.size(), 2U);
  EXPECT_EQ(whole.other_gradients[0].at(1).elements, 10);
}

TEST_F(RankedDevices, ThatComputeAllRanksEachMustAgree) {
  for (const auto& one : ranks_) {
    one->gpu->kind = DeviceKind::simulated;
    one->script.loss = [](const std::string&, std::int64_t) { return 1.0F; };
    one->script.step_time = [](const std::string&, std::int64_t) {
      return nanoseconds(milliseconds(3));
    };
  }
  {
    const auto all = device();
    all->load(plans_[0], LoadDraw{.loader = 5})->run({});
    EXPECT_EQ(rank(2).script.runs.size(), 1U) << "all the same, also of one rank";
    EXPECT_EQ(rank(2).script.draws.at(0).loader, 5U);
    EXPECT_EQ(rank(2).gpu->loaded.at(0).ranks.rank, 0);
    EXPECT_TRUE(rank(2).gpu->joined.empty());
    EXPECT_EQ(all->now(), milliseconds(3)) << "simulated time, as rank 0 has it";
  }
  rank(1).script.step_time = [](const std::string&, std::int64_t) {
    return nanoseconds(milliseconds(4));
  };
  EXPECT_EQ(without_process(failure_of_run()),
            "rank 1 does not agree with rank 0: its times of 'all' are others");
  rank(1).script.loss = [](const std::string&, std::int64_t) { return 2.0F; };
  EXPECT_EQ(without_process(failure_of_run()),
            "rank 1 does not agree with rank 0: its losses of 'all' are others");
}

TEST_F(RankedDevices, NameTheRankThatIsGone) {
  rank(1).manner = Manner::gone_at_run;
  EXPECT_EQ(without_process(failure_of_run()),
            "rank 1 was ended by signal 9 (Killed) instead of answering 'run'; rank 0 did");
}

TEST_F(RankedDevices, NameTheLibraryThatARankCrashesIn) {
  rank(1).manner = Manner::crashes_in_library;
  EXPECT_EQ(without_process(failure_of_run()),
            "rank 1 was ended by signal 6 (Aborted) in 'norm', which is 'f' of 'x.so', instead of "
            "answering 'run'; rank 0 did");
}

TEST_F(RankedDevices, NameTheRankThatIsSilentAndNotThoseThatWaitForIt) {
  rank(0).manner = Manner::alive_only;
  rank(2).manner = Manner::silent;
  EXPECT_EQ(without_process(failure_of_run()),
            "rank 2 did not answer 'run' within 60 ms; rank 1 did");
  rank(0).manner = Manner::proper;
  EXPECT_EQ(without_process(failure_of_run()),
            "rank 2 did not answer 'run' within 60 ms; ranks 0 and 1 did");
}

TEST_F(RankedDevices, WaitForWhoLivesAndNotForWhoGivesNoSignOfIt) {
  rank(0).manner = Manner::alive_only;
  rank(2).manner = Manner::silent;
  EXPECT_EQ(without_process(failure_of_run(std::chrono::minutes(1), milliseconds(50))),
            "rank 2 gave no sign of life for 50 ms instead of answering 'run'; rank 1 did");
  rank(2).manner = Manner::proper;
  EXPECT_EQ(without_process(failure_of_run(milliseconds(200), milliseconds(50))),
            "rank 0 did not answer 'run' within 200 ms; ranks 1 and 2 did");
}

// This happens when the whole job is stopped and continued.
TEST_F(RankedDevices, AreNotBlamedForATimeInWhichNobodyLooked) {
  rank(0).manner = Manner::alive_only;
  bool paused = false;
  stopped_ = [&paused] {
    if (!paused) std::this_thread::sleep_for(milliseconds(1200));
    paused = true;
    return false;
  };
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(without_process(failure_of_run(milliseconds(400), milliseconds(300))),
            "rank 0 did not answer 'run' within 400 ms; ranks 1 and 2 did");
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(1550));
}

TEST_F(RankedDevices, NameAllWhoAreAliveAndDoNotAnswer) {
  rank(0).manner = Manner::alive_only;
  EXPECT_EQ(without_process(failure_of_run()),
            "rank 0 did not answer 'run' within 60 ms; ranks 1 and 2 did");
}

TEST_F(RankedDevices, NameTheRankThatTalksNonsense) {
  rank(1).manner = Manner::nonsense;
  EXPECT_EQ(without_process(failure_of_run()), "rank 1 answered 'run' with what is not JSON");
}

TEST_F(RankedDevices, SayWhichRankCouldNotAndGoOn) {
  rank(1).gpu->load_error = "no memory is left";
  const auto all = device();
  try {
    all->load(plans_[2], {});
    FAIL();
  } catch (const DeviceMemoryFull& error) {
    EXPECT_EQ(without_process(error.what()), "rank 1: no memory is left");
  }
  EXPECT_EQ(rank(0).gpu->unloaded, 1) << "what one cannot load, none keeps";
  rank(1).gpu->load_error.clear();
  EXPECT_EQ(all->load(plans_[2], {})->run({}).losses.size(), 1U);
}

TEST_F(RankedDevices, RefuseAnotherProgramAndOtherPlans) {
  rank(2).plans = {rank(2).plans[0], rank(2).plans[1]};
  const auto refusal = [&](std::span<const NamedPlan> plans) {
    try {
      device()->refuse_other_plans(plans);
    } catch (const DeviceLost& error) {
      return without_process(error.what());
    }
    return std::string();
  };
  const auto plans = named_plans(plans_);
  EXPECT_EQ(refusal(plans),
            "rank 2 has not planned 'all' of 'scripted'; start all with the same "
            "files, --set and --seed");
  rank(2).plans = plans_;
  EXPECT_EQ(refusal(plans), "");
  StepPlan other = plans_[1];
  other.operations[0].name = "another";
  rank(2).plans[1] = with_facts(std::move(other));
  EXPECT_EQ(refusal(plans).substr(0, 58),
            "rank 2 has planned another step for 'two' of 'scripted'; s");
  rank(1).build = "c";
  EXPECT_EQ(refusal(plans),
            "rank 1 is another program than rank 0: its build is c and not b; start the same file "
            "everywhere");
}

TEST_F(RankedDevices, StopWaitingWhenSomebodyWantsThat) {
  rank(1).manner = Manner::silent;
  int asked = 0;
  stopped_ = [&] { return ++asked > 3; };
  const auto all = device(std::chrono::minutes(1));
  const auto step = all->load(plans_[2], {});
  EXPECT_THROW(step->run({}), Interrupted);
  EXPECT_EQ(asked, 4);
}

// Variants of one scenario take turns, but each number of ranks joins only once.
// The answers of a rank are checked before anything is computed of them.
TEST_F(RankedDevices, NameTheRankWhoseResultsCannotBe) {
  const auto failure = [&](const std::function<void(StepResult&)>& lie) {
    rank(1).gpu->lie = lie;
    return without_process(failure_of_run());
  };
  EXPECT_EQ(failure([](StepResult& one) { one.steps = 2; }), "rank 1 ran 2 steps when asked for 1");
  EXPECT_EQ(failure([](StepResult& one) { one.losses.push_back(1); }),
            "rank 1 has 2 losses of 1 steps");
  EXPECT_EQ(failure([](StepResult& one) { one.trace.emplace(Trace{.steps = 1}); }),
            "rank 1 has a trace that nobody asked for");
  EXPECT_EQ(failure([](StepResult& one) { one.elapsed = nanoseconds(-1); }),
            "rank 1 answered 'run' with what has 'value.result.elapsed' -1, which is not from 0 to "
            "1000000000000000");
  EXPECT_EQ(failure([](StepResult& one) { one.sm_clock_hertz = std::nan(""); }).substr(0, 60),
            "rank 1 answered 'run' with what has 'value.result.sm_clock_h");
  rank(1).gpu->lie = {};
  EXPECT_EQ(failure_of_run(), "");
  rank(0).gpu->loses_results = true;
  const auto all = device();
  const auto step = all->load(plans_[0], {});
  LoadedStep* const steps[] = {step.get()};
  try {
    all->run_interleaved(steps, {.order = {0}});
    ADD_FAILURE() << "there is no result";
  } catch (const DeviceLost& error) {
    EXPECT_EQ(without_process(error.what()), "rank 0 has results of 0 steps when asked for 1");
  }
}

// A rank cannot know that its leader is one: it refuses what it cannot carry out, and goes on.
TEST_F(RankedDevices, RefuseWhatTheirLeaderCannotMean) {
  RankServer server(*rank(1).gpu, RankSubject{.rank = 1, .build = "b", .plans = rank(1).plans});
  const auto said = [&](const RankRequest& request) {
    const RankAnswer answer = server.answer(read_rank_request(message_of(request)));
    const auto* error = std::get_if<RankError>(&answer.value);
    return error == nullptr ? std::string() : error->message;
  };
  const auto load = [&](std::int64_t step, int slot) {
    return ask::Load{.step = step,
                     .slot = slot,
                     .digest = digest_of(plans_[0]),
                     .scenario = "s",
                     .variant = "one",
                     .draw = {}};
  };
  EXPECT_EQ(said(load(1, 0)), "");
  EXPECT_EQ(said(load(2, 1)), "");
  EXPECT_EQ(said(load(1, 2)), "step 1 is still loaded, into slot 0");
  EXPECT_EQ(said(load(3, 1)), "step 2 is still loaded, into slot 1");
  const auto turns = [&](std::vector<std::int64_t> steps, Interleaving how) {
    return said(ask::RunInterleaved{.steps = std::move(steps), .how = std::move(how)});
  };
  EXPECT_EQ(turns({1, 2}, {.order = {0, 1}}), "");
  EXPECT_EQ(turns({}, {.order = {}}), "it is asked for no step to run by turns");
  EXPECT_EQ(turns({1, 2}, {.order = {0, 2}}), "it is asked for a turn for step 2 of 2");
  EXPECT_EQ(turns({1, 2}, {.order = {0, 1023}}), "it is asked for a turn for step 1023 of 2");
  EXPECT_EQ(turns({1, 2}, {.order = {0}}), "it is asked for a step without a turn");
  EXPECT_EQ(turns({1, 1}, {.order = {0, 1}}), "it is asked for step 1 twice");
  EXPECT_EQ(turns({1, 9}, {.order = {0, 1}}), "it has loaded no step 9");
  EXPECT_EQ(said(ask::Run{.step = 9, .observe = {}}), "it has loaded no step 9");
  EXPECT_EQ(said(ask::Restart{.step = 9}), "it has loaded no step 9");
  EXPECT_EQ(said(ask::Libraries{.digest = "x"}), "it has no plan with the digest x");
  EXPECT_EQ(said(ask::Join{{.rank = 0, .count = 2, .rendezvous = "x"}}),
            "it is rank 1, and is to join as rank 0 of 2");
  EXPECT_EQ(said(ask::Join{{.rank = 1, .count = 1, .rendezvous = "x"}}),
            "it is rank 1, and is to join as rank 1 of 1");
  EXPECT_EQ(said(ask::Join{{.rank = 1, .count = 2, .rendezvous = "x"}}), "");
  EXPECT_EQ(said(ask::Unload{.step = 9}), "");
  EXPECT_EQ(said(ask::Unload{.step = 2}), "");
  EXPECT_EQ(said(load(3, 1)), "");
  EXPECT_EQ(said(ask::End{}), "");
}

// The ranks of two builds are compared on the same processors, each on one of its own.
TEST_F(RankedDevices, IssueStepsOnTheProcessorThatIsDrawnForThem) {
  const auto processors = [] {
    cpu_set_t set;
    EXPECT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
    return CPU_COUNT(&set);
  };
  const int all = processors();
  const auto processor_of = [&](int number, std::optional<std::uint64_t> draw) {
    int found = -1;
    rank(number).script.step_time = [&](const std::string&, std::int64_t) {
      found = processors() == 1 ? ::sched_getcpu() : -1;
      return nanoseconds(1000);
    };
    RankServer server(*rank(number).gpu,
                      RankSubject{.rank = number, .build = "b", .plans = rank(number).plans});
    server.answer(ask::Load{.step = 1,
                            .slot = 0,
                            .digest = digest_of(plans_[2]),
                            .scenario = "s",
                            .variant = "one",
                            .draw = {}});
    server.answer(ask::Run{.step = 1, .observe = {.steps = 2, .cpu_draw = draw}});
    EXPECT_EQ(processors(), all);
    return found;
  };
  EXPECT_EQ(processor_of(0, std::nullopt), -1);
  EXPECT_NE(processor_of(0, 5), -1);
  EXPECT_EQ(processor_of(0, 5), processor_of(0, 5));
  if (all > 1) {
    EXPECT_NE(processor_of(0, 5), processor_of(2, 5));
  }
}

TEST_F(RankedDevices, EndAtALineOrAMessageWithoutAnEnd) {
  RankServer server(*rank(0).gpu, RankSubject{.rank = 0, .build = "b", .plans = rank(0).plans});
  const auto error_of = [&](const std::string& text) {
    std::istringstream in(text);
    std::ostringstream out;
    try {
      serve_rank(in, out, server);
    } catch (const RankProtocolError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string longest(longest_rank_line - 1, 'x');
  EXPECT_EQ(error_of('=' + longest + "x\n"), "said more than 262145 bytes in one line");
  EXPECT_EQ(error_of('=' + longest + "\n"), "is not JSON");
  std::string parts;
  for (int part = 0; part < 5; ++part) parts += '+' + longest + '\n';
  EXPECT_EQ(error_of(parts), "said more than 1048576 bytes in one message");
  EXPECT_EQ(error_of("={\"do\":\"hello\"}\n"), "");
  EXPECT_EQ(error_of("={\"do\":\"hello\"}"), "") << "the last line needs no end";
}

// A stop is no failure of a rank, whatever has noticed it first, and nothing later makes it one.
TEST_F(RankedDevices, AreInterruptedAndNotLostWhereSomebodyStopsTheJob) {
  for (const Manner manner : {Manner::silent, Manner::gone_at_run, Manner::nonsense}) {
    rank(1).manner = manner;
    const bool is_told_at_once = manner != Manner::gone_at_run;
    bool is_running = false;
    int asked = 0;
    // The signal comes a little after a rank has gone.
    stopped_ = [&] { return is_running && (is_told_at_once || ++asked > 5); };
    const auto all = device(std::chrono::minutes(1));
    {
      const auto step = all->load(plans_[2], {});
      is_running = true;
      EXPECT_THROW(step->run({}), Interrupted);
    }
    is_running = false;
    EXPECT_THROW(all->load(plans_[2], {}), Interrupted);
    EXPECT_THROW(all->read_environment(), Interrupted);
  }
}

TEST_F(RankedDevices, RunStepsOfOneTwoAndThreeRanksByTurns) {
  const auto all = device();
  const auto three = all->load_into(0, plans_[2], {});
  const auto one = all->load_into(1, plans_[0], {});
  const auto two = all->load_into(2, plans_[1], {});
  for (int round = 0; round < 2; ++round) {
    two->run({});
    three->run({});
    one->run({});
  }
  const auto counts_at = [&](std::size_t number) {
    std::vector<int> counts;
    for (const RankMembership& joined : rank(number).gpu->joined) counts.push_back(joined.count);
    return counts;
  };
  EXPECT_EQ(counts_at(0), (std::vector<int>{3, 2}));
  EXPECT_EQ(counts_at(1), (std::vector<int>{3, 2}));
  EXPECT_EQ(counts_at(2), (std::vector<int>{3})) << "the last one idles where there are two";
  EXPECT_EQ(rank(0).script.runs.size(), 6U);
  EXPECT_EQ(rank(1).script.runs.size(), 4U);
  EXPECT_EQ(rank(2).script.runs.size(), 2U);
  rank(2).manner = Manner::gone_at_run;
  EXPECT_NO_THROW(two->run({}));
  EXPECT_THROW(three->run({}), DeviceLost) << "it is missed where it is needed";
}

TEST_F(RankedDevices, DoNotJoinAnewUnderALoadedStep) {
  const auto all = device();
  const auto step = all->load_into(0, plans_[2], {});
  rank(1).gpu->load_error = "no memory is left";
  EXPECT_THROW(all->load_into(1, plans_[1], {}), DeviceMemoryFull);
  rank(1).gpu->load_error.clear();
  EXPECT_NO_THROW(all->load_into(1, plans_[1], {}));
  EXPECT_NO_THROW(all->load_into(1, plans_[0], {}));
  EXPECT_THROW(all->load_into(1, plans_[2], {}), DeviceError);
  EXPECT_EQ(rank(0).gpu->joined.size(), 3U) << "of three, of two, and of two once more";
}

TEST_F(RankedDevices, JoinAnewAfterOneHasFailed) {
  const auto all = device();
  all->load(plans_[2], {});
  all->load(plans_[2], {});
  EXPECT_EQ(rank(2).gpu->joined.size(), 1U);
  rank(1).gpu->load_error = "no memory is left";
  EXPECT_THROW(all->load(plans_[2], {}), DeviceMemoryFull);
  rank(1).gpu->load_error.clear();
  all->load(plans_[2], {});
  EXPECT_EQ(rank(2).gpu->joined.size(), 2U);
}

TEST_F(RankedDevices, InterleaveStepsOfOneRank) {
  const auto all = device();
  const auto first = all->load_into(0, plans_[0], {});
  const auto second = all->load_into(1, plans_[0], {});
  const std::vector<LoadedStep*> steps{first.get(), second.get()};
  const auto results = all->run_interleaved(steps, {.order = {0, 1, 0}, .steps = 2});
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].steps, 4);
  EXPECT_EQ(results[1].steps, 2);
}

// Changes the nth member of a plan, counting recursively.
class Change {
 public:
  explicit Change(int which) : left_(which) {}

  bool is_done() const { return left_ < 0; }
  template <class Part>
  void in(Part& part) {
    if (is_done()) return;
    if constexpr (std::is_same_v<Part, bool>) {
      if (left_-- == 0) part = !part;
    } else if constexpr (std::is_base_of_v<AggregateValue, Part>) {
      if (left_-- == 0) part = Part(ChangedAttributes{});
    } else if constexpr (std::is_arithmetic_v<Part>) {
      if (left_-- == 0) part += 1;
    } else if constexpr (std::is_enum_v<Part>) {
      if (left_-- == 0) part = static_cast<Part>(static_cast<int>(part) + 1);
    } else if constexpr (std::is_same_v<Part, std::string>) {
      if (left_-- == 0) part += "?";
    } else if constexpr (std::is_same_v<Part, KernelRef>) {
      if (left_-- == 0) part = "spin";
    } else if constexpr (std::is_same_v<Part, std::shared_ptr<const Kernel>>) {
      auto changed = std::make_shared<Kernel>(part ? *part : Kernel{});
      in(changed->replacement);
      part = changed;
    } else if constexpr (requires { part.emplace_back(); }) {
      for (auto& each : part) in(each);
      if (!is_done() && left_-- == 0) part.emplace_back();
    } else if constexpr (requires { part.emplace(); }) {
      if (part) in(*part);
      if (!is_done() && left_-- == 0) part ? part.reset() : (void)part.emplace();
    } else if constexpr (std::is_same_v<Part, Action>) {
      std::visit([this](auto& each) { in(each); }, part);
    } else if constexpr (std::is_same_v<Part, LaunchKernel>) {
      auto& [kernel, shape, dtype, attributes, operands] = part;
      in(kernel), in(shape), in(dtype), in(attributes), in(operands);
    } else {
      for_each_member(part, [this](auto& member) { in(member); });
    }
  }

 private:
  struct ChangedAttributes {
    double number = 0.5;
  };
  int left_;
};

void add_each_action(StepPlan& plan) {
  [&]<std::size_t... index>(std::index_sequence<index...>) {
    (plan.operations.push_back(
         {.name = "act", .action = std::variant_alternative_t<index, Action>{}}),
     ...);
  }
  (std::make_index_sequence<std::variant_size_v<Action>>());
}

// A missing member in the digest would let two ranks run different steps. 30 members belong to the
// plan itself, each with its own members.
TEST(PlanDigest, IsOfEveryMemberOfThePlanButItsNames) {
  StepPlan plan;
  plan.buffers.push_back({.name = "buffer", .parts = {{}}, .pieces = {{}}});
  plan.events.emplace_back();
  plan.parameters.emplace_back();
  plan.allocator.emplace();
  plan.allocator_simulation.emplace();
  plan.library_kernels.push_back(
      std::make_shared<Kernel>(Kernel{.replacement = KernelReplacement()}));
  add_each_action(plan);
  for (Operation& operation : plan.operations) {
    operation.keeps.emplace_back();
    operation.reads_gradients.emplace();
    if (auto* launch = std::get_if<LaunchKernel>(&operation.action))
      launch->operands.emplace_back();
    if (auto* work = std::get_if<HostWork>(&operation.action)) work->rank = 1;
  }
  std::map<std::string, int> changed_by;
  changed_by.emplace(digest_of(plan), -1);
  int changes = 0;
  for (;; ++changes) {
    StepPlan other = plan;
    Change change(changes);
    change.in(other);
    if (!change.is_done()) break;
    const bool is_a_name = other.scenario != plan.scenario || other.variant != plan.variant;
    const auto [same, is_new] = changed_by.emplace(digest_of(other), changes);
    EXPECT_EQ(is_new, !is_a_name) << "change " << changes << " and " << same->second;
  }
  EXPECT_GT(changes, 300);
}

RankRan traced_until(TraceTime began, std::int64_t elapsed) {
  Trace trace;
  trace.steps = 1;
  trace.work.push_back({.kind = WorkKind::kernel, .operation = 1, .begin = TraceTime(5)});
  trace.work.push_back({.kind = WorkKind::collective, .operation = 3, .begin = began});
  return {.result = {.steps = 1, .elapsed = std::chrono::nanoseconds(elapsed), .trace = trace},
          .weights = {}};
}

// Arrival times need a common clock; they are unknown across hosts with separate clocks.
TEST(CombinedRanks, SayWhoCameWhenToACollective) {
  const std::vector<RankRan> ran{traced_until(TraceTime(70), 100),
                                 traced_until(TraceTime(40), 130)};
  const StepResult result = combined(ran, Clocks::one);
  const std::vector<Trace> traces = take_traces(StepResult(result));
  ASSERT_EQ(traces.size(), 2u);
  for (const Trace& trace : traces) {
    ASSERT_EQ(trace.arrivals.size(), 2u);
    for (int rank = 0; rank < 2; ++rank) {
      const RankArrival& arrival = trace.arrivals[static_cast<std::size_t>(rank)];
      EXPECT_EQ(arrival.rank, rank);
      EXPECT_EQ(arrival.operation, 3);
      EXPECT_EQ(arrival.at, TraceTime(rank == 0 ? 70 : 40));
    }
  }
  EXPECT_TRUE(combined(ran, Clocks::several).trace->arrivals.empty());
  std::vector<RankRan> untraced = ran;
  untraced[1].result.trace.reset();
  EXPECT_TRUE(take_traces(combined(untraced, Clocks::one)).empty()) << "it might be the worst";
}

TEST(CombinedRanks, KeepWhatTheLibraryOfEachSays) {
  std::vector<RankRan> ran{traced_until(TraceTime(70), 100), traced_until(TraceTime(40), 130)};
  ran[1].result.trace->library =
      LibraryRecord{.library = "NCCL", .difference = "it has 7 and not 8"};
  const std::vector<Trace> traces = take_traces(combined(ran, Clocks::one));
  ASSERT_EQ(traces.size(), 2U);
  EXPECT_FALSE(traces[0].library);
  ASSERT_TRUE(traces[1].library);
  EXPECT_EQ(traces[1].library->difference, "it has 7 and not 8");
}

TEST(CombinedSurroundings, AreTheWorse) {
  std::vector<EnvironmentReading> readings(2);
  readings[0] = {.sm_clock_hertz = 2e9, .temperature_celsius = 50};
  readings[0].times = {{.event = ClockEvent::software_power_cap, .total = nanoseconds(5)}};
  readings[1] = {.sm_clock_hertz = 1e9, .temperature_celsius = 80};
  readings[1].active = {ClockEvent::software_thermal};
  readings[1].times = {{.event = ClockEvent::software_power_cap, .total = nanoseconds(7)}};
  const EnvironmentReading worse = combined(readings);
  EXPECT_EQ(worse.sm_clock_hertz, 1e9);
  EXPECT_EQ(worse.temperature_celsius, 80);
  EXPECT_EQ(worse.active.value().size(), 1U);
  EXPECT_EQ(worse.times.at(0).total, nanoseconds(12));
}

}  // namespace
}  // namespace stepgate
