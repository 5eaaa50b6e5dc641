// SPDX-License-Identifier: MIT
// The fields of a duel's report.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ostream>

#include "judge/verdict/words.h"
#include "report/json/json_of_evidence.h"
#include "report/text/print_duel.h"
#include "support/text/json_line.h"

namespace stepgate {
namespace {

using Json = nlohmann::ordered_json;

std::string_view name_of(DuelSide side) {
  return side == DuelSide::base ? "base" : "head";
}

Json json_of(const Hello& hello) {
  return {{"program", hello.program},
          {"version", hello.version},
          {"device", hello.device},
          {"simulated", hello.simulated}};
}

Json json_of(const WorkVerdict& work) {
  return {{"name", work.name},
          {"outcome", in_words(work.outcome)},
          {"pairs", work.pairs},
          {"superblocks", work.superblocks},
          {"steps", work.steps},
          {"base_step_seconds", json_or_null(work.base_step_seconds)},
          {"head_step_seconds", json_or_null(work.head_step_seconds)},
          {"timed", work.timed ? json_of_evidence(*work.timed) : Json(nullptr)},
          {"reason", work.reason}};
}

Json json_of(const Superblock& block) {
  Json segments = Json::array();  // in the order in which they ran
  for (const DuelSegment& segment : block) {
    segments.push_back({{"side", name_of(segment.side)},
                        {"steps", segment.steps},
                        {"elapsed_ns", segment.elapsed.count()},
                        {"hidden_ns", segment.hidden.count()}});
  }
  return segments;
}

Json json_of(const LaunchPair& pair, const std::vector<std::string>& names) {
  Json works = Json::array();
  for (const WorkInPair& work : pair.works) {
    const auto blocks = [](const std::vector<Superblock>& all) {
      Json made = Json::array();
      for (const Superblock& block : all) made.push_back(json_of(block));
      return made;
    };
    works.push_back({{"work", names[static_cast<std::size_t>(work.work)]},
                     {"wash_out_steps", work.wash_out_steps},
                     {"superblocks", blocks(work.superblocks)},
                     {"watched", blocks(work.watched)}});
  }
  return {{"first", name_of(pair.first)}, {"works", std::move(works)}};
}

}  // namespace

void write_duel_json(std::ostream& out, const DuelVerdict& verdict,
                     const DuelMeasurement& measurement) {
  Json works = Json::array();
  for (const WorkVerdict& work : verdict.works) works.push_back(json_of(work));
  Json pairs = Json::array();
  for (const LaunchPair& pair : measurement.pairs)
    pairs.push_back(json_of(pair, measurement.works));
  const Json report{
      {"schema", duel_report_schema},
      {"kind", "duel"},
      {"base", json_of(verdict.introduction.base)},
      {"head", json_of(verdict.introduction.head)},
      {"simulated", verdict.introduction.base.simulated || verdict.introduction.head.simulated},
      {"gated", gates(verdict.introduction)},
      {"unit_of_evidence", "launch pair"},
      {"outcome", in_words(verdict.outcome)},
      {"margin", verdict.settings.margin},
      {"alpha", verdict.settings.alpha},
      {"beta", verdict.settings.beta},
      {"confidence", verdict.settings.confidence},
      {"seed", fmt::format("{:016x}", measurement.seed)},
      {"notes", verdict.notes},
      {"budget_spent", measurement.budget_spent},
      {"wall_ns", measurement.wall_time.count()},
      {"works", std::move(works)},
      {"pairs", std::move(pairs)}};
  out << json_line(report) << '\n';
}

}  // namespace stepgate
