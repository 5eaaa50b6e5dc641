// SPDX-License-Identifier: MIT
// Reading; and adding a run: lock, read, write whole after every round.
#include "judge/evidence/evidence_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <system_error>

#include "judge/evidence/evidence_text.h"
#include "support/files/folder_lock.h"
#include "support/files/read_file.h"
#include "support/files/write_file.h"
#include "support/text/diagnostic.h"
#include "support/toml/toml.h"
#include "support/toml/toml_keys.h"
#include "support/toml/toml_text.h"

namespace stepgate {
namespace {

constexpr std::string_view take_entry_out_hint =
    "take the whole [[entry]] out, with all its runs: what it found is then forgotten";
constexpr std::string_view move_evidence_away_hint =
    "name another file, or move this one away: what it found is then forgotten";
constexpr std::string_view prune_hint = "take [[entry]]s of old subjects out of it";
constexpr double largest_kept_contrast = 1000;  // the log of no quotient is larger
// A run of a hundred rounds and a dozen sentences.
constexpr std::size_t room_for_a_run = 32 * 1024;

constexpr std::array key_rows{EvidenceKeyRow{"subject", &EvidenceKey::subject},
                              EvidenceKeyRow{"scenario", &EvidenceKey::scenario},
                              EvidenceKeyRow{"kind", &EvidenceKey::kind},
                              EvidenceKeyRow{"gpu", &EvidenceKey::gpu},
                              EvidenceKeyRow{"uuid", &EvidenceKey::uuid},
                              EvidenceKeyRow{"driver", &EvidenceKey::driver},
                              EvidenceKeyRow{"cuda_runtime", &EvidenceKey::cuda_runtime}};

class EvidenceReader {
 public:
  explicit EvidenceReader(EvidenceFile& to) : to_(to) {}

  void read(const TomlTable& table) {
    TomlKeys keys(table, {to_.file, 0, 0}, "an evidence file", faults_, move_evidence_away_hint);
    if (keys.is_format(evidence_format, "evidence", "name another file")) {
      if (const TomlEntry* entries = keys.optional("entry")) {
        for (const TomlKeys::Table& entry : keys.tables(*entries)) read_entry(entry);
      }
      keys.refuse_the_rest();
    }
    if (!faults_.empty()) throw RequestError(std::move(faults_));
  }

 private:
  void read_entry(const TomlKeys::Table& table) {
    const std::size_t faults_before = faults_.size();
    EvidenceEntry entry;
    TomlKeys keys(*table.content, table.place, "an entry", faults_, take_entry_out_hint);
    std::uint64_t digest = 0;
    keys.hexadecimal_number("digest", digest);
    for (const EvidenceKeyRow& row : key_rows) keys.text(row.name, entry.key.*row.value);
    keys.text_if_any("libraries", entry.key.libraries);
    keys.hexadecimal_number("scenario_fingerprint", entry.key.fingerprint);
    if (const TomlEntry* runs = keys.required("run")) {
      for (const TomlKeys::Table& run : keys.tables(*runs)) entry.runs.push_back(read_run(run));
    }
    keys.refuse_the_rest();
    // What is plainly wrong has been said; the digest is for what looks right.
    if (faults_.size() != faults_before) return;
    const Place& of_digest = find(*table.content, "digest")->value.place;
    if (digest != digest_of(entry)) {
      keys.fault(of_digest, "the entry was changed after it was written: its digest does not fit");
    } else if (is_known(entry.key)) {
      keys.fault(of_digest, "there is another entry of the same subject, scenario and device");
    }
    to_.entries.push_back(std::move(entry));
  }

  bool is_known(const EvidenceKey& key) const {
    return std::any_of(to_.entries.begin(), to_.entries.end(),
                       [&](const EvidenceEntry& entry) { return entry.key == key; });
  }

  EvidenceRun read_run(const TomlKeys::Table& table) {
    EvidenceRun run;
    run.evidence.runs = 1;
    TomlKeys keys(*table.content, table.place, "a run", faults_, take_entry_out_hint);
    keys.hexadecimal_number("seed", run.seed);
    keys.text("date", run.date);
    keys.text("stepgate", run.stepgate);
    read_contrasts(keys, "regime", run.evidence.regime);
    read_contrasts(keys, "expect", run.evidence.expect);
    read_contrasts(keys, "stored", run.evidence.stored);
    read_contrasts(keys, "stored_anchors", run.evidence.stored_anchors);
    keys.refuse_the_rest();
    return run;
  }

  static void read_contrasts(TomlKeys& keys, std::string_view name, Contrasts& to) {
    const TomlEntry* entry = keys.optional(name);
    if (entry == nullptr) return;
    const auto* table = std::get_if<TomlTable>(&entry->value.content);
    if (table == nullptr) return keys.wrong_type(*entry, "a table");
    for (const TomlEntry& sentence : *table) read_series(keys, sentence, to[sentence.key]);
  }

  static void read_series(TomlKeys& keys, const TomlEntry& entry, std::vector<double>& to) {
    const auto* list = std::get_if<TomlArray>(&entry.value.content);
    if (list == nullptr || list->empty()) {
      return keys.wrong_type(entry, "a list of at least one number");
    }
    for (const TomlValue& value : *list) {
      const auto contrast = TomlKeys::number(value);
      if (!contrast || std::abs(*contrast) > largest_kept_contrast) {
        return keys.fault(
            value.place, fmt::format("'{}' holds what is not a number between {} and {}", entry.key,
                                     -largest_kept_contrast, largest_kept_contrast));
      }
      to.push_back(*contrast);
    }
  }

  EvidenceFile& to_;
  TomlKeys::Faults faults_;
};

template <class Entries>
auto entry_of(Entries& entries, const EvidenceKey& key) {
  return std::find_if(entries.begin(), entries.end(),
                      [&](const EvidenceEntry& entry) { return entry.key == key; });
}

void add(Contrasts& all, const Contrasts& of_a_run) {
  for (const auto& [name, series] : of_a_run) {
    std::vector<double>& to = all[name];
    to.insert(to.end(), series.begin(), series.end());
  }
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

std::span<const EvidenceKeyRow> evidence_key_rows() {
  return key_rows;
}

EvidenceKey evidence_key(const std::string& subject, const Scenario& scenario,
                         const DeviceIdentity& device, std::span<const DeviceKey> libraries) {
  const Environment environment = environment_of(device);
  return {.subject = subject,
          .scenario = scenario.name,
          .fingerprint = scenario.fingerprint,
          .kind = environment.kind,
          .gpu = environment.gpu,
          .uuid = environment.uuid,
          .driver = environment.driver,
          .cuda_runtime = environment.cuda_runtime,
          .libraries = libraries_in_words(libraries)};
}

EvidenceFile read_evidence(const std::filesystem::path& path) {
  EvidenceFile file{.file = path.generic_string(), .entries = {}};
  std::error_code error;
  if (!std::filesystem::exists(path, error) && !error) return file;
  EvidenceReader(file).read(read_toml(path, "an evidence file"));
  return file;
}

EarlierEvidence earlier_in(const EvidenceFile& file, const EvidenceKey& key) {
  EarlierEvidence earlier;
  const auto entry = entry_of(file.entries, key);
  if (entry == file.entries.end()) return earlier;
  for (const EvidenceRun& run : entry->runs) {
    ++earlier.runs;
    add(earlier.regime, run.evidence.regime);
    add(earlier.expect, run.evidence.expect);
    add(earlier.stored, run.evidence.stored);
    add(earlier.stored_anchors, run.evidence.stored_anchors);
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
      lock_(folder_of(path_)),
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
