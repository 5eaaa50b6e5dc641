// SPDX-License-Identifier: MIT
// The file of `run --evidence`: what every earlier run of a subject found, in order. An entry may
// be taken out as a whole, never changed: a run less, and the rest would be chosen evidence.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "judge/earlier_evidence.h"
#include "judge/environment.h"

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

// The same values give the same text, and reading it gives back the same values to the last bit.
std::string evidence_text(const EvidenceFile&);

// No entries when there is no such file. Throws RequestError with everything that is wrong with it.
EvidenceFile read_evidence(const std::filesystem::path&);

// What the runs of this entry found, one after the other; nothing where there is no such entry.
EarlierEvidence earlier_in(const EvidenceFile&, const EvidenceKey&);

// The same orders and contents twice are not new evidence. Throws RequestError when the entry has a
// run of this seed, and when there is hardly room for another run.
void check_evidence_run(const EvidenceFile&, const EvidenceKey&, std::uint64_t seed);

// Adds the run to its entry and returns what the entry held before, so that of several processes
// that do so at once each continues those whose runs were added first. One that is killed has added
// its run or has not. Throws RequestError and leaves the file as it is when it is damaged, or as
// check_evidence_run does.
EarlierEvidence append_evidence(const std::filesystem::path&, const EvidenceKey&,
                                const EvidenceRun&);

}  // namespace stepgate
