// SPDX-License-Identifier: MIT
// The file of `run --evidence`: what every earlier run of a subject found, in order. An entry may
// be taken out as a whole, never changed: a run less, and the rest would be chosen evidence.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "history/record/record.h"
#include "judge/earlier_evidence.h"
#include "judge/environment/environment.h"
#include "support/files/folder_lock.h"

namespace stepgate {

constexpr std::int64_t evidence_format = 1;

// Only runs that agree in all of it are runs of the same pair.
struct EvidenceKey {
  std::string subject;  // what is under test: printable ASCII
  std::string scenario;
  std::uint64_t fingerprint = 0;  // of the scenario
  std::string kind;               // and the rest of the device, as in environment.h
  std::string gpu;
  std::string uuid;
  std::string driver;
  std::string cuda_runtime;
  std::string libraries;  // that its variants depend on: "cuDNN 9.14.0"; empty, often
  bool operator==(const EvidenceKey&) const = default;
};

EvidenceKey evidence_key(const std::string& subject, const Scenario&, const DeviceIdentity&,
                         std::span<const DeviceKey> libraries);

struct EvidenceRun {
  std::uint64_t seed = 0;
  std::string date;
  std::string stepgate;      // version
  EarlierEvidence evidence;  // of one run
};

struct EvidenceEntry {
  EvidenceKey key;
  std::vector<EvidenceRun> runs;  // in the order in which they were added
};

struct EvidenceFile {
  std::string file;
  std::vector<EvidenceEntry> entries;
};

// Evidence of a run stands in six tables of lists.
struct AsTables {
  static void write(RecordWriter&, std::string_view, const EarlierEvidence&);
  static void read(RecordReader&, std::string_view, EarlierEvidence&);
};

template <>
inline constexpr auto fields_of<EvidenceKey> =
    fields<&EvidenceKey::subject, &EvidenceKey::scenario, &EvidenceKey::kind, &EvidenceKey::gpu,
           &EvidenceKey::uuid, &EvidenceKey::driver, &EvidenceKey::cuda_runtime,
           described<&EvidenceKey::libraries, only_if_any>,
           described<&EvidenceKey::fingerprint, Named("scenario_fingerprint")>>;
template <>
inline constexpr auto fields_of<EvidenceRun> =
    fields<&EvidenceRun::seed, &EvidenceRun::date, &EvidenceRun::stepgate,
           described<&EvidenceRun::evidence, AsTables{}>>;
template <>
inline constexpr auto fields_of<EvidenceEntry> =
    fields<described<&EvidenceEntry::key, inlined>, described<&EvidenceEntry::runs, Named("run")>>;
template <>
inline constexpr auto fields_of<EvidenceFile> =
    fields<described<&EvidenceFile::file, not_carried>,
           described<&EvidenceFile::entries, Named("entry"), digested>>;

// The same values give the same text, and reading it gives back the same values to the last bit.
std::string evidence_text(const EvidenceFile&);

// No entries when there is no such file. Throws RequestError with everything that is wrong with it.
EvidenceFile read_evidence(const std::filesystem::path&);

// Evidence of the runs of this entry, one after the other; nothing where there is no such entry.
EarlierEvidence earlier_in(const EvidenceFile&, const EvidenceKey&);

// The same orders and contents twice are not new evidence. Throws RequestError when the entry has a
// run of this seed, and when there is hardly room for another run.
void check_evidence_run(const EvidenceFile&, const EvidenceKey&, std::uint64_t seed);

// Entries of the same device that are about the same scenario by its name or by its text: of other
// subjects, other texts, other drivers.
std::vector<const EvidenceEntry*> other_entries(const EvidenceFile&, const EvidenceKey&);

// One run at a time goes on from a file, in the order in which they start, so that all runs of an
// entry are one sequence: each has seen all that was found before it. Others of the same folder
// wait until this ends, or its process does, as folder_lock.h has it.
class EvidenceTurn {
 public:
  // Throws RequestError when the file is damaged or cannot be locked.
  EvidenceTurn(std::filesystem::path, EvidenceKey);

  // The file as it was when the turn began.
  const EvidenceFile& before() const { return file_; }

  // Keeps what the run has found by now, in the place of what was kept of it before. A process that
  // is killed has written it or has not. Throws RequestError and leaves the file as it is as
  // check_evidence_run does, and when it would grow too large.
  void keep(const EvidenceRun&);

  // The file is as it was again: the run cannot be trusted.
  void forget();

 private:
  std::filesystem::path path_;
  EvidenceKey key_;
  FolderLock lock_;
  EvidenceFile file_;
};

}  // namespace stepgate
