// SPDX-License-Identifier: MIT
// Decides whether a candidate is kept: HEAD's steps are faster than BASE's by more than the gain,
// they do no more than BASE's, and HEAD's assertions are no worse. Measures nothing, prints
// nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compare/gate/judge_comparison.h"
#include "compare/gate/judge_gate.h"
#include "compare/keep/candidates.h"

namespace stepgate {

// A true gain is discarded with at most this probability, for each workload.
inline constexpr double error_of_a_discard = 0.05;

// Makes a comparison ask for the gain: a workload that has it passes at the candidate's level, and
// one without it fails. The comparison goes on from the candidate's earlier pairs.
ComparisonSettings settings_of_keep(const Candidate&, double gain);

// Makes ComparisonRequest::undecided, which ends as soon as one workload refutes the gain.
std::function<std::vector<int>(const ComparisonMeasurement&)> undecided_of_keep(
    std::span<const std::string> workloads, const ComparisonSettings&);

// Every workload must have the gain: the verdict is that of the first one without it, or else of
// the one with the least evidence.
KeepVerdict judge_keep(const ComparisonVerdict&);

// Compares the counts as a gate does, with three exceptions. Other bits of losses are allowed where
// gradients are compared. A kernel of a library has none of the counts that describe stepgate's
// own. And memory that its workspace adds to the plan is a note where the trace has no more. Of a
// library, `more_workspace` is what it may use beyond BASE's, in bytes; absent: a program.
std::vector<Finding> findings_of_keep(std::span<const CountedPair>,
                                      std::optional<std::int64_t> more_workspace);

// The verdict of findings about counts or assertions: discarded for the first that blocks, or for a
// failure of HEAD. nullopt where none of them says more than a note. Throws WorkerError where BASE
// failed, and NotGatedError where something cannot be compared.
std::optional<KeepVerdict> refusal_in(std::span<const Finding>);

// "the kernel is 1.4x as fast and the step is not: 1.000x [0.998, 1.002]"; empty where what `name`
// says is not faster by at least 5 %. The seconds are those of the kernel in a step.
std::string faster_alone(const std::string& name, double base_seconds, double head_seconds,
                         const KeepVerdict&);

}  // namespace stepgate
