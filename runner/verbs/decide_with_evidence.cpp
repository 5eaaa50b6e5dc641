// SPDX-License-Identifier: MIT
#include "verbs/decide_with_evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "history/evidence/evidence_file.h"
#include "support/interruption.h"
#include "support/process/run_program.h"
#include "support/text/diagnostic.h"
#include "support/toml/toml_text.h"

namespace stepgate {
namespace {

std::string subject_of(const Arguments& arguments) {
  const std::string& given = arguments.subject;
  if (given.empty()) return "build " + hexadecimal(digest_of_this_program());
  if (std::any_of(given.begin(), given.end(), [](char c) { return c < ' ' || c > '~'; })) {
    throw RequestError("--subject has a character that is not printable ASCII",
                       "name a commit or a version");
  }
  return given;
}

// Libraries of all plans, each once.
std::vector<DeviceKey> libraries_of(const Planned& planned, Device& device) {
  std::vector<DeviceKey> libraries;
  for (const StepPlan& plan : planned.plans) {
    for (DeviceKey& library : device.libraries_for(plan)) {
      const auto is_it = [&](const DeviceKey& other) { return other.name == library.name; };
      if (std::none_of(libraries.begin(), libraries.end(), is_it))
        libraries.push_back(std::move(library));
    }
  }
  return libraries;
}

EvidenceKey key_of(const EvidenceRequest& request, const Planned& planned, Device& device) {
  return evidence_key(request.subject, planned.scenario, device.identity(),
                      libraries_of(planned, device));
}

// Whoever looks for a green run may change a subject, a limit or a name; the reader is told. Empty
// where there is nothing to tell.
std::string note_on_others(const EvidenceFile& file, const EvidenceKey& key, const Planned& planned,
                           JudgeSettings settings) {
  constexpr std::size_t most_named = 3;
  const std::vector<const EvidenceEntry*> others = other_entries(file, key);
  if (others.empty()) return "";
  std::string words = fmt::format(
      "starts from nothing, but {} has {} of this scenario on this device", file.file,
      others.size() == 1 ? "another entry" : fmt::format("{} other entries", others.size()));
  for (std::size_t index = 0; index < std::min(others.size(), most_named); ++index) {
    const EvidenceKey& other = others[index]->key;
    settings.earlier = earlier_in(file, other);
    const bool same_text = other.fingerprint == key.fingerprint;
    words += fmt::format("{} '{}' ({} rounds{}", index == 0 ? ":" : ",", other.subject,
                         most_rounds(settings.earlier), same_text ? "" : ", of another text");
    if (same_text && is_refuted_by_earlier(planned.scenario, subjects_of(planned.plans), settings))
      words += ", refuted";
    words += ')';
  }
  return others.size() > most_named ? words + ", ..." : words;
}

// The file has this run from before its first round on and every round as soon as it has ended, so
// that a run that somebody ends counts as far as it got.
class RunOnRecord {
 public:
  RunOnRecord(EvidenceTurn& turn, const Planned& planned, const JudgeSettings& settings,
              EvidenceRun begun)
      : turn_(turn), planned_(planned), settings_(settings), begun_(std::move(begun)) {
    Measurement traced;
    traced.traced = planned.traced;
    begun_.evidence = found_in(traced);
    turn_.keep(begun_);
  }

  // While its rounds are not to be trusted the run has found nothing.
  void keep(const Measurement& so_far) {
    EvidenceRun run = begun_;
    run.evidence = {.runs = 1};
    if (is_trusted(so_far)) {
      // The traced rounds came first and are no part of what is being measured.
      run.evidence = found_in(so_far);
      append(run.evidence.regime, begun_.evidence.regime);
      append(run.evidence.expect, begun_.evidence.expect);
    }
    found_ = most_rounds(run.evidence) > 0 || !run.evidence.stored.empty();
    turn_.keep(run);
  }

  void end(const Decided& decided) {
    const Verdict& verdict = decided.verdict;
    const bool nothing_found = !interrupted && !found_ && most_rounds(begun_.evidence) == 0;
    if (verdict.broken || !verdict.skipped_because.empty() || !is_trusted(decided.measurement) ||
        nothing_found)
      turn_.forget();
  }

 private:
  EarlierEvidence found_in(const Measurement& measurement) const {
    return evidence_of_rounds(planned_.scenario, subjects_of(planned_.plans), measurement,
                              settings_);
  }

  EvidenceTurn& turn_;
  const Planned& planned_;
  const JudgeSettings& settings_;
  EvidenceRun begun_;  // with what its traced rounds found
  bool found_ = false;
};

}  // namespace

std::optional<EvidenceRequest> evidence_for(const Arguments& arguments,
                                            std::span<const Planned> all, Device& device,
                                            std::uint64_t seed) {
  if (arguments.evidence.empty()) return std::nullopt;
  EvidenceRequest request{
      .file = arguments.evidence, .subject = subject_of(arguments), .date = date_of(arguments)};
  const EvidenceFile file = read_evidence(request.file);
  std::vector<EvidenceKey> keys;
  for (const Planned& planned : all) {
    keys.push_back(key_of(request, planned, device));
    if (std::count(keys.begin(), keys.end(), keys.back()) > 1) {
      throw RequestError("scenario '" + planned.scenario.name + "' is named twice",
                         "with --evidence, name it once");
    }
    check_evidence_run(file, keys.back(), seed);
  }
  return request;
}

Decided decide_with_evidence(const Planned& planned, Device& device, std::uint64_t seed,
                             JudgeSettings settings, Forecasts forecasts,
                             const EvidenceRequest& request) {
  if (!has_sentence_to_go_on_from(planned.scenario))
    return decide_one(planned, device, seed, settings, forecasts);
  const EvidenceKey key = key_of(request, planned, device);
  EvidenceTurn turn(request.file, key);
  settings.earlier = earlier_in(turn.before(), key);
  settings.is_kept = true;
  const std::string note =
      settings.earlier.runs == 0 ? note_on_others(turn.before(), key, planned, settings) : "";
  // Stored baselines are compared with rounds of this run.
  if (planned.fewest_rounds == 0 &&
      nothing_left_to_measure(planned.scenario, subjects_of(planned.plans), settings)) {
    Measurement none =
        unmeasured(planned.scenario, subjects_of(planned.plans), device.identity(), seed);
    none.traced = planned.traced;
    return {judge_one(planned, none, settings), std::move(none)};
  }
  RunOnRecord run(
      turn, planned, settings,
      {.seed = seed, .date = request.date, .stepgate = STEPGATE_VERSION, .evidence = {}});
  Decided decided = decide_one(planned, device, seed, settings, forecasts,
                               [&](const Measurement& so_far) { run.keep(so_far); });
  run.end(decided);
  if (!note.empty()) {
    decided.verdict.notes.insert(decided.verdict.notes.begin(), note);
    ++decided.verdict.notes_told_always;
  }
  return decided;
}

}  // namespace stepgate
