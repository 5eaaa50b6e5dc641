// SPDX-License-Identifier: MIT
// The ledger of `--ledger` stores the rounds of runs. Later runs of the same pair continue their
// evidence, and runs of other builds are compared with them. It is a folder like baselines/ with
// one file for each scenario and device, in the format of baseline_record.h. Only all runs of a
// subject together may be removed: removing a single run would leave selected evidence.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/files/folder_lock.h"
#include "judge/stored/baseline.h"

namespace stepgate {

// Reads the runs of a ledger's file; empty where there is no such file. Throws RequestError with
// all errors.
Baseline read_ledger(const std::filesystem::path&, const std::string& scenario);

// The combined evidence of the runs of the same pair, in order; empty where there are none.
EarlierEvidence earlier_in(const Baseline&, const StoredRun& pair);

// Refuses a repetition with the same seed, which would not be new evidence. Throws RequestError
// when the file has a run of the same pair with this run's seed, or when the runs of the pair leave
// too little room for another run.
void check_run_of_ledger(const Baseline&, const StoredRun&);

// Another pair on the same device with the same scenario name or text: it has another subject, text
// or driver.
struct OtherPair {
  std::string subject;
  bool has_same_text = false;
  EarlierEvidence earlier;
};
// Returns other pairs, latest first. Also searches the other files of the folder for the same text
// under another name.
std::vector<OtherPair> other_pairs(const Baseline&, const StoredRun& pair);

// The runs that a run of this subject and build may be compared with: runs of other subjects and
// builds with the same scenario text, including their step times. A looser text would measure less
// exactly. nullopt where there are none.
std::optional<Baseline> runs_of_others(Baseline, const Provenance& now);

// Finds a file of runs that `accept` stored, in the folder or in a device's folder within it;
// nullopt where there is none. The first run of a file shows whether it belongs to a ledger.
std::optional<std::filesystem::path> stored_runs_in(const std::filesystem::path& folder);

// A turn of one run with exclusive access to a ledger's file, in order of start. So all runs of a
// pair form one sequence, and each has seen all earlier ones. Other runs with the same folder wait
// until this object or its process ends (folder_lock.h).
class LedgerTurn {
 public:
  // Waits for its turn. Throws RequestError when the file is damaged or cannot be locked.
  LedgerTurn(std::filesystem::path, const std::string& scenario);

  // The content of the file when the turn began.
  const Baseline& before() const { return before_; }

  // Stores the run's results so far and replaces what it stored before. A killed process has
  // written it or has not. Where the file would exceed the readable size, the subjects that ran
  // least recently are removed. Throws RequestError and leaves the file unchanged as
  // check_run_of_ledger does, and where the runs of this pair alone exceed that size.
  void keep(StoredRun);

  // Restores the file, since the run cannot be trusted.
  void forget();

 private:
  std::filesystem::path path_;
  FolderLock lock_;
  Baseline before_;
};

}  // namespace stepgate
