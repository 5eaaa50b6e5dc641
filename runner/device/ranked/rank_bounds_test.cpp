// SPDX-License-Identifier: MIT
// Tests the bounds of every number in every message: each row of the table is that of a number, and
// each number of a message has a row.
#include "device/ranked/rank_bounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "base/record/record_json.h"
#include "base/testing/planted_record.h"
#include "device/ranked/rank_server.h"

namespace stepgate {
namespace {

std::string wrong_request(const std::string& text) {
  try {
    read_rank_request(text);
  } catch (const RankProtocolError& error) {
    return error.what();
  }
  return "";
}
std::string wrong_answer_text(const std::string& text) {
  try {
    read_rank_answer(text);
  } catch (const RankProtocolError& error) {
    return error.what();
  }
  return "";
}

// Every message, with values in all its optionals and lists, and without traces.
std::vector<std::string> all_requests() {
  std::vector<std::string> all;
  [&]<std::size_t... index>(std::index_sequence<index...>) {
    (all.push_back(
         message_of(RankRequest(planted_record<std::variant_alternative_t<index, RankRequest>>()))),
     ...);
  }
  (std::make_index_sequence<std::variant_size_v<RankRequest>>());
  return all;
}
template <class Value>
void leave_traces_out(Value& value) {
  if constexpr (std::is_same_v<Value, StepResult>) {
    value.trace.reset();
    value.other_traces.clear();
  } else if constexpr (std::is_same_v<Value, RankRan>) {
    leave_traces_out(value.result);
  } else if constexpr (std::is_same_v<Value, RanTogether>) {
    for (StepResult& result : value) leave_traces_out(result);
  }
}
std::vector<std::string> all_answers() {
  std::vector<std::string> all;
  const auto add = [&]<class Value>(Value) {
    Value value{};
    int number = 0;
    Planted<Value>::plant(value, number);
    leave_traces_out(value);
    all.push_back(message_of(RankAnswer{.value = value, .now = std::chrono::nanoseconds(1)}));
  };
  [&]<std::size_t... index>(std::index_sequence<index...>) {
    (add(std::variant_alternative_t<index, RankValue>()), ...);
  }
  (std::make_index_sequence<std::variant_size_v<RankValue>>());
  return all;
}

// Calls visit(place, text) for each number of the message, of lists for the first two, with the
// message in which that number is replaced.
using Visit = std::function<void(const std::string& place, const std::string& message)>;
void replace_each_number(RecordJson& whole, RecordJson& json, const std::string& place,
                         const RecordJson& by, const Visit& visit) {
  if (json.is_number()) {
    const RecordJson kept = std::exchange(json, by);
    visit(place, whole.dump());
    json = kept;
  } else if (json.is_array()) {
    for (std::size_t index = 0; index < std::min<std::size_t>(json.size(), 2); ++index)
      replace_each_number(whole, json[index], place + "[]", by, visit);
  } else if (json.is_object()) {
    for (auto& [key, value] : json.items())
      replace_each_number(whole, value, place + "." + key, by, visit);
  }
}
void replace_each_number(const std::string& message, const RecordJson& by, const Visit& visit) {
  RecordJson json = RecordJson::parse(message);
  replace_each_number(json, json, "", by, visit);
}

TEST(RankBounds, HoldForEveryNumberOfEveryMessage) {
  std::size_t numbers = 0;
  const auto refuses = [&](const std::vector<std::string>& messages, auto wrong) {
    for (const std::string& message : messages) {
      EXPECT_EQ(wrong(message), "") << message;
      for (const RecordJson& by : {RecordJson(INT64_MIN), RecordJson(INT64_MAX)}) {
        std::map<std::string, int> taken;
        replace_each_number(message, by, [&](const std::string& place, const std::string& text) {
          ++numbers;
          if (wrong(text).empty()) ++taken[place];
        });
        for (const auto& [place, times] : taken) {
          const bool is_any = place.ends_with("losses[]") || place.ends_with("values[]") ||
                              place.ends_with(".squares") || place.ends_with("projections[]") ||
                              ((place.ends_with(".weights") || place.ends_with(".loader") ||
                                place.ends_with(".audit") || place.ends_with(".cpu_draw")) &&
                               by > 0);
          EXPECT_TRUE(is_any) << place << " may be " << by << " in " << message;
        }
      }
    }
  };
  refuses(all_requests(), wrong_request);
  refuses(all_answers(), wrong_answer_text);
  EXPECT_GT(numbers, 100U);
}

// A number may be least and most, and no less and no more.
TEST(RankBounds, AreThoseOfTheTable) {
  std::map<std::string_view, NumberBounds> rows;
  for (const NumberBounds& row : number_bounds())
    EXPECT_TRUE(rows.try_emplace(row.field, row).second) << row.field << " is there twice";
  struct Case {
    std::string field;
    std::string before;
    std::string after;
    bool is_answer = false;
  };
  for (const Case& one : std::initializer_list<Case>{
           {"Observe.steps", R"({"do":"run","step":1,"observe":{"wash_out_steps":1,"steps":)",
            R"(,"tensors":false,"trace":false,"gradients":false,"audit":0,"cpu_draw":null}})"},
           {"Load.slot", R"({"do":"load","step":1,"slot":)",
            R"(,"digest":"d","scenario":"s","variant":"v","draw":{"first_step":0,"loader":1}})"},
           {"RankMembership.count", R"({"do":"join","membership":{"rank":0,"count":)",
            R"(,"rendezvous":"x"}})"},
           {"Interleaving.wash_out_steps",
            R"({"do":"interleave","steps":[1],"how":{"order":[0],"unscored":0,"wash_out_steps":)",
            R"(,"steps":1}})"},
           {"RankAnswer.now", R"({"is":"done","value":{},"now":)", "}", true},
           {"EnvironmentReading.temperature_celsius",
            R"({"is":"environment","value":{"unavailable":"","sm_clock_hertz":null,)"
            R"("memory_clock_hertz":null,"active":null,"times":[],"temperature_celsius":)",
            R"(,"power_watts":null,"power_limit_watts":null,"processes":null},"now":1})", true}}) {
    const NumberBounds& row = rows.at(one.field);
    const auto wrong = [&](std::int64_t number) {
      const std::string text = one.before + std::to_string(number) + one.after;
      return one.is_answer ? wrong_answer_text(text) : wrong_request(text);
    };
    EXPECT_EQ(wrong(row.least), "");
    EXPECT_EQ(wrong(row.most), "");
    EXPECT_NE(wrong(row.least - 1).find("is not from "), std::string::npos) << one.field;
    EXPECT_NE(wrong(row.most + 1).find("is not from "), std::string::npos) << one.field;
  }
  EXPECT_EQ(wrong_request(R"({"do":"run","step":1,"observe":{"wash_out_steps":1,"steps":0,)"
                          R"("tensors":false,"trace":false,"gradients":false,"audit":0,)"
                          R"("cpu_draw":null}})"),
            "has 'observe.steps' 0, which is not from 1 to 10000000");
}

TEST(RankBounds, RefuseClocksThatAreNoNumbers) {
  RankRan ran;
  const auto wrong = [&](double hertz) {
    ran.result.sm_clock_hertz = hertz;
    return wrong_answer_text(message_of(RankAnswer{.value = ran, .now = {}}));
  };
  EXPECT_EQ(wrong(1.98e9), "");
  for (const double hertz : {std::nan(""), std::numeric_limits<double>::infinity(), -0.5, 1e300})
    EXPECT_NE(wrong(hertz).find("has 'value.result.sm_clock_hertz' "), std::string::npos) << hertz;
  ran.result.losses = {std::nanf("")};
  EXPECT_EQ(wrong(1), "") << "a loss may be anything";
}

TEST(MessageReaders, EndMessagesThatNeverEnd) {
  MessageReader reader(10);
  EXPECT_EQ(reader.take("+12345"), std::nullopt);
  EXPECT_EQ(reader.take("=67890"), "1234567890");
  EXPECT_EQ(reader.take("+12345"), std::nullopt) << "each message may be as long";
  EXPECT_THROW(reader.take("+678901"), RankProtocolError);
  MessageReader requests(longest_request);
  const std::string part = '+' + std::string(longest_rank_line - 1, 'x');
  std::size_t taken = 0;
  try {
    for (; taken < 100; ++taken) requests.take(part);
  } catch (const RankProtocolError& error) {
    EXPECT_STREQ(error.what(), "said more than 1048576 bytes in one message");
  }
  EXPECT_LE(taken * part.size(), 2 * longest_request);
}

Observe observe_of(std::int64_t steps) {
  return {.wash_out_steps = 1, .steps = steps, .trace = true, .gradients = true};
}
StepResult result_of(std::int64_t steps) {
  StepResult result;
  result.steps = steps;
  result.losses.resize(static_cast<std::size_t>(steps) + 1);
  result.step_times.resize(static_cast<std::size_t>(steps));
  result.gradients.resize(2);
  result.other_gradients.resize(1, result.gradients);
  result.trace = Trace{.steps = steps, .work = {{.operation = 3}}};
  return result;
}

TEST(RankAnswers, AreThoseOfTheStepsThatWereAskedFor) {
  constexpr std::size_t operations = 4;
  const StepResult right = result_of(5);
  EXPECT_EQ(wrong_answer(right, observe_of(5), operations), std::nullopt);
  const auto wrong = [&](const std::function<void(StepResult&)>& change,
                         const Observe& observe = observe_of(5)) {
    StepResult result = right;
    change(result);
    return wrong_answer(result, observe, operations).value_or("");
  };
  EXPECT_EQ(wrong([](StepResult& one) { one.steps = 4; }), "ran 4 steps when asked for 5");
  EXPECT_EQ(wrong([](StepResult& one) { one.losses.pop_back(); }), "has 5 losses of 6 steps");
  EXPECT_EQ(wrong([](StepResult& one) { one.losses.clear(); }), "") << "it computes no numbers";
  EXPECT_EQ(wrong([](StepResult& one) { one.step_times.resize(6); }),
            "has times of 6 steps, and ran 5");
  EXPECT_EQ(wrong([](StepResult& one) { one.tensors.resize(1); }),
            "has tensors that nobody asked for");
  EXPECT_EQ(wrong([](StepResult& one) { one.other_gradients[0].resize(3); }),
            "has gradients of other parameters for another rank");
  EXPECT_EQ(wrong([](StepResult& one) { one.other_gradients.resize(64, one.gradients); }),
            "has results of more ranks than a step may have");
  EXPECT_EQ(wrong([](StepResult& one) { one.other_traces.resize(64); }),
            "has results of more ranks than a step may have");
  EXPECT_EQ(wrong([](StepResult& one) { one.trace->steps = 6; }), "traced 6 steps, and ran 5");
  const std::string beyond = "traced an operation that the plan does not have";
  EXPECT_EQ(wrong([](StepResult& one) { one.trace->work[0].operation = 4; }), beyond);
  EXPECT_EQ(wrong([](StepResult& one) { one.trace->spans = {{.operation = 4}}; }), beyond);
  EXPECT_EQ(wrong([](StepResult& one) { one.trace->memory_changes = {{.operation = 4}}; }), beyond);
  EXPECT_EQ(wrong([](StepResult& one) { one.trace->arrivals = {{.operation = 4}}; }), beyond);
  EXPECT_EQ(wrong([](StepResult& one) {
              one.other_traces = {*one.trace};
              one.other_traces[0].work[0].operation = INT32_MAX;
            }),
            beyond);
  const auto same = [](StepResult&) {};
  EXPECT_EQ(wrong(same, {.wash_out_steps = 1, .steps = 5, .trace = true}),
            "has gradients that nobody asked for");
  EXPECT_EQ(wrong(same, {.wash_out_steps = 1, .steps = 5, .gradients = true}),
            "has a trace that nobody asked for");
}

TEST(RankAnswers, ByTurnsAreOfEveryStep) {
  const Interleaving how{.order = {0, 1, 0, 1}, .unscored = 1, .wash_out_steps = 1, .steps = 2};
  std::vector<StepResult> right(2);
  right[0].steps = 2;
  right[1].steps = 4;
  EXPECT_EQ(wrong_answer(right, how, 2), std::nullopt);
  EXPECT_EQ(wrong_answer(std::span(right).first(1), how, 2),
            "has results of 1 steps when asked for 2");
  EXPECT_EQ(wrong_answer(right, how, 3), "has results of 2 steps when asked for 3");
  std::vector<StepResult> wrong = right;
  wrong[0].steps = 4;
  EXPECT_EQ(wrong_answer(wrong, how, 2), "ran 4 steps when asked for 2");
  wrong = right;
  wrong[1].losses.resize(13);
  EXPECT_EQ(wrong_answer(wrong, how, 2), "has 13 losses of 12 steps");
}

TEST(Turns, AreOfLoadedSteps) {
  const auto wrong = [](const Interleaving& how, std::size_t steps) {
    return wrong_order(how, steps).value_or("");
  };
  EXPECT_EQ(wrong({.order = {0, 1, 0}}, 2), "");
  EXPECT_EQ(wrong({.order = {}}, 0), "no step to run by turns");
  EXPECT_EQ(wrong({.order = {}}, 1), "a step without a turn");
  EXPECT_EQ(wrong({.order = {0, 2}}, 2), "a turn for step 2 of 2");
  EXPECT_EQ(wrong({.order = {0, -1}}, 2), "a turn for step -1 of 2");
  EXPECT_EQ(wrong({.order = {0, 0}}, 2), "a step without a turn");
  EXPECT_EQ(wrong({.order = {0}, .unscored = 2}, 1), "2 unscored turns of 1");
  EXPECT_EQ(wrong({.order = std::vector<int>(11), .wash_out_steps = 1, .steps = 999'999}, 1),
            "11 turns of 1000000 steps, more than 10000000");
}

}  // namespace
}  // namespace stepgate
