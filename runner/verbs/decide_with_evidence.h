// SPDX-License-Identifier: MIT
// `run --evidence`: a scenario is decided by what earlier runs of the same pair found and what this
// one adds.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "verbs/decide.h"

namespace stepgate {

struct EvidenceRequest {
  std::filesystem::path file;
  std::string subject;
  std::string date;
};

// Reads what --evidence and --subject ask for; nothing without them. Throws RequestError, before
// anything is measured, when the file is damaged, cannot be written, or has a run of this seed
// already.
std::optional<EvidenceRequest> evidence_for(const Arguments&, std::span<const Planned>, Device&,
                                            std::uint64_t seed);

// Measures nothing when the earlier evidence alone decides. Every round is in the file as soon as
// it has ended, whatever ends the run; none is when they are not to be trusted.
Decided decide_with_evidence(const Planned&, Device&, std::uint64_t seed, JudgeSettings, Forecasts,
                             const EvidenceRequest&);

}  // namespace stepgate
