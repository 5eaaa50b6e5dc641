// SPDX-License-Identifier: MIT
// Converts runs to text, for people who read a diff, and back, with the place of every error. It is
// the common format of baselines/ and of ledgers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "judge/stored/baseline.h"
#include "ledger/record/record.h"

namespace stepgate {

constexpr std::int64_t baseline_format = 1;

struct InMicroseconds {
  static void write(RecordWriter& record, std::string_view key, double seconds) {
    record.microseconds(key, seconds);
  }
  static void read(RecordReader& record, std::string_view key, double& seconds) {
    record.microseconds(key, seconds);
  }
};
// Has one key for each metric, with a list of contrasts or a number.
struct ByMetric {
  static void write(RecordWriter&, std::string_view, const std::vector<StoredTime>&);
  static void write(RecordWriter&, std::string_view, const std::vector<StoredCount>&);
  static void read(RecordReader&, std::string_view, std::vector<StoredTime>&);
  static void read(RecordReader&, std::string_view, std::vector<StoredCount>&);
};
// The evidence of a run in a ledger has six tables of lists; its step times have one table.
struct AsTables {
  static void write(RecordWriter&, std::string_view, const EarlierEvidence&);
  static void read(RecordReader&, std::string_view, EarlierEvidence&);
  static void write(RecordWriter&, std::string_view, const StepTimes&);
  static void read(RecordReader&, std::string_view, StepTimes&);
};

template <>
inline constexpr auto fields_of<StoredVariant> =
    fields<described<&StoredVariant::name, table_name>, &StoredVariant::knobs,
           &StoredVariant::anchor, described<&StoredVariant::libraries, only_if_any>,
           described<&StoredVariant::step_seconds, Named("step_us"), InMicroseconds{}>,
           described<&StoredVariant::anchor_seconds, Named("anchor_us"), InMicroseconds{}>,
           described<&StoredVariant::times, ByMetric{}>,
           described<&StoredVariant::counts, ByMetric{}>>;
template <>
inline constexpr auto fields_of<Provenance> =
    fields<&Provenance::date, &Provenance::commit, &Provenance::stepgate,
           described<&Provenance::scenario, Named("scenario_fingerprint")>, &Provenance::seed,
           described<&Provenance::boot, only_if_any>, described<&Provenance::subject, only_if_any>,
           described<&Provenance::build, only_if_any>>;
template <>
inline constexpr auto fields_of<StoredRun> =
    fields<described<&StoredRun::provenance, inlined>,
           described<&StoredRun::libraries, only_if_any>, described<&StoredRun::after, only_if_any>,
           described<&StoredRun::baseline_reset, only_if_any>, &StoredRun::environment,
           described<&StoredRun::variants, Named("variant"), only_if_any>,
           described<&StoredRun::step_seconds, Named("step_us"), AsTables{}>,
           described<&StoredRun::found, AsTables{}>>;
template <>
inline constexpr auto fields_of<Baseline> =
    fields<described<&Baseline::file, not_carried>, &Baseline::scenario,
           described<&Baseline::runs, Named("run"), digested>>;

// Equal values give equal text. read_baseline restores the values with the written precision:
// contrasts to a millionth.
std::string baseline_text(const Baseline&);

// Reads the runs of that scenario; `kind` names the file in errors. Throws RequestError with all
// errors: invalid TOML, unknown or missing keys, wrong types, lists of wrong length, impossible
// numbers, a wrong digest, a run of a ledger without its previous run, a later format, or another
// scenario.
Baseline read_baseline(const std::filesystem::path&, const std::string& scenario,
                       std::string_view kind = "baseline");

// Digest of all stored fields of a run.
std::uint64_t digest_of(const StoredRun&);

// The digest of the latest run of the same pair, in hexadecimal; empty where there is none.
std::string digest_of_latest(const Baseline&, const StoredRun& pair);

}  // namespace stepgate
