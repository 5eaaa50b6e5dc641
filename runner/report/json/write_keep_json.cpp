// SPDX-License-Identifier: MIT
#include "report/json/write_keep_json.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/text/enumerators.h"
#include "base/text/json_line.h"

namespace stepgate {
namespace {

using Json = nlohmann::ordered_json;

// Digits beyond these say nothing.
double rounded(double value, double unit) {
  return std::round(value / unit) * unit;
}

template <class Enum>
std::string name(Enum value) {
  return std::string(enumerators<Enum>.at(static_cast<std::size_t>(value)));
}

}  // namespace

void write_keep_json(std::ostream& out, const KeepAnswer& answer) {
  const Candidate& candidate = answer.candidate;
  const KeepVerdict& verdict = candidate.verdict;
  const Json interval =
      verdict.interval ? Json{verdict.interval->low, verdict.interval->high} : Json();
  const Json line{{"schema", "stepgate.keep/1"},
                  {"verdict", name(verdict.outcome)},
                  {"by", name(verdict.ground)},
                  {"work", verdict.work},
                  {"ratio", verdict.ratio ? Json(*verdict.ratio) : Json()},
                  {"interval", interval},
                  {"why", verdict.why},
                  {"check", answer.check.empty() ? Json() : Json(answer.check)},
                  {"pairs", verdict.pairs},
                  {"evidence", verdict.evidence},
                  {"evidence_needed", 1 / candidate.level},
                  {"seconds", rounded(answer.seconds, 1e-3)},
                  {"candidate", candidate.number},
                  {"budget_left", answer.budget_left},
                  {"simulated", candidate.subject.simulated}};
  out << json_line(line) << '\n';
}

}  // namespace stepgate
