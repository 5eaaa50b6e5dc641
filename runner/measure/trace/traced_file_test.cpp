// SPDX-License-Identifier: MIT
// Tests that written traces are read back, and that all damage is detected and harmless.
#include "measure/trace/traced_file.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <random>

#include "base/files/temporary_folder.h"
#include "base/files/write_file.h"
#include "base/fnv1a.h"
#include "base/testing/planted_record.h"
#include "device/simulated/simulated_device.h"
#include "measure/trace/trace_rounds.h"
#include "measure/trace/worst_ranks.h"
#include "plan/compose/build_step_plan.h"
#include "plan/count/facts_of.h"

namespace stepgate {
namespace {

// Traces with a value in every field.
Traced traced_by_a_device() {
  Knobs knobs;
  knobs.model.layers = 2;
  knobs.model.hidden = 32;
  knobs.transfer = {.host = HostMemory::pageable};
  knobs.alloc = {.with = Allocator::cuda, .when = AllocWhen::step, .keep_bytes = std::nullopt};
  Scenario scenario;
  scenario.name = "by_hand";
  scenario.variants.push_back({"stream", knobs, {}});
  knobs.alloc = {};
  knobs.launch.via = LaunchVia::graph;
  scenario.variants.push_back({"graph", knobs, {}});
  const std::vector<PlannedStep> plans = with_facts(build_step_plans(scenario, 1));
  const std::filesystem::path source = STEPGATE_SOURCE_DIR;
  const auto device = make_simulated_device(
      read_profile(source / "baselines/nvidia-h200/device.toml"), {.seed = 1});
  Traced traced = trace_rounds(*device, plans, {.rounds = 2});
  traced.wall_time = std::chrono::nanoseconds(123456789);
  traced.not_as_planned = "the trace of 'a' is not its plan";
  traced.not_drawn = "no timelines are kept";
  Trace& timeline = traced.timelines.front().front();
  timeline.unsteady.push_back({UnsteadyKind::jit_compilation, TraceTime(5), TraceTime(6)});
  timeline.work.front().grid = {7, 8, 9};
  timeline.work.front().block = {128, 2, 1};
  timeline.work.front().registers_per_thread = 40;
  timeline.work.front().shared_memory_bytes = 49152;
  timeline.work.front().name = "void stepgate::kernel<float>(\"quoted\")\n";
  timeline.calls.front().count = 17;
  timeline.page_events->push_back({PageEventKind::host_faults, 1, TraceTime(8), TraceTime(9)});
  timeline.clocks = {{TraceTime(7), 1.98e9}};
  timeline.work.back().kind = WorkKind::collective;
  timeline.work.back().collective = CollectiveKind::all_gather;
  timeline.rank = 3;
  timeline.alike = {5, 6};
  timeline.arrivals = {{.operation = 4, .step = 5, .rank = 2, .at = TraceTime(60)}};
  timeline.library =
      LibraryRecord{.library = "NCCL 2.28.9",
                    .difference = "rank 1 has none",
                    .algorithms = {{CollectiveKind::reduce_scatter, 4096, "tree", "LL128", 16}},
                    .guessed = "all of it",
                    .captured = true};
  traced.rounds.back().variants.back().library = LibraryRecord{.unavailable = "it is another's"};
  traced.timelines.back().front().page_events.reset();
  traced.rounds.front().variants.front().unsteady[UnsteadyKind::other] = 3;
  return traced;
}

Traced read_back(const Traced& traced) {
  const TracedOrDamaged read = read_traced_text(traced_text(traced));
  if (const auto* damaged = std::get_if<DamagedTrace>(&read))
    throw std::runtime_error(damaged->reason);
  return std::get<Traced>(read);
}

std::string reason_against(std::string_view text) {
  const TracedOrDamaged read = read_traced_text(text);
  const auto* damaged = std::get_if<DamagedTrace>(&read);
  return damaged == nullptr ? "" : damaged->reason;
}

TEST(TracedFile, ReadsBackRoundsWithoutTheirTimelines) {
  Traced traced = traced_by_a_device();
  traced.timelines.clear();
  const Traced read = read_back(traced);
  EXPECT_TRUE(read.timelines.empty());
  ASSERT_EQ(read.rounds.size(), 2u);
  EXPECT_EQ(read.rounds[1].variants[1].values, traced.rounds[1].variants[1].values);
}

// Puts a valid header before a body that only a faulty writer could make.
std::string with_header(const std::string& body) {
  return fmt::format("stepgate traces 1 {} {:016x}\n{}", body.size(), fnv1a(body), body);
}

TEST(TracedFile, ReadsBackWhatWasWritten) {
  const Traced traced = traced_by_a_device();
  const Traced read = read_back(traced);
  EXPECT_EQ(read.unavailable, "");
  EXPECT_EQ(read.steps, traced.steps);
  EXPECT_EQ(read.wall_time, traced.wall_time);
  EXPECT_EQ(read.not_as_planned, traced.not_as_planned);
  EXPECT_EQ(read.not_drawn, traced.not_drawn);
  EXPECT_GT(read.wall_times[WallPart::trace_steps].count(), 0);
  for (const WallPart part : all_wall_parts())
    EXPECT_EQ(read.wall_times[part], traced.wall_times[part]) << name_of(part);
  ASSERT_EQ(read.rounds.size(), 2u);
  ASSERT_EQ(read.timelines.size(), 2u);
  const TracedStep& step = read.rounds[0].variants[0];
  const TracedStep& expected = traced.rounds[0].variants[0];
  EXPECT_EQ(step.values, expected.values);
  EXPECT_EQ(step.unsteady, expected.unsteady);
  EXPECT_EQ(step.time.idle_in_queue, expected.time.idle_in_queue);
  EXPECT_EQ(step.time.step, expected.time.step);
  EXPECT_EQ(step.phases[1].device_busy, expected.phases[1].device_busy);
  ASSERT_EQ(step.copies.size(), expected.copies.size());
  EXPECT_EQ(step.copies[0].from, CopyEnd::pageable);
  ASSERT_TRUE(expected.work.contains("sgd") && step.work.contains("sgd"));
  EXPECT_EQ(step.work.at("sgd").seconds, expected.work.at("sgd").seconds);
  EXPECT_EQ(step.work.at("sgd").times, 1);
  EXPECT_EQ(step.memory.allocated_bytes, expected.memory.allocated_bytes);
  ASSERT_TRUE(expected.memory.driver_bytes);
  EXPECT_EQ(step.memory.driver_bytes, expected.memory.driver_bytes);
  const DeviceWork& work = read.timelines[0][0].work.front();
  EXPECT_EQ(work.name, traced.timelines[0][0].work.front().name);
  EXPECT_EQ(work.grid, (std::array{7, 8, 9}));
  EXPECT_EQ(work.begin, traced.timelines[0][0].work.front().begin);
  EXPECT_EQ(read.timelines[0][0].unsteady.front().begin, TraceTime(5));
  ASSERT_TRUE(read.timelines[0][0].page_events);
  EXPECT_EQ(read.timelines[0][0].page_events->back().kind, PageEventKind::host_faults);
  EXPECT_EQ(read.timelines[0][0].clocks.at(0).hertz, 1.98e9);
  EXPECT_FALSE(read.timelines[1][0].page_events) << "absent is not none";
  EXPECT_EQ(read.timelines[0][0].work.back().collective, CollectiveKind::all_gather);
  EXPECT_FALSE(work.collective);
  EXPECT_EQ(read.timelines[0][0].rank, 3);
  EXPECT_EQ(read.timelines[0][0].alike, (std::vector<int>{5, 6}));
  ASSERT_EQ(read.timelines[0][0].arrivals.size(), 1u);
  EXPECT_EQ(read.timelines[0][0].arrivals[0].rank, 2);
  EXPECT_EQ(read.timelines[0][0].arrivals[0].at, TraceTime(60));
  ASSERT_TRUE(read.timelines[0][0].library);
  EXPECT_EQ(read.timelines[0][0].library->library, "NCCL 2.28.9");
  EXPECT_EQ(read.timelines[0][0].library->difference, "rank 1 has none");
  EXPECT_EQ(read.timelines[0][0].library->algorithms, traced.timelines[0][0].library->algorithms);
  EXPECT_EQ(read.timelines[0][0].library->guessed, "all of it");
  EXPECT_TRUE(read.timelines[0][0].library->captured);
  EXPECT_FALSE(read.timelines[1][0].library);
  ASSERT_TRUE(read.rounds[1].variants[1].library);
  EXPECT_EQ(read.rounds[1].variants[1].library->unavailable, "it is another's");
  EXPECT_FALSE(step.library);
  // Not every field is compared above, but equal texts imply equal values.
  EXPECT_EQ(traced_text(read), traced_text(traced));
}

TEST(TracedFile, ReadsBackWhatEachRankSaysAndTakesTheWorstAgain) {
  Traced traced = traced_by_a_device();
  for (TracedRound& round : traced.rounds) {
    round.ranks.resize(round.variants.size());
    for (const int rank : {0, 2}) {
      TracedStep& step = round.ranks[1].emplace_back(round.variants[1]);
      step.rank = rank;
      step.values[Metric::gpu_idle] = rank == 0 ? 0.25 : 0.125;
    }
  }
  take_worst_ranks(traced);
  const Traced read = read_back(traced);
  EXPECT_TRUE(read.rounds[1].ranks[0].empty());
  ASSERT_EQ(read.rounds[1].ranks[1].size(), 2u);
  EXPECT_EQ(read.rounds[1].ranks[1][1].rank, 2);
  EXPECT_EQ(read.rounds[1].ranks[1][1].values, traced.rounds[1].ranks[1][1].values);
  EXPECT_EQ(read.rounds[1].variants[1].values.at(Metric::gpu_idle), 0.25);
  ASSERT_EQ(read.worst.size(), 2u);
  EXPECT_EQ(read.worst[1].metrics, (std::map<Metric, int>{{Metric::gpu_idle, 0}}));
  traced.rounds[1].ranks[1].pop_back();
  EXPECT_EQ(reason_against(traced_text(traced)), "has rounds of other ranks");
}

TEST(TracedFile, ReadsBackTheTimelineOfEachRankAndRefusesTwoOfOne) {
  Traced traced = traced_by_a_device();
  std::vector<Trace>& ranks = traced.timelines.back();
  ranks.push_back(ranks.front());
  EXPECT_EQ(reason_against(traced_text(traced)), "has timelines that are not by rank");
  ranks.back().rank = 1;
  EXPECT_EQ(read_back(traced).timelines.back().back().rank, 1);
  ranks.clear();
  EXPECT_EQ(reason_against(traced_text(traced)), "has a variant without a timeline");
}

TEST(TracedFile, ReadsBackWhyThereIsNoTrace) {
  Traced traced;
  traced.unavailable = "another tool holds CUPTI: \"nsys\"";
  EXPECT_EQ(read_back(traced).unavailable, traced.unavailable);
  traced.unavailable = "not UTF-8: \xff";
  EXPECT_NE(read_back(traced).unavailable, "");
}

TEST(TracedFile, SeesThatItIsCutOff) {
  const std::string text = traced_text(traced_by_a_device());
  EXPECT_EQ(reason_against(""), "does not begin as traces of this stepgate do");
  for (std::size_t length = 0; length < text.size(); length += 100) {
    EXPECT_NE(reason_against(std::string_view(text).substr(0, length)), "") << length;
  }
  EXPECT_EQ(reason_against(std::string_view(text).substr(0, text.size() - 1)).substr(0, 10),
            "is cut off");
}

TEST(TracedFile, SeesEveryFlippedBit) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::string text = traced_text(traced_by_a_device());
  for (int trial = 0; trial < 500; ++trial) {
    std::string flipped = text;
    // Every second trial damages the header, which is only a small part of the text.
    const std::size_t place = random() % (trial % 2 == 0 ? 60 : flipped.size());
    flipped[place] = static_cast<char>(flipped[place] ^ (1 << random() % 8));
    EXPECT_NE(reason_against(flipped), "") << "byte " << place;
  }
}

// The header matches the damaged body, so the reader itself must cope: it may accept the numbers,
// but must not crash. The sanitizer builds run this test as well.
TEST(TracedFile, FallsOverNothingThatABrokenWriterWrites) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::string text = traced_text(traced_by_a_device());
  const std::string body = text.substr(text.find('\n') + 1);
  int refused = 0;
  for (int trial = 0; trial < 300; ++trial) {
    std::string broken = body;
    for (int change = 0; change < 3; ++change) {
      constexpr std::string_view letters = "0123456789-,.e[]{}\":nt \\";
      broken[random() % broken.size()] = letters[random() % letters.size()];
    }
    if (!reason_against(with_header(broken)).empty()) ++refused;
  }
  EXPECT_GT(refused, 50);
}

TEST(TracedFile, SaysWhatABrokenWriterWroteWrong) {
  const std::string text = traced_text(traced_by_a_device());
  const std::string body = text.substr(text.find('\n') + 1);
  const auto reason_with = [&](const std::string& what, const std::string& instead) {
    std::string changed = body;
    const std::size_t place = changed.find(what);
    EXPECT_NE(place, std::string::npos) << what;
    changed.replace(place, what.size(), instead);
    return reason_against(with_header(changed));
  };
  EXPECT_EQ(reason_with("\"gpu_idle\"", "\"gpu_idel\""),
            "has 'rounds[0].variants[0].values[11][0]' \"gpu_idel\", which is none of the choices");
  EXPECT_EQ(reason_with("\"spans\":[[],[0,", "\"spans\":[[],[0.5,"),
            "has 'timelines[0][0].spans[0].operation' 0.5, which is no whole number");
  EXPECT_EQ(reason_with("\"spans\":[[],[0,", "\"spans\":[[],["),
            "has no 'timelines[0][0].spans[0].end'");
  EXPECT_EQ(reason_with("\"steps\"", "\"stages\""), "has no 'steps'");
  EXPECT_EQ(reason_with("{", "["), "is not JSON");
  EXPECT_EQ(reason_with("\"steps\"", "\"steps\":1,\"steps\""), "has 'steps' twice");
}

TEST(TracedFile, RefusesATimelineThatCannotBe) {
  const Traced good = traced_by_a_device();
  const auto reason_after = [&](const auto& change) {
    Traced traced = good;
    change(traced.timelines.front().front());
    return reason_against(traced_text(traced));
  };
  EXPECT_EQ(reason_after([](Trace& trace) { trace.steps = 0; }),
            "has 'timelines[0][0].steps' 0, which is not from 1 to 4611686018427387903");
  EXPECT_EQ(reason_after([](Trace& trace) { trace.work[1].operation = -2; }),
            "has 'timelines[0][0].work[1].operation' -2, which is not from -1 to "
            "4611686018427387903");
  EXPECT_EQ(reason_after([](Trace& trace) { trace.work[1].end = TraceTime::max(); }).substr(0, 39),
            "has 'timelines[0][0].work[1].end' 92233");
  EXPECT_EQ(reason_after([](Trace& trace) { trace.page_events->back().amount = INT64_MIN; }),
            "has 'timelines[0][0].page_events[0].amount' -9223372036854775808, which is not from "
            "-4611686018427387903 to 4611686018427387903");
  EXPECT_EQ(reason_after([](Trace& trace) {
              trace.calls[2].span = static_cast<int>(trace.spans.size());
            }).substr(0, 39),
            "has 'timelines[0][0].calls[2].span' 300");
  EXPECT_EQ(reason_after([](Trace& trace) { trace.rank = most_ranks; }),
            "has 'timelines[0][0].rank' 64, which is not from 0 to 63");
  EXPECT_EQ(reason_after([](Trace& trace) {
              trace.alike = {1, -1};
            }),
            "has 'timelines[0][0].alike' -1, which is not from 0 to 63");
}

TEST(TracedFile, RefusesSizesAndClocksThatCannotBe) {
  const Traced good = traced_by_a_device();
  const auto reason_after = [&](const auto& change) {
    Traced traced = good;
    change(traced.timelines.front().front());
    const std::string reason = reason_against(traced_text(traced));
    return reason.substr(0, reason.find(", which"));
  };
  EXPECT_EQ(reason_after([](Trace& trace) { trace.closing_steps = trace.steps; }),
            "has 'timelines[0][0].closing_steps' " + std::to_string(good.timelines[0][0].steps));
  EXPECT_EQ(reason_after([](Trace& trace) { trace.closing_steps = -1; }),
            "has 'timelines[0][0].closing_steps' -1");
  EXPECT_EQ(reason_after([](Trace& trace) { trace.work[0].grid[1] = -1; }),
            "has 'timelines[0][0].work[0].grid' -1");
  EXPECT_EQ(reason_after([](Trace& trace) { trace.work[0].registers_per_thread = -1; }),
            "has 'timelines[0][0].work[0].registers_per_thread' -1");
  EXPECT_EQ(reason_after([](Trace& trace) { trace.memory.allocated_bytes[0] = INT64_MAX; }),
            "has 'timelines[0][0].memory.allocated_bytes' 9223372036854775807");
  EXPECT_EQ(reason_after([](Trace& trace) { trace.clocks[0].hertz = std::nan(""); }),
            "has 'timelines[0][0].clocks[0].hertz' \"7ff8000000000000\"");
  EXPECT_EQ(reason_after([](Trace& trace) { trace.clocks[0].hertz = 1e300; }),
            "has 'timelines[0][0].clocks[0].hertz' 1e+300");
}

TEST(TracedFile, RefusesRanksAndTimesThatCannotBe) {
  const Traced good = traced_by_a_device();
  const auto reason_after = [&](const auto& change) {
    Traced traced = good;
    change(traced);
    return reason_against(traced_text(traced));
  };
  EXPECT_EQ(reason_after([](Traced& traced) { traced.rounds[0].variants[0].rank = -7; }),
            "has a rank that cannot be");
  EXPECT_EQ(reason_after([](Traced& traced) { traced.steps = -1; }), "has fewer than no steps");
  EXPECT_EQ(
      reason_after([](Traced& traced) { traced.wall_time = std::chrono::nanoseconds::min(); }),
      "took longer than ten years");
  EXPECT_EQ(reason_after([](Traced& traced) {
              traced.wall_times[WallPart::trace_loads] = std::chrono::nanoseconds::max();
            }),
            "took longer than ten years");
  EXPECT_EQ(reason_after([](Traced& traced) {
              for (TracedRound& round : traced.rounds) {
                round.ranks[0] = {round.variants[0], round.variants[0]};
                round.ranks[0][0].rank = 2;
                round.ranks[0][1].rank = 0;
              }
            }),
            "has rounds that are not by rank");
}

TEST(TracedFile, RefusesRoundsOfOtherVariants) {
  Traced traced = traced_by_a_device();
  traced.rounds.back().variants.pop_back();
  traced.rounds.back().ranks.pop_back();
  EXPECT_EQ(reason_against(traced_text(traced)), "has a round without all variants");
  traced = traced_by_a_device();
  traced.rounds.back().ranks.resize(1);
  EXPECT_EQ(reason_against(traced_text(traced)), "has a round without all ranks");
}

TEST(TracedFile, CarriesEveryField) {
  const auto planted = planted_record<Calibrated>();
  Traced traced = traced_by_a_device();
  traced.calibrated = planted;
  Trace& timeline = traced.timelines.front().front();
  timeline.closing_steps = 1;
  timeline.collected_in = std::chrono::nanoseconds(7);
  timeline.memory = planted_record<MemoryUse>();
  timeline.library = planted_record<LibraryRecord>();
  traced.rounds.front().variants.front().time = planted_record<TimeBreakdown>();
  traced.rounds.front().variants.front().phases.back() = planted_record<PhaseSplit>();
  const Traced read = read_back(traced);
  EXPECT_EQ(traced_text(read), traced_text(traced));
  EXPECT_EQ(read.calibrated->trials, planted.trials);
  EXPECT_EQ(read.timelines.front().front().closing_steps, 1);
  EXPECT_EQ(read.timelines.front().front().collected_in, timeline.collected_in);
}

TEST(TracedFile, GoesThroughAFile) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "0.json";
  const Traced traced = traced_by_a_device();
  write_traced(file, traced);
  const TracedOrDamaged read = read_traced(file);
  ASSERT_TRUE(std::holds_alternative<Traced>(read));
  EXPECT_EQ(traced_text(std::get<Traced>(read)), traced_text(traced));
  std::filesystem::remove(file);
  EXPECT_EQ(std::get<DamagedTrace>(read_traced(file)).reason, "was not written");
}

}  // namespace
}  // namespace stepgate
