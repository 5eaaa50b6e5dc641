// SPDX-License-Identifier: MIT
// What the gate did on one device when the answer was known. Values, and what they mean; how they
// come about is certification.h's, the file certificate_file.h's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "judge/environment.h"
#include "stats/binomial.h"

namespace stepgate {

// Of the day in "2026-11-21T10:15:00Z".
constexpr std::size_t date_length = 10;

// The name of the trial whose variants are the same.
constexpr std::string_view identical_trial = "identical";

struct TrialResult {
  std::string name;
  double injected = 0;              // relative, by what was asked for; 0 where it has no share
  std::optional<double> seen = {};  // relative slowdown of b by the clock stamps of single steps
  std::int64_t gates = 0;
  std::int64_t refuted = 0;
  std::int64_t held = 0;
  double rounds_mean = 0;       // a gate
  double gpu_seconds_mean = 0;  // a gate, without its warm-up
};

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
  std::optional<double> smallest_in_five_seconds =
      {};  // slowdown that is then found, see gate_series.h
  std::vector<TrialResult> trials = {};
};

struct FalseAlarms {
  std::int64_t refuted = 0;
  std::int64_t gates = 0;
  RateBounds rate;  // with 95 % confidence
};

// Over all trials in which b is not slower than the margin allows.
FalseAlarms false_alarms(const Certificate&);

// False when there were more false alarms than alpha explains with a probability of 0.1 %.
bool keeps_its_word(const Certificate&);

// A certificate beside a later run. It decides nothing, and where there is a reason against it, it
// says nothing about that run either.
struct CitedCertificate {
  std::string file;
  Certificate certificate;
  // "certified for another driver branch, 580, this is 590".
  std::optional<std::string> reason_against = {};
};

}  // namespace stepgate
