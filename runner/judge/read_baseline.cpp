// SPDX-License-Identifier: MIT
// Walks the tree key by key; whatever is left over is unknown.
#include "judge/read_baseline.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "judge/baseline_text.h"
#include "support/diagnostic.h"
#include "support/nearest.h"
#include "support/toml.h"

namespace stepgate {
namespace {

constexpr std::string_view restore_hint =
    "restore the file from version control, or take the whole [[run]] out";
constexpr std::string_view move_away_hint =
    "restore the file from version control, or move it away and accept anew";
// No step is e^50 times an anchor.
constexpr double largest_contrast = 50;

using Faults = std::vector<Diagnostic>;

// One table: takes keys out one by one, and then complains about what nobody took.
class Keys {
 public:
  Keys(const TomlTable& table, Place place, std::string what, Faults& faults,
       std::string_view way_out = restore_hint)
      : table_(table),
        place_(std::move(place)),
        what_(std::move(what)),
        faults_(faults),
        way_out_(way_out) {}

  const TomlEntry* optional(std::string_view key) {
    known_.push_back(key);
    return find(table_, key);
  }

  const TomlEntry* required(std::string_view key) {
    const TomlEntry* entry = optional(key);
    if (entry == nullptr) {
      fault(place_, fmt::format("'{}' is missing in {}", key, what_));
    }
    return entry;
  }

  void text(std::string_view key, std::string& to) {
    const TomlEntry* entry = required(key);
    if (entry == nullptr) return;
    if (const auto* value = std::get_if<std::string>(&entry->value.content)) {
      to = *value;
    } else {
      wrong_type(*entry, "a string");
    }
  }

  void hexadecimal_number(std::string_view key, std::uint64_t& to) {
    const TomlEntry* entry = required(key);
    if (entry == nullptr) return;
    const auto* value = std::get_if<std::string>(&entry->value.content);
    if (value == nullptr || !parse(*value, to)) {
      wrong_type(*entry, "a string of 0x and 16 hexadecimal digits");
    }
  }

  void microseconds(std::string_view key, double& to_seconds) {
    const TomlEntry* entry = required(key);
    if (entry == nullptr) return;
    const auto value = number(entry->value);
    if (value && *value > 0 && *value < 1e12) {
      to_seconds = *value / 1e6;
    } else {
      wrong_type(*entry, "a number of microseconds above 0");
    }
  }

  void wrong_type(const TomlEntry& entry, std::string_view wanted) {
    fault(entry.value.place, fmt::format("'{}' must be {}", entry.key, wanted));
  }

  void fault(const Place& place, std::string message) {
    faults_.push_back({place, std::move(message), std::string(way_out_)});
  }

  void refuse_the_rest() {
    for (const TomlEntry& entry : table_) {
      if (std::find(known_.begin(), known_.end(), entry.key) != known_.end()) continue;
      faults_.push_back({entry.place, fmt::format("unknown key '{}' in {}", entry.key, what_),
                         did_you_mean(entry.key, known_, std::string(way_out_))});
    }
  }

  static std::optional<double> number(const TomlValue& value) {
    if (const auto* whole = std::get_if<std::int64_t>(&value.content)) {
      return static_cast<double>(*whole);
    }
    const auto* real = std::get_if<double>(&value.content);
    return real && std::isfinite(*real) ? std::optional(*real) : std::nullopt;
  }

 private:
  static bool parse(std::string_view text, std::uint64_t& to) {
    if (text.size() != 18 || !text.starts_with("0x")) return false;
    const char* end = text.data() + text.size();
    return std::from_chars(text.data() + 2, end, to, 16).ptr == end;
  }

  const TomlTable& table_;
  Place place_;
  std::string what_;
  Faults& faults_;
  std::string_view way_out_;
  std::vector<std::string_view> known_;
};

class Reader {
 public:
  Reader(std::string file, Faults& faults) : file_(std::move(file)), faults_(faults) {}

  void read(const TomlTable& table, const std::string& scenario, Baseline& baseline) {
    Keys keys(table, {file_, 0, 0}, "a baseline", faults_, move_away_hint);
    if (!read_format(keys)) return;
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
  bool read_format(Keys& keys) {
    const TomlEntry* entry = keys.required("format");
    if (entry == nullptr) return false;
    const auto* format = std::get_if<std::int64_t>(&entry->value.content);
    if (format == nullptr || *format < 1) {
      keys.wrong_type(*entry, "a whole number of at least 1");
      return false;
    }
    if (*format == baseline_format) return true;
    faults_.push_back({entry->value.place,
                       fmt::format("baseline format {} is newer than {}, the newest that this "
                                   "stepgate knows",
                                   *format, baseline_format),
                       "use a newer stepgate, or move the file away and accept anew"});
    return false;
  }

  void read_runs(Keys& keys, Baseline& baseline) {
    const TomlEntry* entry = keys.optional("run");
    if (entry == nullptr) return;  // all runs were taken out
    const auto* runs = std::get_if<TomlArray>(&entry->value.content);
    if (runs == nullptr) return keys.wrong_type(*entry, "written as [[run]]");
    for (const TomlValue& value : *runs) {
      const auto* table = std::get_if<TomlTable>(&value.content);
      if (table == nullptr) return keys.wrong_type(*entry, "written as [[run]]");
      baseline.runs.push_back(read_run(*table, value.place));
    }
  }

  StoredRun read_run(const TomlTable& table, const Place& place) {
    const std::size_t faults_before = faults_.size();
    StoredRun run;
    Keys keys(table, place, "a run", faults_);
    std::uint64_t digest = 0;
    keys.hexadecimal_number("digest", digest);
    keys.text("date", run.provenance.date);
    keys.text("commit", run.provenance.commit);
    keys.text("stepgate", run.provenance.stepgate);
    keys.hexadecimal_number("scenario_fingerprint", run.provenance.scenario);
    keys.hexadecimal_number("seed", run.provenance.seed);
    if (const TomlEntry* entry = keys.required("environment")) read_environment(keys, *entry, run);
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

  void read_environment(Keys& parent, const TomlEntry& entry, StoredRun& run) {
    const auto* table = std::get_if<TomlTable>(&entry.value.content);
    if (table == nullptr) return parent.wrong_type(entry, "a table");
    Keys keys(*table, entry.place, "an environment", faults_);
    for (const EnvironmentKey& key : environment_keys()) {
      keys.text(key.name, run.environment.*key.value);
    }
    keys.refuse_the_rest();
  }

  void read_variants(Keys& parent, const TomlEntry& entry, StoredRun& run) {
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
    Keys keys(table, entry.place, fmt::format("variant '{}'", entry.key), faults_);
    keys.hexadecimal_number("knobs", variant.knobs);
    keys.text("anchor", variant.anchor);
    keys.microseconds("step_us", variant.step_seconds);
    keys.microseconds("anchor_us", variant.anchor_seconds);
    for (const MetricRow& row : metric_table()) {
      if (!can_be_stored(row.metric) || stored_time_of(row.metric) != row.metric) continue;
      const bool always = row.metric == Metric::step_ms_mean;
      const TomlEntry* found = always ? keys.required(row.name) : keys.optional(row.name);
      if (found == nullptr) continue;
      if (row.evidence == Evidence::plan) {
        read_count(keys, *found, row.metric, variant);
      } else {
        read_time(keys, *found, row.metric, variant);
      }
    }
    keys.refuse_the_rest();
    return variant;
  }

  static void read_count(Keys& keys, const TomlEntry& entry, Metric metric,
                         StoredVariant& variant) {
    const auto value = Keys::number(entry.value);
    if (!value || *value < 0) return keys.wrong_type(entry, "a number of at least 0");
    variant.counts.push_back({.metric = metric, .value = *value});
  }

  static void read_time(Keys& keys, const TomlEntry& entry, Metric metric, StoredVariant& variant) {
    const auto* list = std::get_if<TomlArray>(&entry.value.content);
    if (list == nullptr || std::ssize(*list) != rounds_of_stored_run) {
      const std::string found = list == nullptr ? "" : fmt::format(", not of {}", list->size());
      return keys.wrong_type(entry,
                             fmt::format("a list of {} numbers{}", rounds_of_stored_run, found));
    }
    StoredTime time{.metric = metric, .contrasts = {}};
    for (const TomlValue& value : *list) {
      const auto contrast = Keys::number(value);
      if (!contrast || std::abs(*contrast) > largest_contrast) {
        return keys.fault(value.place, fmt::format("'{}' holds what is not a number between {} "
                                                   "and {}",
                                                   entry.key, -largest_contrast, largest_contrast));
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
  Reader(baseline.file, faults).read(read_toml(path, "a baseline"), scenario, baseline);
  if (!faults.empty()) throw RequestError(std::move(faults));
  return baseline;
}

}  // namespace stepgate
