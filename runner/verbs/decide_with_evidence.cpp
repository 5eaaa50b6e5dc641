// SPDX-License-Identifier: MIT
#include "verbs/decide_with_evidence.h"

#include <algorithm>

#include "judge/evidence_file.h"
#include "support/diagnostic.h"
#include "support/run_program.h"
#include "support/toml_text.h"
#include "support/write_file.h"
#include "verbs/interruption.h"

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

// With links and dots resolved, whether the file is there or not.
std::filesystem::path place_of(const std::filesystem::path& file) {
  return std::filesystem::weakly_canonical(std::filesystem::absolute(file));
}

// A report written over the evidence would forget it.
void check_no_output_is(const std::filesystem::path& evidence, const Arguments& arguments) {
  std::vector<std::filesystem::path> outputs{arguments.json};
  for (const ExportRequest& request : arguments.exports) outputs.push_back(request.file);
  for (const std::filesystem::path& output : outputs) {
    if (output.empty() || place_of(output) != place_of(evidence)) continue;
    throw RequestError("--evidence and another output name the same file, " + output.string(),
                       "give each its own");
  }
}

// Of all plans, each once.
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

}  // namespace

std::optional<EvidenceRequest> evidence_for(const Arguments& arguments,
                                            const std::vector<Planned>& all, Device& device,
                                            std::uint64_t seed) {
  if (arguments.evidence.empty()) return std::nullopt;
  check_no_output_is(arguments.evidence, arguments);
  check_writable(arguments.evidence);
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
                             JudgeSettings settings, const EvidenceRequest& request) {
  const EvidenceKey key = key_of(request, planned, device);
  settings.earlier = earlier_in(read_evidence(request.file), key);
  // Stored baselines are compared with rounds of this run.
  if (planned.fewest_rounds == 0 &&
      nothing_left_to_measure(planned.scenario, planned.plans, settings)) {
    Measurement none = unmeasured(planned.scenario, planned.plans, device.identity(), seed);
    none.traced = planned.traced;
    return {judge_one(planned, none, settings), std::move(none)};
  }
  Decided decided = decide_one(planned, device, seed, settings);
  if (interrupted || decided.verdict.broken || !is_evidence(decided.measurement)) return decided;
  const EvidenceRun run{.seed = seed,
                        .date = request.date,
                        .stepgate = STEPGATE_VERSION,
                        .evidence = evidence_of_rounds(planned.scenario, planned.plans,
                                                       decided.measurement, settings)};
  if (most_rounds(run.evidence) == 0) return decided;  // no sentence is timed
  // Another run may have been quicker: this one then goes on from that one.
  settings.earlier = append_evidence(request.file, key, run);
  decided.verdict = judge_one(planned, decided.measurement, settings);
  return decided;
}

}  // namespace stepgate
