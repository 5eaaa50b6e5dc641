// SPDX-License-Identifier: MIT
// Reading; and adding a run: lock, read, write whole after every round.
#include "history/evidence/evidence_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "support/files/folder_lock.h"
#include "support/files/read_file.h"
#include "support/files/write_file.h"
#include "support/text/diagnostic.h"
#include "support/toml/toml_text.h"

namespace stepgate {
namespace {

constexpr std::string_view take_entry_out_hint =
    "take the whole [[entry]] out, with all its runs: what it found is then forgotten";
constexpr std::string_view move_evidence_away_hint =
    "name another file, or move this one away: what it found is then forgotten";
// Others measure a scenario before it is our turn: as long as `measure.max_seconds` may be, and
// what is loaded.
constexpr std::chrono::hours longest_turn{25};
constexpr std::string_view prune_hint = "take [[entry]]s of old subjects out of it";
constexpr double largest_kept_contrast = 1000;  // the log of no quotient is larger
// A run of a hundred rounds and a dozen sentences.
constexpr std::size_t room_for_a_run = 128 * 1024;

constexpr SeriesForm kept_contrasts_form{.most = largest_kept_contrast};
constexpr SeriesForm kept_times_form{.most = 1e9};  // steps and seconds of a round

// Calls visit(key, form, series) for each table, in the order of the file.
void for_each_table(auto& evidence, const auto& visit) {
  auto& [runs, regime, expect, stored, stored_anchors] = evidence;
  auto& [regime_contrasts, regime_times] = regime;
  auto& [expect_contrasts, expect_times] = expect;
  visit("regime", kept_contrasts_form, regime_contrasts);
  visit("expect", kept_contrasts_form, expect_contrasts);
  visit("regime_times", kept_times_form, regime_times);
  visit("expect_times", kept_times_form, expect_times);
  visit("stored", kept_contrasts_form, stored);
  visit("stored_anchors", kept_contrasts_form, stored_anchors);
}

template <class Entries>
auto entry_of(Entries& entries, const EvidenceKey& key) {
  return std::find_if(entries.begin(), entries.end(),
                      [&](const EvidenceEntry& entry) { return entry.key == key; });
}

void read_entries(RecordReader& file, EvidenceFile& evidence) {
  file.each_of("entry", take_entry_out_hint, [&](RecordReader& record) {
    EvidenceEntry entry;
    if (!record.digested(entry)) return;
    if (entry_of(evidence.entries, entry.key) != evidence.entries.end()) {
      record.fault("digest", "there is another entry of the same subject, scenario and device");
    }
    evidence.entries.push_back(std::move(entry));
  });
}

[[noreturn]] void refuse(const EvidenceFile& file, std::string fact, std::string_view way_out) {
  throw RequestError(Diagnostic{Place{file.file, 0, 0}, std::move(fact), std::string(way_out)});
}

std::filesystem::path folder_of(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path() : ".";
}

void write_whole(const std::filesystem::path& path, const EvidenceFile& file) {
  const std::string text = evidence_text(file);
  if (text.size() > largest_text_file_bytes) {
    refuse(file, "would grow beyond 1 MiB", prune_hint);
  }
  write_file(path, text);
}

}  // namespace

void AsTables::write(RecordWriter& record, std::string_view, const EarlierEvidence& evidence) {
  for_each_table(evidence, [&](std::string_view key, const SeriesForm& form, const auto& series) {
    record.named_series(key, form, series);
  });
}

void AsTables::read(RecordReader& record, std::string_view, EarlierEvidence& evidence) {
  evidence.runs = 1;
  for_each_table(evidence, [&](std::string_view key, const SeriesForm& form, auto& series) {
    record.named_series(key, form, series);
  });
}

EvidenceKey evidence_key(const std::string& subject, const Scenario& scenario,
                         const DeviceIdentity& device, std::span<const DeviceKey> libraries) {
  const Environment environment = environment_of(device);
  std::vector<DeviceKey> all(libraries.begin(), libraries.end());
  if (!environment.cublas.empty()) all.push_back({"cuBLAS", environment.cublas});
  return {.subject = subject,
          .scenario = scenario.name,
          .fingerprint = scenario.fingerprint,
          .kind = environment.kind,
          .gpu = environment.gpu,
          .uuid = environment.uuid,
          .driver = environment.driver,
          .cuda_runtime = environment.cuda_runtime,
          .libraries = libraries_in_words(all)};
}

std::string evidence_text(const EvidenceFile& file) {
  RecordWriter record;
  record.count("format", evidence_format);
  record.fields(file);
  return "# What earlier runs found, for `stepgate run --evidence` to go on from: by sentence, "
         "log(left / right) of every round, and its scored steps with the seconds of both sides.\n"
         "# An [[entry]] may be taken out as a whole, with all its runs, never changed. Its digest "
         "finds damage and slips of the hand, no intent, since anybody can compute one: keep this "
         "file where no pull request can write.\n" +
         record.text();
}

EvidenceFile read_evidence(const std::filesystem::path& path) {
  EvidenceFile evidence{.file = path.generic_string(), .entries = {}};
  std::error_code error;
  if (!std::filesystem::exists(path, error) && !error) return evidence;
  RecordFile file(path, "an evidence file", move_evidence_away_hint);
  if (file.record().is_format(evidence_format, "evidence", "name another file")) {
    read_entries(file.record(), evidence);
    file.record().refuse_the_rest();
  }
  file.throw_faults();
  return evidence;
}

EarlierEvidence earlier_in(const EvidenceFile& file, const EvidenceKey& key) {
  EarlierEvidence earlier;
  const auto entry = entry_of(file.entries, key);
  if (entry == file.entries.end()) return earlier;
  for (const EvidenceRun& run : entry->runs) {
    ++earlier.runs;
    append(earlier.regime, run.evidence.regime);
    append(earlier.expect, run.evidence.expect);
    append(earlier.stored, run.evidence.stored);
    append(earlier.stored_anchors, run.evidence.stored_anchors);
  }
  return earlier;
}

void check_evidence_run(const EvidenceFile& file, const EvidenceKey& key, std::uint64_t seed) {
  if (evidence_text(file).size() + room_for_a_run > largest_text_file_bytes) {
    refuse(file, "is about to grow beyond 1 MiB", prune_hint);
  }
  const auto entry = entry_of(file.entries, key);
  if (entry == file.entries.end()) return;
  for (const EvidenceRun& run : entry->runs) {
    if (run.seed != seed) continue;
    refuse(
        file,
        fmt::format("a run of '{}' with seed {} is in it already", key.scenario, hexadecimal(seed)),
        "leave out --seed: the same orders and contents twice are not new evidence");
  }
}

std::vector<const EvidenceEntry*> other_entries(const EvidenceFile& file, const EvidenceKey& key) {
  std::vector<const EvidenceEntry*> others;
  for (const EvidenceEntry& entry : file.entries) {
    const EvidenceKey& other = entry.key;
    const bool same_device =
        other.kind == key.kind && other.gpu == key.gpu && other.uuid == key.uuid;
    const bool same_text = other.fingerprint == key.fingerprint;
    if (other != key && same_device && (same_text || other.scenario == key.scenario))
      others.push_back(&entry);
  }
  return others;
}

EvidenceTurn::EvidenceTurn(std::filesystem::path path, EvidenceKey key)
    : path_(std::move(path)),
      key_(std::move(key)),
      lock_(folder_of(path_), LockPatience{.most = longest_turn}),
      file_(read_evidence(path_)) {}

void EvidenceTurn::keep(const EvidenceRun& run) {
  EvidenceFile with_run = file_;
  check_evidence_run(file_, key_, run.seed);
  if (entry_of(with_run.entries, key_) == with_run.entries.end())
    with_run.entries.push_back({.key = key_, .runs = {}});
  entry_of(with_run.entries, key_)->runs.push_back(run);
  write_whole(path_, with_run);
}

void EvidenceTurn::forget() {
  write_whole(path_, file_);
}

}  // namespace stepgate
