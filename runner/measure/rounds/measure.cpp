// SPDX-License-Identifier: MIT
#include "measure/rounds/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>

#include "base/interruption.h"
#include "base/require.h"
#include "base/seconds.h"
#include "base/stats/moments.h"
#include "base/text/number_words.h"
#include "base/time_of_scope.h"
#include "device/peak_rates.h"
#include "measure/rounds/carry_over.h"
#include "measure/rounds/same_step.h"
#include "measure/schedule.h"

namespace stepgate {
namespace {

using std::chrono::nanoseconds;
using namespace std::chrono_literals;

// The warm-up ends when the step time has changed by less than this share over so many blocks, or
// by less than its own noise explains. A block is one segment of every variant.
constexpr std::int64_t steady_blocks = 4;
constexpr double steady_change = 0.005;
constexpr std::int64_t most_warm_up_blocks = 200;
constexpr double most_warm_up_seconds = 5;
constexpr double most_warm_up_share = 1.0 / 3;  // of the budget

// Standard deviation of the log-ratio of two identical steps between loads. On an H200 it is 0.2 to
// 0.9 %.
constexpr double deviation_between_loads = 0.004;

// Longer steps fill the queue within one or two steps, so long segments cost them nothing.
constexpr nanoseconds longest_interleaved_step = 2ms;
// An interleaved round is long compared with a load and with filling the queue, so that most of it
// is measured.
constexpr nanoseconds interleaved_round = 60ms;
constexpr std::int64_t fewest_cycles = 12;  // of one short segment of every variant each
// Unscored cycles after a load fill the queue in this time, as the wash-out of a long segment does.
constexpr nanoseconds time_to_fill = 5ms;
// Trial rounds before the first round show whether steps of different variants disturb each other.
constexpr std::int64_t trials_of_interleaving = 6;
// More trials are needed where a round is so short that a variant seldom follows itself in it.
constexpr std::int64_t most_trials_of_interleaving = 30;
// Up to so many variants, the orders of the trials' cycles are independent. With more variants,
// each cycle of a trial begins with the variant that ended the cycle before, so that every cycle
// has a variant that follows itself.
constexpr int most_variants_that_meet = 3;
constexpr double carry_over_allowed = 0.001;  // a fifth of the usual margin

// The gradients of so many steps after a load are compared.
constexpr std::int64_t compared_steps = 2;
// Launches of so many steps are audited, each after up to so many other steps.
constexpr int audited_steps = 2;
constexpr std::uint64_t most_steps_to_an_audit = 16;
// A device without a clock runs so many steps, whose losses are compared.
constexpr std::int64_t steps_without_time = 8;

// A sum with an unknown part is unknown.
void add(const std::optional<nanoseconds>& more, std::optional<nanoseconds>& sum) {
  if (sum && more) {
    *sum += *more;
  } else {
    sum.reset();
  }
}

// Appends the next segment of the same variant.
void append(const Segment& next, Segment& segment) {
  if (segment.sm_clock_hertz && next.sm_clock_hertz) {
    const double before = seconds(segment.elapsed);
    const double more = seconds(next.elapsed);
    segment.sm_clock_hertz =
        (*segment.sm_clock_hertz * before + *next.sm_clock_hertz * more) / (before + more);
  }
  segment.steps += next.steps;
  segment.elapsed += next.elapsed;
  add(next.host_busy, segment.host_busy);
  add(next.host_processor, segment.host_processor);
  segment.step_times.insert(segment.step_times.end(), next.step_times.begin(),
                            next.step_times.end());
  segment.own_steps += next.own_steps;
  segment.own_elapsed += next.own_elapsed;
}

class Run {
 public:
  Run(StepRunner& device, std::span<const Subject> subjects, const LoadSubject& load,
      const MeasureRequest& request)
      : device_(device),
        subjects_(subjects),
        load_(load),
        request_(request),
        start_(device.now()),
        began_(std::chrono::steady_clock::now()),
        loaded_before_(device.time_loading()),
        random_(request.seed),
        same_step_(subjects),
        loaded_(subjects.size()),
        step_times_(subjects.size()) {
    result_.device = device.identity();
    result_.scenario_fingerprint = request.scenario_fingerprint;
    result_.seed = request.seed;
    for (const Subject& subject : subjects) {
      result_.variants.push_back(
          {.name = subject.name,
           .batch_size = subject.batch_size,
           .tokens = subject.tokens,
           .model_flops = subject.model_flops,
           .peak_flops_per_second =
               subject.dtype ? peak_flops_per_second(result_.device, *subject.dtype) : std::nullopt,
           .libraries = subject.libraries,
           .ranks = subject.ranks});
    }
    result_.not_compared = pairs_not_compared(subjects);
  }

  Measurement measure() {
    device_.begin_scenario();
    load();
    if (begin()) {
      warm_up();
      if (is_sound() && !interrupted) choose_schedule();
      result_.wall_times[WallPart::warm_up] = time_measuring();
      report_progress();
      if (is_sound() && !interrupted && fits_the_budget()) {
        run_rounds();
        if (is_sound() && !interrupted && computes_numbers_) audit_launches();
        if (is_sound() && !interrupted && computes_numbers_) compare_again();
      }
    }
    loaded_.clear();  // since unloading takes time, too
    WallTimes& times = result_.wall_times;
    times[WallPart::rounds] = time_measuring() - times[WallPart::warm_up];
    times[WallPart::loads] = time_loading();
    result_.compared = same_step_.compared();
    result_.wall_time = spent();
    return std::move(result_);
  }

 private:
  nanoseconds spent() const { return device_.now() - start_; }
  // Excludes the loads for the comparison of first steps, which count as part of that comparison.
  nanoseconds time_loading() const {
    return device_.time_loading() - loaded_before_ - loaded_to_compare_;
  }
  // Wall time of warm-up and rounds so far, on this machine's clock.
  nanoseconds time_measuring() const {
    return std::chrono::steady_clock::now() - began_ - time_loading() -
           result_.wall_times[WallPart::same_step] - result_.wall_times[WallPart::judging];
  }
  bool is_enough() {
    const TimeOfScope judging(result_.wall_times[WallPart::judging]);
    return request_.enough(result_);
  }
  int variants() const { return static_cast<int>(subjects_.size()); }

  void report_progress() const {
    if (!request_.progress) return;
    request_.progress({.rounds = static_cast<std::int64_t>(result_.rounds.size()),
                       .spent = spent(),
                       .expected = result_.expected});
  }

  // Unloads all variants, then loads each into a slot of its own, in the order of the slots. The
  // slots, the first step and the random draws of the loader are drawn anew.
  void load() {
    (void)is_sound();  // compares the steps of the load before
    for (std::unique_ptr<LoadedStep>& step : loaded_) step.reset();
    slots_ = permutation(variants(), random_);
    draw_ = {.first_step = first_step(), .loader = random_.bits() | 1};
    for (int slot = 0; slot < variants(); ++slot) {
      const auto place = std::find(slots_.begin(), slots_.end(), slot);
      const auto variant = static_cast<std::size_t>(place - slots_.begin());
      loaded_[variant] = load_(variant, slot, draw_);
      note_choices(variant);
    }
    same_step_.begin(draw_.first_step);
  }

  // Draws the first step uniformly from the common period of all periodic work.
  std::int64_t first_step() {
    constexpr std::int64_t longest_period = 1'000'000;
    std::int64_t period = 1;
    for (const Subject& subject : subjects_) {
      const std::int64_t own = common_period(subject, longest_period).value_or(longest_period);
      period = std::min(std::lcm(period, own), longest_period);
    }
    return static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(period)));
  }

  void note_choices(std::size_t variant) {
    std::vector<KernelChoice>& known = result_.variants[variant].choices;
    for (KernelChoice& choice : loaded_[variant]->choices()) {
      if (std::find(known.begin(), known.end(), choice) == known.end())
        known.push_back(std::move(choice));
    }
    note_unused_library(result_.variants[variant]);
  }

  // A variant that names libraries must have a launch of theirs, or it would be measured as theirs.
  void note_unused_library(const MeasuredVariant& variant) {
    const auto of_user = [&](const KernelChoice& choice) {
      return std::ranges::any_of(variant.libraries, [&](const DeviceKey& key) {
        return key.name.starts_with(key_of_kernel) && key.value == choice.library;
      });
    };
    const auto unused = std::ranges::find_if(variant.choices, [](const KernelChoice& choice) {
      return choice.launches > 0 && choice.own_launches == choice.launches;
    });
    if (unused == variant.choices.end() || std::ranges::any_of(variant.choices, of_user)) return;
    result_.broken = fmt::format(
        "no launch of variant '{}' is made by the library that it names: all {} of {} are ours, "
        "since {}; let the library support a shape of the step, or leave the variant out",
        variant.name, unused->launches, unused->kernel, unused->reason);
  }

  // Records the result of a run and its cost.
  void note(std::size_t variant, const StepResult& result, std::int64_t wash_out_steps) {
    same_step_.add(static_cast<int>(variant), result);
    computes_numbers_ |= !result.losses.empty();
    note_change(variant, result);
    note_audits(variant, result);
    if (!result.elapsed) return;
    // The wash-out is not timed; it is charged at the time of the scored steps. Dividing first
    // keeps a long warm-up from overflowing.
    step_times_[variant] = *result.elapsed / result.steps;
    result_.device_time += *result.elapsed + step_times_[variant] * wash_out_steps;
  }

  void note_change(std::size_t variant, const StepResult& result) {
    if (result.device_changed.empty() || !result_.broken.empty()) return;
    result_.broken = fmt::format(
        "variant '{}' may not be compared: while it was loaded, {}; a step must leave limits of "
        "the device and of its caches alone",
        subjects_[variant].name, result.device_changed);
  }

  void note_audits(std::size_t variant, const StepResult& result) {
    for (const LaunchAudit& audit : result.audits) {
      MeasuredVariant& own = result_.variants[variant];
      own.audits.push_back(audit);
      if (audit.difference.empty() || !result_.broken.empty()) continue;
      result_.broken = fmt::format(
          "variant '{}' does not compute its step: in step {}, '{}' leaves other numbers than "
          "stepgate's own {}: {}",
          own.name, audit.step, audit.operation, audit.kernel, audit.difference);
    }
  }

  StepResult run(std::size_t variant, const Observe& observe) {
    StepResult result = loaded_[variant]->run(observe);
    require(result.steps == observe.steps, "a device runs the steps that it was asked for");
    note(variant, result, observe.wash_out_steps);
    return result;
  }

  // Whether the numbers so far are valid.
  bool is_sound() {
    if (!result_.another_step) result_.another_step = same_step_.first_difference();
    return !result_.another_step && result_.broken.empty();
  }

  // Runs `count` steps with their gradients. Returns whether the device measures time.
  bool run_first_steps(std::int64_t count) {
    const TimeOfScope comparing(result_.wall_times[WallPart::same_step]);
    bool timed = true;
    for (std::int64_t step = 0; step < count; ++step) {
      for (std::size_t variant = 0; variant < subjects_.size(); ++variant) {
        timed = run(variant, {.steps = 1, .gradients = true}).elapsed.has_value() && timed;
      }
    }
    return timed;
  }

  // Runs the first steps of each variant, which load kernels and are not timed. Returns false when
  // measuring cannot go on: the device has no clock, or a variant does not compute the same step.
  bool begin() {
    const bool timed = run_first_steps(compared_steps);
    same_step_.remember();
    result_.warmup_steps = compared_steps;
    if (!timed && is_sound()) {
      run_block(steps_without_time);
      audit_launches();
    }
    return is_sound() && timed;
  }

  // Audits launches at steps that no kernel can know: they are drawn when all rounds are over.
  void audit_launches() {
    const TimeOfScope comparing(result_.wall_times[WallPart::same_step]);
    for (std::size_t variant = 0; variant < subjects_.size(); ++variant) {
      if (!subjects_[variant].has_replaced_kernels) continue;
      for (int time = 0; time < audited_steps; ++time) {
        const auto before = static_cast<std::int64_t>(random_.below(most_steps_to_an_audit));
        run(variant, {.wash_out_steps = before, .steps = 1, .audit = random_.bits() | 1});
      }
    }
  }

  // Starts all variants at their first step again. A step that cannot restart is loaded anew.
  void begin_again() {
    const TimeOfScope comparing(result_.wall_times[WallPart::same_step]);
    const nanoseconds loaded = device_.time_loading();
    for (std::size_t variant = 0; variant < subjects_.size(); ++variant) {
      if (loaded_[variant]->restart()) continue;
      loaded_[variant].reset();
      loaded_[variant] = load_(variant, slots_[variant], draw_);
    }
    loaded_to_compare_ = device_.time_loading() - loaded;
    same_step_.begin(draw_.first_step);
  }

  // Runs the first steps again, with the kernels, addresses and graphs of the last round. This
  // detects a kernel that computed correctly only while the first steps were compared.
  void compare_again() {
    begin_again();
    run_first_steps(compared_steps);
    const auto changed = same_step_.difference_from_before();
    if (is_sound()) result_.another_step = changed;
    if (result_.another_step) result_.another_step->after_the_rounds = true;
  }

  // Runs `wanted` steps of every variant, or else one segment of each as if it were measured alone.
  void run_block(std::optional<std::int64_t> wanted = {}) {
    MeasureKnobs alone = request_.knobs;
    alone.max_seconds /= variants();  // its share of the time
    alone.fewest_steps = 0;           // no percentiles are computed from warm-up
    std::int64_t most = 0;
    for (std::size_t variant = 0; variant < subjects_.size(); ++variant) {
      const std::int64_t steps = wanted ? *wanted
                                        : segment_steps(subjects_.subspan(variant, 1), alone,
                                                        std::span(step_times_).subspan(variant, 1));
      run(variant, {.steps = steps});
      most = std::max(most, steps);
    }
    result_.warmup_steps += most;
  }

  // Log of the geometric mean, over variants, of the step time in the last block.
  double log_step_time() const {
    double sum = 0;
    for (const nanoseconds time : step_times_) {
      sum += std::log(std::max(seconds(time), 1e-9));
    }
    return sum / static_cast<double>(step_times_.size());
  }

  void warm_up() {
    if (request_.knobs.warmup_steps) {
      const std::int64_t rest = *request_.knobs.warmup_steps - result_.warmup_steps;
      if (rest > 0) run_block(rest);
      return;
    }
    const double cap =
        std::min(most_warm_up_seconds, most_warm_up_share * request_.knobs.max_seconds);
    std::vector<double> blocks;
    std::vector<double> ratios;  // last variant's time / first variant's time, in each block
    while (is_sound() && !interrupted) {
      run_block();
      blocks.push_back(log_step_time());
      ratios.push_back(std::log(seconds(step_times_.back()) / seconds(step_times_.front())));
      if (std::ssize(blocks) < steady_blocks) continue;
      deviation_of_blocks_ = std::sqrt(moments_of(std::span(ratios).last(steady_blocks)).variance);
      const Trend trend = trend_of(std::span(blocks).last(steady_blocks));
      const double change = std::abs(trend.slope);
      if (change * steady_blocks < steady_change || change < 2 * trend.standard_error) return;
      result_.steady = std::ssize(blocks) < most_warm_up_blocks && seconds(spent()) < cap;
      if (!result_.steady) return;
    }
  }

  // Chooses the segment lengths by the step times and whether steps run interleaved. Runs the first
  // round to learn what a round costs.
  void choose_schedule() {
    const std::int64_t scored = segment_steps(subjects_, request_.knobs, step_times_);
    for (std::size_t variant = 0; variant < subjects_.size(); ++variant) {
      MeasuredVariant& subject = result_.variants[variant];
      subject.wash_out_steps = wash_out_steps(subjects_[variant], step_times_[variant]);
      subject.segment_steps = scored;
    }
    result_.segments_because = reason_for_segments();
    std::vector<Round> trials;
    if (interleaves()) {
      begin_rounds();
      trials = run_trials();
      result_.segments_because = reason_by(trials);
    }
    std::int64_t bytes_of_a_round = 0;
    if (interleaves() && variants() <= most_variants_that_meet) {
      bytes_of_a_round = bytes_kept(trials.front());
      first_round_ = together(std::move(trials));
    } else {
      begin_rounds();
      const nanoseconds before = spent();
      first_round_ = next_round();
      result_.expected.round = spent() - before;
      bytes_of_a_round = bytes_kept(first_round_);
    }
    result_.expected.deviation = std::hypot(deviation_between_loads, deviation_of_blocks_);
    result_.expected.fewest_rounds = request_.fewest_rounds;
    const double left = std::max(request_.knobs.max_seconds - seconds(spent()), 0.0);
    const double more = left / std::max(seconds(result_.expected.round), 1e-9);
    result_.expected.most_rounds =
        std::min(request_.knobs.rounds, 1 + static_cast<std::int64_t>(std::min(more, 1e15)));
    result_.expected.most_rounds =
        std::min(result_.expected.most_rounds,
                 std::max(most_bytes_kept / bytes_of_a_round, request_.fewest_rounds));
    if (request_.stretches) {
      result_.expected.most_rounds = std::max(
          result_.expected.most_rounds, std::min(request_.knobs.rounds, request_.fewest_rounds));
    }
  }

  bool interleaves() const { return result_.segments_because.empty(); }

  // Returns the reason for long segments, as far as it is known before any trial.
  std::string reason_for_segments() const {
    if (request_.knobs.interleave == Interleave::segments) return "the scenario asks for it";
    if (subjects_.size() == 1) return "there is one variant";
    for (std::size_t variant = 0; variant < subjects_.size(); ++variant) {
      const std::string& reason = subjects_[variant].against_interleaving;
      if (!reason.empty()) return reason;
      if (step_times_[variant] > longest_interleaved_step)
        return fmt::format("a step of '{}' takes more than {} ms", subjects_[variant].name,
                           longest_interleaved_step / 1ms);
    }
    return "";
  }

  // Records the environment and the time spent so far, before the first round.
  void begin_rounds() {
    result_.environment_before = device_.read_environment();
    result_.device_time_before_rounds = result_.device_time;
    result_.wall_time_before_rounds = spent();
  }

  // Runs interleaved trial rounds of one load.
  std::vector<Round> run_trials() {
    const nanoseconds before = spent();
    load();
    const nanoseconds loaded = spent();
    const double cap = most_warm_up_share * request_.knobs.max_seconds;
    std::vector<Round> trials;
    while (std::ssize(trials) < trials_of_interleaving ||
           (!interrupted && !all_are_compared(trials) &&
            std::ssize(trials) < most_trials_of_interleaving && seconds(spent()) < cap)) {
      trials.push_back(run_short_segments(Cycles::joined));
    }
    result_.expected.round = loaded - before + (spent() - loaded) / std::ssize(trials);
    return trials;
  }

  // Joins trial rounds into one round, since a single load drew their slots, first step and loader
  // draws.
  Round together(std::vector<Round> trials) {
    Round all = std::move(trials.front());
    for (const Round& trial : std::span(trials).subspan(1)) {
      for (std::size_t variant = 0; variant < all.segments.size(); ++variant)
        append(trial.segments[variant], all.segments[variant]);
    }
    all.environment_after = device_.read_environment();
    return all;
  }

  // Returns the reason against interleaving: a variant's step takes a different time after other
  // variants' steps than after its own. Then part of its work runs, or is waited for, during their
  // steps. Empty where no variant does so.
  std::string reason_by(std::span<const Round> trials) const {
    for (int variant = 1; variant < variants(); ++variant) {
      const auto carried = carry_over_between(trials, 0, variant);
      if (!carried) return "too few short segments follow one of their own kind to compare them";
      const std::string& first = subjects_.front().name;
      const std::string& other = subjects_[static_cast<std::size_t>(variant)].name;
      if (matters(*carried)) {
        return fmt::format(
            "steps of '{}' and of '{}' disturb each other: their ratio changes by {} % where "
            "they follow each other",
            first, other, number_in_words(100 * std::abs(carried->size), 2));
      }
      const auto ahead = run_ahead_between(trials, 0, variant);
      if (ahead && matters(*ahead)) {
        return fmt::format(
            "the host issues steps of '{}' while the device is at those of '{}': {} % of their "
            "time would be hidden",
            ahead->size > 0 ? first : other, ahead->size > 0 ? other : first,
            number_in_words(100 * -std::expm1(-std::abs(ahead->size)), 2));
      }
    }
    return "";
  }

  static bool matters(const CarryOver& carried) {
    return std::abs(carried.size) > carry_over_allowed && is_shown(carried);
  }

  bool all_are_compared(std::span<const Round> trials) const {
    for (int variant = 1; variant < variants(); ++variant) {
      if (!carry_over_between(trials, 0, variant)) return false;
    }
    return true;
  }

  bool fits_the_budget() {
    result_.budget_refused = result_.expected.most_rounds < result_.expected.fewest_rounds;
    return !result_.budget_refused;
  }

  void run_rounds() {
    std::int64_t kept = 0;
    nanoseconds longest_round = result_.expected.round;
    for (Round round = std::move(first_round_);;) {
      if (!is_sound()) return;
      kept += bytes_kept(round);
      result_.rounds.push_back(std::move(round));
      report_progress();
      if (is_enough()) return;
      const bool may_end = std::ssize(result_.rounds) >= request_.fewest_rounds;
      result_.record_full = kept >= most_bytes_kept && may_end;
      if (result_.record_full || std::ssize(result_.rounds) >= request_.knobs.rounds) return;
      result_.budget_spent = (may_end || !request_.stretches) &&
                             seconds(spent() + longest_round) > request_.knobs.max_seconds;
      if (result_.budget_spent) return;
      const nanoseconds before = spent();
      round = next_round();
      longest_round = std::max(longest_round, spent() - before);
    }
  }

  // Loads every variant anew and runs a round.
  Round next_round() {
    try {
      load();
      Round round = run_loaded();
      round.environment_after = device_.read_environment();
      return round;
    } catch (const DeviceLost& lost) {
      throw DeviceLost(fmt::format("round {}: {}", result_.rounds.size() + 1, lost.what()));
    }
  }

  // Runs a round of the variants that are loaded.
  Round run_loaded() {
    if (interleaves()) return run_short_segments(Cycles::independent);
    const std::vector<int> order = permutation(variants(), random_);
    settle(order);
    return run_segments(order);
  }

  // Runs unscored steps after a load, with the first variant of the order last. That variant then
  // follows itself at the start of the order, as the last one does at the start of the mirrored
  // order.
  void settle(std::span<const int> order) {
    for (auto index = order.rbegin(); index != order.rend(); ++index) {
      const auto variant = static_cast<std::size_t>(*index);
      const std::int64_t steps =
          request_.knobs.warmup_steps.value_or(result_.variants[variant].wash_out_steps);
      if (steps > 0) run(variant, {.steps = steps});
    }
  }

  // Runs one segment of every variant in this order, then in the reversed order.
  Round run_segments(std::span<const int> order) {
    Round round;
    int previous = order.front();
    const auto run_next = [&](int variant) {
      round.segments.push_back(run_segment(variant, previous == variant));
      previous = variant;
    };
    for (const int variant : order) run_next(variant);
    for (auto variant = order.rbegin(); variant != order.rend(); ++variant) run_next(*variant);
    return round;
  }

  Segment run_segment(int variant, bool follows_itself) {
    const auto index = static_cast<std::size_t>(variant);
    const MeasuredVariant& subject = result_.variants[index];
    StepResult result =
        run(index, {.wash_out_steps = subject.wash_out_steps, .steps = subject.segment_steps});
    require(result.elapsed.has_value(), "a device that knew the time once knows it always");
    Segment segment{.variant = variant,
                    .slot = slots_[index],
                    .first_step = result.first_step + subject.wash_out_steps,
                    .steps = result.steps,
                    .elapsed = *result.elapsed,
                    .host_busy = result.host_busy,
                    .host_processor = result.host_processor,
                    .sm_clock_hertz = result.sm_clock_hertz,
                    .step_times = std::move(result.step_times)};
    if (follows_itself) {
      segment.own_steps = segment.steps;
      segment.own_elapsed = segment.elapsed;
    }
    return segment;
  }

  // Cycles of judged rounds have independently drawn orders; cycles of trials may be joined.
  enum class Cycles { independent, joined };

  // Runs cycles of one short segment of every variant, each cycle in a fresh order.
  Round run_short_segments(Cycles kind) {
    const bool joined = kind == Cycles::joined && variants() > most_variants_that_meet;
    Interleaving how;
    const std::int64_t length = how.wash_out_steps + how.steps;
    nanoseconds cycle{0};
    for (const nanoseconds time : step_times_) cycle += length * std::max(time, nanoseconds(1));
    const std::int64_t asked_for = request_.knobs.warmup_steps.value_or(0);  // after every load
    const std::int64_t filling =
        std::max<std::int64_t>(time_to_fill / cycle, (asked_for - 1) / length) + 1;
    const std::int64_t for_percentiles = (request_.knobs.fewest_steps + how.steps - 1) / how.steps;
    const std::int64_t cycles =
        filling + std::max({interleaved_round / cycle, fewest_cycles, for_percentiles});
    how.unscored = filling * variants();
    for (std::int64_t done = 0; done < cycles; ++done) {
      std::vector<int> order = permutation(variants(), random_);
      if (joined && done > 0) std::swap(order.front(), *std::ranges::find(order, how.order.back()));
      how.order.insert(how.order.end(), order.begin(), order.end());
    }
    std::vector<LoadedStep*> steps;
    for (const auto& step : loaded_) steps.push_back(step.get());
    std::vector<StepResult> results = device_.run_interleaved(steps, how);
    for (std::size_t variant = 0; variant < subjects_.size(); ++variant) {
      note(variant, results[variant], cycles * length - results[variant].steps);
    }
    return round_of(how, std::move(results));
  }

  // Joins the short segments of each variant into one segment.
  Round round_of(const Interleaving& how, std::vector<StepResult> results) const {
    Round round{.segments = {}, .interleaved = true};
    for (std::size_t variant = 0; variant < results.size(); ++variant) {
      StepResult& result = results[variant];
      require(result.elapsed.has_value(), "a device that knew the time once knows it always");
      require(std::ssize(result.step_times) == result.steps, "steps by turns have a time each");
      round.segments.push_back({.variant = static_cast<int>(variant),
                                .slot = slots_[variant],
                                .first_step = result.first_step,
                                .steps = result.steps,
                                .elapsed = *result.elapsed,
                                .host_busy = result.host_busy,
                                .host_processor = result.host_processor,
                                .sm_clock_hertz = result.sm_clock_hertz,
                                .step_times = std::move(result.step_times)});
    }
    require(how.unscored >= 1, "every scored segment follows another one");
    std::vector<std::size_t> next(results.size(), 0);  // index of each variant's next scored step
    for (auto place = static_cast<std::size_t>(how.unscored); place < how.order.size(); ++place) {
      const auto variant = static_cast<std::size_t>(how.order[place]);
      Segment& segment = round.segments[variant];
      const bool follows_itself = how.order[place - 1] == how.order[place];
      for (std::int64_t step = 0; step < how.steps; ++step, ++next[variant]) {
        if (!follows_itself) continue;
        ++segment.own_steps;
        segment.own_elapsed += segment.step_times[next[variant]];
      }
    }
    return round;
  }

  StepRunner& device_;
  std::span<const Subject> subjects_;
  const LoadSubject& load_;
  const MeasureRequest& request_;
  nanoseconds start_;
  std::chrono::steady_clock::time_point began_;
  nanoseconds loaded_before_;
  nanoseconds loaded_to_compare_{0};
  Random random_;
  SameStep same_step_;
  bool computes_numbers_ = false;
  LoadDraw draw_;  // of the current load
  std::vector<std::unique_ptr<LoadedStep>> loaded_;
  std::vector<int> slots_;               // of each variant
  std::vector<nanoseconds> step_times_;  // a step of each variant, when last run
  double deviation_of_blocks_ = 0;       // of log-ratios of variants between warm-up blocks
  Round first_round_;                    // run in choose_schedule to learn what a round costs
  Measurement result_;
};

}  // namespace

std::int64_t bytes_kept(const Round& round) {
  // Bytes that the judge keeps for a segment's values, or for one reading of the environment.
  constexpr std::int64_t concluded = 384;
  std::int64_t bytes = static_cast<std::int64_t>(sizeof round) + concluded;
  for (const Segment& segment : round.segments) {
    bytes += static_cast<std::int64_t>(sizeof segment) + concluded +
             std::ssize(segment.step_times) * 3 * static_cast<std::int64_t>(sizeof(double));
  }
  return bytes;
}

Measurement measure(StepRunner& device, std::span<const Subject> subjects, const LoadSubject& load,
                    const MeasureRequest& request) {
  require(!subjects.empty(), "there is something to measure");
  return Run(device, subjects, load, request).measure();
}

}  // namespace stepgate
