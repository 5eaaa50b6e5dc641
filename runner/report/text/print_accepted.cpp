// SPDX-License-Identifier: MIT
#include "report/text/print_accepted.h"

#include <fmt/format.h>

#include <ostream>

#include "base/text/visible_text.h"
#include "judge/verdict/words.h"
#include "report/text/print_verdict.h"
#include "report/text/table.h"
#include "report/text/verdict_words.h"

namespace stepgate {

void print_accepted(std::ostream& out, const Baseline& baseline, const DeviceIdentity& device) {
  out << fmt::format("{} on {}: run {} stored in {}\n", baseline.scenario, in_words(device),
                     baseline.runs.size(), baseline.file);
  const StoredRun& stored = baseline.runs.back();
  if (!stored.baseline_reset.empty())
    out << fmt::format("  a baseline reset, no more compared with earlier runs: {}\n",
                       one_line(stored.baseline_reset));
  std::vector<std::vector<std::string>> rows;
  for (const StoredVariant& variant : stored.variants) {
    rows.push_back(
        {variant.name, in_words(variant.step_seconds, MetricUnit::seconds),
         fmt::format("{:.4g} times {} of {}", variant.step_seconds / variant.anchor_seconds,
                     in_words(variant.anchor_seconds, MetricUnit::seconds), variant.anchor)});
  }
  print_table(out, {Align::left, Align::right, Align::left}, rows);
}

void print_accepted_runs(std::ostream& out, const AcceptedRuns& runs) {
  out << fmt::format("{} asked for: {} stored, {} not accepted",
                     counted_in_words(runs.asked, "run"), runs.stored, runs.refused);
  if (runs.failed > 0) out << fmt::format(", {} failed", runs.failed);
  if (const std::int64_t rest = runs.asked - runs.stored - runs.refused - runs.failed; rest > 0)
    out << fmt::format(", {} not run to the end", rest);
  out << '\n';
}

void print_not_accepted(std::ostream& out, const std::string& scenario, const std::string& reason) {
  out << fmt::format("{}: not accepted: {}\n", scenario, one_line(reason));
}

}  // namespace stepgate
