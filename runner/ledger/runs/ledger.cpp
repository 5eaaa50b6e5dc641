// SPDX-License-Identifier: MIT
// Reads ledgers. To add a run, locks the file, reads it, and writes it whole after every round.
#include "ledger/runs/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <system_error>
#include <utility>

#include "base/files/read_file.h"
#include "base/files/write_file.h"
#include "base/text/diagnostic.h"
#include "base/toml/toml_text.h"
#include "ledger/baseline/baseline_file.h"
#include "ledger/baseline/baseline_record.h"

namespace stepgate {
namespace {

// Longest wait for other processes: one measurement of up to `measure.max_seconds`, and its
// loading.
constexpr std::chrono::hours longest_turn{25};
constexpr std::string_view kind = "ledger";
constexpr std::string_view prune_hint =
    "take out every [[run]] of this subject: what they found is then forgotten";
// Bytes for a run of a hundred rounds and a dozen assertions.
constexpr std::size_t room_for_a_run = 128 * 1024;

[[noreturn]] void refuse(const Baseline& ledger, std::string fact, std::string_view way_out) {
  throw RequestError(Diagnostic{Place{ledger.file, 0, 0}, std::move(fact), std::string(way_out)});
}

std::filesystem::path folder_of(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path() : ".";
}

bool is_same_device(const StoredRun& one, const StoredRun& other) {
  const Environment& on = one.environment;
  const Environment& of = other.environment;
  return on.kind == of.kind && on.gpu == of.gpu && on.uuid == of.uuid;
}

Baseline without(Baseline ledger, const StoredRun& pair) {
  std::erase_if(ledger.runs, [&](const StoredRun& run) { return is_same_pair(run, pair); });
  return ledger;
}

Baseline only(Baseline ledger, const StoredRun& pair) {
  std::erase_if(ledger.runs, [&](const StoredRun& run) { return !is_same_pair(run, pair); });
  return ledger;
}

// Returns the latest run of the pair that ran least recently, excluding this pair; null if there is
// no other pair.
const StoredRun* least_recent(const Baseline& ledger, const StoredRun& pair) {
  std::vector<const StoredRun*> latest;  // of each pair, newest first
  for (auto run = ledger.runs.rbegin(); run != ledger.runs.rend(); ++run) {
    const auto is_known = [&](const StoredRun* other) { return is_same_pair(*run, *other); };
    if (!is_same_pair(*run, pair) && std::ranges::none_of(latest, is_known))
      latest.push_back(&*run);
  }
  return latest.empty() ? nullptr : latest.back();
}

bool is_folder(const std::filesystem::path& path) {
  std::error_code unreadable;
  return std::filesystem::is_directory(path, unreadable);
}

// Parses only up to the first table of the first run, since ledgers are large.
bool has_stored_run(const std::filesystem::path& file) {
  const TextOrProblem read = read_file(file, "a ledger");
  if (!std::holds_alternative<std::string>(read)) return false;
  std::istringstream text(std::get<std::string>(read));
  bool in_run = false;
  for (std::string line; std::getline(text, line);) {
    if (in_run && line.starts_with("subject = ")) return false;
    if (in_run && line.starts_with('[')) return true;
    in_run = in_run || line == "[[run]]";
  }
  return false;
}

void write_whole(const std::filesystem::path& path, Baseline ledger, const StoredRun& pair) {
  std::string text = baseline_text(ledger);
  while (text.size() > largest_text_file_bytes) {
    const StoredRun* oldest = least_recent(ledger, pair);
    if (oldest == nullptr) refuse(ledger, "would grow beyond 1 MiB", prune_hint);
    ledger = without(ledger, StoredRun(*oldest));
    text = baseline_text(ledger);
  }
  write_file(path, text);
}

void add_others(const Baseline& ledger, const StoredRun& pair, bool same_text_only,
                std::vector<OtherPair>& others) {
  std::vector<const StoredRun*> seen;
  for (auto newest = ledger.runs.rbegin(); newest != ledger.runs.rend(); ++newest) {
    const StoredRun& run = *newest;
    const bool has_same_text = run.provenance.scenario == pair.provenance.scenario;
    const auto is_known = [&](const StoredRun* other) { return is_same_pair(run, *other); };
    if ((same_text_only ? !has_same_text : is_same_pair(run, pair)) || !is_same_device(run, pair) ||
        std::ranges::any_of(seen, is_known))
      continue;
    seen.push_back(&run);
    others.push_back({.subject = run.provenance.subject,
                      .has_same_text = has_same_text,
                      .earlier = earlier_in(ledger, run)});
  }
}

}  // namespace

Baseline read_ledger(const std::filesystem::path& path, const std::string& scenario) {
  return read_baseline_if_any(path, scenario, kind)
      .value_or(Baseline{.file = path.generic_string(), .scenario = scenario, .runs = {}});
}

EarlierEvidence earlier_in(const Baseline& ledger, const StoredRun& pair) {
  EarlierEvidence earlier;
  for (const StoredRun& run : ledger.runs) {
    if (!is_same_pair(run, pair)) continue;
    ++earlier.runs;
    append(earlier.regime, run.found.regime);
    append(earlier.expect, run.found.expect);
    append(earlier.stored, run.found.stored);
    append(earlier.stored_anchors, run.found.stored_anchors);
  }
  return earlier;
}

void check_run_of_ledger(const Baseline& ledger, const StoredRun& now) {
  const Baseline own = only(ledger, now);
  if (baseline_text(own).size() + room_for_a_run > largest_text_file_bytes)
    refuse(ledger, "is about to grow beyond 1 MiB by the runs of one subject", prune_hint);
  for (const StoredRun& run : own.runs) {
    if (run.provenance.seed != now.provenance.seed) continue;
    refuse(ledger,
           fmt::format("a run of '{}' with seed {} is in it already", ledger.scenario,
                       hexadecimal(now.provenance.seed)),
           "leave out --seed: the same orders and contents twice are not new evidence");
  }
}

std::vector<OtherPair> other_pairs(const Baseline& ledger, const StoredRun& pair) {
  std::vector<OtherPair> others;
  add_others(ledger, pair, false, others);
  const std::string fingerprint = hexadecimal(pair.provenance.scenario);
  for (const std::filesystem::path& beside : read_folder(folder_of(ledger.file))) {
    if (beside.extension() != ".toml" || beside.generic_string() == ledger.file) continue;
    const TextOrProblem text = read_file(beside, "a ledger");
    const auto* found = std::get_if<std::string>(&text);
    if (found == nullptr || found->find(fingerprint) == std::string::npos) continue;
    try {
      add_others(read_baseline(beside, beside.stem().string(), kind), pair, true, others);
    } catch (const RequestError&) {  // a damaged file is refused by whoever needs it
    }
  }
  return others;
}

std::optional<Baseline> runs_of_others(Baseline ledger, const Provenance& now) {
  std::erase_if(ledger.runs, [&](const StoredRun& run) {
    const Provenance& from = run.provenance;
    return run.variants.empty() || from.subject == now.subject || from.build == now.build ||
           from.scenario != now.scenario;
  });
  return ledger.runs.empty() ? std::nullopt : std::optional(std::move(ledger));
}

std::optional<std::filesystem::path> stored_runs_in(const std::filesystem::path& folder) {
  constexpr int most_folders = 2;  // levels of folders: simulated/<device>
  const auto search = [](const auto& again, const std::filesystem::path& in,
                         int folders) -> std::optional<std::filesystem::path> {
    if (!is_folder(in)) return std::nullopt;
    for (const std::filesystem::path& path : read_folder(in)) {
      std::error_code unreadable;
      const bool is_file = std::filesystem::is_regular_file(path, unreadable);
      if (is_file && path.extension() == ".toml" && has_stored_run(path)) return path;
      if (folders == 0) continue;
      if (auto found = again(again, path, folders - 1)) return found;
    }
    return std::nullopt;
  };
  return search(search, folder, most_folders);
}

LedgerTurn::LedgerTurn(std::filesystem::path path, const std::string& scenario)
    : path_(std::move(path)),
      lock_(folder_of(path_),
            LockPatience{.most = longest_turn, .work = path_.filename().string()}),
      before_(read_ledger(path_, scenario)) {}

void LedgerTurn::keep(StoredRun run) {
  check_run_of_ledger(before_, run);
  run.after = digest_of_latest(before_, run);
  Baseline with_run = before_;
  with_run.runs.push_back(run);
  write_whole(path_, std::move(with_run), run);
}

void LedgerTurn::forget() {
  write_file(path_, baseline_text(before_));
}

}  // namespace stepgate
