// SPDX-License-Identifier: MIT
// Tests pictures of fake traces by their SVG text.
#include "report/picture/pictures.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "report/picture/svg.h"
#include "report/picture/timeline_parts.h"
#include "report/testing/fake_trace.h"
#include "report/testing/two_ranks.h"
#include "report/times.h"

namespace stepgate {
namespace {

std::string picture_of(const std::vector<FakeTrace>& variants) {
  std::vector<DrawnVariant> drawn;
  for (const FakeTrace& variant : variants) drawn.push_back({variant.plan, {{variant.trace}}});
  std::ostringstream out;
  draw_timeline(out, fake_gpu(), drawn);
  return out.str();
}

// Returns whether every element is closed and text has no unescaped XML characters.
bool is_well_formed(const std::string& svg) {
  std::vector<std::string> open;
  for (auto at = svg.find('<'); at != std::string::npos; at = svg.find('<', at + 1)) {
    const auto end = svg.find('>', at);
    if (end == std::string::npos) return false;
    const std::string tag = svg.substr(at + 1, end - at - 1);
    if (tag.find('<') != std::string::npos) return false;
    const std::string name = tag.substr(0, tag.find_first_of(" /", 1));
    if (tag.front() == '/') {
      if (open.empty() || "/" + open.back() != tag) return false;
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
  }
  return open.empty();
}

TEST(DrawTimeline, ShowsEveryVariantWithItsHostAndItsStreams) {
  const std::string svg =
      picture_of({fake_trace(),
                  fake_trace({.variant = "fix", .batch_from = CopyEnd::pinned, .waits = false})});
  EXPECT_TRUE(is_well_formed(svg));
  EXPECT_EQ(times(svg, ">host</text>"), 2);
  EXPECT_EQ(times(svg, ">compute stream</text>"), 2);
  EXPECT_EQ(times(svg, ">side stream</text>"), 2);
  EXPECT_EQ(times(svg, ">baseline</text>"), 1);
  EXPECT_EQ(times(svg, ">fix</text>"), 1);
  EXPECT_NE(svg.find("NVIDIA H200"), std::string::npos);
}

TEST(DrawTimeline, HatchesTheWaitsOfTheVariantThatWaitsAndOfNoOther) {
  const auto waits = [](const std::string& svg) { return times(svg, " holds the host for "); };
  EXPECT_GT(waits(picture_of({fake_trace()})), 0);
  EXPECT_EQ(waits(picture_of({fake_trace({.batch_from = CopyEnd::pinned, .waits = false})})), 0);
}

TEST(DrawTimeline, DoesNotTakeStepgatesOwnWaitsForWaitsOfTheStep) {
  FakeTrace fake = fake_trace({.batch_from = CopyEnd::pinned});
  for (const HostCall& call : fake.trace.calls) {
    if (call.can_block) {
      fake.trace.spans.at(static_cast<std::size_t>(call.span)).operation = -1;
    }
  }
  const std::string svg = picture_of({fake});
  EXPECT_EQ(times(svg, " holds the host for "), 0);
  EXPECT_GT(times(svg, "held back by stepgate<"), 0);
}

TEST(DrawTimeline, GivesAllVariantsOneScale) {
  const FakeTrace slow = fake_trace({.steps = 20, .kernel_nanoseconds = 40'000});
  const FakeTrace fast = fake_trace({.steps = 20});
  const std::vector<TracesOfRanks> traces{{&slow.trace}, {&fast.trace}};
  const Windows windows = windows_of(traces, 2.1);
  ASSERT_EQ(windows.of_variants.size(), 2U);
  const auto steps = steps_of_the_device(slow.trace);
  EXPECT_EQ(windows.of_variants[0][0].begin, steps[1].when.begin);
  const TraceTime step = steps[2].when.begin - steps[1].when.begin;
  EXPECT_GE(windows.length, step);
  EXPECT_LE(windows.length, step * 3);
}

// Returns a trace whose device lags by more than the length of the trace.
FakeTrace far_ahead() {
  FakeTrace fake = fake_trace({.steps = 12});
  for (DeviceWork& work : fake.trace.work) {
    work.begin += TraceTime(10'000'000);
    work.end += TraceTime(10'000'000);
  }
  return fake;
}

TEST(DrawTimeline, ShowsTheHostsWorkOfTheDrawnStepsWhereTheHostIsFarAhead) {
  const FakeTrace ahead = far_ahead();
  const std::vector<TracesOfRanks> traces{{&ahead.trace}};
  const Window window = windows_of(traces, 2.1).of_variants[0][0];
  const NumberedStep device = steps_of_the_device(ahead.trace)[1];
  EXPECT_EQ(window.begin, device.when.begin);
  EXPECT_GT(window.lead, TraceTime(0));
  const std::vector<NumberedStep> host = steps_of_the_host(ahead.trace);
  const auto same = std::ranges::find(host, device.number, &NumberedStep::number);
  ASSERT_NE(same, host.end());
  EXPECT_EQ(window.begin - window.lead, same->when.begin);
  const std::string words = fmt::format("step {}</text>", device.number);
  const std::string svg = picture_of({ahead});
  EXPECT_EQ(times(svg, "the host is " + time_text(window.lead) + " ahead of the device"), 1);
  EXPECT_EQ(times(svg, words), 2) << "on the host's row and on the device's";

  const FakeTrace beside = fake_trace({.steps = 12});
  EXPECT_EQ(windows_of(std::vector<TracesOfRanks>{{&beside.trace}}, 2.1).of_variants[0][0].lead,
            TraceTime(0));
  EXPECT_EQ(times(picture_of({beside}), "ahead of the device"), 0);
}

TEST(DrawTimeline, GreysOutWhatNoRecordCovers) {
  FakeTrace fake = far_ahead();
  fake.trace.spans.erase(fake.trace.spans.begin() + 1, fake.trace.spans.end());
  fake.trace.calls.clear();
  const std::string svg = picture_of({fake});
  EXPECT_GE(times(svg, "fill=\"url(#none)\""), 2) << "one of them is the legend's";
  EXPECT_LT(times(picture_of({fake_trace({.steps = 12})}), "fill=\"url(#none)\""),
            times(svg, "fill=\"url(#none)\""));
}

TEST(DrawTimeline, StaysSmallAndWellFormedWithManyTinyKernelsAndOddNames) {
  std::vector<FakeTrace> variants;
  for (const char* name : {"baseline", "middle", "fix"}) {
    variants.push_back(fake_trace({.variant = name,
                                   .kernels = 3000,
                                   .steps = 5,
                                   .kernel_nanoseconds = 1500,
                                   .kernel_name = "f<a & \"b\">(\x01\xff)"}));
    for (Operation& operation : variants.back().plan.operations) {
      operation.name += " <T&> " + std::string(300, 'x');
    }
  }
  const std::string svg = picture_of(variants);
  EXPECT_LT(svg.size(), 300'000U);
  EXPECT_TRUE(is_well_formed(svg));
  for (const char letter : svg)
    EXPECT_TRUE(letter == '\n' || static_cast<unsigned char>(letter) >= 32);
}

std::string picture_of_ranks(const TwoRanks& ranks) {
  Traced traced;
  traced.timelines = {ranks.traces};
  std::ostringstream out;
  const std::vector<PlannedStep> plans{PlannedStep(ranks.plan, PlanFacts{})};
  draw_timeline(out, fake_gpu(), plans, traced);
  return out.str();
}

TEST(DrawTimeline, ShowsEachRankWithItsRows) {
  const std::string svg = picture_of_ranks(two_ranks(TraceTime(4000)));
  EXPECT_TRUE(is_well_formed(svg));
  EXPECT_EQ(times(svg, ">rank 0</text>"), 1);
  EXPECT_EQ(times(svg, ">rank 1</text>"), 1);
  EXPECT_EQ(times(svg, ">host</text>"), 2);
  EXPECT_EQ(times(svg, ">compute stream</text>"), 2);
  EXPECT_EQ(times(picture_of({fake_trace()}), ">rank "), 0) << "one rank is none of several";
}

// The name "communication stream" was once truncated.
TEST(DrawTimeline, CutsNoNameOfARow) {
  EXPECT_EQ(times(picture_of_ranks(two_ranks(TraceTime(0))), ">communication stream</text>"), 2);
  TwoRanks ranks = two_ranks(TraceTime(0));
  ranks.plan.streams.back().name = std::string(200, 'x');
  const std::string svg = picture_of_ranks(ranks);
  EXPECT_TRUE(is_well_formed(svg));
  EXPECT_EQ(times(svg, std::string(200, 'x')), 0) << "it would leave no room for anything else";
}

TEST(DrawTimeline, ShowsWhichPartOfACollectiveIsWaitingForARank) {
  const std::string svg = picture_of_ranks(two_ranks(TraceTime(4000)));
  EXPECT_GT(times(svg, "of which 4 us of waiting for rank 1"), 1);
  EXPECT_EQ(times(svg, "waiting for rank 0"), 0);
  EXPECT_GT(times(svg, "fill=\"url(#ranks)\""), 1) << "one is the legend's";
  EXPECT_EQ(times(picture_of_ranks(two_ranks(TraceTime(0))), "waiting for rank"), 0);
}

TEST(DrawTimeline, HasOneAxisForRanksOfOneClockAndNoneForOthers) {
  TwoRanks ranks = two_ranks(TraceTime(4000));
  for (DeviceWork& work : ranks.traces[1].work) work.begin += TraceTime(700);
  const auto begins = [&] {
    const std::vector<TracesOfRanks> traces{{&ranks.traces[0], &ranks.traces[1]}};
    const Windows windows = windows_of(traces, 2.1);
    return std::pair(windows.of_variants[0][0].begin, windows.of_variants[0][1].begin);
  };
  EXPECT_EQ(begins().first, begins().second);
  for (Trace& trace : ranks.traces) trace.arrivals.clear();  // as for ranks on several hosts
  EXPECT_EQ(begins().second - begins().first, TraceTime(700));
}

std::vector<Trace> traces_of_ranks(int count) {
  std::vector<Trace> traces(static_cast<std::size_t>(count));
  for (int rank = 0; rank < count; ++rank) {
    traces[static_cast<std::size_t>(rank)].rank = rank;
    traces[static_cast<std::size_t>(rank)].arrivals.emplace_back();
  }
  return traces;
}

TEST(DrawTimeline, LeavesMostOfTooManyRanksOutAndSaysSo) {
  const WorstRanks worst{.shown = 5, .metrics = {{Metric::exposed_comm_us, 7}}, .kernels = {}};
  const std::vector<Trace> eight = traces_of_ranks(8);
  EXPECT_EQ(drawn_ranks(eight, worst).traces.size(), 8U);
  EXPECT_EQ(drawn_ranks(eight, worst).note, "");
  const std::vector<Trace> sixteen = traces_of_ranks(16);
  const DrawnRanks drawn = drawn_ranks(sixteen, worst);
  EXPECT_EQ(drawn.note,
            "of 16 ranks 0; 5, which the report is of; 7, whose collectives are hidden least; 15");
  std::vector<int> ranks;
  for (const Trace* trace : drawn.traces) ranks.push_back(trace->rank);
  EXPECT_EQ(ranks, (std::vector<int>{0, 5, 7, 15}));
}

TEST(DrawTimeline, SaysThatRanksShareNoClock) {
  std::vector<Trace> traces = traces_of_ranks(2);
  for (Trace& trace : traces) trace.arrivals.clear();
  EXPECT_EQ(drawn_ranks(traces, {}).note, "each on a clock of its own");
  traces.pop_back();
  EXPECT_EQ(drawn_ranks(traces, {}).note, "");
}

TEST(DrawTimeline, NamesRanksThatAreAlike) {
  Trace trace;
  trace.rank = 3;
  EXPECT_EQ(name_of_ranks(trace), "rank 3");
  trace.rank = 0;
  trace.alike = {1};
  EXPECT_EQ(name_of_ranks(trace), "ranks 0 and 1, alike");
  trace.alike = {2, 3, 4, 6};
  EXPECT_EQ(name_of_ranks(trace), "ranks 0, 2 to 4 and 6, alike");
}

TEST(DrawTimeline, DrawsATraceOfNothing) {
  EXPECT_TRUE(is_well_formed(picture_of({FakeTrace{}})));
}

TEST(DrawTimeline, NamesAPictureForEveryScenarioOnlyWhereThereAreSeveral) {
  StepPlan plan;
  plan.scenario = "input_path";
  EXPECT_EQ(picture_file("p.svg", plan, 1), "p.svg");
  EXPECT_EQ(picture_file("out/p.svg", plan, 2), "out/p.input_path.svg");
  EXPECT_EQ(picture_file("p", plan, 2), "p.input_path.svg");
}

TEST(Svg, ShortensTextBetweenCharacters) {
  EXPECT_EQ(shortened("wait", 10, 100), "wait");
  EXPECT_EQ(shortened("wait for the device", 10, 10), "");
  const std::string cut = shortened("\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4", 10, 60);
  EXPECT_EQ(xml_text(cut).find('?'), std::string::npos) << cut;
}

}  // namespace
}  // namespace stepgate
