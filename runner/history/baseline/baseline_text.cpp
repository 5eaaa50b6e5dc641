// SPDX-License-Identifier: MIT
// One line a key; a list is one line, so that a diff shows runs as blocks.
#include "history/baseline/baseline_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "history/record/environment_text.h"
#include "support/fnv1a.h"
#include "support/toml/toml_text.h"

namespace stepgate {
namespace {

std::string microseconds(double seconds) {
  return fmt::format("{:.3f}", 1e6 * seconds);
}

void append_variant(std::string& text, const StoredVariant& variant) {
  text += fmt::format("[run.variant.{}]\n", variant.name);
  text += fmt::format("knobs = {}\n", toml_string(hexadecimal(variant.knobs)));
  text += fmt::format("anchor = {}\n", toml_string(variant.anchor));
  if (!variant.libraries.empty()) {
    text += fmt::format("libraries = {}\n", toml_string(variant.libraries));
  }
  text += fmt::format("step_us = {}\n", microseconds(variant.step_seconds));
  text += fmt::format("anchor_us = {}\n", microseconds(variant.anchor_seconds));
  for (const StoredTime& time : variant.times) {
    text +=
        fmt::format("{} = [{:.6f}]\n", row_of(time.metric).name, fmt::join(time.contrasts, ", "));
  }
  for (const StoredCount& count : variant.counts) {
    text += fmt::format("{} = {}\n", row_of(count.metric).name, count.value);
  }
}

// Everything but the digest.
std::string run_text(const StoredRun& run) {
  const Provenance& from = run.provenance;
  std::string text =
      fmt::format("date = {}\ncommit = {}\nstepgate = {}\nscenario_fingerprint = {}\nseed = {}\n",
                  toml_string(from.date), toml_string(from.commit), toml_string(from.stepgate),
                  toml_string(hexadecimal(from.scenario)), toml_string(hexadecimal(from.seed)));
  if (!from.boot.empty()) text += fmt::format("boot = {}\n", toml_string(from.boot));
  if (!run.new_era.empty()) text += fmt::format("new_era = {}\n", toml_string(run.new_era));
  text += "[run.environment]\n" + environment_text(run.environment);
  for (const StoredVariant& variant : run.variants) append_variant(text, variant);
  return text;
}

}  // namespace

std::uint64_t digest_of(const StoredRun& run) {
  return fnv1a(run_text(run));
}

std::string baseline_text(const Baseline& baseline) {
  std::string text =
      "# Runs that later ones are compared with, written by `stepgate accept`. A run may be taken "
      "out as a whole, never changed.\n"
      "# A list holds one number a round: log(time / time of the anchor, a frozen step measured "
      "beside it).\n";
  text +=
      fmt::format("format = {}\nscenario = {}\n", baseline_format, toml_string(baseline.scenario));
  for (const StoredRun& run : baseline.runs) {
    text += fmt::format("\n[[run]]\ndigest = {}\n{}", toml_string(hexadecimal(digest_of(run))),
                        run_text(run));
  }
  return text;
}

}  // namespace stepgate
