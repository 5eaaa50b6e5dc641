// SPDX-License-Identifier: MIT
#include "report/print_accepted.h"

#include <fmt/format.h>

#include <ostream>

#include "judge/words.h"
#include "report/print_verdict.h"
#include "report/table.h"

namespace stepgate {

void print_accepted(std::ostream& out, const Baseline& baseline, const DeviceIdentity& device) {
  out << fmt::format("{} on {}: run {} stored in {}\n", baseline.scenario, in_words(device),
                     baseline.runs.size(), baseline.file);
  const StoredRun& stored = baseline.runs.back();
  if (!stored.new_era.empty())
    out << fmt::format("  a new era, no more compared with earlier runs: {}\n", stored.new_era);
  std::vector<std::vector<std::string>> rows;
  for (const StoredVariant& variant : stored.variants) {
    rows.push_back(
        {variant.name, in_words(variant.step_seconds, MetricUnit::seconds),
         fmt::format("{:.4g} times {} of {}", variant.step_seconds / variant.anchor_seconds,
                     in_words(variant.anchor_seconds, MetricUnit::seconds), variant.anchor)});
  }
  print_table(out, {Align::left, Align::right, Align::left}, rows);
}

void print_not_accepted(std::ostream& out, const std::string& scenario, const std::string& reason) {
  out << fmt::format("{}: not accepted: {}\n", scenario, reason);
}

}  // namespace stepgate
