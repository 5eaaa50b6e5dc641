// SPDX-License-Identifier: MIT
#include "device/ranked/rank_protocol.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/process/child.h"
#include "base/testing/planted_record.h"

namespace stepgate {
namespace {

using std::chrono::nanoseconds;

// Converts a message to text and back, and compares the texts, which have every member.
template <class Message, class Read>
Message through(const Message& message, Read read) {
  const std::string text = message_of(message);
  Message back = read(text);
  EXPECT_EQ(message_of(back), text);
  return back;
}
template <class Asked>
Asked asked(const Asked& request) {
  return std::get<Asked>(through(RankRequest(request), read_rank_request));
}
template <class Given>
Given given(const Given& value) {
  return std::get<Given>(
      through(RankAnswer{.value = value, .now = nanoseconds(5)}, read_rank_answer).value);
}

TEST(RankProtocol, CarriesRequestsAsTheyAre) {
  asked(ask::Hello{});
  asked(ask::End{});
  const auto join =
      asked(ask::Join{{.rank = 2, .count = 4, .rendezvous = std::string("\0\xff\n", 3)}});
  EXPECT_EQ(join.membership.rank, 2);
  EXPECT_EQ(join.membership.count, 4);
  EXPECT_EQ(join.membership.rendezvous, std::string("\0\xff\n", 3));
  const auto load = asked(ask::Load{.step = 7,
                                    .slot = 1,
                                    .digest = "ab",
                                    .scenario = "s",
                                    .variant = "fix \"x\"",
                                    .draw = {.first_step = 40, .loader = UINT64_MAX}});
  EXPECT_EQ(load.variant, "fix \"x\"");
  EXPECT_EQ(load.draw.loader, UINT64_MAX);
  EXPECT_EQ(load.draw.first_step, 40);
  const auto run = asked(ask::Run{.step = 7,
                                  .observe = {.wash_out_steps = 3,
                                              .steps = 9,
                                              .tensors = true,
                                              .trace = true,
                                              .cpu_draw = UINT64_MAX}});
  EXPECT_TRUE(run.observe.tensors && run.observe.trace);
  EXPECT_EQ(run.observe.cpu_draw, UINT64_MAX);
  EXPECT_EQ(run.observe.steps, 9);
  const auto together = asked(ask::RunInterleaved{
      .steps = {4, 5},
      .how = {.order = {0, 1, 0}, .unscored = 1, .wash_out_steps = 2, .steps = 3}});
  EXPECT_EQ(together.how.order, (std::vector<int>{0, 1, 0}));
  EXPECT_EQ(together.steps, (std::vector<std::int64_t>{4, 5}));
  const std::vector<std::string> uuids{"GPU-a", "GPU-b"};
  EXPECT_EQ(asked(ask::CommunicatesWith{uuids}).uuids, uuids);
}

TEST(RankProtocol, CarriesNumbersToTheLastBit) {
  RankRan ran;
  ran.result.first_step = 3;
  ran.result.steps = 2;
  ran.result.elapsed = nanoseconds(123456789);
  ran.result.sm_clock_hertz = 0.1 + 0.2;
  ran.result.step_times = {nanoseconds(1), nanoseconds(2)};
  ran.result.losses = {0.1F, -0.0F, std::numeric_limits<float>::infinity(), std::nanf("7")};
  ran.result.tensors = {{.name = "weights", .values = {1e-45F, 3.0F}}};
  ran.result.trace = Trace{.first_step = 3, .steps = 2};
  ran.result.other_traces = {Trace{.first_step = 3, .steps = 2, .rank = 4}};
  ran.result.other_gradients.resize(2, std::vector<GradientSketch>(3));
  ran.result.other_gradients[1][2].squares = 0.1 + 0.2;
  ran.weights = UINT64_MAX;
  const RankRan back = given(ran);
  EXPECT_EQ(back.result.elapsed, ran.result.elapsed);
  EXPECT_EQ(back.result.sm_clock_hertz, ran.result.sm_clock_hertz);
  EXPECT_EQ(back.result.host_busy, std::nullopt);
  EXPECT_EQ(back.result.step_times, ran.result.step_times);
  EXPECT_TRUE(std::signbit(back.result.losses[1]));
  EXPECT_TRUE(std::isinf(back.result.losses[2]));
  EXPECT_TRUE(std::isnan(back.result.losses[3]));
  EXPECT_EQ(back.result.tensors.at(0).values, ran.result.tensors[0].values);
  EXPECT_EQ(back.result.trace.value().steps, 2);
  ASSERT_EQ(back.result.other_traces.size(), 1U);
  EXPECT_EQ(back.result.other_traces[0].rank, 4);
  ASSERT_EQ(back.result.other_gradients.size(), 2U);
  EXPECT_EQ(back.result.other_gradients[1].at(2).squares, 0.1 + 0.2);
  EXPECT_EQ(back.weights, UINT64_MAX);
}

// wires_test.cpp tests every other record.
TEST(RankProtocol, CarriesEveryFieldOfADevice) {
  EXPECT_EQ(given(planted_record<RankHello>()).identity, planted_record<RankHello>().identity);
  EXPECT_EQ(given(planted_record<Communication>()), planted_record<Communication>());
}

TEST(RankProtocol, CarriesOtherAnswersAsTheyAre) {
  RankHello hello{.rank = 1,
                  .build = "b",
                  .host = "h",
                  .process = 4711,
                  .identity = {.kind = DeviceKind::cuda, .name = "NVIDIA H200"},
                  .reason_against_tracing = "none",
                  .plans = {{.scenario = "s", .variant = "v", .digest = "d"}}};
  hello.identity.free_memory_bytes = 5;
  hello.identity.keys = {{"power limit", "700 W"}};
  const RankHello back = given(hello);
  EXPECT_EQ(back.plans, hello.plans);
  EXPECT_EQ(back.identity.kind, DeviceKind::cuda);
  EXPECT_EQ(back.identity.free_memory_bytes, 5);
  EXPECT_EQ(back.identity.keys.at(0).value, "700 W");
  EXPECT_EQ(given(RankError{.fault = RankFault::memory_full, .message = "none left"}).fault,
            RankFault::memory_full);
  EXPECT_EQ(given(Rendezvous{std::string("\0\1", 2)}).bytes, std::string("\0\1", 2));
  EXPECT_EQ(given(Libraries{{"cuDNN", "9"}}).at(0).value, "9");
  EXPECT_EQ(given(Choices{{"attention", "cuDNN", ""}}).at(0).library, "cuDNN");
  const KernelChoice ours{"layer_norm", "", "too narrow", 3, 25};
  EXPECT_EQ(given(Choices{ours}).at(0), ours);
  EXPECT_EQ(given(Surroundings{}), std::nullopt);
  const Communication with{.library = "NCCL 2.28.9",
                           .file = "/lib/libnccl.so.2",
                           .settings = {{"NCCL_ALGO", "Ring"}},
                           .links = {"", "NVLink"}};
  EXPECT_EQ(given(with), with);
  EnvironmentReading reading{.temperature_celsius = 61.5};
  reading.active = {ClockEvent::software_power_cap};
  reading.times = {{.event = ClockEvent::hardware_thermal, .total = nanoseconds(9)}};
  reading.processes = ComputeProcesses{.others = {{.pid = 1, .memory_bytes = {}}}};
  const auto surroundings = given(Surroundings{reading}).value();
  EXPECT_EQ(surroundings.temperature_celsius, 61.5);
  EXPECT_EQ(surroundings.active.value().at(0), ClockEvent::software_power_cap);
  EXPECT_EQ(surroundings.processes.value().others.size(), 1U);
}

TEST(RankProtocol, SaysWhatIsWrongWithAMessage) {
  const auto wrong = [](const std::string& text) {
    try {
      read_rank_answer(text);
    } catch (const RankProtocolError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(wrong("nonsense"), "is not JSON");
  EXPECT_EQ(wrong("[1]"), "is not a JSON object");
  EXPECT_EQ(wrong("{\"is\":\"fun\",\"value\":1,\"now\":1}"), "is 'fun', which nobody says");
  EXPECT_EQ(wrong("{\"is\":\"ran\",\"value\":{},\"now\":1}"), "has no 'result'");
  EXPECT_EQ(wrong("{\"is\":\"done\",\"value\":{},\"now\":1.5}"),
            "has 'now' 1.5, which is no whole number");
  EXPECT_EQ(wrong("{\"is\":\"error\",\"value\":{\"fault\":\"4\",\"message\":\"\"},\"now\":1}"),
            "has 'fault' \"4\", which is none of the choices");
  EXPECT_EQ(wrong("{\"is\":\"done\",\"value\":{},\"now\":1,\"value\":{}}"), "has 'value' twice");
  std::string hello = message_of(RankAnswer{.value = planted_record<RankHello>(), .now = {}});
  hello.insert(hello.find("\"name\":"), "\"name\":\"GPU\",");
  EXPECT_EQ(wrong(hello), "has 'value.identity.name' twice");
}

TEST(RankProtocol, DividesLongMessagesIntoLinesAndPutsThemTogether) {
  const std::string text(3'000'000, 'x');
  const std::vector<std::string> lines = lines_of(text);
  EXPECT_GT(lines.size(), 3U);
  MessageReader reader(longest_rank_answer);
  for (std::size_t line = 0; line < lines.size(); ++line) {
    EXPECT_LE(lines[line].size(), longest_line_bytes);
    const auto message = reader.take(lines[line]);
    EXPECT_EQ(message, line + 1 == lines.size() ? std::optional(text) : std::nullopt);
  }
  EXPECT_EQ(reader.take(lines_of("").at(0)), "");
  EXPECT_THROW(reader.take("hello"), RankProtocolError);
  EXPECT_THROW(reader.take(""), RankProtocolError);
}

}  // namespace
}  // namespace stepgate
