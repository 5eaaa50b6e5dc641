// SPDX-License-Identifier: MIT
#include "judge/evidence/evidence_text.h"

#include <fmt/format.h>

#include <string_view>

#include "support/fnv1a.h"
#include "support/toml/toml_text.h"

namespace stepgate {
namespace {

// Eight numbers a line, each with as many digits as it takes to read the same number back.
void append_series(std::string& text, const std::string& name, const std::vector<double>& series) {
  constexpr std::size_t numbers_in_a_line = 8;
  text += toml_string(name) + " = [";
  for (std::size_t index = 0; index < series.size(); ++index) {
    text += index % numbers_in_a_line == 0 ? "\n  " : " ";
    text += fmt::format("{},", series[index]);
  }
  text += "\n]\n";
}

void append_contrasts(std::string& text, std::string_view table, const Contrasts& contrasts) {
  if (contrasts.empty()) return;
  text += fmt::format("[entry.run.{}]\n", table);
  for (const auto& [name, series] : contrasts) append_series(text, name, series);
}

// Everything but the digest.
std::string entry_text(const EvidenceEntry& entry) {
  std::string text;
  for (const EvidenceKeyRow& row : evidence_key_rows()) {
    text += fmt::format("{} = {}\n", row.name, toml_string(entry.key.*row.value));
  }
  if (!entry.key.libraries.empty()) {
    text += fmt::format("libraries = {}\n", toml_string(entry.key.libraries));
  }
  text +=
      fmt::format("scenario_fingerprint = {}\n", toml_string(hexadecimal(entry.key.fingerprint)));
  for (const EvidenceRun& run : entry.runs) {
    text += fmt::format("[[entry.run]]\nseed = {}\ndate = {}\nstepgate = {}\n",
                        toml_string(hexadecimal(run.seed)), toml_string(run.date),
                        toml_string(run.stepgate));
    append_contrasts(text, "regime", run.evidence.regime);
    append_contrasts(text, "expect", run.evidence.expect);
    append_contrasts(text, "stored", run.evidence.stored);
    append_contrasts(text, "stored_anchors", run.evidence.stored_anchors);
  }
  return text;
}

}  // namespace

std::uint64_t digest_of(const EvidenceEntry& entry) {
  return fnv1a(entry_text(entry));
}

std::string evidence_text(const EvidenceFile& file) {
  std::string text = fmt::format(
      "# What earlier runs found, for `stepgate run --evidence` to go on from: log(left / right) "
      "of "
      "every round, by sentence.\n"
      "# An [[entry]] may be taken out as a whole, with all its runs, never changed. Its digest "
      "finds damage and slips of the hand, no intent, since anybody can compute one: keep this "
      "file "
      "where no pull request can write.\n"
      "format = {}\n",
      evidence_format);
  for (const EvidenceEntry& entry : file.entries) {
    text += fmt::format("\n[[entry]]\ndigest = {}\n{}", toml_string(hexadecimal(digest_of(entry))),
                        entry_text(entry));
  }
  return text;
}

}  // namespace stepgate
