// SPDX-License-Identifier: MIT
// Describes the reason for the outcome of an assertion about stored runs, in words. Decides
// nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "judge/verdict/verdict.h"
#include "scenario/scenario.h"

namespace stepgate {

// "no run is stored for this device; `stepgate accept scenarios/a.toml` stores one"
std::string no_baseline_reason(const Scenario&);

// Makes the reason "the driver branch is 590, the stored runs have 580". upgraded_in_words names
// the software that was upgraded since the stored runs, and where to read how to compare both;
// empty where none was.
std::string upgraded_in_words(const std::string& upgrades);
std::string mismatch_reason(std::string_view key, const std::string& stored,
                            const std::string& now);
std::string changed_knobs_reason(const std::string& variant);
std::string other_device_reason(const std::string& stored, const std::string& now,
                                std::size_t fewest_devices);
// "; its steps take 2.00x as long as in the latest of them (1 ms -> 2 ms)", for information only.
std::string raw_in_words(double then_seconds, double now_seconds);
// Suggests the next step when there is nothing to compare with. Another device, or a baseline
// without runs, needs more runs; everything else needs a decision by the person responsible.
std::string way_to_compare(const Scenario&, bool asks_for_runs);

std::string too_few_rounds_reason(std::int64_t rounds);
std::string unknown_time_reason(Metric);

// "raw 0.962x (2 ms -> 2.08 ms) [..], anchor hbm.1 1.000x [..], normalised 0.962x [..], 95 %
// intervals against 5 stored runs, which differ by 0.31 %, of 0123abc, newest 2026-11-21; the limit
// is 0.99x". Then follow what it means if the three disagree, and what is missing if it is
// undecided.
std::string stored_reason(const Expectation&, const AssertionVerdict&, const Scenario&);

}  // namespace stepgate
