// SPDX-License-Identifier: MIT
// A certificate for people: one line a trial, then what it promises.
#pragma once

#include <iosfwd>
#include <string>

#include "judge/environment/certificate.h"

namespace stepgate {

// Before the trials: of what, and where.
void print_certifying(std::ostream&, const StepPlan&, const DeviceIdentity&);

void print_trial(std::ostream&, const TrialResult&);

// After the trials' lines.
void print_certificate(std::ostream&, const Certificate&);

// "certified 2026-11-21 ...: identical code refuted in 0 of 300 processes ..." for the report of a
// later run; "not certified" where none was granted.
std::string in_words(const Certificate&);

// That and its file, or why it says nothing about the run.
std::string in_words(const CitedCertificate&);

// Where the certificate is.
void print_certified(std::ostream&, const std::string& file);

}  // namespace stepgate
