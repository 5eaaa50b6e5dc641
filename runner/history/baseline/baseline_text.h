// SPDX-License-Identifier: MIT
// The text of a baseline: what a person reads in a diff. Reading it back is read_baseline.h's.
#pragma once

#include <cstdint>
#include <string>

#include "judge/stored/baseline.h"

namespace stepgate {

constexpr std::int64_t baseline_format = 1;

// The same values give the same text; read_baseline gives the values back as far as they are
// written: contrasts to a millionth.
std::string baseline_text(const Baseline&);

// Of everything that is stored of a run, so that a hand that changes a number is noticed.
std::uint64_t digest_of(const StoredRun&);

}  // namespace stepgate
