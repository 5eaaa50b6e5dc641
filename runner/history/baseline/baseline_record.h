// SPDX-License-Identifier: MIT
// A baseline as text, what a person reads in a diff, and back, with every fault in its place.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "judge/stored/baseline.h"

namespace stepgate {

constexpr std::int64_t baseline_format = 1;

// The same values give the same text; read_baseline gives the values back as far as they are
// written: contrasts to a millionth.
std::string baseline_text(const Baseline&);

// The baseline of that scenario. Throws RequestError with everything that is wrong: no TOML, an
// unknown or missing key, a value of another type, a list of another length, a number that no run
// can have measured, a run whose digest does not fit, a later format, another scenario.
Baseline read_baseline(const std::filesystem::path&, const std::string& scenario);

// Digest of everything that is stored of a run.
std::uint64_t digest_of(const StoredRun&);

}  // namespace stepgate
