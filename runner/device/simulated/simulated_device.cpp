// SPDX-License-Identifier: MIT
#include "device/simulated/simulated_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/random.h"
#include "base/require.h"
#include "base/seconds.h"
#include "base/text/units.h"
#include "base/time_of_scope.h"
#include "device/planned_memory.h"
#include "device/simulated/rank_timelines.h"
#include "plan/analyse/access.h"
#include "plan/count/step_memory.h"

namespace stepgate {
namespace {

// Time to make streams, events and contents and to choose algorithms for a step whose memory is
// allocated.
constexpr Nanoseconds time_to_load = 5'000'000;

// State that all steps loaded on one simulated device share: its clock and its noise.
struct Machine {
  DeviceProfile profile;
  SimulatedSettings settings;
  Random random;
  Nanoseconds now = 0;
  std::map<int, double> slot_factors = {};  // drawn when a slot is first used
  // Random draws that stay constant within a process: one for each variant. They have a generator
  // of their own, which no load changes.
  Random fates = Random(~settings.seed);
  std::map<std::string, double> process_factors = {};
  bool is_lost = false;
  std::optional<std::chrono::steady_clock::time_point> scenario_began = {};

  void refuse_when_it_takes_long() const {
    if (!scenario_began ||
        std::chrono::steady_clock::now() - *scenario_began <= settings.most_wall_time)
      return;
    throw DeviceError(fmt::format(
        "the simulation took more than {} of this machine's time; simulate fewer or smaller steps "
        "(measure.warmup, measure.max_seconds)",
        seconds_text(seconds(settings.most_wall_time))));
  }
  void refuse_when_lost() const {
    if (is_lost) throw DeviceLost("the simulated device is lost, as planted");
  }
  double log_normal(double deviation) { return std::exp(deviation * random.normal()); }
  double slot_factor(int slot) {
    const auto [place, is_new] = slot_factors.try_emplace(slot, 1);
    if (is_new) place->second = log_normal(profile.noise.between_slots);
    return place->second;
  }
  double process_factor(const std::string& variant) {
    const auto [place, is_new] = process_factors.try_emplace(variant, 1);
    if (is_new) place->second = std::exp(profile.noise.between_processes * fates.normal());
    return place->second;
  }
};

// A loaded step holds this token as long as it exists.
struct SlotInUse {};

struct SlotMemory {
  std::int64_t bytes = 0;
  std::int64_t used_bytes = 0;  // bytes that the step loaded last uses
  std::weak_ptr<SlotInUse> in_use = {};
};

// Collects one rank's times of scored steps, from its construction on.
class ScoredRank {
 public:
  explicit ScoredRank(const Timeline& timeline)
      : timeline_(timeline),
        first_mark_(end()),
        host_begin_(timeline.host_now()),
        waited_begin_(timeline.host_waited()),
        idle_begin_(timeline.host_idle()) {}

  // The first call only sets the start of the next step.
  void step_ended(std::int64_t step) {
    const Nanoseconds stamp = timeline_.stamp(step);
    if (previous_) step_times_.emplace_back(stamp - *previous_);
    previous_ = stamp;
  }

  std::chrono::nanoseconds elapsed() const { return std::chrono::nanoseconds(end() - first_mark_); }
  std::chrono::nanoseconds host_busy() const {
    return std::chrono::nanoseconds(host_time() - (timeline_.host_waited() - waited_begin_));
  }
  std::chrono::nanoseconds host_processor() const {
    return std::chrono::nanoseconds(host_time() - (timeline_.host_idle() - idle_begin_));
  }
  const std::vector<std::chrono::nanoseconds>& step_times() const { return step_times_; }
  std::chrono::nanoseconds time_of_steps() const {
    return std::accumulate(step_times_.begin(), step_times_.end(), std::chrono::nanoseconds(0));
  }

 private:
  Nanoseconds end() const { return std::max(timeline_.compute_end(), timeline_.host_now()); }
  Nanoseconds host_time() const { return timeline_.host_now() - host_begin_; }

  const Timeline& timeline_;
  Nanoseconds first_mark_;
  Nanoseconds host_begin_;
  Nanoseconds waited_begin_;
  Nanoseconds idle_begin_;
  std::optional<Nanoseconds> previous_;
  std::vector<std::chrono::nanoseconds> step_times_;
};

// Adds the largest value over all ranks of each time separately; times are never averaged.
void add_worst(std::span<const ScoredRank> ranks, StepResult& result) {
  const ScoredRank& slowest = *std::ranges::max_element(ranks, {}, &ScoredRank::elapsed);
  const auto busiest = std::ranges::max_element(ranks, {}, &ScoredRank::host_busy);
  const auto most = std::ranges::max_element(ranks, {}, &ScoredRank::host_processor);
  result.elapsed = slowest.elapsed();
  result.step_times = slowest.step_times();
  result.host_busy = busiest->host_busy();
  result.host_processor = most->host_processor();
}

// Adds one segment of several to the result, as above; here `elapsed` is the sum of the step times.
void add_worst_segment(std::span<const ScoredRank> ranks, StepResult& result) {
  const ScoredRank& slowest = *std::ranges::max_element(ranks, {}, &ScoredRank::time_of_steps);
  StepResult segment;
  add_worst(ranks, segment);
  *result.elapsed += slowest.time_of_steps();
  *result.host_busy += *segment.host_busy;
  *result.host_processor += *segment.host_processor;
  result.step_times.insert(result.step_times.end(), slowest.step_times().begin(),
                           slowest.step_times().end());
}

class SimulatedStep : public LoadedStep {
 public:
  SimulatedStep(const StepPlan& plan, const LoadDraw& draw, std::shared_ptr<Machine> machine,
                double slot_factor, std::shared_ptr<SlotInUse> slot = {})
      : plan_(plan),
        slot_(std::move(slot)),
        machine_(std::move(machine)),
        faulty_(with_faults(plan, machine_->settings.faults)),
        ranks_(faulty_ ? *faulty_ : plan, machine_->profile, draw, machine_->now),
        load_factor_(slot_factor * machine_->log_normal(machine_->profile.noise.between_loads)),
        first_step_(draw.first_step),
        next_step_(draw.first_step) {
    for (const PlantedSlowdown& slowdown : machine_->settings.slowdowns) {
      if (slowdown.variant == plan.variant) planted_ = slowdown;
    }
    load_factor_ *= machine_->process_factor(plan.variant);
    for (const PlantedClock& clock : machine_->settings.clocks) {
      if (clock.variant == plan.variant) sm_clock_hertz_ = clock.sm_clock_hertz;
    }
  }

  std::vector<KernelChoice> choices() const override {
    return library_kernels_not_run(
        plan_, "a simulated device runs no library, and the scenario declares its time");
  }

  StepResult run(const Observe& observe) override {
    require(observe.steps >= 1, "at least one step is scored");
    ranks_.start_at(machine_->now);
    run_factor_ = load_factor_ * machine_->log_normal(machine_->profile.noise.between_rounds);
    StepResult result;
    result.first_step = next_step_;
    result.steps = observe.steps;
    result.sm_clock_hertz = sm_clock_hertz_;
    run_steps(observe.wash_out_steps);
    if (observe.trace) ranks_.start_recording(next_step_, plan_.operations.size());
    std::vector<ScoredRank> scored;
    for (const Timeline& rank : ranks_.all()) scored.emplace_back(rank);
    if (observe.wash_out_steps > 0) {
      for (ScoredRank& rank : scored) rank.step_ended(next_step_ - 1);
    }
    for (std::int64_t done = 0; done < observe.steps; ++done) {
      run_steps(1);
      for (ScoredRank& rank : scored) rank.step_ended(next_step_ - 1);
    }
    add_worst(scored, result);
    std::vector<Trace> traces;
    if (observe.trace) traces = ranks_.take_recording(observe.steps);
    for (Trace& trace : traces) trace.clocks = clocks_of(trace);
    for (std::size_t rank = 0; rank < traces.size(); ++rank)
      note_held_memory(ranks_.all()[rank], traces[rank].memory);
    ranks_.drain();
    for (std::size_t rank = 0; rank < traces.size(); ++rank)
      traces[rank].memory.driver_bytes = ranks_.all()[rank].driver_bytes();
    give_traces(std::move(traces), result);
    machine_->now = ranks_.host_now();
    return result;
  }

  // The clock never changes, so that one reading at the end tells it.
  std::vector<ClockReading> clocks_of(const Trace& trace) const {
    if (trace.work.empty()) return {};
    const DeviceWork& last = std::ranges::max(trace.work, {}, &DeviceWork::end);
    return {{.at = last.end, .hertz = machine_->profile.compute.sm_clock_hertz}};
  }

  void note_held_memory(const Timeline& rank, MemoryUse& memory) const {
    memory = planned_memory(plan_);
    const MemoryStatistics* held = rank.allocator_statistics();
    if (held == nullptr) return;
    memory.peak_allocated_bytes = held->allocated_bytes.all.peak;
    memory.peak_reserved_bytes = held->reserved_bytes.all.peak;
  }

  // Begins an interleaved run. `moment` is the noise factor of this run, common to all its steps.
  StepResult begin_interleaved(double moment) {
    run_factor_ = load_factor_ * moment;
    StepResult result;
    result.first_step = next_step_;
    result.elapsed = std::chrono::nanoseconds(0);
    result.host_busy = std::chrono::nanoseconds(0);
    result.host_processor = std::chrono::nanoseconds(0);
    result.sm_clock_hertz = sm_clock_hertz_;
    return result;
  }

  // Runs a segment after the work that other steps have queued, which ends at `queued`. Returns
  // when the device will be done with the segment.
  Nanoseconds run_segment(const Interleaving& how, Nanoseconds queued, bool scored,
                          StepResult& result) {
    ranks_.start_at(machine_->now);
    ranks_.queue_after(queued);
    run_steps(how.wash_out_steps);
    std::vector<ScoredRank> segment;
    for (const Timeline& rank : ranks_.all()) segment.emplace_back(rank).step_ended(next_step_ - 1);
    for (std::int64_t done = 0; done < how.steps; ++done) {
      run_steps(1);
      for (ScoredRank& rank : segment) rank.step_ended(next_step_ - 1);
    }
    if (scored) add_worst_segment(segment, result);
    result.steps = std::ssize(result.step_times);
    machine_->now = ranks_.host_now();
    return ranks_.compute_end();
  }

  void drain() {
    ranks_.start_at(machine_->now);
    ranks_.drain();
    machine_->now = ranks_.host_now();
  }

 private:
  static std::optional<StepPlan> with_faults(const StepPlan& plan,
                                             const std::vector<PlantedFault>& faults) {
    std::optional<StepPlan> faulty;
    for (const PlantedFault& fault : faults) {
      if (fault.variant != plan.variant) continue;
      if (!faulty) faulty = plan;
      inject(*faulty, {.kind = fault.kind});
    }
    return faulty;
  }

  void run_steps(std::int64_t count) {
    if (next_step_ == first_step_ && count > 0) {
      for (std::int64_t step = first_step_ - prefetch_depth(plan_); step < first_step_; ++step)
        ranks_.issue_step(step, {});
    }
    machine_->refuse_when_lost();
    for (std::int64_t done = 0; done < count; ++done) {
      if (machine_->settings.fails_at_step == next_step_) {
        const std::string words =
            fmt::format("the simulated device fails at step {} of variant '{}', as planted",
                        next_step_, plan_.variant);
        if (!machine_->settings.fails_for_good) throw DeviceError(words);
        machine_->is_lost = true;
        throw DeviceLost(words);
      }
      machine_->refuse_when_it_takes_long();
      ranks_.issue_step(next_step_, noise());
      ++next_step_;
    }
  }

  StepNoise noise() {
    const NoiseCosts& costs = machine_->profile.noise;
    Random& random = machine_->random;
    const double seconds = static_cast<double>(ranks_.host_now()) / nanoseconds_per_second;
    double slow = run_factor_ * std::exp(costs.drift_per_second * seconds);
    const std::int64_t late = next_step_ - first_step_ - costs.slower_after_steps;
    if (late >= 0) slow *= 1 + costs.slower_by + costs.slower_each_step * static_cast<double>(late);
    StepNoise made;
    made.host = slow * std::exp(costs.within_rounds * random.normal());
    made.device = slow * std::exp(costs.within_rounds * random.normal()) * planted_.factor;
    made.host_extra = planted_.host_nanoseconds;
    if (random.uniform() < costs.spike_probability) {
      const double spike =
          -std::log(1.0 - random.uniform()) * static_cast<double>(costs.spike_nanoseconds);
      made.host_extra += static_cast<Nanoseconds>(spike);
    }
    return made;
  }

  const StepPlan& plan_;
  std::shared_ptr<SlotInUse> slot_;  // null if the step is in no slot
  std::shared_ptr<Machine> machine_;
  std::optional<StepPlan> faulty_;  // the plan with planted faults
  RankTimelines ranks_;
  PlantedSlowdown planted_;
  double load_factor_;
  std::optional<double> sm_clock_hertz_;
  double run_factor_ = 1;
  std::int64_t first_step_;
  std::int64_t next_step_;
};

class SimulatedDevice : public Device {
 public:
  SimulatedDevice(DeviceProfile profile, SimulatedSettings settings)
      : machine_(std::make_shared<Machine>(
            Machine{std::move(profile), settings, Random(settings.seed)})) {}

  DeviceIdentity identity() const override {
    const DeviceProfile& profile = machine_->profile;
    return {.kind = DeviceKind::simulated,
            .name = profile.name,
            .driver = profile.driver,
            .runtime = profile.runtime,
            .compute_capability = profile.compute_capability,
            .copy_engines = profile.copy_engines,
            .memory_bytes = profile.memory_bytes,
            .free_memory_bytes = profile.memory_bytes,
            .uuid = {},
            .multiprocessors = profile.multiprocessors,
            .processors = profile.host.processors,
            .link = profile.link};
  }

  std::vector<StepResult> run_interleaved(std::span<LoadedStep* const> steps,
                                          const Interleaving& how) override {
    const double moment = machine_->log_normal(machine_->profile.noise.between_rounds);
    std::vector<StepResult> results;
    for (LoadedStep* step : steps) results.push_back(simulated(step).begin_interleaved(moment));
    Nanoseconds queued = 0;
    for (std::size_t place = 0; place < how.order.size(); ++place) {
      const auto of = static_cast<std::size_t>(how.order[place]);
      const bool scored = static_cast<std::int64_t>(place) >= how.unscored;
      queued = simulated(steps[of]).run_segment(how, queued, scored, results[of]);
    }
    for (LoadedStep* step : steps) simulated(step).drain();
    return results;
  }

  std::string reason_against_tracing() const override { return {}; }

  void begin_scenario() override { machine_->scenario_began = std::chrono::steady_clock::now(); }

  std::optional<EnvironmentReading> read_environment() override {
    std::optional<EnvironmentReading> reading;
    for (const PlantedEnvironment& planted : machine_->settings.environment) {
      if (planted.from_reading <= readings_) reading = planted.reading;
    }
    ++readings_;
    return reading;
  }

  std::chrono::nanoseconds now() const override { return std::chrono::nanoseconds(machine_->now); }

  std::unique_ptr<LoadedStep> load(const StepPlan& plan, const LoadDraw& draw) override {
    machine_->refuse_when_lost();
    refuse_unknown_times(plan);
    make_room(plan, nullptr);
    require_memory(plan, {free_memory(), machine_->profile.memory_bytes});
    machine_->now += time_to_load;
    return std::make_unique<SimulatedStep>(plan, draw, machine_, 1);
  }

  // The memory of a slot is kept at the size of its largest step.
  std::unique_ptr<LoadedStep> load_into(int slot, const StepPlan& plan,
                                        const LoadDraw& draw) override {
    machine_->refuse_when_lost();
    refuse_unknown_times(plan);
    const TimeOfScope loading(time_loading_);
    SlotMemory& own = slots_[slot];
    make_room(plan, &own);
    require_memory(plan, {free_memory() + own.bytes, machine_->profile.memory_bytes});
    own.used_bytes = peak_live_bytes(plan, held_memory(plan));
    own.bytes = std::max(own.bytes, own.used_bytes);
    machine_->now += time_to_load;
    const auto use = std::make_shared<SlotInUse>();
    own.in_use = use;
    return std::make_unique<SimulatedStep>(plan, draw, machine_, machine_->slot_factor(slot), use);
  }

 private:
  // A guess would decide assertions about a kernel that nobody has measured.
  static void refuse_unknown_times(const StepPlan& plan) {
    for (const std::shared_ptr<const Kernel>& row : plan.library_kernels) {
      if (row->replacement->microseconds) continue;
      throw DeviceError(
          fmt::format("'{0}' of '{1}' is launched by '{2}', whose time a simulated device cannot "
                      "know; run it on a GPU, or say the time of a launch where the scenario names "
                      "the library: {0} = {{ library = \"{2}\", time_us = 8 }}",
                      row->name, plan.variant, row->replacement->library));
    }
  }

  static SimulatedStep& simulated(LoadedStep* step) { return dynamic_cast<SimulatedStep&>(*step); }

  std::int64_t free_memory() const {
    std::int64_t free = machine_->profile.memory_bytes;
    for (const auto& [number, slot] : slots_) free -= slot.bytes;
    return free;
  }

  // Frees memory that steps no longer use, also in other slots, if the new step would not fit
  // otherwise.
  void make_room(const StepPlan& plan, const SlotMemory* own) {
    const std::int64_t there = free_memory() + (own ? own->bytes : 0);
    const MemoryUse planned = planned_memory(plan);
    if (std::max(planned.peak_allocated_bytes, planned.peak_reserved_bytes) <= there) return;
    for (auto& [number, slot] : slots_) {
      if (&slot != own) slot.bytes = slot.in_use.expired() ? 0 : slot.used_bytes;
    }
  }

  std::shared_ptr<Machine> machine_;
  std::map<int, SlotMemory> slots_;
  std::int64_t readings_ = 0;
};

}  // namespace

std::unique_ptr<Device> make_simulated_device(DeviceProfile profile, SimulatedSettings settings) {
  return std::make_unique<SimulatedDevice>(std::move(profile), std::move(settings));
}

}  // namespace stepgate
