// SPDX-License-Identifier: MIT
#include "report/text/print_certificate.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "judge/verdict/words.h"

namespace stepgate {
namespace {

constexpr const char* confidence = "with 95 % confidence";

std::string seen_in_words(const TrialResult& trial) {
  return trial.seen ? fmt::format("{:+.2f} %", 100 * *trial.seen) : "-";
}

std::string alarms_in_words(const TrialResult& identical) {
  return fmt::format("identical code refuted in {} of {} processes (a rate below {} {})",
                     identical.refuted, identical.gates,
                     share_in_words(identical.refuted_rate.high), confidence);
}

std::string found_in_words(const TrialResult& slower) {
  const bool powerless = has_no_power(slower);
  return fmt::format(
      "{}{} (seen {}) found in {} of {} ({} {})", powerless ? "no power: " : "", slower.name,
      seen_in_words(slower), slower.refuted, slower.gates, powerless ? "below" : "above",
      share_in_words(powerless ? slower.refuted_rate.high : slower.refuted_rate.low));
}

// Why there is none, and what can be done about it.
std::string not_granted_in_words(const Certificate& certificate, const TrialResult& identical) {
  const std::string fact = fmt::format(
      "no certificate is granted: identical code is refuted in {} of {} processes, a rate above {} "
      "{}, and alpha is {}",
      identical.refuted, identical.gates, share_in_words(identical.refuted_rate.low), confidence,
      share_in_words(certificate.alpha));
  const auto margin = smallest_margin(certificate);
  if (margin && *margin > certificate.margin) {
    return fmt::format(
        "{}. How processes differ explains it: a margin of less than {} cannot be kept within one. "
        "Allow more, and certify with --margin; or compare two builds with `stepgate duel`, where "
        "every pair of processes is one piece of evidence",
        fact, share_in_words(*margin));
  }
  return fmt::format(
      "{}, although processes differ by too little to explain it. See what `stepgate run` says of "
      "the environment, keep other work off this machine, and certify again",
      fact);
}

}  // namespace

void print_certifying(std::ostream& out, const StepPlan& plan, const DeviceIdentity& device) {
  out << fmt::format("{}, variant {} on {}\n\n", plan.scenario, plan.variant, in_words(device))
      << std::flush;  // it takes a while until there is more
}

void print_trial(std::ostream& out, const TrialResult& trial) {
  const auto share = [&](std::int64_t count) {
    return trial.gates == 0 ? 0
                            : 100 * static_cast<double>(count) / static_cast<double>(trial.gates);
  };
  out << fmt::format(
             "  {:<32} seen {:>8}  {:4} gates: refuted {:5.1f} %  holds {:5.1f} %  undecided "
             "{:5.1f} "
             "%  {:4.1f} rounds, {:.2f} GPU s\n",
             trial.name, seen_in_words(trial), trial.gates, share(trial.refuted), share(trial.held),
             share(trial.gates - trial.refuted - trial.held), trial.rounds_mean,
             trial.gpu_seconds_mean)
      << std::flush;
}

void print_certificate(std::ostream& out, const Certificate& certificate) {
  const TrialResult* identical = identical_code(certificate);
  if (identical == nullptr) return;
  out << fmt::format("\n{} of {}, limit +{}: {}\n", certificate.variant, certificate.scenario,
                     share_in_words(certificate.margin), alarms_in_words(*identical));
  for (const TrialResult& trial : certificate.trials) {
    if (trial.injected > certificate.margin) out << "  " << found_in_words(trial) << '\n';
  }
  if (const auto between = between_processes(*identical)) {
    out << fmt::format(
        "estimates of identical code differ from process to process by {} (standard deviation), by "
        "{} without what their rounds explain\n",
        share_in_words(*identical->spread), share_in_words(*between));
  }
  if (!is_granted(certificate)) out << not_granted_in_words(certificate, *identical) << '\n';
}

std::string in_words(const Certificate& certificate) {
  const TrialResult* identical = identical_code(certificate);
  std::string words = fmt::format("{} {} with variant '{}'",
                                  is_granted(certificate) ? "certified" : "not certified",
                                  certificate.date.substr(0, date_length), certificate.variant);
  if (identical == nullptr) return words;
  words += ": " + alarms_in_words(*identical);
  const auto one_percent =
      std::find_if(certificate.trials.begin(), certificate.trials.end(),
                   [](const TrialResult& trial) { return trial.injected == 0.01; });
  if (one_percent != certificate.trials.end() && one_percent->gates > 0)
    words += ", " + found_in_words(*one_percent);
  if (const auto between = between_processes(*identical))
    words += ", processes differ by " + share_in_words(*between);
  return words;
}

std::string in_words(const CitedCertificate& cited) {
  return fmt::format("{} ({})", cited.reason_against.value_or(in_words(cited.certificate)),
                     cited.file);
}

void print_certified(std::ostream& out, const std::string& file) {
  out << fmt::format("written to {}\n", file);
}

}  // namespace stepgate
