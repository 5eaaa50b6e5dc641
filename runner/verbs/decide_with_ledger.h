// SPDX-License-Identifier: MIT
// `run --ledger` decides a scenario by the evidence of earlier runs of the same pair and of this
// run.
#pragma once

#include <filesystem>
#include <optional>
#include <span>

#include "verbs/decide.h"

namespace stepgate {

struct LedgerRequest {
  std::filesystem::path folder;
  Provenance provenance;  // of every run, except for the scenario
};

// Reads the settings of --ledger and --subject; nullopt without them. Throws RequestError, before
// anything is measured, when a file is damaged, cannot be written, or already has a run with this
// seed.
std::optional<LedgerRequest> ledger_for(const Arguments&, std::span<const Planned>, Device&,
                                        std::uint64_t seed);

// Checks that a file of the ledger can be written. Throws RequestError as check_writable does, for
// a file that lies among stored runs, possibly through a link, since only `accept` writes those,
// and for a ledger that is not a folder.
void check_ledger_writable(const std::filesystem::path&, const Arguments&);

// Measures nothing when the earlier evidence alone decides. Every round is stored in the ledger as
// soon as it ends, and removed if the rounds cannot be trusted. If `accept` would store the run,
// other builds can be compared with it.
Decided decide_with_ledger(const Planned&, Device&, std::uint64_t seed, JudgeSettings, Forecasts,
                           const LedgerRequest&);

}  // namespace stepgate
