// SPDX-License-Identifier: MIT
// The ledger of `--ledger`: runs' own rounds, which later runs of the same pair go on from, and
// which runs of other builds are compared with. It is a folder like baselines/, a file a scenario
// and device, in the same format (baseline_record.h). All runs of a subject may be taken out, never
// one of them: with a run less, the rest would be chosen evidence.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/files/folder_lock.h"
#include "judge/stored/baseline.h"

namespace stepgate {

// The runs of a file of a ledger; none where there is no such file. Throws RequestError with
// everything that is wrong with it.
Baseline read_ledger(const std::filesystem::path&, const std::string& scenario);

// The evidence of the runs of the same pair, one after the other; nothing where there are none.
EarlierEvidence earlier_in(const Baseline&, const StoredRun& pair);

// The same orders and contents twice are not new evidence. Throws RequestError when the file has a
// run of the same pair with this run's seed, and when the runs of the pair leave hardly room for
// another one.
void check_run_of_ledger(const Baseline&, const StoredRun&);

// Another pair of the same device, about the same scenario by its name or by its text: of another
// subject, another text, another driver.
struct OtherPair {
  std::string subject;
  bool has_same_text = false;
  EarlierEvidence earlier;
};
// The pair that ran last comes first. Looks into the files beside this one too, for the same text
// under another name.
std::vector<OtherPair> other_pairs(const Baseline&, const StoredRun& pair);

// The runs that a run of this subject and build may be compared with: of other subjects and other
// builds, with their step times, and of the same text, since a looser one measures less exactly.
// Nothing where there are none.
std::optional<Baseline> runs_of_others(Baseline, const Provenance& now);

// A file of runs that `accept` stored, in the folder or in one of a device within it; nothing where
// there is none. Their first runs tell them from those of a ledger.
std::optional<std::filesystem::path> stored_runs_in(const std::filesystem::path& folder);

// One run at a time goes on from a file, in the order in which they start, so that all runs of a
// pair are one sequence: each has seen all that was found before it. Others of the same folder wait
// until this ends, or its process does, as folder_lock.h has it.
class LedgerTurn {
 public:
  // Throws RequestError when the file is damaged or cannot be locked.
  LedgerTurn(std::filesystem::path, const std::string& scenario);

  // The file as it was when the turn began.
  const Baseline& before() const { return before_; }

  // Keeps what the run has found by now, in the place of what was kept of it before. A process that
  // is killed has written it or has not. Where the file would grow beyond what can be read, the
  // subjects that ran least recently go. Throws RequestError and leaves the file as it is as
  // check_run_of_ledger does, and where the runs of this pair alone are too much.
  void keep(StoredRun);

  // The file is as it was again: the run cannot be trusted.
  void forget();

 private:
  std::filesystem::path path_;
  FolderLock lock_;
  Baseline before_;
};

}  // namespace stepgate
