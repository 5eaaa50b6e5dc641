// SPDX-License-Identifier: MIT
#include "device/ranked/rank_bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <type_traits>
#include <variant>

#include "base/record/record_json.h"
#include "base/require.h"

namespace stepgate {
namespace {

// So large that sums of a million cannot overflow.
constexpr std::int64_t most_number = 1'000'000'000'000;
constexpr std::int64_t most_bytes = 1'000'000'000'000'000;
constexpr std::int64_t most_nanoseconds = most_bytes;  // eleven days
// A clock may begin at any moment, such as 1970.
constexpr std::int64_t most_moment = std::int64_t{1} << 62;
constexpr std::int64_t most_hertz = 1'000'000'000'000;
constexpr std::int64_t most_slots = 1024;
constexpr std::int64_t most_process = INT32_MAX;

constexpr NumberBounds any(std::string_view field) {
  return {.field = field, .is_any = true};
}

constexpr std::array all_bounds{
    // Requests.
    NumberBounds{"RankMembership.rank", 0, most_ranks - 1},
    NumberBounds{"RankMembership.count", 1, most_ranks},
    NumberBounds{"Load.step", 0, most_number},
    NumberBounds{"Load.slot", 0, most_slots - 1},
    NumberBounds{"LoadDraw.first_step", 0, most_number},
    any("LoadDraw.loader"),
    NumberBounds{"Run.step", 0, most_number},
    NumberBounds{"Observe.wash_out_steps", 0, most_steps_of_a_run},
    NumberBounds{"Observe.steps", 1, most_steps_of_a_run},
    any("Observe.audit"),
    any("Observe.cpu_draw"),
    NumberBounds{"RunInterleaved.steps", 0, most_number},
    NumberBounds{"Interleaving.order", 0, most_slots - 1},
    NumberBounds{"Interleaving.unscored", 0, most_steps_of_a_run},
    NumberBounds{"Interleaving.wash_out_steps", 1, most_steps_of_a_run},
    NumberBounds{"Interleaving.steps", 1, most_steps_of_a_run},
    NumberBounds{"Unload.step", 0, most_number},
    NumberBounds{"Restart.step", 0, most_number},
    // Answers.
    NumberBounds{"RankAnswer.now", 0, most_moment},
    NumberBounds{"RankHello.rank", 0, most_ranks - 1},
    NumberBounds{"RankHello.process", 1, most_process},
    NumberBounds{"DeviceIdentity.compute_capability", 0, 1000},
    NumberBounds{"DeviceIdentity.copy_engines", 0, 1000},
    NumberBounds{"DeviceIdentity.memory_bytes", 0, most_bytes},
    NumberBounds{"DeviceIdentity.free_memory_bytes", 0, most_bytes},
    NumberBounds{"DeviceIdentity.multiprocessors", 0, 1'000'000},
    NumberBounds{"DeviceIdentity.gpus", 0, 1'000'000},
    NumberBounds{"DeviceIdentity.processors", 0, 1'000'000},
    NumberBounds{"KernelChoice.own_launches", 0, most_number},
    NumberBounds{"KernelChoice.launches", 0, most_number},
    any("RankRan.weights"),
    NumberBounds{"StepResult.first_step", 0, 2 * most_number},
    NumberBounds{"StepResult.steps", 0, most_steps_of_a_run},
    NumberBounds{"StepResult.elapsed", 0, most_nanoseconds},
    NumberBounds{"StepResult.sm_clock_hertz", 0, most_hertz},
    NumberBounds{"StepResult.host_busy", 0, most_nanoseconds},
    NumberBounds{"StepResult.host_processor", 0, most_nanoseconds},
    NumberBounds{"StepResult.step_times", 0, most_nanoseconds},
    any("StepResult.losses"),
    any("Tensor.values"),
    NumberBounds{"LaunchAudit.step", 0, 2 * most_number},
    NumberBounds{"GradientSketch.elements", 0, most_bytes},
    any("GradientSketch.squares"),
    any("GradientSketch.projections"),
    NumberBounds{"EnvironmentReading.sm_clock_hertz", 0, most_hertz},
    NumberBounds{"EnvironmentReading.memory_clock_hertz", 0, most_hertz},
    NumberBounds{"EnvironmentReading.temperature_celsius", -300, 10'000},
    NumberBounds{"EnvironmentReading.power_watts", 0, 1'000'000},
    NumberBounds{"EnvironmentReading.power_limit_watts", 0, 1'000'000},
    NumberBounds{"ClockEventTime.total", 0, most_moment},
    NumberBounds{"ComputeProcess.pid", 0, most_process},
    NumberBounds{"ComputeProcess.memory_bytes", 0, most_bytes},
};

// "Observe" of stepgate::Observe, "Load" of stepgate::ask::Load.
template <class Type>
consteval std::string_view name_of_type() {
  std::string_view text = __PRETTY_FUNCTION__;
  text = text.substr(0, text.find_first_of(";]"));
  return text.substr(text.rfind(':') + 1);
}

template <class Value>
constexpr bool is_number = std::is_arithmetic_v<Value> && !std::is_same_v<Value, bool>;
template <>
inline constexpr bool is_number<std::chrono::nanoseconds> = true;

template <class Value>
concept Container = requires(const Value& value) {
  value.begin();
  value.end();
}
&&!std::is_same_v<Value, std::string>;
template <class Value>
concept Optional = requires(const Value& value) {
  value.has_value();
  *value;
};

const NumberBounds& bounds_of(std::string_view record, std::string_view field) {
  const auto found = std::ranges::find_if(all_bounds, [&](const NumberBounds& one) {
    return one.field.size() == record.size() + 1 + field.size() && one.field.starts_with(record) &&
           one.field.ends_with(field);
  });
  require(found != all_bounds.end(), "every number of a message has bounds");
  return *found;
}

template <class Number>
void check_number(const NumberBounds& bounds, Number number) {
  bool is_within = false;
  if constexpr (std::is_same_v<Number, std::chrono::nanoseconds>) {
    is_within = number.count() >= bounds.least && number.count() <= bounds.most;
  } else if constexpr (std::floating_point<Number>) {
    // False for what is no number.
    is_within = static_cast<double>(number) >= static_cast<double>(bounds.least) &&
                static_cast<double>(number) <= static_cast<double>(bounds.most);
  } else {
    is_within =
        std::cmp_greater_equal(number, bounds.least) && std::cmp_less_equal(number, bounds.most);
  }
  if (!is_within)
    throw WrongRecord(record_json(number),
                      fmt::format("is not from {} to {}", bounds.least, bounds.most));
}

// Whether values of the type are numbers, or hold numbers that are in no record of their own.
template <class Value>
struct HoldsNumbers : std::bool_constant<is_number<Value>> {};
template <Container Value>
struct HoldsNumbers<Value> : HoldsNumbers<typename Value::value_type> {};
template <class Value>
struct HoldsNumbers<std::optional<Value>> : HoldsNumbers<Value> {};

template <class Value>
void check_within(std::string_view place, const Value& value, const NumberBounds* bounds);

template <Record Value>
void check_record(const Value& value) {
  for_each_field(value, []<class Field>(std::string_view name, const Field& field) {
    const NumberBounds* bounds = nullptr;
    if constexpr (HoldsNumbers<Field>::value) bounds = &bounds_of(name_of_type<Value>(), name);
    check_within(name, field, bounds);
  });
}

// `bounds` are those of the numbers in the value that are in no record of their own.
template <class Value>
void check_within(std::string_view place, const Value& value, const NumberBounds* bounds) try {
  if constexpr (is_number<Value>) {
    if (!bounds->is_any) check_number(*bounds, value);
  } else if constexpr (std::is_same_v<Value, Trace>) {  // its reader has checked it
  } else if constexpr (Record<Value>) {
    check_record(value);
  } else if constexpr (Optional<Value>) {
    if (value) check_within("", *value, bounds);
  } else if constexpr (Container<Value>) {
    if (bounds != nullptr && bounds->is_any) return;
    std::size_t index = 0;
    for (const auto& element : value)
      check_within('[' + std::to_string(index++) + ']', element, bounds);
  }
} catch (const WrongRecord& wrong) {
  if (place.empty()) throw;
  throw wrong.within(place);
}

std::int64_t steps_of(const Observe& observe) {
  return observe.wash_out_steps + observe.steps;
}

// Whether the operation that a record of a trace refers to is one of the plan, or none.
template <class Row>
bool refers_beyond(const std::vector<Row>& rows, std::size_t operations) {
  return std::ranges::any_of(
      rows, [&](const Row& row) { return std::cmp_greater_equal(row.operation, operations); });
}
std::optional<std::string> wrong_trace(const Trace& trace, const Observe& observe,
                                       std::size_t operations) {
  if (trace.steps > observe.steps)
    return fmt::format("traced {} steps, and ran {}", trace.steps, observe.steps);
  const bool is_beyond =
      refers_beyond(trace.spans, operations) || refers_beyond(trace.work, operations) ||
      refers_beyond(trace.memory_changes, operations) || refers_beyond(trace.arrivals, operations);
  if (is_beyond) return "traced an operation that the plan does not have";
  return std::nullopt;
}

}  // namespace

std::span<const NumberBounds> number_bounds() {
  return all_bounds;
}

void check_bounds(const RankRequest& request) {
  std::visit([](const auto& asked) { check_record(asked); }, request);
}

void check_bounds(const RankAnswer& answer) {
  check_within("now", answer.now, &bounds_of("RankAnswer", "now"));
  std::visit([](const auto& given) { check_within("value", given, nullptr); }, answer.value);
}

std::optional<std::string> wrong_answer(const StepResult& result, const Observe& observe,
                                        std::size_t operations) {
  if (result.steps != observe.steps)
    return fmt::format("ran {} steps when asked for {}", result.steps, observe.steps);
  if (!result.losses.empty() && std::ssize(result.losses) != steps_of(observe))
    return fmt::format("has {} losses of {} steps", result.losses.size(), steps_of(observe));
  if (std::ssize(result.step_times) > observe.steps)
    return fmt::format("has times of {} steps, and ran {}", result.step_times.size(),
                       observe.steps);
  if (!observe.tensors && !result.tensors.empty()) return "has tensors that nobody asked for";
  if (!observe.gradients && !(result.gradients.empty() && result.other_gradients.empty()))
    return "has gradients that nobody asked for";
  if (observe.audit == 0 && !result.audits.empty()) return "has audits that nobody asked for";
  if (result.other_gradients.size() >= most_ranks || result.other_traces.size() >= most_ranks)
    return "has results of more ranks than a step may have";
  for (const auto& other : result.other_gradients) {
    if (other.size() != result.gradients.size())
      return "has gradients of other parameters for another rank";
  }
  if (!observe.trace && (result.trace || !result.other_traces.empty()))
    return "has a trace that nobody asked for";
  if (result.trace) {
    if (auto wrong = wrong_trace(*result.trace, observe, operations)) return wrong;
  }
  for (const Trace& other : result.other_traces) {
    if (auto wrong = wrong_trace(other, observe, operations)) return wrong;
  }
  return std::nullopt;
}

std::optional<std::string> wrong_order(const Interleaving& how, std::size_t steps) {
  if (steps == 0) return "no step to run by turns";
  std::vector<bool> has_turn(steps);
  for (const int index : how.order) {
    if (index < 0 || static_cast<std::size_t>(index) >= steps)
      return fmt::format("a turn for step {} of {}", index, steps);
    has_turn[static_cast<std::size_t>(index)] = true;
  }
  if (std::ranges::find(has_turn, false) != has_turn.end()) return "a step without a turn";
  if (how.unscored > std::ssize(how.order))
    return fmt::format("{} unscored turns of {}", how.unscored, how.order.size());
  const auto length = how.wash_out_steps + how.steps;
  if (length > most_steps_of_a_run / std::ssize(how.order))
    return fmt::format("{} turns of {} steps, more than {}", how.order.size(), length,
                       most_steps_of_a_run);
  return std::nullopt;
}

std::optional<std::string> wrong_answer(std::span<const StepResult> results,
                                        const Interleaving& how, std::size_t steps) {
  if (results.size() != steps)
    return fmt::format("has results of {} steps when asked for {}", results.size(), steps);
  for (std::size_t step = 0; step < steps; ++step) {
    const auto turns = std::count(how.order.begin() + static_cast<std::ptrdiff_t>(how.unscored),
                                  how.order.end(), static_cast<int>(step));
    const StepResult& result = results[step];
    // By turns nothing else is asked for, and at most so many losses, the unscored ones too.
    const Observe observe{.steps = turns * how.steps};
    StepResult without_losses = result;
    without_losses.losses.clear();
    if (auto wrong = wrong_answer(without_losses, observe, 0)) return wrong;
    const auto most_losses = std::ssize(how.order) * (how.wash_out_steps + how.steps);
    if (std::ssize(result.losses) > most_losses)
      return fmt::format("has {} losses of {} steps", result.losses.size(), most_losses);
  }
  return std::nullopt;
}

}  // namespace stepgate
