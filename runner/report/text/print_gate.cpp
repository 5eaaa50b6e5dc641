// SPDX-License-Identifier: MIT
#include "report/text/print_gate.h"

#include <fmt/format.h>

#include <cmath>
#include <ostream>

#include "base/text/diagnostic.h"
#include "base/text/units.h"
#include "base/text/visible_text.h"
#include "judge/verdict/words.h"

namespace stepgate {
namespace {

constexpr const char* confidence = "with 95 % confidence";
// The columns of the table of trials.
constexpr const char* row = "  {:<32}  {:>8}  {:>5}  {:>6}  {:>10}  {:>9}  {:>8}  {:>5}  {:>7}\n";

std::string identical_in_words(const SelfTest& test) {
  const TrialResult* identical = identical_programs(test);
  if (identical == nullptr) return "no gate of identical programs";
  return fmt::format("identical programs block {} of {} gates, a rate below {} {}",
                     identical->slower, identical->gates,
                     share_in_words(identical->slower_rate.high), confidence);
}

// Says that the margin is too small for the observed spread of gates; empty where it is not.
std::string wider_in_words(const SelfTest& test) {
  const auto margin = smallest_margin(test);
  return margin && *margin > test.margin
             ? fmt::format(
                   "; gates differ by so much that no margin below {} keeps it, so widen "
                   "--margin",
                   share_in_words(*margin))
             : "; gates differ by too little to explain it, so see what `stepgate run` says of the "
               "environment, and keep other workload off this machine";
}

std::string broken_in_words(const SelfTest& test) {
  if (const TrialResult* blocked = blocked_too_often(test)) {
    return fmt::format("{} blocks {} of {} gates, a rate above {} {}, where {} is promised{}",
                       blocked->name, blocked->slower, blocked->gates,
                       share_in_words(blocked->slower_rate.low), confidence,
                       share_in_words(test.alpha), wider_in_words(test));
  }
  const TrialResult* passed = passed_too_often(test);
  return fmt::format(
      "no power: {} (seen {:+.2f} %) ends as not slower in {} of {} gates, a rate above {} {}, "
      "where {} is promised; see that BASE carries out what is injected (`worker --injected`)",
      passed->name, 100 * std::expm1(passed->estimate), passed->not_slower, passed->gates,
      share_in_words(passed->not_slower_rate.low), confidence, share_in_words(test.beta));
}

// Describes missing power, by the largest injected slowdown.
std::string missing_power_in_words(const SelfTest& test) {
  const TrialResult* largest = nullptr;
  for (const TrialResult& trial : test.trials) {
    if (trial.injected.value_or(0) > test.margin &&
        (largest == nullptr || trial.injected > largest->injected))
      largest = &trial;
  }
  if (largest == nullptr) {
    return can_show_power(test.margin)
               ? "no slowdown above the margin was tried to the end"
               : fmt::format(
                     "no power can be shown: no trial is slower by more than the margin, "
                     "{}; narrow it",
                     share_in_words(test.margin));
  }
  return fmt::format(
      "{}{} (seen {:+.2f} %) is found in {} of {} gates, a rate {} {} {}; {}",
      has_no_power(*largest) ? "no power: " : "no power is shown: ", largest->name,
      100 * std::expm1(largest->estimate), largest->slower, largest->gates,
      has_no_power(*largest) ? "below" : "above",
      share_in_words(has_no_power(*largest) ? largest->slower_rate.high : largest->slower_rate.low),
      confidence,
      has_no_power(*largest)
          ? "give each gate more with --budget, and keep other workload off this machine"
          : "say more --trial-gates");
}

std::string undecided_in_words(const SelfTest& test) {
  if (!found_from(test)) return missing_power_in_words(test);
  return fmt::format("{}; {} gates or more say enough: --gates {}", identical_in_words(test),
                     fewest_identical_gates, fewest_identical_gates);
}

}  // namespace

void print_gate_terms(std::ostream& out, const GateSubject& subject) {
  const Introduction* both = subject.both ? &*subject.both : nullptr;
  out << fmt::format("gate: BASE {} -> HEAD {}",
                     program_in_words(subject.base, both ? &both->base : nullptr),
                     program_in_words(subject.head, both ? &both->head : nullptr));
  if (both && !both->base.device.empty()) out << " on " << both->base.device;
  for (const GatePart part : subject.only)
    out << (part == subject.only.front() ? "; only " : " and ") << name_of(part);
  out << "; margin " << margin_in_words(subject);
  if (subject.most_timing.count() > 0)
    out << fmt::format(", at most {} of timing",
                       seconds_text(std::chrono::duration<double>(subject.most_timing).count()));
  out << '\n' << std::flush;
}

void print_gate_stage(std::ostream& out, const std::string& name, const std::string& words,
                      double seconds) {
  out << fmt::format("{:<10} {:<50} {:>6.1f} s\n", name, words, seconds) << std::flush;
}

void print_gate_note(std::ostream& out, const std::string& words) {
  out << "note: " << one_line(words) << '\n' << std::flush;
}

void print_self_tests(std::ostream& out, const std::string& program, const Hello& hello,
                      std::uint64_t seed) {
  out << fmt::format("self-test of the gate: {} against itself", program_in_words(program, &hello));
  if (!hello.device.empty()) out << " on " << one_line(hello.device);
  out << fmt::format(", seed {}\n", seed) << std::flush;
}

void print_self_test_terms(std::ostream& out, const std::string& workload, double margin,
                           std::chrono::nanoseconds most_timing) {
  out << fmt::format("\n{}, margin {}, at most {} of timing a gate\n", one_line(workload),
                     share_in_words(margin),
                     seconds_text(std::chrono::duration<double>(most_timing).count()))
      << fmt::format(row, "trial", "seen", "gates", "slower", "not slower", "undecided", "spread",
                     "pairs", "seconds")
      << std::flush;  // since trials take long
}

void print_trial(std::ostream& out, const TrialResult& trial) {
  out << fmt::format(row, trial.name, fmt::format("{:+.2f} %", 100 * std::expm1(trial.estimate)),
                     trial.gates, trial.slower, trial.not_slower,
                     trial.gates - trial.slower - trial.not_slower,
                     trial.spread ? fmt::format("{:.2f} %", 100 * *trial.spread) : "-",
                     fmt::format("{:.1f}", trial.pairs_mean),
                     fmt::format("{:.1f}", trial.seconds_mean))
      << std::flush;
}

void print_self_test(std::ostream& out, const SelfTest& test, bool simulated) {
  const TrialResult* identical = identical_programs(test);
  const auto between = identical == nullptr ? std::nullopt : between_gates(*identical);
  const auto margin = smallest_margin(test);
  if (between && margin) {
    out << fmt::format(
        "gates of identical programs differ by {} (standard deviation of their first {} pairs' "
        "means), ",
        share_in_words(*identical->spread), pairs_of_an_estimate);
    out << (*margin > 0 ? fmt::format("by {} more than their pairs explain: a margin of {} or more "
                                      "keeps their rate\n",
                                      share_in_words(*between), share_in_words(*margin))
                        : "which their pairs explain: any margin keeps their rate\n");
  }
  if (simulated) out << "SIMULATED, nothing was measured: ";
  out << one_line(test.workload) << ' ';
  switch (outcome_of(test)) {
    case Outcome::passes:
      out << fmt::format("passes: {}; slowdowns of {} and more are found", identical_in_words(test),
                         share_in_words(*found_from(test)));
      break;
    case Outcome::fails:
      out << "fails: " << broken_in_words(test);
      break;
    default:
      out << "undecided: " << undecided_in_words(test);
  }
  out << '\n' << std::flush;
}

}  // namespace stepgate
