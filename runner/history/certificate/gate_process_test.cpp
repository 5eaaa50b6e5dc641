// SPDX-License-Identifier: MIT
// The lines that the two ends of a gate exchange, and processes that die, stall or lie.
#include "history/certificate/gate_process.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>

#include "support/testing/planted_record.h"
#include "support/text/diagnostic.h"

namespace stepgate {
namespace {

const GateResult sent{
    .outcome = Outcome::refuted,
    .rounds = 7,
    .gpu_seconds = 0.25,
    .round_seconds = 1.0 / 3,
    .estimate = -0.1 / 3,
    .standard_error = 0.001,
    .seen = 0.0125,
    .site = {.kind = InjectionKind::host_delay, .step_time = std::chrono::nanoseconds(1234)}};

// A shell script that reads the question and goes on.
ChildRequest script(const std::string& rest) {
  return {.command = {"sh", "-c", "read question\n" + rest},
          .name = "gate 3 of 20 of 'identical'",
          .stall = std::chrono::seconds(20),
          .stopped = {}};
}
ChildRequest answering(const std::string& line) {
  return script("echo '" + line + "'; read end; exit 0");
}

std::string failure(ChildRequest request) {
  try {
    (void)run_gate_process(std::move(request));
    return "none";
  } catch (const WorkerError& error) {
    return error.what();
  }
}

TEST(GateProcess, HandsAGateOverAsItWas) {
  const GateResult read = run_gate_process(answering(to_line(sent)));
  EXPECT_EQ(read.outcome, sent.outcome);
  EXPECT_EQ(read.rounds, sent.rounds);
  EXPECT_EQ(read.gpu_seconds, sent.gpu_seconds);
  EXPECT_EQ(read.round_seconds, sent.round_seconds);
  EXPECT_EQ(read.estimate, sent.estimate);
  EXPECT_EQ(read.standard_error, sent.standard_error);
  EXPECT_EQ(read.seen, sent.seen);
  EXPECT_EQ(read.site.kind, sent.site.kind);
  EXPECT_EQ(read.site.step_time, sent.site.step_time);
  GateResult unseen = sent;
  unseen.seen.reset();
  EXPECT_FALSE(run_gate_process(answering(to_line(unseen))).seen);
}

TEST(GateProcess, HandsOverTheWholeDevice) {
  const auto introduction = planted_record<GateIntroduction>();
  ASSERT_FALSE(introduction.device.keys.empty());
  EXPECT_EQ(introduce_gates(answering(to_line(introduction))), introduction);
}

TEST(GateProcess, IsNamedWhenItDies) {
  const std::string killed = failure(script("kill -9 $$"));
  EXPECT_EQ(killed.find("gate 3 of 20 of 'identical', `sh -c "), 0U) << killed;
  EXPECT_NE(killed.find("was ended by signal 9 (Killed) instead of answering run the gate"),
            std::string::npos)
      << killed;
  const std::string ended = failure(script("echo out of coffee >&2; exit 7"));
  EXPECT_NE(ended.find("ended with exit code 7 instead of answering run the gate; the tail of its "
                       "standard error:\n  out of coffee"),
            std::string::npos)
      << ended;
}

TEST(GateProcess, IsNamedWhenItFailsAfterItsAnswer) {
  const std::string said = failure(script("echo '" + to_line(sent) + "'; read end; exit 9"));
  EXPECT_EQ(said.find("gate 3 of 20 of 'identical', "), 0U) << said;
  EXPECT_NE(said.find("ended with exit code 9"), std::string::npos) << said;
}

TEST(GateProcess, IsNamedWhenItHangs) {
  ChildRequest hanging = script("exec sleep 100");
  hanging.stall = std::chrono::milliseconds(300);
  const std::string said = failure(std::move(hanging));
  EXPECT_EQ(said.find("gate 3 of 20 of 'identical', "), 0U) << said;
  EXPECT_NE(said.find("did not answer run the gate within 300 ms"), std::string::npos) << said;
}

TEST(GateProcess, IsNotWaitedForWhenSomebodyWantsTheEnd) {
  ChildRequest hanging = script("exec sleep 100");
  hanging.stopped = [] { return true; };
  EXPECT_THROW((void)run_gate_process(std::move(hanging)), WaitStopped);
}

TEST(GateProcess, IsNamedWhenItTalksNonsense) {
  const std::string good = to_line(sent);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string line = good;
    line.replace(line.find(from), from.size(), to);
    return line;
  };
  const std::pair<std::string, std::string> lies[] = {
      {"hello", "is not JSON"},
      {"", "is not JSON"},
      {"[]", "is [], which is no object"},
      {"7", "is 7, which is no object"},
      {"{}", "has no 'outcome'"},
      {good.substr(0, good.size() - 5), "is not JSON"},
      {with("refuted", "wrong"), "has 'outcome' \"wrong\", which is none of the choices"},
      {with("refuted", "skipped"), "has 'outcome' \"skipped\", which no gate ends with"},
      {with("\"refuted\"", "2"), "has 'outcome' 2, which is no text"},
      {with("\"rounds\":7", "\"rounds\":1"), "has 'rounds' 1, which is less than 2"},
      {with("0.001", "-0.001"), "has 'standard_error' -0.001, which is less than 0"},
      {with("0.001", "null"), "has 'standard_error' null, which is no number"},
      {with("0.001", "1e999"), "is not JSON"},
      {with("host_delay", "extra_wait"), "has 'kind' \"extra_wait\", which is no site of a gate"},
      {with("1234", "0"), "has 'step_time' 0, which is less than 1"},
  };
  for (const auto& [line, fact] : lies) {
    const std::string said = failure(answering(line));
    EXPECT_EQ(said.find("gate 3 of 20 of 'identical', "), 0U) << line;
    EXPECT_NE(said.find(", which " + fact), std::string::npos) << line << '\n' << said;
  }
}

TEST(GateProcess, PassesOnThatARequestIsWrongOrADeviceFailed) {
  try {
    (void)run_gate_process(answering(refused_line("there is no device; say cuda")));
    ADD_FAILURE();
  } catch (const RequestError& error) {
    EXPECT_STREQ(error.what(), "there is no device; say cuda");
  }
  try {
    (void)run_gate_process(answering(failed_line("out of memory")));
    ADD_FAILURE();
  } catch (const DeviceError& error) {
    EXPECT_STREQ(error.what(), "gate 3 of 20 of 'identical': out of memory");
  }
}

}  // namespace
}  // namespace stepgate
