// SPDX-License-Identifier: MIT
#include "report/print_certificate.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

namespace stepgate {
namespace {

std::string alarms_in_words(const Certificate& certificate) {
  const FalseAlarms alarms = false_alarms(certificate);
  return fmt::format("{} of {} gates wrongly refuted (a rate below {:.2g} % with 95 % confidence)",
                     alarms.refuted, alarms.gates, 100 * alarms.rate.high);
}

}  // namespace

void print_certifying(std::ostream& out, const StepPlan& plan, const DeviceIdentity& device) {
  out << fmt::format("{}, variant {} on {}\n\n", plan.scenario, plan.variant, in_words(device));
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
             trial.name, trial.seen ? fmt::format("{:+.2f} %", 100 * *trial.seen) : "-",
             trial.gates, share(trial.refuted), share(trial.held),
             share(trial.gates - trial.refuted - trial.held), trial.rounds_mean,
             trial.gpu_seconds_mean)
      << std::flush;
}

void print_certificate(std::ostream& out, const Certificate& certificate) {
  out << fmt::format("\n{} of {}: {}\n", certificate.variant, certificate.scenario,
                     alarms_in_words(certificate));
  if (certificate.smallest_in_five_seconds) {
    out << fmt::format("the smallest slowdown that 5 s prove: {:.2g} %, at {:.2g} s a round\n",
                       100 * *certificate.smallest_in_five_seconds, certificate.round_seconds);
  }
  if (!keeps_its_word(certificate)) {
    out << fmt::format("this gate does not keep its word here: alpha is {:.2g} %\n",
                       100 * certificate.alpha);
  }
}

std::string in_words(const Certificate& certificate) {
  std::string words =
      fmt::format("certified {} with variant '{}': {}", certificate.date.substr(0, date_length),
                  certificate.variant, alarms_in_words(certificate));
  const auto one_percent =
      std::find_if(certificate.trials.begin(), certificate.trials.end(),
                   [](const TrialResult& trial) { return trial.injected == 0.01; });
  if (one_percent != certificate.trials.end() && one_percent->gates > 0) {
    words += fmt::format(", {} found in {} of {}", one_percent->name, one_percent->refuted,
                         one_percent->gates);
  }
  if (!keeps_its_word(certificate)) words += "; it did not keep its word";
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
