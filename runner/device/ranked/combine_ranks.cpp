// SPDX-License-Identifier: MIT
#include "device/ranked/combine_ranks.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/require.h"

namespace stepgate {
namespace {

using std::chrono::nanoseconds;

// Returns the largest value. If one rank does not know its value, the result is unknown: that rank
// might be the slowest.
template <class Value>
std::optional<Value> largest(std::span<const RankRan> ranks,
                             std::optional<Value> StepResult::*member) {
  std::optional<Value> most = ranks.front().result.*member;
  for (const RankRan& rank : ranks) {
    const std::optional<Value>& own = rank.result.*member;
    if (!own) return std::nullopt;
    most = std::max(*most, *own);
  }
  return most;
}

// Returns the mean over all samples, as one rank with all batches would compute it. Adds in the
// order of the ranks and in double, so that the result is reproducible.
std::vector<float> mean_losses(std::span<const RankRan> ranks) {
  std::vector<float> losses;
  for (std::size_t step = 0; step < ranks.front().result.losses.size(); ++step) {
    double sum = 0;
    for (const RankRan& rank : ranks) sum += static_cast<double>(rank.result.losses.at(step));
    losses.push_back(static_cast<float>(sum / static_cast<double>(ranks.size())));
  }
  return losses;
}

// The time of each step on its slowest rank. The sum may exceed `elapsed`: a rank that is late in
// one step and early in the next delays the others only once.
std::vector<nanoseconds> slowest_steps(std::span<const RankRan> ranks) {
  std::vector<nanoseconds> times = ranks.front().result.step_times;
  for (const RankRan& rank : ranks) {
    const std::vector<nanoseconds>& own = rank.result.step_times;
    if (own.size() != times.size()) return {};  // one rank has no step times
    for (std::size_t step = 0; step < times.size(); ++step)
      times[step] = std::max(times[step], own[step]);
  }
  return times;
}

bool same_bits(const std::vector<float>& one, const std::vector<float>& other) {
  return std::ranges::equal(one, other, [](float a, float b) {
    return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
  });
}

bool same_tensors(const std::vector<Tensor>& one, const std::vector<Tensor>& other) {
  return std::ranges::equal(one, other, [](const Tensor& a, const Tensor& b) {
    return a.name == b.name && same_bits(a.values, b.values);
  });
}

std::size_t most_gradients(std::span<const RankRan> ranks) {
  std::size_t most = 0;
  for (const RankRan& rank : ranks) most = std::max(most, rank.result.gradients.size());
  return most;
}

// Adds the parts of all ranks. Where a rank has read no part, it is missing from the sum, which
// shows in the number of elements.
std::vector<GradientSketch> sum_of_gradients(std::span<const RankRan> ranks) {
  std::vector<GradientSketch> sum(most_gradients(ranks));
  for (const RankRan& rank : ranks) {
    for (std::size_t index = 0; index < rank.result.gradients.size(); ++index)
      sum[index] += rank.result.gradients[index];
  }
  return sum;
}

// Returns the traces by rank; empty if any rank has no trace.
std::vector<Trace> traces_of(std::vector<RankRan>& ranks) {
  std::vector<Trace> traces;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    std::optional<Trace>& trace = ranks[rank].result.trace;
    if (!trace) return {};
    traces.push_back(*std::move(trace));
    traces.back().rank = static_cast<int>(rank);
  }
  return traces;
}

// The kernel of a collective begins when its rank arrives, and waits on the device for the others.
std::vector<RankArrival> arrivals_in(std::span<const Trace> traces) {
  std::vector<RankArrival> arrivals;
  for (const Trace& trace : traces) {
    for (const DeviceWork& work : trace.work) {
      if (work.kind != WorkKind::collective || work.operation < 0) continue;
      arrivals.push_back(
          {.operation = work.operation, .step = work.step, .rank = trace.rank, .at = work.begin});
    }
  }
  std::ranges::stable_sort(arrivals, {}, [](const RankArrival& arrival) {
    return std::pair(arrival.step, arrival.operation);
  });
  return arrivals;
}

// Takes the worse of two values; unknown values are ignored.
template <class Value, class Order>
void take(std::optional<Value>& worst, const std::optional<Value>& other, Order is_worse) {
  if (other && (!worst || is_worse(*other, *worst))) worst = other;
}

}  // namespace

StepResult combined(std::vector<RankRan> ranks, Clocks clocks, Updates updates) {
  require(!ranks.empty(), "somebody ran");
  const auto slowest =
      std::ranges::max_element(ranks, {}, [](const RankRan& rank) { return rank.result.elapsed; });
  std::vector<Trace> traces = traces_of(ranks);
  if (clocks == Clocks::one) {
    const std::vector<RankArrival> arrivals = arrivals_in(traces);
    for (Trace& trace : traces) trace.arrivals = arrivals;
  }
  StepResult result = ranks.front().result;
  result.elapsed = largest(std::span<const RankRan>(ranks), &StepResult::elapsed);
  result.step_times = slowest_steps(ranks);
  result.losses = mean_losses(ranks);
  if (updates == Updates::shared_out) {
    result.gradients = sum_of_gradients(ranks);
  } else if (const std::size_t parameters = most_gradients(ranks); parameters > 0) {
    // A rank without gradients gets sketches with no elements.
    result.gradients.resize(parameters);
    for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
      result.other_gradients.push_back(std::move(ranks[rank].result.gradients));
      result.other_gradients.back().resize(parameters);
    }
  }
  result.sm_clock_hertz = slowest->result.sm_clock_hertz;
  result.host_busy = slowest->result.host_busy;
  result.host_processor = slowest->result.host_processor;
  result.audits.clear();
  for (const RankRan& rank : ranks) {
    const StepResult& own = rank.result;
    if (result.device_changed.empty()) result.device_changed = own.device_changed;
    result.audits.insert(result.audits.end(), own.audits.begin(), own.audits.end());
  }
  give_traces(std::move(traces), result);
  return result;
}

std::optional<std::size_t> other_weights(std::span<const RankRan> ranks) {
  for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
    if (ranks[rank].weights != ranks.front().weights) return rank;
  }
  return std::nullopt;
}

std::optional<Disagreement> disagreement(std::span<const RankRan> ranks) {
  const StepResult& first = ranks.front().result;
  for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
    const StepResult& other = ranks[rank].result;
    if (!same_bits(first.losses, other.losses)) return Disagreement{rank, "losses"};
    if (!same_tensors(first.tensors, other.tensors)) return Disagreement{rank, "numbers"};
    if (first.elapsed != other.elapsed || first.step_times != other.step_times)
      return Disagreement{rank, "times"};
  }
  return std::nullopt;
}

EnvironmentReading combined(std::span<const EnvironmentReading> readings) {
  EnvironmentReading worst = readings.front();
  for (const EnvironmentReading& reading : readings.subspan(1)) {
    if (worst.unavailable.empty()) worst.unavailable = reading.unavailable;
    take(worst.sm_clock_hertz, reading.sm_clock_hertz, std::less<>());
    take(worst.memory_clock_hertz, reading.memory_clock_hertz, std::less<>());
    take(worst.temperature_celsius, reading.temperature_celsius, std::greater<>());
    take(worst.power_watts, reading.power_watts, std::greater<>());
    take(worst.power_limit_watts, reading.power_limit_watts, std::less<>());
    for (const ClockEvent event : reading.active.value_or(std::vector<ClockEvent>())) {
      if (!worst.active) worst.active.emplace();
      if (std::ranges::find(*worst.active, event) == worst.active->end())
        worst.active->push_back(event);
    }
    for (const ClockEventTime& time : reading.times) {
      const auto own = std::ranges::find(worst.times, time.event, &ClockEventTime::event);
      if (own == worst.times.end()) {
        worst.times.push_back(time);
      } else {
        own->total += time.total;  // grows whenever the counter of one GPU does
      }
    }
    if (!reading.processes) continue;
    if (!worst.processes) worst.processes.emplace();
    worst.processes->self_is_listed &= reading.processes->self_is_listed;
    worst.processes->others.insert(worst.processes->others.end(), reading.processes->others.begin(),
                                   reading.processes->others.end());
  }
  return worst;
}

}  // namespace stepgate
