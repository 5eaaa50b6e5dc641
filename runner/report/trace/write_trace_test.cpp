// SPDX-License-Identifier: MIT
// Tests trace files by reading them as Perfetto and HolisticTraceAnalysis do.
#include "report/trace/write_trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "report/testing/fake_trace.h"
#include "report/testing/two_ranks.h"
#include "tests/golden.h"
#include "tests/sanitized.h"

namespace stepgate {
namespace {

using Json = nlohmann::json;

std::string text_of(const FakeTrace& fake) {
  std::ostringstream out;
  write_trace(out, {fake_gpu(), fake.plan, {&fake.trace, 1}});
  return out.str();
}

std::vector<Json> events_of(const FakeTrace& fake, const std::string& kind) {
  std::vector<Json> events;
  const Json root = Json::parse(text_of(fake));
  for (const Json& event : root["traceEvents"]) {
    if (event["ph"] == kind) events.push_back(event);
  }
  return events;
}

// Converts microseconds with three decimals to whole nanoseconds.
std::int64_t nanoseconds(const Json& microseconds) {
  return std::llround(microseconds.get<double>() * 1000);
}

// Returns two events of one row that overlap without being nested; empty when there are none.
std::string crossing(std::vector<Json> events) {
  const auto end = [](const Json& event) {
    return nanoseconds(event["ts"]) + nanoseconds(event["dur"]);
  };
  std::map<std::pair<Json, Json>, std::vector<Json>> rows;
  for (Json& event : events) rows[{event["pid"], event["tid"]}].push_back(event);
  for (auto& [row, all] : rows) {
    std::stable_sort(all.begin(), all.end(), [&](const Json& one, const Json& other) {
      return std::pair(nanoseconds(one["ts"]), -end(one)) <
             std::pair(nanoseconds(other["ts"]), -end(other));
    });
    std::vector<Json> open;
    for (const Json& event : all) {
      while (!open.empty() && end(open.back()) <= nanoseconds(event["ts"])) open.pop_back();
      if (!open.empty() && end(open.back()) < end(event)) return open.back().dump() + event.dump();
      open.push_back(event);
    }
  }
  return {};
}

TEST(WriteTrace, NamesOneFileForEveryVariant) {
  StepPlan plan;
  plan.scenario = "input_path";
  plan.variant = "fix";
  EXPECT_EQ(trace_file("out/t.json", plan), "out/t.input_path.fix.json");
  EXPECT_EQ(trace_file("out/t", plan), "out/t.input_path.fix.json");
  EXPECT_EQ(trace_file("t.1", plan), "t.1.input_path.fix.json");
}

TEST(WriteTrace, WritesASmallTraceAsReviewed) {
  expect_golden(std::filesystem::path(STEPGATE_SOURCE_DIR) / "tests/golden/trace.json",
                text_of(fake_trace({.kernels = 2, .steps = 2})));
}

TEST(WriteTrace, HasWhatAViewerAsksForAtTheTop) {
  const std::string text = text_of(fake_trace());
  const Json root = Json::parse(text);
  EXPECT_EQ(root["schemaVersion"], 1);
  EXPECT_EQ(root["displayTimeUnit"], "ms");
  EXPECT_EQ(root["baseTimeNanoseconds"], 1'000'000);
  EXPECT_EQ(root["traceName"], "scripted.baseline");
  EXPECT_EQ(root["deviceProperties"][0]["computeMajor"], 9);
  EXPECT_EQ(root["deviceProperties"][0]["numSms"], 132);
  // HolisticTraceAnalysis searches for the rank line by line with this pattern.
  EXPECT_TRUE(std::regex_search(text, std::regex(R"("rank":\s+(\d+))")));
}

TEST(WriteTrace, CarriesEveryKeyThatHolisticTraceAnalysisReads) {
  FakeTrace fake = fake_trace();
  fake.trace.calls.back().kind = CallKind::wait_for_event;
  fake.trace.work.back().from_graph = true;
  std::map<std::string, std::set<std::string>> keys;
  for (const Json& event : events_of(fake, "X")) {
    for (const char* needed : {"ts", "dur", "name", "cat", "pid", "tid", "args"}) {
      EXPECT_TRUE(event.contains(needed)) << event;
    }
    for (const auto& [key, value] : event["args"].items()) keys[event["cat"]].insert(key);
  }
  const std::map<std::string, std::vector<std::string>> wanted{
      {"kernel",
       {"External id", "correlation", "device", "context", "stream", "queued", "grid", "block",
        "registers per thread", "shared memory", "blocks per SM", "warps per SM",
        "est. achieved occupancy %", "graph id", "graph node id"}},
      {"gpu_memcpy",
       {"External id", "correlation", "device", "context", "stream", "bytes",
        "memory bandwidth (GB/s)"}},
      {"cuda_runtime", {"External id", "correlation", "cbid"}},
      {"cuda_sync",
       {"cuda_sync_kind", "stream", "correlation", "wait_on_stream",
        "wait_on_cuda_event_record_corr_id"}},
      {"cpu_op", {"External id"}}};
  for (const auto& [category, names] : wanted) {
    for (const std::string& name : names) {
      EXPECT_TRUE(keys[category].contains(name)) << category << ": " << name;
    }
  }
}

// HolisticTraceAnalysis assigns an event without a stream to the host, and one with a stream above
// 0 to the device. It links events by equal correlation, and assigns work to the step in which its
// call began.
TEST(WriteTrace, LetsEveryKernelFindItsCallAndItsStep) {
  const FakeTrace fake = fake_trace({.kernels = 5, .steps = 4, .waits = false});
  std::map<int, Json> calls;
  std::vector<Json> steps;
  std::vector<Json> work;
  for (const Json& event : events_of(fake, "X")) {
    if (event["name"].get<std::string>().starts_with("ProfilerStep#")) steps.push_back(event);
    const Json stream = event["args"].value("stream", Json(-1));
    if (stream > 0 && event["cat"] != "cuda_sync") work.push_back(event);
    if (stream != -1 || !event["args"].contains("correlation")) continue;
    EXPECT_TRUE(calls.emplace(event["args"]["correlation"], event).second) << "used twice";
  }
  ASSERT_EQ(steps.size(), 4U);
  for (std::size_t index = 0; index < steps.size(); ++index) {
    EXPECT_EQ(steps[index]["name"], "ProfilerStep#" + std::to_string(20 + index));
  }
  ASSERT_EQ(work.size(), 4U * 6U);
  for (const Json& event : work) {
    const auto call = calls.find(event["args"]["correlation"]);
    ASSERT_NE(call, calls.end());
    std::string step;
    for (const Json& one : steps) {
      const double begin = one["ts"];
      if (begin <= call->second["ts"] && call->second["ts"] < begin + one["dur"].get<double>()) {
        step = one["name"];
      }
    }
    EXPECT_EQ(step, "ProfilerStep#" + event["args"]["step"].dump());
  }
}

TEST(WriteTrace, NamesCopiesAsTheProfilerDoes) {
  std::set<std::string> names;
  const auto collect = [&](const FakeTrace& fake) {
    for (const Json& event : events_of(fake, "X")) {
      if (event["cat"] == "gpu_memcpy" || event["cat"] == "gpu_memset") names.insert(event["name"]);
    }
  };
  collect(fake_trace());
  FakeTrace fake = fake_trace({.batch_from = CopyEnd::pinned});
  fake.trace.work.back().kind = WorkKind::fill;
  collect(fake);
  fake.trace.work.front().from = CopyEnd::device;
  fake.trace.work.front().to = CopyEnd::pageable;
  collect(fake);
  EXPECT_EQ(names, (std::set<std::string>{"Memcpy HtoD (Pageable -> Device)",
                                          "Memcpy HtoD (Pinned -> Device)", "Memset (Device)",
                                          "Memcpy DtoH (Device -> Pageable)"}));
}

TEST(WriteTrace, NumbersStreamsFromOneWhereADeviceCountsFromZero) {
  FakeTrace fake = fake_trace();
  for (DeviceWork& work : fake.trace.work) work.stream = work.stream == 7 ? 0 : 1;
  std::set<int> streams;
  for (const Json& event : events_of(fake, "X")) {
    if (event["cat"] == "kernel" || event["cat"] == "gpu_memcpy") {
      EXPECT_EQ(event["tid"], event["args"]["stream"]);
      streams.insert(event["tid"].get<int>());
    }
  }
  EXPECT_EQ(streams, (std::set<int>{1, 2}));
}

TEST(WriteTrace, EndsEveryArrowOnceAndOnWorkThatItsCallCaused) {
  FakeTrace fake = fake_trace();
  // All work of the last step comes from one launch, as with a graph.
  Trace& trace = fake.trace;
  const HostCall& launch = trace.calls[trace.calls.size() - 5];
  ASSERT_GT(launch.correlation, 0U);
  for (DeviceWork& work : trace.work) {
    if (work.step == 22) work.correlation = launch.correlation;
  }
  std::map<int, Json> starts;
  for (const Json& event : events_of(fake, "s")) {
    EXPECT_TRUE(starts.emplace(event["id"], event).second) << event;
  }
  const std::vector<Json> ends = events_of(fake, "f");
  EXPECT_EQ(ends.size(), trace.work.size());
  EXPECT_EQ(starts.size(), ends.size());
  std::set<int> ended;
  for (const Json& event : ends) {
    EXPECT_TRUE(ended.insert(event["id"].get<int>()).second);
    ASSERT_TRUE(starts.contains(event["id"]));
    EXPECT_EQ(event["bp"], "e");
    EXPECT_EQ(event["cat"], "ac2g");
    EXPECT_LE(starts[event["id"]]["ts"], event["ts"]);
  }
}

TEST(WriteTrace, GivesOverlappingWorkRowsOfItsOwn) {
  FakeTrace fake = fake_trace({.kernel_nanoseconds = 50'000, .waits = false});
  EXPECT_EQ(crossing(events_of(fake, "X")), "");
  // Kernels of one stream overlap, and a call extends beyond its operation.
  for (DeviceWork& work : fake.trace.work) work.end += TraceTime(70'000);
  fake.trace.calls[3].end += TraceTime(900);
  EXPECT_EQ(crossing(events_of(fake, "X")), "");
  std::set<int> rows;
  for (const Json& event : events_of(fake, "X")) {
    if (event["cat"] != "kernel") continue;
    EXPECT_EQ(event["args"]["stream"], 7);
    rows.insert(event["tid"].get<int>());
  }
  EXPECT_GE(rows.size(), 2U);
}

TEST(WriteTrace, ShowsHowMemoryComesAndGoes) {
  FakeTrace fake = fake_trace();
  const TraceTime begin = fake.trace.spans.front().begin;
  fake.trace.memory_changes = {{begin + TraceTime(10), 1000}, {begin + TraceTime(20), -1000}};
  std::vector<std::int64_t> values;
  for (const Json& event : events_of(fake, "C")) {
    if (event["name"] == "device memory") values.push_back(event["args"]["bytes"]);
  }
  const std::int64_t most = fake.trace.memory.peak_reserved_bytes;
  EXPECT_EQ(values, (std::vector<std::int64_t>{most - 1000, most, most - 1000}));
}

TEST(WriteTrace, WritesUnsteadyMomentsAndNamesThatAreNotText) {
  FakeTrace fake = fake_trace({.kernel_name = "a \"kernel\"\n<int>\xff"});
  fake.trace.unsteady = {
      {UnsteadyKind::module_loading, TraceTime(1'000'000), TraceTime(1'002'000)}};
  const std::vector<Json> events = events_of(fake, "X");
  EXPECT_EQ(std::count_if(events.begin(), events.end(),
                          [](const Json& event) { return event["name"] == "module loading"; }),
            1);
  EXPECT_EQ(crossing(events), "");
}

TEST(WriteTrace, HasAProcessForTheGpuAndOneForTheHostOfEachRank) {
  const TwoRanks ranks = two_ranks(TraceTime(4000));
  std::ostringstream out;
  write_trace(out, {fake_gpu(), ranks.plan, ranks.traces});
  const Json root = Json::parse(out.str());
  EXPECT_EQ(root["distributedInfo"]["world_size"], 2);
  std::map<int, std::string> processes;
  std::map<int, std::set<std::string>> collectives;  // stream that is waited for, by process
  std::map<std::int64_t, int> numbers;
  std::vector<Json> stretches;
  for (const Json& event : root["traceEvents"]) {
    if (event["name"] == "process_name") processes[event["pid"]] = event["args"]["name"];
    if (event["ph"] == "s") ++numbers[event["id"]];
    if (event["ph"] != "X") continue;
    stretches.push_back(event);
    const std::string name = event["name"];
    if (name.starts_with("nccl") || name.starts_with("waits for rank"))
      collectives[event["pid"]].insert(name);
  }
  EXPECT_EQ(processes, (std::map<int, std::string>{{0, "rank 0: NVIDIA H200"},
                                                   {1, "rank 1: NVIDIA H200"},
                                                   {2, "rank 0: stepgate"},
                                                   {3, "rank 1: stepgate"}}));
  EXPECT_EQ(collectives, (std::map<int, std::set<std::string>>{
                             {0, {"ncclDevKernel_AllReduce", "waits for rank 1"}},
                             {1, {"ncclDevKernel_AllReduce"}}}));
  EXPECT_FALSE(numbers.empty());
  for (const auto& [number, times] : numbers) EXPECT_EQ(times, 1) << "two ranks' arrow " << number;
  EXPECT_EQ(crossing(stretches), "");
}

TEST(WriteTrace, WritesATraceOfNothing) {
  FakeTrace nothing;
  EXPECT_TRUE(Json::parse(text_of(nothing))["traceEvents"].is_array());
}

// Under a sanitizer the speed is meaningless, and reading all of it back takes half a minute.
constexpr int steps = sanitized ? 5 : 50;

TEST(WriteTrace, WritesFiftyStepsOfThreeHundredKernelsInTwentyMegabytesAndTwoSeconds) {
  const FakeTrace fake = fake_trace(
      {.kernels = 300,
       .steps = steps,
       .waits = false,
       .kernel_name =
           "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128_16x5_nn>(Params)"});
  const std::clock_t begin = std::clock();  // CPU time, since other processes may run
  const std::string text = text_of(fake);
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  EXPECT_LT(text.size(), 20'000'000U);
  if (!sanitized) {
    EXPECT_LT(seconds, 2.0);
  }
  EXPECT_GT(Json::parse(text)["traceEvents"].size(), steps * 300U * 5U);
}

}  // namespace
}  // namespace stepgate
