// SPDX-License-Identifier: MIT
// The lines of a gate's report, schema "stepgate.gate/1". docs/gate.md says what they mean.
#include <nlohmann/json.hpp>
#include <ostream>

#include "report/json/json_parts.h"
#include "report/writers.h"
#include "support/text/json_line.h"

namespace stepgate {
namespace {

using Json = nlohmann::ordered_json;

Json side_json(const std::string& given, const Hello* hello) {
  Json side{{"given", given}};
  if (hello == nullptr) return side;
  side["program"] = hello->program;
  side["version"] = hello->version;
  return side;
}

Json finding_json(const Finding& finding) {
  Json line{{"kind", "finding"},
            {"of", name_of(finding.kind)},
            {"severity", name_of(finding.severity)},
            {"work", finding.work},
            {"what", finding.what},
            {"base", json_or_null(finding.base)},
            {"head", json_or_null(finding.head)},
            {"words", finding.words},
            {"mechanism", finding.mechanism},
            {"file", finding.place.file},
            {"line", finding.place.line},
            {"accepted", nullptr}};
  if (finding.accepted) {
    line["accepted"] = {{"at_most", finding.accepted->limit_text},
                        {"who", finding.accepted->who},
                        {"why", finding.accepted->why},
                        {"until", finding.accepted->until}};
  }
  return line;
}

Json work_json(const WorkVerdict& work) {
  Json line{{"kind", "work"},
            {"work", work.name},
            {"outcome", in_words(work.outcome)},
            {"margin", work.margin},
            {"pairs", work.pairs},
            {"base_step_seconds", json_or_null(work.base_step_seconds)},
            {"head_step_seconds", json_or_null(work.head_step_seconds)}};
  line["timed"] = work.timed ? json_of_evidence(*work.timed) : Json(nullptr);
  return line;
}

}  // namespace

void write_gate_json(std::ostream& out, const Report& report) {
  const RunInfo& run = report.run;
  const GateSubject& subject = report.gate->subject;
  const std::optional<DuelVerdict>& duel = report.gate->looks.duel;
  const GateVerdict& verdict = report.gate->verdict;
  const Introduction* both = subject.both ? &*subject.both : nullptr;
  Json first{{"schema", "stepgate.gate/1"},
             {"kind", "gate"},
             {"base", side_json(subject.base, both ? &both->base : nullptr)},
             {"head", side_json(subject.head, both ? &both->head : nullptr)},
             {"stepgate", run.stepgate},
             {"commit", run.commit},
             {"date", run.date},
             {"host", run.host},
             {"seed", run.seed},
             {"device", both ? Json(both->base.device) : Json(nullptr)},
             {"simulated", both ? Json(both->base.simulated) : Json(nullptr)},
             {"margin", subject.margin},
             {"only", Json::array()}};
  for (const GatePart part : subject.only) first["only"].push_back(name_of(part));
  if (duel) {
    first["alpha"] = duel->settings.alpha;
    first["beta"] = duel->settings.beta;
  }
  out << json_line(first) << '\n';
  if (duel) {
    for (const WorkVerdict& work : duel->works) out << json_line(work_json(work)) << '\n';
  }
  for (const Finding& finding : verdict.findings) out << json_line(finding_json(finding)) << '\n';
  for (const std::string& unused : verdict.unused)
    out << json_line<Json>({{"kind", "unused"}, {"words", unused}}) << '\n';
  out << json_line<Json>(
             {{"kind", "end"},
              {"answer", verdict.severity == Severity::note ? std::string_view("passed")
                                                            : name_of(verdict.severity)},
              {"exit_code", status_of(*report.code)}})
      << '\n';
}

}  // namespace stepgate
