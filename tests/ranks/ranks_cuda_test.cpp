// SPDX-License-Identifier: MIT
// Tests steps of two ranks on two GPUs through NCCL: all ranks end with the same weights, which
// equal those of one GPU with both batches. Each rank is a process, forked before any CUDA call.
// Skips where there are not two GPUs or no NCCL.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <ostream>
#include <set>
#include <utility>

#include "device/cuda/cuda_device.h"
#include "measure/collective_costs.h"
#include "plan/compose/step_names.h"
#include "plan/count/facts_of.h"
#include "plan/derive/plan_of_rank.h"
#include "tests/contract/device_contract.h"
#include "tests/numbers/relative_error.h"
#include "tests/ranks/forked_ranks.h"

namespace stepgate {

struct RanksCase {
  std::string name;
  DType dtype = DType::fp32;
  Shard shard = Shard::none;
  std::int64_t accumulate = 1;
  RanksKnobs ranks = {};  // in addition to the defaults
  LaunchVia via = LaunchVia::stream;
};

void PrintTo(const RanksCase& ranks, std::ostream* out) {
  *out << ranks.name;
}

namespace {

constexpr int ranks_count = 2;
constexpr std::int64_t steps = 10;
constexpr std::int64_t samples_of_a_rank = 4;

struct Numbers {
  std::vector<float> losses;
  std::vector<Tensor> tensors;
};

void append(std::string& bytes, const void* from, std::size_t size) {
  bytes.append(static_cast<const char*>(from), size);
}

void append(std::string& bytes, const std::vector<float>& values) {
  const std::uint64_t count = values.size();
  append(bytes, &count, sizeof count);
  append(bytes, values.data(), values.size() * sizeof(float));
}

std::string bytes_of(const StepResult& result) {
  std::string bytes;
  append(bytes, result.losses);
  for (const Tensor& tensor : result.tensors) {
    const std::uint64_t size = tensor.name.size();
    append(bytes, &size, sizeof size);
    bytes += tensor.name;
    append(bytes, tensor.values);
  }
  return bytes;
}

class Reader {
 public:
  explicit Reader(const std::string& bytes) : bytes_(bytes) {}

  bool is_at_end() const { return at_ == bytes_.size(); }
  std::string text() {
    std::string read(count(), '\0');
    take(read.data(), read.size());
    return read;
  }
  std::vector<float> floats() {
    std::vector<float> read(count());
    take(read.data(), read.size() * sizeof(float));
    return read;
  }

 private:
  std::size_t count() {
    std::uint64_t read = 0;
    take(&read, sizeof read);
    return read;
  }
  void take(void* to, std::size_t size) {
    if (size > 0) std::memcpy(to, bytes_.data() + at_, size);
    at_ += size;
  }

  const std::string& bytes_;
  std::size_t at_ = 0;
};

Numbers numbers_in(const std::string& bytes) {
  Reader reader(bytes);
  Numbers numbers{.losses = reader.floats(), .tensors = {}};
  while (!reader.is_at_end()) {
    std::string name = reader.text();
    numbers.tensors.push_back({std::move(name), reader.floats()});
  }
  return numbers;
}

// Lets the first `count` ranks join; calls share() once.
void join(Device& device, const RankChannel& channel, int count) {
  const std::string rendezvous = channel.share(channel.rank() == 0 ? device.make_rendezvous() : "");
  if (channel.rank() < count)
    device.join({.rank = channel.rank(), .count = count, .rendezvous = rendezvous});
}
void join(Device& device, const RankChannel& channel) {
  join(device, channel, channel.count());
}

std::unique_ptr<Device> joined_device(const RankChannel& channel,
                                      Recording recording = Recording::off) {
  auto device = make_cuda_device(recording, channel.rank());
  join(*device, channel);
  if (recording == Recording::on) {
    const std::string reason = device->reason_against_tracing();
    if (!reason.empty()) throw DeviceError(reason);
  }
  return device;
}

// Returns the numbers of every rank as bytes.
std::vector<std::string> run_on_ranks(const StepPlan& plan) {
  return run_ranks(plan.ranks.count, 1, [&plan](const RankChannel& channel) {
    const auto device = joined_device(channel);
    const StepPlan own = plan_of_rank(plan, channel.rank());
    return bytes_of(device->load(own)->run({0, steps, true}));
  });
}

Numbers run_alone(const StepPlan& plan) {
  return numbers_in(run_ranks(1, 0, [&plan](const RankChannel&) {
                      return bytes_of(make_cuda_device()->load(plan)->run({0, steps, true}));
                    }).front());
}

Knobs knobs_of(const RanksCase& ranks) {
  Knobs knobs;
  knobs.transfer.host = HostMemory::resident;
  knobs.model = {.kind = ModelKind::transformer, .layers = 2, .hidden = 64, .dtype = ranks.dtype};
  knobs.model.seq = 32;
  knobs.model.heads = 2;
  knobs.model.vocab = 96;
  // The gradient of the keys' bias is zero except for rounding, and AdamW would turn this rounding
  // into full updates, which differ with the order of sums.
  knobs.model.bias = false;
  knobs.batch.size = samples_of_a_rank;
  knobs.batch.accumulate = ranks.accumulate;
  knobs.optim.kind = OptimKind::adamw;
  knobs.optim.master = ranks.dtype == DType::bf16;
  knobs.launch.via = ranks.via;
  knobs.ranks = ranks.ranks;
  knobs.ranks.count = ranks_count;
  knobs.ranks.shard = ranks.shard;
  knobs.ranks.bucket_bytes = 64 * 1024;
  if (ranks.shard >= Shard::gradients) knobs.alloc.with = Allocator::arena;
  if (ranks.shard == Shard::parameters) knobs.ranks.communicators = 2;
  return knobs;
}

// Returns one rank with all batches, in as many parts.
Knobs alone(Knobs knobs) {
  knobs.batch.size *= ranks_count;
  knobs.batch.accumulate *= ranks_count;
  knobs.ranks = {};
  knobs.alloc = {};
  knobs.launch = {};
  return knobs;
}

const std::vector<float>& tensor_of(const Numbers& numbers, const std::string& name) {
  static const std::vector<float> none;
  const auto found = std::find_if(numbers.tensors.begin(), numbers.tensors.end(),
                                  [&](const Tensor& tensor) { return tensor.name == name; });
  if (found != numbers.tensors.end()) return found->values;
  ADD_FAILURE() << "there is no tensor '" << name << "'";
  return none;
}

std::vector<float> mean_losses(const std::vector<Numbers>& ranks) {
  std::vector<float> means;
  for (std::size_t step = 0; step < ranks[0].losses.size(); ++step) {
    double sum = 0;
    for (const Numbers& rank : ranks) sum += rank.losses.at(step);
    means.push_back(static_cast<float>(sum / static_cast<double>(ranks.size())));
  }
  return means;
}

// Weights of all ranks together, where each keeps only its part.
std::vector<float> weights_of(const std::vector<Numbers>& ranks, const StepPlan& plan) {
  const auto own = [&](std::size_t rank) -> const std::vector<float>& {
    return tensor_of(ranks[rank], "weights");
  };
  const auto pieces_of = [&](int rank) {
    const StepPlan of_rank = plan_of_rank(plan, rank);
    return std::ranges::find(of_rank.buffers, "weights", &Buffer::name)->pieces;
  };
  if (pieces_of(0).empty()) return own(0);
  std::vector<float> all(own(0).size() * ranks.size());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    auto next = own(rank).begin();
    for (const RankPiece& piece : pieces_of(static_cast<int>(rank))) {
      std::copy_n(next, piece.elements, all.begin() + piece.first);
      next += piece.elements;
    }
  }
  return all;
}

struct Bounds {
  double loss, weights, gradients;  // relative errors
};

// The bounds are those of step_numbers_cuda_test.cpp: the effect of other orders of the same sums
// in that format.
Bounds bounds_of(DType dtype) {
  if (dtype == DType::fp32) return {.loss = 1e-5, .weights = 1e-5, .gradients = 1e-5};
  return {.loss = 5e-4, .weights = 2e-3, .gradients = 1e-1};
}

// Returns variations that change no bit of bf16 numbers between two ranks. Half of a number is
// exact, and a sum of two numbers has only one order.
std::vector<RanksCase> other_ways() {
  const auto way = [](std::string name, Shard shard, RanksKnobs ranks,
                      LaunchVia via = LaunchVia::stream) {
    return RanksCase{
        .name = std::move(name), .dtype = DType::bf16, .shard = shard, .ranks = ranks, .via = via};
  };
  return {
      way("captured_whole", Shard::none, {}, LaunchVia::graph),
      way("captured_wide", Shard::none, {.gradient_dtype = GradientDtype::fp32}, LaunchVia::graph),
      way("captured_optimizer", Shard::optimizer, {}, LaunchVia::graph),
      way("captured_gradients", Shard::gradients, {}, LaunchVia::graph),
      way("captured_parameters", Shard::parameters, {}, LaunchVia::graph),
      way("divided_before", Shard::none, {.average = Averaging::before}),
      way("divided_before_sharded", Shard::gradients, {.average = Averaging::before}),
      way("gathered_when_needed", Shard::parameters, {.gather_ahead = 0}),
      way("gathered_two_ahead", Shard::parameters, {.gather_ahead = 2}),
      way("two_ctas", Shard::none, {.collectives = {.max_ctas = 2}}),
      way("two_ctas_of_gathers", Shard::parameters, {.collectives = {.max_ctas = 2}})};
}

std::vector<RanksCase> ranks_cases() {
  std::vector<RanksCase> cases;
  for (const DType dtype : {DType::fp32, DType::bf16}) {
    const std::string format = dtype == DType::fp32 ? "fp32" : "bf16";
    for (const Shard shard : {Shard::gradients, Shard::parameters}) {
      const std::string what = shard == Shard::gradients ? "gradients" : "parameters";
      const std::string name = format + "_" + what;
      cases.push_back({name, dtype, shard, 1});
      cases.push_back({name + "_accumulate_2", dtype, shard, 2});
      cases.push_back({name + "_of_each_part", dtype, shard, 2, {.sync_each_part = true}});
    }
    for (const Shard shard : {Shard::none, Shard::optimizer}) {
      for (const std::int64_t accumulate : {1, 2}) {
        cases.push_back({fmt::format("{}_{}_accumulate_{}", format,
                                     shard == Shard::none ? "whole" : "sharded", accumulate),
                         dtype, shard, accumulate});
      }
    }
  }
  return cases;
}

std::vector<RanksCase> all_cases() {
  std::vector<RanksCase> cases = ranks_cases();
  for (const RanksCase& other : other_ways()) cases.push_back(other);
  return cases;
}

// Returns the cases of 16-bit numbers, which suffice where a run is compared with another run of
// the same step.
std::vector<RanksCase> narrow_cases() {
  std::vector<RanksCase> cases = ranks_cases();
  std::erase_if(cases, [](const RanksCase& one) { return one.dtype != DType::bf16; });
  return cases;
}

class RanksOnGpus : public testing::TestWithParam<RanksCase> {
 protected:
  static void SetUpTestSuite() { reason_ = reason_against_ranks_here(ranks_count); }
  void SetUp() override {
    if (!reason_.empty()) GTEST_SKIP() << reason_;
  }

 private:
  static inline std::string reason_;
};

TEST_P(RanksOnGpus, HaveTheNumbersOfOneThatHasAllBatches) {
  const RanksCase& ranks = GetParam();
  const Knobs knobs = knobs_of(ranks);
  const StepPlan plan = plan_of(knobs);
  const std::vector<std::string> bytes = run_on_ranks(plan);
  std::vector<Numbers> numbers;
  for (const std::string& of_rank : bytes) numbers.push_back(numbers_in(of_rank));
  const Numbers expected = run_alone(plan_of(alone(knobs)));
  ASSERT_EQ(expected.losses.size(), static_cast<std::size_t>(steps));

  for (std::size_t rank = 1; rank < numbers.size() && ranks.shard != Shard::parameters; ++rank) {
    EXPECT_EQ(tensor_of(numbers[rank], "weights"), tensor_of(numbers[0], "weights"))
        << "rank " << rank << " has other weights than rank 0";
  }
  const Bounds bounds = bounds_of(ranks.dtype);
  const double losses = relative_error(mean_losses(numbers), expected.losses);
  const double weights = relative_error(weights_of(numbers, plan), tensor_of(expected, "weights"));
  std::printf("losses %.1e, weights %.1e", losses, weights);
  EXPECT_LE(losses, bounds.loss);
  EXPECT_LE(weights, bounds.weights);
  EXPECT_LT(expected.losses.back(), expected.losses.front());
  if (ranks.shard == Shard::none) {  // every rank has all gradients, reduced
    const double gradients =
        relative_error(tensor_of(numbers[0], "gradients"), tensor_of(expected, "gradients"));
    std::printf(", gradients %.1e", gradients);
    EXPECT_LE(gradients, bounds.gradients);
  }
  std::printf("\n");
}

class NarrowRanksOnGpus : public RanksOnGpus {};

TEST_P(NarrowRanksOnGpus, HaveTheSameBitsInEveryRun) {
  const StepPlan plan = plan_of(knobs_of(GetParam()));
  EXPECT_EQ(run_on_ranks(plan), run_on_ranks(plan));
}

// Loads each step as a measurement does, with the collectives of a first load after the steps of
// another one.
TEST_P(NarrowRanksOnGpus, HaveTheSameBitsWhenTheyAreLoadedAgain) {
  const StepPlan plan = plan_of(knobs_of(GetParam()));
  const std::vector<std::string> once = run_on_ranks(plan);
  const std::vector<std::string> again =
      run_ranks(ranks_count, 1, [&plan](const RankChannel& channel) {
        const auto device = joined_device(channel);
        const StepPlan own = plan_of_rank(plan, channel.rank());
        (void)device->load_into(0, own)->run({1, 3, false});
        const auto beside = device->load_into(1, own);
        const auto step = device->load_into(0, own);
        (void)beside->run({0, 2, false});
        return bytes_of(step->run({0, steps, true}));
      });
  EXPECT_EQ(again, once);
}

// A communicator of their own gathers the weights; steps that were loaded before do not know it.
TEST_P(NarrowRanksOnGpus, GoOnWhenALaterStepNeedsAnotherCommunicator) {
  const StepPlan plan = plan_of(knobs_of(GetParam()));
  const StepPlan later = plan_of(knobs_of({.name = "later", .shard = Shard::parameters}));
  const std::vector<std::string> once = run_on_ranks(plan);
  const std::vector<std::string> again = run_ranks(ranks_count, 1, [&](const RankChannel& channel) {
    const auto device = joined_device(channel);
    const StepPlan own = plan_of_rank(plan, channel.rank());
    const StepPlan other = plan_of_rank(later, channel.rank());
    const auto step = device->load_into(0, own);
    const auto beside = device->load_into(1, other);
    (void)beside->run({0, 2, false});
    return bytes_of(step->run({0, steps, true}));
  });
  EXPECT_EQ(again, once);
}

// After a failure all ranks join again; only one number of ranks is used here.
TEST_P(NarrowRanksOnGpus, HaveTheSameBitsWhenTheyHaveJoinedTwice) {
  const StepPlan plan = plan_of(knobs_of(GetParam()));
  const std::vector<std::string> once = run_on_ranks(plan);
  const auto again = run_ranks(ranks_count, 2, [&plan](const RankChannel& channel) {
    const auto device = joined_device(channel);
    const StepPlan own = plan_of_rank(plan, channel.rank());
    (void)device->load(own)->run({0, 2, false});
    join(*device, channel);
    return bytes_of(device->load(own)->run({0, steps, true}));
  });
  EXPECT_EQ(again, once);
}

// Two variants of one scenario: each stays loaded while the other runs, and the variant of two
// ranks leaves the last two idle.
TEST(RanksOfSeveralCounts, HaveTheSameBitsByTurns) {
  constexpr int all = 4;
  const std::string reason = reason_against_ranks_here(all);
  if (!reason.empty()) GTEST_SKIP() << reason;
  for (const Shard shard : {Shard::none, Shard::parameters}) {
    Knobs knobs = knobs_of({.name = "two", .shard = shard});
    const StepPlan two = plan_of(knobs);
    knobs.ranks.count = all;
    const StepPlan four = plan_of(knobs);
    const std::vector<std::string> two_once = run_on_ranks(two);
    const std::vector<std::string> four_once = run_on_ranks(four);
    for (const bool of_four : {true, false}) {
      const auto bytes = run_ranks(all, 2, [&](const RankChannel& channel) {
        const auto device = make_cuda_device(Recording::off, channel.rank());
        join(*device, channel, all);
        join(*device, channel, ranks_count);
        const bool takes_part = channel.rank() < ranks_count;
        const StepPlan own = plan_of_rank(four, channel.rank());
        const StepPlan own_of_two = takes_part ? plan_of_rank(two, channel.rank()) : two;
        const auto step = device->load_into(0, own);
        const auto pair = takes_part ? device->load_into(1, own_of_two) : nullptr;
        if (of_four && pair) (void)pair->run({0, 2, false});
        if (!of_four) (void)step->run({0, 2, false});
        if (of_four) return bytes_of(step->run({0, steps, true}));
        return pair ? bytes_of(pair->run({0, steps, true})) : std::string();
      });
      const auto taking_part = static_cast<std::size_t>(of_four ? all : ranks_count);
      for (std::size_t rank = 0; rank < taking_part; ++rank)
        EXPECT_EQ(bytes[rank], (of_four ? four_once : two_once)[rank]) << "rank " << rank;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Every, RanksOnGpus, testing::ValuesIn(all_cases()),
                         [](const auto& ranks) { return ranks.param.name; });
INSTANTIATE_TEST_SUITE_P(Every, NarrowRanksOnGpus, testing::ValuesIn(narrow_cases()),
                         [](const auto& ranks) { return ranks.param.name; });

class OtherWaysOnGpus : public RanksOnGpus {};

TEST_P(OtherWaysOnGpus, ChangeNoBit) {
  RanksCase usual = GetParam();
  usual.via = LaunchVia::stream;
  usual.ranks = {.gradient_dtype = GetParam().ranks.gradient_dtype};
  EXPECT_EQ(run_on_ranks(plan_of(knobs_of(GetParam()))), run_on_ranks(plan_of(knobs_of(usual))));
}

// Runs steps with other limits and without any; each limit has its own communicators.
TEST_P(OtherWaysOnGpus, GoOnBesideSteps) {
  const StepPlan plan = plan_of(knobs_of(GetParam()));
  const StepPlan other =
      plan_of(knobs_of({.name = "other", .ranks = {.collectives = {.max_ctas = 4}}}));
  const std::vector<std::string> once = run_on_ranks(plan);
  const std::vector<std::string> again = run_ranks(ranks_count, 1, [&](const RankChannel& channel) {
    const auto device = joined_device(channel);
    const StepPlan own = plan_of_rank(plan, channel.rank());
    const StepPlan beside_it = plan_of_rank(other, channel.rank());
    const auto beside = device->load_into(0, beside_it);
    const auto step = device->load_into(1, own);
    (void)beside->run({0, 2, false});
    return bytes_of(step->run({0, steps, true}));
  });
  EXPECT_EQ(again, once);
}

// A rank process sets NCCL_P2P_DISABLE for 'ranks.link'.
TEST_P(NarrowRanksOnGpus, HaveTheSameBitsWithoutPeerAccess) {
  const StepPlan plan = plan_of(knobs_of(GetParam()));
  const auto without = run_ranks(ranks_count, 1, [&plan](const RankChannel& channel) {
    setenv("NCCL_P2P_DISABLE", "1", 1);
    const auto device = joined_device(channel);
    const StepPlan own = plan_of_rank(plan, channel.rank());
    return bytes_of(device->load(own)->run({0, steps, true}));
  });
  EXPECT_EQ(without, run_on_ranks(plan));
}

INSTANTIATE_TEST_SUITE_P(Each, OtherWaysOnGpus, testing::ValuesIn(other_ways()),
                         [](const auto& ranks) { return ranks.param.name; });

const Collective* collective_of(const StepPlan& plan, int operation) {
  return operation < 0 ? nullptr : std::get_if<Collective>(&operation_at(plan, operation).action);
}

// Returns what is wrong with a trace, in words; empty where it has exactly the plan's collectives
// as NCCL work.
std::string wrong_in(const Trace& trace, const StepPlan& plan) {
  std::set<std::pair<int, std::int64_t>> seen;
  for (const DeviceWork& work : trace.work) {
    const Collective* collective = collective_of(plan, work.operation);
    const bool is_known = work.kind == WorkKind::collective;
    if (is_known != (collective != nullptr))
      return fmt::format("'{}' of operation {} is of another kind", work.name, work.operation);
    if (!is_known) continue;
    if (work.bytes != payload_bytes(*collective) || work.collective != collective->kind)
      return fmt::format("'{}' has {} bytes", work.name, work.bytes);
    seen.emplace(work.operation, work.step);
  }
  for (const HostCall& call : trace.calls) {
    const int operation = trace.spans.at(static_cast<std::size_t>(call.span)).operation;
    if (collective_of(plan, operation) == nullptr) continue;
    if (call.kind != CallKind::other || call.can_block)
      return call.name + " of a collective is counted";
  }
  const auto planned =
      std::count_if(plan.operations.begin(), plan.operations.end(), [](const Operation& operation) {
        return std::holds_alternative<Collective>(operation.action);
      });
  if (std::ssize(seen) == planned * trace.steps) return {};
  return fmt::format("{} collectives in {} steps of {}", seen.size(), trace.steps, planned);
}

TEST_P(RanksOnGpus, AreTracedAsTheirPlanIs) {
  const StepPlan plan = plan_of(knobs_of(GetParam()));
  const auto words = run_ranks(ranks_count, 1, [&plan](const RankChannel& channel) {
    const auto device = joined_device(channel, Recording::on);
    const StepPlan own = plan_of_rank(plan, channel.rank());
    const StepResult result =
        device->load(own)->run({.wash_out_steps = 3, .steps = 4, .tensors = false, .trace = true});
    return wrong_in(result.trace.value(), own);
  });
  for (const std::string& wrong : words) EXPECT_EQ(wrong, "");
}

// Returns NCCL's disagreement with the plan, or why it reports nothing, empty where it agrees; then
// the algorithms of the collectives, one per line.
std::string said_by_nccl(const Trace& trace) {
  if (!trace.library) return "the trace has no record of NCCL's";
  const LibraryRecord& said = *trace.library;
  std::string lines = said.unavailable + said.difference;
  for (const CollectiveAlgorithm& one : said.algorithms) {
    lines += fmt::format("\n{} {} of {} bytes: {}, {}, {} channels", said.library,
                         name_of(one.kind), one.bytes, one.algorithm, one.protocol, one.channels);
  }
  return lines;
}

// NCCL's profiler is independent of the plan and of CUPTI. Fails where NCCL is older than 2.28.3 or
// NCCL_PROFILER_PLUGIN is set.
TEST_P(RanksOnGpus, AreEnqueuedByNcclAsTheirPlanIs) {
  const StepPlan plan = plan_of(knobs_of(GetParam()));
  const auto words = run_ranks(ranks_count, 1, [&plan](const RankChannel& channel) {
    const auto device = joined_device(channel, Recording::on);
    const StepPlan own = plan_of_rank(plan, channel.rank());
    const auto step = device->load(own);
    // Records must exist in every traced run, even if another step was loaded in between.
    (void)step->run({.wash_out_steps = 3, .steps = 2, .tensors = false, .trace = true});
    const auto beside = device->load(own);
    (void)beside->run({0, 2, false});
    const StepResult result =
        step->run({.wash_out_steps = 1, .steps = 4, .tensors = false, .trace = true});
    return said_by_nccl(result.trace.value());
  });
  for (const std::string& said : words) {
    EXPECT_EQ(said.substr(0, said.find('\n')), "");
    EXPECT_NE(said.find("channel"), std::string::npos) << said;
  }
  std::printf("%s\n", words.front().c_str());
}

// Fails without NCCL, where the other tests skip.
TEST(RanksOnGpusSay, WhatTheyCommunicateWithAndHowTheyAreLinked) {
  const std::string reason = reason_against_ranks_here(ranks_count);
  if (!reason.empty()) GTEST_SKIP() << reason;
  const std::vector<std::string> uuids = run_ranks(ranks_count, 0, [](const RankChannel& channel) {
    return make_cuda_device(Recording::off, channel.rank())->identity().uuid;
  });
  const auto words = run_ranks(ranks_count, 0, [&](const RankChannel& channel) {
    const Communication with =
        make_cuda_device(Recording::off, channel.rank())->communication(uuids);
    std::string said = fmt::format("{} ({}):", with.library, with.file);
    for (const std::string& link : with.links) said += fmt::format(" '{}'", link);
    for (const DeviceKey& setting : with.settings)
      said += fmt::format(", {}={}", setting.name, setting.value);
    return said;
  });
  for (const std::string& said : words) std::printf("%s\n", said.c_str());
  EXPECT_TRUE(words[0].starts_with("NCCL 2.")) << words[0];
  for (const std::string& said : words)
    EXPECT_TRUE(said.find("'NVLink'") != said.find("'PCIe'")) << said << " says neither";
  EXPECT_NE(words[0].find(": ''"), std::string::npos) << words[0] << " has no link to itself";
}

class CollectivesOfGpus : public testing::Test {
 protected:
  void SetUp() override {
    const std::string reason = reason_against_ranks_here(ranks_count);
    if (!reason.empty()) GTEST_SKIP() << reason;
  }
};

// Probes for one rank, which carries out its part of each.
std::vector<CollectiveProbe> probes_of_rank(int rank, const std::vector<std::int64_t>& sizes) {
  std::vector<CollectiveProbe> probes;
  for (CollectiveProbe& probe : collective_probes(ranks_count)) {
    if (std::ranges::find(sizes, probe.bytes) == sizes.end()) continue;
    probe.fewer = with_facts(plan_of_rank(probe.fewer, rank));
    probe.more = with_facts(plan_of_rank(probe.more, rank));
    probes.push_back(std::move(probe));
  }
  return probes;
}

// All ranks end a collective together. A collective of a few KiB takes less than the 12 us of its
// host call, or hardly more, if the host is ahead as it should be.
TEST_F(CollectivesOfGpus, TakeBothRanksAsLongAndLongerTheMoreBytesThereAre) {
  const std::vector<std::int64_t> sizes{64 << 10, 16 << 20, 256 << 20};
  const auto words = run_ranks(ranks_count, 1, [&sizes](const RankChannel& channel) {
    const auto device = joined_device(channel);
    const CollectiveCosts costs =
        measure_collective_costs(*device, probes_of_rank(channel.rank(), sizes));
    std::vector<float> times;
    for (const auto* of_kind : {&costs.all_reduce_nanoseconds, &costs.reduce_scatter_nanoseconds,
                                &costs.all_gather_nanoseconds})
      times.insert(times.end(), of_kind->begin(), of_kind->end());
    std::string bytes;
    append(bytes, times);
    return bytes;
  });
  const std::vector<float> of_first = Reader(words[0]).floats();
  const std::vector<float> of_second = Reader(words[1]).floats();
  ASSERT_EQ(of_first.size(), 9U);
  for (std::size_t index = 0; index < of_first.size(); ++index) {
    std::printf("%lld KiB: %.1f and %.1f us\n", static_cast<long long>(sizes[index % 3] >> 10),
                of_first[index] / 1e3, of_second[index] / 1e3);
    EXPECT_NEAR(of_first[index], of_second[index], 0.05 * of_first[index] + 1000);
    if (index % 3 == 0) {
      EXPECT_GT(of_first[index], 2'000);
      EXPECT_LT(of_first[index], 20'000);
    } else {
      EXPECT_GT(of_first[index], 1.5 * of_first[index - 1]);
    }
    if (index % 3 == 2) {  // NVLink or not
      const double sent = (index == 2 ? 1.0 : 0.5) * static_cast<double>(sizes[2]);
      EXPECT_GT(sent / of_first[index], 5) << "GB/s";
      EXPECT_LT(sent / of_first[index], 1000) << "GB/s";
    }
  }
}

class RanksThatDoNotFit : public testing::Test {
 protected:
  void SetUp() override {
    const std::string reason = reason_against_ranks_here(ranks_count);
    if (!reason.empty()) GTEST_SKIP() << reason;
  }
};

std::string error_of_loading(Device& device, const StepPlan& plan) {
  try {
    (void)device.load(plan);
  } catch (const DeviceError& error) {
    return error.what();
  }
  return "it was loaded";
}

TEST_F(RanksThatDoNotFit, AreRefusedWithASentence) {
  const StepPlan plan = plan_of(knobs_of({}));
  const auto words = run_ranks(ranks_count, 1, [&plan](const RankChannel& channel) {
    const auto device = make_cuda_device(Recording::off, channel.rank());
    std::string said = error_of_loading(*device, plan_of_rank(plan, channel.rank()));
    join(*device, channel);
    return said + "\n" + error_of_loading(*device, plan_of_rank(plan, 1 - channel.rank()));
  });
  for (const std::string& said : words) {
    EXPECT_NE(said.find("the step is that of 2 ranks, and this GPU is alone"), std::string::npos)
        << said;
    EXPECT_NE(said.find("of 2, and this GPU is rank"), std::string::npos) << said;
  }
}

// Rank 1 alone lacks the memory; then both load what fits.
TEST_F(RanksThatDoNotFit, LoadNothingWhereOneCannotAndGoOn) {
  const StepPlan plan = plan_of(knobs_of({}));
  const auto words = run_ranks(ranks_count, 1, [&plan](const RankChannel& channel) {
    const auto device = joined_device(channel);
    const StepPlan own = plan_of_rank(plan, channel.rank());
    StepPlan tried = own;
    if (channel.rank() == 1)
      tried.buffers.push_back({.name = "too large", .bytes = std::int64_t{1} << 50});
    std::string said = error_of_loading(*device, tried);
    said += fmt::format("; {} losses", device->load(own)->run({0, 2}).losses.size());
    return said;
  });
  EXPECT_NE(words[0].find("another rank cannot load it; 2 losses"), std::string::npos) << words[0];
  EXPECT_NE(words[1].find("of device memory, but only"), std::string::npos) << words[1];
  EXPECT_NE(words[1].find("; 2 losses"), std::string::npos) << words[1];
}

TEST_F(RanksThatDoNotFit, RefuseAGpuThatIsNotThere) {
  const auto words = run_ranks(1, 0, [](const RankChannel&) -> std::string {
    try {
      (void)make_cuda_device(Recording::off, 1000);
    } catch (const DeviceError& error) {
      return error.what();
    }
    return "it was opened";
  });
  EXPECT_NE(words[0].find("there is no GPU 1000"), std::string::npos) << words[0];
}

}  // namespace
}  // namespace stepgate
