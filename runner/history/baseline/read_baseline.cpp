// SPDX-License-Identifier: MIT
// Walks the tree key by key; whatever is left over is unknown.
#include "history/baseline/read_baseline.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "history/baseline/baseline_text.h"
#include "history/record/environment_text.h"
#include "support/text/diagnostic.h"
#include "support/toml/toml.h"
#include "support/toml/toml_keys.h"

namespace stepgate {
namespace {

constexpr std::string_view restore_run_hint =
    "restore the file from version control, or take the whole [[run]] out";
constexpr std::string_view move_baseline_away_hint =
    "restore the file from version control, or move it away and accept anew";
// No step is e^50 times an anchor.
constexpr double largest_stored_contrast = 50;

using Faults = TomlKeys::Faults;

void read_microseconds(TomlKeys& keys, std::string_view key, double& to_seconds) {
  const TomlEntry* entry = keys.required(key);
  if (entry == nullptr) return;
  const auto value = TomlKeys::number(entry->value);
  if (value && *value > 0 && *value < 1e12) {
    to_seconds = *value / 1e6;
  } else {
    keys.wrong_type(*entry, "a number of microseconds above 0");
  }
}

class BaselineReader {
 public:
  BaselineReader(std::string file, Faults& faults) : file_(std::move(file)), faults_(faults) {}

  void read(const TomlTable& table, const std::string& scenario, Baseline& baseline) {
    TomlKeys keys(table, {file_, 0, 0}, "a baseline", faults_, move_baseline_away_hint);
    if (!keys.is_format(baseline_format, "baseline", "move the file away and accept anew")) return;
    keys.text("scenario", baseline.scenario);
    if (!baseline.scenario.empty() && baseline.scenario != scenario) {
      faults_.push_back(
          {find(table, "scenario")->value.place,
           fmt::format("the baseline of scenario '{}', not of '{}'", baseline.scenario, scenario),
           "give the file back its name"});
      return;
    }
    read_runs(keys, baseline);
    keys.refuse_the_rest();
  }

 private:
  void read_runs(TomlKeys& keys, Baseline& baseline) {
    const TomlEntry* entry = keys.optional("run");
    if (entry == nullptr) return;  // all runs were taken out
    for (const TomlKeys::Table& run : keys.tables(*entry)) {
      baseline.runs.push_back(read_run(*run.content, run.place));
    }
  }

  StoredRun read_run(const TomlTable& table, const Place& place) {
    const std::size_t faults_before = faults_.size();
    StoredRun run;
    TomlKeys keys(table, place, "a run", faults_, restore_run_hint);
    std::uint64_t digest = 0;
    keys.hexadecimal_number("digest", digest);
    keys.text("date", run.provenance.date);
    keys.text("commit", run.provenance.commit);
    keys.text("stepgate", run.provenance.stepgate);
    keys.hexadecimal_number("scenario_fingerprint", run.provenance.scenario);
    keys.hexadecimal_number("seed", run.provenance.seed);
    keys.text_if_any("boot", run.provenance.boot);
    keys.text_if_any("new_era", run.new_era);
    run.environment = read_environment(keys, faults_, restore_run_hint);
    if (const TomlEntry* entry = keys.required("variant")) read_variants(keys, *entry, run);
    keys.refuse_the_rest();
    // What is plainly wrong has been said; the digest is for what looks right.
    if (faults_.size() != faults_before) return run;
    const Place& of_digest = find(table, "digest")->value.place;
    if (digest != digest_of(run)) {
      keys.fault(of_digest, "the run was changed after it was stored: its digest does not fit");
    } else if (!digests_.insert(digest).second) {
      keys.fault(of_digest, "the same run is there twice");
    }
    return run;
  }

  void read_variants(TomlKeys& parent, const TomlEntry& entry, StoredRun& run) {
    const auto* table = std::get_if<TomlTable>(&entry.value.content);
    if (table == nullptr) return parent.wrong_type(entry, "a table");
    for (const TomlEntry& variant : *table) {
      const auto* content = std::get_if<TomlTable>(&variant.value.content);
      if (content == nullptr) {
        parent.wrong_type(variant, "a table");
        continue;
      }
      run.variants.push_back(read_variant(variant, *content));
    }
  }

  StoredVariant read_variant(const TomlEntry& entry, const TomlTable& table) {
    StoredVariant variant;
    variant.name = entry.key;
    TomlKeys keys(table, entry.place, fmt::format("variant '{}'", entry.key), faults_,
                  restore_run_hint);
    keys.hexadecimal_number("knobs", variant.knobs);
    keys.text("anchor", variant.anchor);
    keys.text_if_any("libraries", variant.libraries);
    read_microseconds(keys, "step_us", variant.step_seconds);
    read_microseconds(keys, "anchor_us", variant.anchor_seconds);
    for (const MetricRow& row : metric_table()) {
      if (!can_be_stored(row.metric) || stored_time_of(row.metric) != row.metric) continue;
      const bool always = row.metric == Metric::step_ms_mean;
      const TomlEntry* found = always ? keys.required(row.name) : keys.optional(row.name);
      if (found == nullptr) continue;
      if (row.evidence <= Evidence::exact) {
        read_count(keys, *found, row.metric, variant);
      } else {
        read_time(keys, *found, row.metric, variant);
      }
    }
    keys.refuse_the_rest();
    return variant;
  }

  static void read_count(TomlKeys& keys, const TomlEntry& entry, Metric metric,
                         StoredVariant& variant) {
    const auto value = TomlKeys::number(entry.value);
    if (!value || *value < 0) return keys.wrong_type(entry, "a number of at least 0");
    variant.counts.push_back({.metric = metric, .value = *value});
  }

  static void read_time(TomlKeys& keys, const TomlEntry& entry, Metric metric,
                        StoredVariant& variant) {
    const auto* list = std::get_if<TomlArray>(&entry.value.content);
    if (list == nullptr || std::ssize(*list) != rounds_of_stored_run) {
      const std::string found = list == nullptr ? "" : fmt::format(", not of {}", list->size());
      return keys.wrong_type(entry,
                             fmt::format("a list of {} numbers{}", rounds_of_stored_run, found));
    }
    StoredTime time{.metric = metric, .contrasts = {}};
    for (const TomlValue& value : *list) {
      const auto contrast = TomlKeys::number(value);
      if (!contrast || std::abs(*contrast) > largest_stored_contrast) {
        return keys.fault(
            value.place, fmt::format("'{}' holds what is not a number between {} "
                                     "and {}",
                                     entry.key, -largest_stored_contrast, largest_stored_contrast));
      }
      time.contrasts.push_back(*contrast);
    }
    variant.times.push_back(std::move(time));
  }

  std::string file_;
  Faults& faults_;
  std::set<std::uint64_t> digests_;
};

}  // namespace

Baseline read_baseline(const std::filesystem::path& path, const std::string& scenario) {
  Baseline baseline;
  baseline.file = path.generic_string();
  Faults faults;
  BaselineReader(baseline.file, faults).read(read_toml(path, "a baseline"), scenario, baseline);
  if (!faults.empty()) throw RequestError(std::move(faults));
  return baseline;
}

}  // namespace stepgate
