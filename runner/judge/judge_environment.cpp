// SPDX-License-Identifier: MIT
#include "judge/judge_environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text/units.h"
#include "judge/verdict/words.h"

namespace stepgate {
namespace {

using std::chrono::nanoseconds;

constexpr std::size_t most_named = 3;

// Causes of disturbance, the most informative first. The general hardware "slowdown" is always
// reported together with its cause, so it is named only when neither specific cause is. Drivers
// also report it while a clock changes, so a single reading of it is ignored.
struct Cause {
  ClockEvent event;
  std::string_view name;
  bool by_heat;
  int fewest_readings;  // readings that must have it where its duration is unknown
};
constexpr std::array disturbing{
    Cause{ClockEvent::hardware_thermal, "thermal throttling by the hardware", true, 1},
    Cause{ClockEvent::software_thermal, "thermal throttling by the driver", true, 1},
    Cause{ClockEvent::hardware_power_brake, "the power brake", false, 1},
    Cause{ClockEvent::hardware_slowdown, "a hardware slowdown", false, 2}};

double milliseconds(nanoseconds time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

std::string range_in_words(double low, double high, const char* unit) {
  const std::string from = fmt::format("{:.0f}", low);
  const std::string to = fmt::format("{:.0f}", high);
  return from == to ? fmt::format("{} {}", to, unit) : fmt::format("{} to {} {}", from, to, unit);
}

// Names processes: "process 4711 (512 MiB)"; more than three processes are only counted.
std::string named(const std::vector<ComputeProcess>& processes) {
  std::vector<std::string> names;
  for (const ComputeProcess& process : processes) {
    if (names.size() == most_named) break;
    names.push_back(fmt::format("process {}", process.pid));
    if (!process.memory_bytes) continue;
    names.back() += fmt::format(
        " ({})", in_words(static_cast<double>(*process.memory_bytes), MetricUnit::bytes));
  }
  const std::size_t more = processes.size() - names.size();
  return fmt::format("{}{}", fmt::join(names, ", "),
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

}  // namespace

void EnvironmentLog::add(const EnvironmentReading& reading) {
  ++readings_;
  unavailable_ = reading.unavailable;
  if (!reading.unavailable.empty()) return;
  widen(sm_clock_, reading.sm_clock_hertz);
  widen(memory_clock_, reading.memory_clock_hertz);
  widen(temperature_, reading.temperature_celsius);
  widen(power_, reading.power_watts);
  if (reading.power_limit_watts) power_limit_ = reading.power_limit_watts;
  for (const ClockEvent event : reading.active.value_or(std::vector<ClockEvent>{})) {
    ++active_[event];
  }
  add_times(reading.times);
  if (reading.processes) add_processes(*reading.processes);
}

void EnvironmentLog::widen(std::optional<Range>& range, std::optional<double> value) {
  if (!value) return;
  if (!range) range = {*value, *value};
  range->low = std::min(range->low, *value);
  range->high = std::max(range->high, *value);
}

void EnvironmentLog::add_times(const std::vector<ClockEventTime>& times) {
  for (const ClockEventTime& time : times) {
    times_.try_emplace(time.event, time.total, time.total).first->second.second = time.total;
  }
}

// Where this process is not found in the list, one listed process may be this one, and the rest are
// neighbours. This process starts no others on the GPU, so a list that grows has a neighbour too.
void EnvironmentLog::add_processes(const ComputeProcesses& processes) {
  const std::size_t others = processes.others.size();
  const std::size_t listed = others + (processes.self_is_listed ? 1 : 0);
  fewest_listed_ = processes_known_ ? std::min(fewest_listed_, listed) : listed;
  processes_known_ = true;
  self_was_listed_ = self_was_listed_ || processes.self_is_listed;
  const std::size_t surely_others =
      processes.self_is_listed ? others : others - std::min<std::size_t>(others, 1);
  const std::size_t neighbours = std::max(surely_others, listed - fewest_listed_);
  if (neighbours <= most_neighbours_) return;
  most_neighbours_ = neighbours;
  neighbours_ = processes.self_is_listed
                    ? named(processes.others) + " had the GPU open too"
                    : fmt::format(
                          "{} of {} had the GPU open too (this process is not listed by "
                          "its own number)",
                          neighbours, named(processes.others));
}

nanoseconds EnvironmentLog::time_of(ClockEvent event) const {
  const auto found = times_.find(event);
  // Counters restart at 0 when the driver restarts.
  return found == times_.end()
             ? nanoseconds(0)
             : std::max(nanoseconds(0), found->second.second - found->second.first);
}

std::optional<std::string> EnvironmentLog::throttling() const {
  for (const Cause& cause : disturbing) {
    const nanoseconds time = time_of(cause.event);
    const auto found = active_.find(cause.event);
    const int active = found == active_.end() ? 0 : found->second;
    if (time == nanoseconds(0) && active < cause.fewest_readings) continue;
    std::string words =
        time > nanoseconds(0)
            ? fmt::format("{} held the clocks down for {:.3g} ms", cause.name, milliseconds(time))
            : fmt::format("{} held the clocks down at {} of {} readings", cause.name, active,
                          readings_);
    if (cause.by_heat && temperature_) {
      words += fmt::format(", at up to {:.0f} C", temperature_->high);
    }
    return words;
  }
  return std::nullopt;
}

std::optional<std::string> EnvironmentLog::disturbance() const {
  const auto throttled = throttling();
  if (throttled && !neighbours_.empty()) return *throttled + "; " + neighbours_;
  if (throttled) return throttled;
  if (!neighbours_.empty()) return neighbours_;
  return std::nullopt;
}

std::string EnvironmentLog::state() const {
  std::vector<std::string> parts;
  const auto add = [&](const char* name, const std::optional<Range>& range, double unit_size,
                       const char* unit) {
    if (!range) return;
    parts.push_back(name + range_in_words(range->low / unit_size, range->high / unit_size, unit));
  };
  add("SM clock ", sm_clock_, hertz_per_megahertz, "MHz");
  add("memory clock ", memory_clock_, hertz_per_megahertz, "MHz");
  add("", temperature_, 1, "C");
  add("", power_, 1, "W");
  if (power_ && power_limit_) parts.back() += fmt::format(" of {:.0f} W", *power_limit_);
  if (parts.empty()) return "the driver tells nothing of this GPU's clocks, heat and power";
  return fmt::format("{}, at {} readings between the rounds", fmt::join(parts, ", "), readings_);
}

std::string EnvironmentLog::company() const {
  if (!neighbours_.empty()) return neighbours_;
  if (processes_known_ && self_was_listed_) return "no other process had the GPU open";
  return "whether another process used the GPU is not known: the driver does not list this one";
}

std::vector<std::string> EnvironmentLog::in_words() const {
  if (readings_ == 0) return {};
  if (!unavailable_.empty()) return {"not known: " + unavailable_};
  std::vector<std::string> lines{state()};
  if (const auto throttled = throttling()) lines.push_back(*throttled);
  const nanoseconds capped = time_of(ClockEvent::software_power_cap);
  if (capped > nanoseconds(0)) {
    lines.push_back(
        fmt::format("the power limit held the clocks down for {:.3g} ms, which is how "
                    "this GPU runs and no fault",
                    milliseconds(capped)));
  }
  lines.push_back(company());
  return lines;
}

EnvironmentLog environment_of(const Measurement& measurement) {
  EnvironmentLog log;
  if (measurement.environment_before) log.add(*measurement.environment_before);
  for (const Round& round : measurement.rounds) {
    if (round.environment_after) log.add(*round.environment_after);
  }
  return log;
}

}  // namespace stepgate
