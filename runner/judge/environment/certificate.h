// SPDX-License-Identifier: MIT
// Decisions of the gate on one device when the answer was known. Values, and what they mean;
// certification.h makes them, and certificate_file.h has the file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "judge/environment/environment.h"
#include "stats/binomial.h"

namespace stepgate {

// Length of the day in "2026-11-21T10:15:00Z".
constexpr std::size_t date_length = 10;

// The name of the trial whose variants are the same.
constexpr std::string_view identical_trial = "identical";

// Fewest processes of a trial of identical code. Effects that stay with a process are drawn once in
// each: with fewer of them, nobody can tell how often such an effect refutes.
constexpr std::int64_t fewest_processes = 20;

// Every gate ran in a process of its own, so gates are processes here.
struct TrialResult {
  std::string name;
  double injected = 0;              // relative, by what was asked for; 0 where it has no share
  std::optional<double> seen = {};  // relative slowdown of b by the clock stamps of single steps
  std::int64_t gates = 0;
  std::int64_t refuted = 0;
  std::int64_t held = 0;
  RateBounds refuted_rate = {};  // with 95 % confidence each
  // Each gate estimates log(b / a) by the mean of its first rounds. These are the mean and standard
  // deviation of the estimates, and the standard error that the rounds of one gate alone explain,
  // by the mean of its squares.
  double estimate = 0;
  std::optional<double> spread = {};  // absent: there is one gate
  double spread_by_rounds = 0;
  double rounds_mean = 0;       // a gate
  double gpu_seconds_mean = 0;  // a gate, without its warm-up
};

// The part of the spread that the rounds do not explain: the standard deviation of what stays with
// a process. 0 where the rounds explain everything; absent where the spread is.
std::optional<double> between_processes(const TrialResult&);

struct Certificate {
  Environment environment;
  std::string scenario;
  std::uint64_t fingerprint = 0;
  std::string variant;
  std::vector<std::string> overrides;  // "knob=value"
  std::string bottleneck;              // "device" or "host": where shares were injected
  std::string date;
  std::string version;  // of stepgate
  std::uint64_t seed = 0;
  double margin = 0;
  double alpha = 0;
  double beta = 0;
  double round_seconds = 0;  // on the clock, loading included
  std::vector<TrialResult> trials = {};
  // In a format of before, of which only this is read: scenario, variant, version and date.
  bool outdated = false;
};

// The trial of identical code; nothing in a certificate that is outdated.
const TrialResult* identical_code(const Certificate&);

// Whether it is shown that fewer than half of such slowdowns are found.
bool has_no_power(const TrialResult& slower);

// Whether identical code was refuted no more often than alpha allows: its rate is not shown to be
// above alpha, in at least fewest_processes. Otherwise no certificate is granted, whatever it was
// that refuted it. Code that is a little slower and allowed is not asked for: where processes
// differ, what lies just within the limit is beyond it in some of them.
bool is_granted(const Certificate&);

// The least relative slowdown that processes alone, differing as identical code does, seem to show
// in no more than alpha of them: a margin below it cannot be kept. By Student's t, as for one more
// process. Nothing where there is no spread.
std::optional<double> smallest_margin(const Certificate&);

// A certificate beside a later run. It decides nothing, and where there is a reason against it, it
// says nothing about that run either.
struct CitedCertificate {
  std::string file;
  Certificate certificate;
  // "certified for another driver branch, 580, this is 590".
  std::optional<std::string> reason_against = {};
};

}  // namespace stepgate
