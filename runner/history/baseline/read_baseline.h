// SPDX-License-Identifier: MIT
// Baseline files to values, and every fault with its place.
#pragma once

#include <filesystem>
#include <string>

#include "judge/stored/baseline.h"

namespace stepgate {

// The baseline of that scenario. Throws RequestError with everything that is wrong: no TOML, an
// unknown or missing key, a value of another type, a list of another length, a number that no run
// can have measured, a run whose digest does not fit, a later format, another scenario.
Baseline read_baseline(const std::filesystem::path&, const std::string& scenario);

}  // namespace stepgate
