// SPDX-License-Identifier: MIT
// Why a sentence about stored runs came out as it did, in words. Decides nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "judge/verdict.h"
#include "scenario/scenario.h"

namespace stepgate {

// "no run is stored for this device; `stepgate accept scenarios/a.toml` stores one"
std::string no_baseline_reason(const Scenario&);

// "the driver branch is 590, the stored runs have 580"
std::string mismatch_reason(std::string_view key, const std::string& stored,
                            const std::string& now);
std::string changed_knobs_reason(const std::string& variant);
std::string other_device_reason(const std::string& stored, const std::string& now,
                                std::size_t fewest_devices);
std::string not_comparable_reason(const std::string& mismatch, const Scenario&);

std::string too_few_rounds_reason(std::int64_t rounds);
std::string unknown_time_reason(Metric);

// "0.962x, 95 % interval [0.951, 0.973] against 5 stored runs, which differ by 0.31 %; the limit is
// 0.99x", and what is missing when it is undecided.
std::string stored_reason(const Expectation&, const SentenceVerdict&, const Scenario&);

}  // namespace stepgate
