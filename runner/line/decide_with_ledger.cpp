// SPDX-License-Identifier: MIT
#include "line/decide_with_ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/files/write_file.h"
#include "base/interruption.h"
#include "base/text/diagnostic.h"
#include "base/toml/toml_text.h"
#include "ledger/baseline/acceptance.h"
#include "ledger/baseline/baseline_file.h"
#include "ledger/runs/ledger.h"
#include "line/provenance.h"
#include "measure/planned_subject.h"

namespace stepgate {
namespace {

std::vector<DeviceKey> libraries_of(const Planned& planned, Device& device) {
  std::vector<DeviceKey> libraries;
  for (const StepPlan& plan : planned.plans) {
    const std::vector<DeviceKey> of_plan = device.libraries_for(plan);
    libraries.insert(libraries.end(), of_plan.begin(), of_plan.end());
  }
  return libraries;
}

// Returns false for a scenario that neither continues earlier evidence nor compares with stored
// runs.
bool is_kept(const Scenario& scenario) {
  return has_assertion_to_go_on_from(scenario) || names_any_stored(scenario);
}

// Returns the record of a run before its first round.
StoredRun begun_run(const LedgerRequest& request, const Planned& planned, Device& device) {
  StoredRun run{.provenance = request.provenance,
                .libraries = libraries_in_words(libraries_of(planned, device)),
                .environment = environment_of(device.identity())};
  run.provenance.scenario = planned.scenario.fingerprint;
  return run;
}

std::filesystem::path file_of(const LedgerRequest& request, const Planned& planned,
                              const Device& device) {
  return baseline_path(request.folder, device.identity(), planned.scenario.name);
}

// Describes earlier evidence under another subject, limit or name, which this run does not
// continue. Empty where there is none.
std::string note_on_others(const Baseline& ledger, const StoredRun& begun, const Planned& planned,
                           JudgeSettings settings) {
  constexpr std::size_t most_named = 3;
  const std::vector<OtherPair> others = other_pairs(ledger, begun);
  if (others.empty()) return "";
  std::string words = fmt::format(
      "starts from nothing, but {} has other runs of this scenario on this device", ledger.file);
  for (std::size_t index = 0; index < std::min(others.size(), most_named); ++index) {
    const OtherPair& other = others[index];
    settings.earlier = other.earlier;
    words +=
        fmt::format("{} '{}' ({} rounds{}", index == 0 ? ":" : ",", other.subject,
                    most_rounds(settings.earlier), other.has_same_text ? "" : ", of another text");
    if (other.has_same_text &&
        is_failed_by_earlier(planned.scenario, subjects_of(planned.plans), settings))
      words += ", failed";
    words += ')';
  }
  return others.size() > most_named ? words + ", ..." : words;
}

void tell_always(const std::string& note, Verdict& verdict) {
  if (note.empty()) return;
  verdict.notes.insert(verdict.notes.begin(), note);
  ++verdict.notes_told_always;
}

// Stores the run in the file before its first round, and every round as soon as it ends. So an
// interrupted run keeps its finished rounds.
class RunOnRecord {
 public:
  RunOnRecord(LedgerTurn& turn, const Planned& planned, const JudgeSettings& settings,
              StoredRun begun)
      : turn_(turn), planned_(planned), settings_(settings), run_(std::move(begun)) {
    Measurement traced;
    traced.traced = planned.traced;
    run_.found = by_traces_ = found_in(traced);
    turn_.keep(run_);
  }

  // Stores no evidence while the rounds cannot be trusted.
  void keep(const Measurement& so_far) {
    run_.found = {};
    if (is_trusted(so_far)) {
      // The traced rounds ran before the measurement and are not part of it.
      run_.found = found_in(so_far);
      append(run_.found.regime, by_traces_.regime);
      append(run_.found.expect, by_traces_.expect);
    }
    found_ = most_rounds(run_.found) > 0 || !run_.found.stored.empty();
    turn_.keep(run_);
  }

  void end(const Decided& decided) {
    const Verdict& verdict = decided.verdict;
    const bool is_comparable = !interrupted && planned_.fewest_rounds >= rounds_of_stored_run &&
                               is_trusted(decided.measurement) && !reason_against_storing(verdict);
    const bool nothing_found =
        !interrupted && !found_ && !is_comparable && most_rounds(by_traces_) == 0;
    if (verdict.broken || !verdict.skipped_because.empty() || !is_trusted(decided.measurement) ||
        nothing_found)
      return turn_.forget();
    if (interrupted) return;
    const std::vector<Subject> subjects = subjects_of(planned_.plans);
    if (is_comparable) {
      run_.variants = stored_run(planned_.scenario, subjects, decided.measurement, {}).variants;
    } else {
      run_.step_seconds = step_times(planned_.scenario, subjects, decided.measurement);
    }
    turn_.keep(run_);
  }

 private:
  EarlierEvidence found_in(const Measurement& measurement) const {
    return evidence_of_rounds(planned_.scenario, subjects_of(planned_.plans), measurement,
                              settings_);
  }

  LedgerTurn& turn_;
  const Planned& planned_;
  const JudgeSettings& settings_;
  StoredRun run_;
  EarlierEvidence by_traces_;
  bool found_ = false;
};

Decided decide_in_turn(const Planned& planned, Device& device, std::uint64_t seed,
                       JudgeSettings settings, const ProgressSink& progress,
                       const LedgerRequest& request) {
  StoredRun begun = begun_run(request, planned, device);
  LedgerTurn turn(file_of(request, planned, device), planned.scenario.name);
  settings.earlier = earlier_in(turn.before(), begun);
  settings.is_kept = true;
  // Comparisons with stored baselines need rounds of this run.
  if (planned.fewest_rounds == 0 &&
      nothing_left_to_measure(planned.scenario, subjects_of(planned.plans), settings)) {
    Measurement none =
        unmeasured(planned.scenario, subjects_of(planned.plans), device.identity(), seed);
    none.traced = planned.traced;
    return {judge_one(planned, none, settings), std::move(none)};
  }
  const std::string note =
      settings.earlier.runs == 0 ? note_on_others(turn.before(), begun, planned, settings) : "";
  RunOnRecord run(turn, planned, settings, std::move(begun));
  Decided decided = decide_one(planned, device, seed, settings, progress,
                               [&](const Measurement& so_far) { run.keep(so_far); });
  run.end(decided);
  tell_always(note, decided.verdict);
  return decided;
}

// Refuses a file, or a dangling link, in place of a folder, for which creating the folder would
// fail with a less helpful error.
void refuse_what_is_no_folder(const std::filesystem::path& path, const std::string& ledger) {
  std::error_code unreadable;
  const bool is_link = std::filesystem::is_symlink(path, unreadable);
  const bool is_there = std::filesystem::exists(path, unreadable);
  if ((!is_there && !is_link) || std::filesystem::is_directory(path, unreadable)) return;
  const std::string what =
      is_there ? "a file"
               : fmt::format("a link to {}, which is not there",
                             std::filesystem::read_symlink(path, unreadable).string());
  const std::string where = path == ledger ? "" : path.string() + " ";
  throw RequestError(
      fmt::format("--ledger {}: {}is {}, and a ledger is a folder of folders", ledger, where, what),
      "name another folder, or move that away");
}

}  // namespace

void check_ledger_writable(const std::filesystem::path& file, const LineArguments& arguments) {
  std::filesystem::path folder = arguments.ledger;
  refuse_what_is_no_folder(folder, arguments.ledger.string());
  for (const auto& part : file.parent_path().lexically_relative(arguments.ledger)) {
    folder /= part;
    refuse_what_is_no_folder(folder, arguments.ledger.string());
  }
  const auto baselines = std::filesystem::weakly_canonical(arguments.device.baselines.users);
  const auto within = std::filesystem::weakly_canonical(file).lexically_relative(baselines);
  if (!within.empty() && *within.begin() != "..") {
    throw RequestError(
        fmt::format("--ledger {} lies among the stored runs in {}, which only `accept` writes",
                    arguments.ledger.string(), arguments.device.baselines.users.string()),
        "name another folder");
  }
  if (const auto stored = stored_runs_in(arguments.ledger)) {
    throw RequestError(fmt::format("--ledger {} has stored runs in {}, which only `accept` writes",
                                   arguments.ledger.string(), stored->string()),
                       "name another folder");
  }
  check_writable(file);
}

std::optional<LedgerRequest> ledger_for(const LineArguments& arguments,
                                        std::span<const Planned> all, Device& device,
                                        std::uint64_t seed) {
  if (arguments.ledger.empty()) return std::nullopt;
  LedgerRequest request{
      .folder = arguments.ledger,
      .provenance = provenance_of(arguments, all.front().scenario, seed, device.identity().kind)};
  request.provenance.subject = subject_under_test(arguments);
  request.provenance.build = build_in_words();
  std::set<std::string> names;
  for (const Planned& planned : all) {
    const Scenario& scenario = planned.scenario;
    if (!names.insert(scenario.name + hexadecimal(scenario.fingerprint)).second) {
      throw RequestError("scenario '" + scenario.name + "' is named twice",
                         "with --ledger, name it once");
    }
    if (is_planned_only(scenario) || !is_kept(scenario)) continue;
    const std::filesystem::path file = file_of(request, planned, device);
    check_run_of_ledger(read_ledger(file, scenario.name), begun_run(request, planned, device));
    check_ledger_writable(file, arguments);
  }
  return request;
}

Decided decide_with_ledger(const Planned& planned, Device& device, std::uint64_t seed,
                           JudgeSettings settings, const ProgressSink& progress,
                           const LedgerRequest& request) {
  if (!is_kept(planned.scenario)) return decide_one(planned, device, seed, settings, progress);
  Decided decided = decide_in_turn(planned, device, seed, std::move(settings), progress, request);
  tell_always(planned.compared_with, decided.verdict);
  return decided;
}

}  // namespace stepgate
