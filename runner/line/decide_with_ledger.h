// SPDX-License-Identifier: MIT
// `run --ledger` decides a scenario by the evidence of earlier runs of the same pair and of this
// run.
#pragma once

#include <filesystem>
#include <optional>
#include <span>

#include "line/decide.h"

namespace stepgate {

struct LedgerRequest {
  std::filesystem::path folder;
  Provenance provenance;  // of every run, except for the scenario
};

// Reads what --ledger and --subject ask for; nothing without them. Throws RequestError, before
// anything is measured, when a file is damaged, cannot be written, or has a run of this seed
// already.
std::optional<LedgerRequest> ledger_for(const LineArguments&, std::span<const Planned>, Device&,
                                        std::uint64_t seed);

// That a file of the ledger can be written, as check_writable says. Throws RequestError for one
// that lies among stored runs, be it by a link: only `accept` writes those; and for a ledger that
// is no folder.
void check_ledger_writable(const std::filesystem::path&, const LineArguments&);

// Measures nothing when the earlier evidence alone decides. Every round is in the ledger as soon as
// it has ended, whatever ends the run; none is when they are not to be trusted. A run that `accept`
// would store is something to compare other builds with, too.
Decided decide_with_ledger(const Planned&, Device&, std::uint64_t seed, JudgeSettings,
                           const ProgressSink&, const LedgerRequest&);

}  // namespace stepgate
