// SPDX-License-Identifier: MIT
// `run --ledger` decides a scenario from the evidence of this run and of earlier runs of the same
// pair.
#pragma once

#include <filesystem>
#include <optional>
#include <span>

#include "line/decide.h"

namespace stepgate {

struct LedgerRequest {
  std::filesystem::path folder;
  Provenance provenance;  // common to all scenarios except for the scenario's own
};

// Reads the ledger and the subject that --ledger and --subject name; nullopt without them. Throws
// RequestError, before anything is measured, when a file is damaged, cannot be written, or has a
// run of this seed already.
std::optional<LedgerRequest> ledger_for(const LineArguments&, std::span<const Planned>, Device&,
                                        std::uint64_t seed);

// Checks that a file of the ledger can be written, as check_writable does. Throws RequestError if
// it cannot, or if the ledger is not a folder. It also throws for a file among stored runs, even
// through a link: only `accept` writes those.
void check_ledger_writable(const std::filesystem::path&, const LineArguments&);

// Measures nothing when the earlier evidence alone decides. Every round is stored in the ledger as
// soon as it has ended, even if the run fails later. No round is stored if the rounds cannot be
// trusted. A run that `accept` would store also serves as a baseline for other builds.
Decided decide_with_ledger(const Planned&, Device&, std::uint64_t seed, JudgeSettings,
                           const ProgressSink&, const LedgerRequest&);

}  // namespace stepgate
