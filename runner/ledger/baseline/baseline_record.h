// SPDX-License-Identifier: MIT
// Runs as text, what a person reads in a diff, and back, with every fault in its place: the one
// format of baselines/ and of ledgers.
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
// A key for each metric: a list of contrasts, or a number.
struct ByMetric {
  static void write(RecordWriter&, std::string_view, const std::vector<StoredTime>&);
  static void write(RecordWriter&, std::string_view, const std::vector<StoredCount>&);
  static void read(RecordReader&, std::string_view, std::vector<StoredTime>&);
  static void read(RecordReader&, std::string_view, std::vector<StoredCount>&);
};
// The evidence of a run of a ledger stands in six tables of lists, its step times in one.
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

// The same values give the same text; read_baseline gives the values back as far as they are
// written: contrasts to a millionth.
std::string baseline_text(const Baseline&);

// The runs of that scenario; `kind` is what its faults call the file. Throws RequestError with
// everything that is wrong: no TOML, an unknown or missing key, a value of another type, a list of
// another length, a number that no run can have measured, a run whose digest does not fit, one of a
// ledger whose forerunner is not there, a later format, another scenario.
Baseline read_baseline(const std::filesystem::path&, const std::string& scenario,
                       std::string_view kind = "baseline");

// Digest of everything that is stored of a run.
std::uint64_t digest_of(const StoredRun&);

// The digest of the latest run of the same pair, in digits; empty where there is none.
std::string digest_of_latest(const Baseline&, const StoredRun& pair);

}  // namespace stepgate
