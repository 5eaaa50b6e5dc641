// SPDX-License-Identifier: MIT
#include "compare/worker/protocol.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

namespace stepgate {
namespace {

template <class Value>
std::string fact_of(const Answer<Value>& answer) {
  const auto* problem = std::get_if<Problem>(&answer);
  return problem == nullptr ? "" : problem->fact;
}

TEST(Protocol, WritesRequestsThatItReadsBack) {
  const auto read = [](const Request& request) {
    return std::get<Request>(read_request(to_line(request)));
  };
  EXPECT_TRUE(std::holds_alternative<SayHello>(read(SayHello{})));
  EXPECT_EQ(std::get<LoadWorkload>(read(LoadWorkload{"a \"quoted\" name"})).workload,
            "a \"quoted\" name");
  const auto run = std::get<RunSteps>(read(RunSteps{.steps = 7, .wash_out_steps = 3}));
  EXPECT_EQ(run.steps, 7);
  EXPECT_EQ(run.wash_out_steps, 3);
  EXPECT_TRUE(std::holds_alternative<UnloadWork>(read(UnloadWork{})));
  EXPECT_TRUE(std::holds_alternative<Quit>(read(Quit{})));
}

TEST(Protocol, WritesAnswersThatItReadsBack) {
  const Hello hello{
      .program = "p", .version = "1", .device = "d", .simulated = true, .workloads = {"a", "b"}};
  EXPECT_EQ(std::get<Hello>(read_hello(to_line(hello))), hello);
  const auto loaded = std::get<Loaded>(
      read_loaded(to_line(Loaded{.wash_out_steps = 5,
                                 .period_steps = 2,
                                 .periodic = {{"evaluate", 500, 0.25, {}}, {"log", 2, 0, {}}}})));
  EXPECT_EQ(loaded.wash_out_steps, 5);
  EXPECT_EQ(loaded.period_steps, 2);
  ASSERT_EQ(loaded.periodic.size(), 2U);
  EXPECT_EQ(loaded.periodic[0].name, "evaluate");
  EXPECT_EQ(loaded.periodic[0].every, 500);
  EXPECT_EQ(loaded.periodic[0].rough_seconds, 0.25);
  const auto ran =
      std::get<Ran>(read_ran(to_line(Ran{.steps = 9, .elapsed = std::chrono::nanoseconds(77)})));
  EXPECT_EQ(ran.steps, 9);
  EXPECT_EQ(ran.elapsed.count(), 77);
  EXPECT_TRUE(std::holds_alternative<UnloadWork>(read_unloaded(unloaded_line())));
  EXPECT_EQ(std::get<WorkerSays>(read_ran(error_line("no\nway"))).error, "no\nway");
}

TEST(Protocol, WritesWhatAWorkerThatCountsSaysSoThatItReadsItBack) {
  const Hello hello{.program = "p",
                    .version = "1",
                    .device = "d",
                    .simulated = true,
                    .workloads = {},
                    .counts = true,
                    .planned = {"a/b"},
                    .left_out = {{"c", "needs 2 GPUs"}},
                    .calibrated = {"d=4 KiB"},
                    .memory_bytes = 85'000'000'000};
  EXPECT_EQ(std::get<Hello>(read_hello(to_line(hello))), hello);
  StepCounts counts;
  counts.planned = {{"launches_per_step", 26}, {"host_waits_per_step", 1.0 / 3}};
  counts.untraced = "another tool is attached";
  counts.operations = {{"forward: gemm", 4}};
  counts.losses = {"3f800000"};
  counts.gradients["weight"].elements = 7;
  counts.gradients["weight"].projections[3] = -0.5;
  counts.gradient_bound = 0.01;
  counts.begun_again = {{"weight", 0.25}};
  const auto read = std::get<StepCounts>(read_counts(to_line(counts)));
  EXPECT_EQ(read.planned, counts.planned);
  EXPECT_EQ(read.operations, counts.operations);
  EXPECT_EQ(read.untraced, counts.untraced);
  EXPECT_EQ(read.losses, counts.losses);
  EXPECT_EQ(read.gradients.at("weight").elements, 7);
  EXPECT_EQ(read.gradients.at("weight").projections[3], -0.5);
  EXPECT_EQ(read.gradient_bound, 0.01);
  EXPECT_EQ(read.begun_again, counts.begun_again);
  const Request count = std::get<Request>(read_request(to_line(Request{CountWorkload{"a/b"}})));
  EXPECT_EQ(std::get<CountWorkload>(count).workload, "a/b");
  EXPECT_FALSE(std::get<CountWorkload>(count).times);
  EXPECT_TRUE(std::get<CountWorkload>(
                  std::get<Request>(read_request(to_line(Request{CountWorkload{"a/b", true}}))))
                  .times);
}

TEST(Protocol, BelievesNoCountThatIsNoNumber) {
  const std::string good = to_line(StepCounts{});
  EXPECT_EQ(fact_of(read_counts(good)), "");
  const auto with = [&](const std::string& planned) {
    std::string line = good;
    line.replace(line.find("\"planned\":{}"), 12, "\"planned\":" + planned);
    return fact_of(read_counts(line));
  };
  EXPECT_EQ(with("{\"waits\":1}"), "");
  EXPECT_EQ(with("{\"waits\":\"1\"}"), "has 'planned.waits' \"1\", which is no number from 0 up");
  EXPECT_NE(with("{\"waits\":null}"), "");
  EXPECT_NE(with("{\"\\u001b[2J\":1}"), "") << "a terminal would act on it";
  EXPECT_EQ(with("{\"a\":-1}"), "has 'planned.a' -1, which is no number from 0 up");
  EXPECT_EQ(with("[1]"), "has 'planned' [1], which is not an object of at most 10000");
  EXPECT_EQ(fact_of(read_counts("{}")), "has no 'planned'");
}

TEST(Protocol, LeavesOutWhatAWorkerNeedNotSay) {
  const auto hello = std::get<Hello>(read_hello(R"({"protocol":1,"program":"p","works":["w"]})"));
  EXPECT_EQ(hello.device, "");
  EXPECT_FALSE(hello.simulated);
  EXPECT_EQ(std::get<Hello>(read_hello(to_line(hello))), hello) << "nor when it is written again";
  EXPECT_EQ(std::get<Loaded>(read_loaded(R"({"loaded":true})")).period_steps, 1);
  for (const char* wrong :
       {R"(["log"])", R"([{"name":"log"}])", R"([{"name":"log","every":0,"seconds":1}])",
        R"([{"name":"log","every":5,"seconds":-1}])", R"([7])", R"({"name":"log"})",
        R"([{"name":"a\u0007b","every":5,"seconds":1}])"}) {
    const auto answer = read_loaded(fmt::format(R"({{"loaded":true,"periodic":{}}})", wrong));
    EXPECT_TRUE(std::holds_alternative<Problem>(answer)) << wrong;
  }
}

TEST(Protocol, IgnoresFieldsThatItDoesNotKnow) {
  EXPECT_TRUE(std::holds_alternative<Ran>(
      read_ran(R"({"steps":1,"elapsed_ns":5,"clocks":[1,2,{"sm":3}]})")));
}

// If each key cost more than the previous one, this would take minutes.
TEST(Protocol, ReadsAStrangersManyKeysOnceEach) {
  std::string keys;
  for (int key = 0; key < 80'000; ++key) keys += fmt::format("\"k{}\":1,", key);
  EXPECT_EQ(fact_of(read_ran('{' + keys + R"("steps":1,"elapsed_ns":5})")), "");
  EXPECT_EQ(fact_of(read_loaded(R"({"loaded":true,"periodic":[{)" + keys +
                                R"("name":"log","every":2,"seconds":1}]})")),
            "");
  EXPECT_NE(fact_of(read_hello(R"({"protocol":1,"program":"p","works":{)" + keys + R"("a":1}})")),
            "");
}

TEST(Protocol, NamesWhatIsWrongWithAnAnswer) {
  EXPECT_EQ(fact_of(read_ran("")), "is not JSON");
  EXPECT_EQ(fact_of(read_ran("{\"steps\":1")), "is not JSON");
  EXPECT_EQ(fact_of(read_ran("3")), "is not a JSON object");
  EXPECT_EQ(fact_of(read_ran(R"({"steps":1,"elapsed_ns":5,"steps":1})")), "has 'steps' twice");
  EXPECT_EQ(fact_of(read_ran(R"({"steps":1})")), "has no 'elapsed_ns'");
  EXPECT_EQ(fact_of(read_ran(R"({"steps":null,"elapsed_ns":1})")),
            "has 'steps' null, which is not a whole number from 1 to 1000000000");
  EXPECT_EQ(fact_of(read_ran(R"({"steps":1,"elapsed_ns":18446744073709551615})")),
            "has 'elapsed_ns' 18446744073709551615, which is not a whole number from 1 to "
            "3600000000000");
  EXPECT_EQ(fact_of(read_loaded(R"({"loaded":false})")), "has 'loaded' false");
  EXPECT_EQ(fact_of(read_loaded(R"({"loaded":1})")),
            "has 'loaded' 1, which is neither true nor false");
  EXPECT_EQ(fact_of(read_hello(R"({"error":7})")), "has 'error' 7, which is no text");
  EXPECT_NE(fact_of(read_hello(R"({"protocol":1,"program":"\u001b[2J","works":["w"]})")), "");
  EXPECT_NE(fact_of(read_hello(R"({"protocol":1,"program":"\u009b2J","works":["w"]})")), "");
  EXPECT_EQ(fact_of(read_hello(R"({"protocol":1,"program":"größe","works":["w"]})")), "");
}

// ci/WORKER.md shows requests after "> " and answers after "< ".
TEST(Protocol, ReadsEveryLineThatItsDocumentShows) {
  std::ifstream document(STEPGATE_SOURCE_DIR "/ci/WORKER.md");
  int requests = 0;
  int answers = 0;
  for (std::string line; std::getline(document, line);) {
    const std::string_view text =
        std::string_view(line).substr(std::min<std::size_t>(6, line.size()));
    if (line.starts_with("    > ")) {
      ++requests;
      EXPECT_TRUE(std::holds_alternative<Request>(read_request(text))) << line;
    } else if (line.starts_with("    < ")) {
      ++answers;
      EXPECT_TRUE(fact_of(read_hello(text)).empty() || fact_of(read_loaded(text)).empty() ||
                  fact_of(read_ran(text)).empty() || fact_of(read_unloaded(text)).empty())
          << line;
    }
  }
  EXPECT_EQ(requests, 5);
  EXPECT_EQ(answers, 5);
}

}  // namespace
}  // namespace stepgate
