// SPDX-License-Identifier: MIT
// Describes the reason for an assertion's outcome, in words with numbers. Decides nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "judge/verdict/sides.h"
#include "judge/verdict/verdict.h"
#include "measure/rounds/measurement.h"
#include "scenario/assertions/expectation.h"
#include "scenario/scenario.h"

namespace stepgate {

// The unit of the first metric that the assertion names.
MetricUnit unit_of(const Expectation&);

// "the limit is 1.05x", "it must be within 3 % of 1x".
std::string limit_in_words(const Expectation&, const std::string& limit);

std::string no_rounds_reason();

// Returns why there are no traced rounds, in words; nullopt when there are.
std::optional<std::string> reason_without_trace(const Measurement&);
// "; the plan says 1; it must be 0", which follows that reason. Both values come from the plan.
std::string planned_instead(const Expectation&, double left, double right, MetricUnit);
// The reason for a metric that the rounds did not record; it names the missing metric.
std::string absent_reason(const MetricOf&);
// The reason for a count that differs between the first traced round and `round`, counted from 1.
std::string changing_count_reason(const MetricOf&, double first, double value, std::size_t round);

// Returns a reason such as "1; the limit is 0" from both values.
std::string counted_reason(const Expectation&, const AssertionVerdict&);

// "1.31x in a typical round, 95 % interval [1.28, 1.34] over 7 rounds; the limit is 1.05x".
std::string measured_in_words(const Expectation&, const AssertionVerdict&, double confidence);

// Returns measured_in_words, and for an undecided assertion also what is missing.
std::string reason_by_rounds(const Expectation&, const AssertionVerdict&, const Measurement&,
                             double confidence, std::int64_t fewest_rounds);

// "; two.exposed_comm_us is rank 1's, two.comm_overlap is rank 2's": says which rank each traced
// metric was taken from. Empty unless variants have several ranks and the metrics come from
// different ones.
std::string ranks_in_words(const Expectation&, std::span<const Subject>, const Traced&);

// The reason why a measured assertion is undecided: the doubt, then the measured values.
std::string reason_in_doubt(const std::string& doubt, const Expectation&, const AssertionVerdict&,
                            double confidence);

std::string another_step_reason(const Measurement&);

// Returns one note for each variant that was not compared, with the reason.
std::vector<std::string> not_compared_notes(const Measurement&);
std::string unsteady_note(const Measurement&);
std::string full_record_note(const Measurement&);
// The reason for skipping a measurement whose budget has no room for a verdict.
std::string budget_reason(const Measurement&, const MeasureKnobs&);

}  // namespace stepgate
