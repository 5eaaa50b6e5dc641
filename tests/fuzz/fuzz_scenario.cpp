// SPDX-License-Identifier: MIT
// libFuzzer: reads any text as a scenario. It is refused, or planned; the plan is refused, or
// counted, and its assertions are judged by the counts. Any other behaviour is a fault.
#include <algorithm>
#include <cmath>

#include "judge/judge.h"
#include "measure/planned_subject.h"
#include "plan/compose/build_step_plan.h"
#include "plan/count/facts_of.h"
#include "tests/fuzz/fuzzed_scenario.h"

namespace {

using namespace stepgate;

void at_most(std::int64_t& value, std::int64_t most) {
  value = std::min(value, most);
}

// Limits knobs that only make a step longer, so that it has some thousand operations at most.
// plan_sizes_test tests steps that are too large.
void shorten(Knobs& knobs) {
  at_most(knobs.model.layers, 3);
  at_most(knobs.model.kernels, 3);
  at_most(knobs.model.extra_copies, 2);
  at_most(knobs.batch.tensors, 3);
  at_most(knobs.batch.accumulate, 2);
  if (knobs.batch.sizes.size() > 4) knobs.batch.sizes.resize(4);
  at_most(knobs.loader.depth, 4);
  at_most(knobs.sync.every, 3);
  at_most(knobs.alloc.empty_cache_every, 3);
  at_most(knobs.alloc.temps, 2);
  at_most(knobs.log.every, 3);
  at_most(knobs.eval.every, 3);
  at_most(knobs.eval.batches, 2);
}

void check(const PlannedStep& step) {
  require(step->operations.size() < 20'000, "a step that was shortened is short");
  require(step.facts().operations.size() == step->operations.size(),
          "every operation has its facts");
  for (const auto& [metric, value] : step.facts().counts) {
    require(std::isfinite(value) && value >= 0, "what is counted is a number from 0 up");
  }
}

void judge_by_plans(const Scenario& scenario, const std::vector<PlannedStep>& plans) {
  Measurement none;
  none.planned_only = true;
  none.scenario_fingerprint = scenario.fingerprint;
  const Verdict verdict = judge(scenario, subjects_of(plans), none, {});
  require(verdict.assertions.size() == scenario.expect.size(), "every assertion is judged");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    Scenario scenario = read_fuzzed_scenario(fuzzed_text(data, size));
    if (scenario.variants.size() > 4) return 0;
    for (Variant& variant : scenario.variants) shorten(variant.knobs);
    const std::vector<PlannedStep> plans = with_facts(build_step_plans(scenario, 1));
    for (const PlannedStep& plan : plans) check(plan);
    judge_by_plans(scenario, plans);
  } catch (const RequestError&) {
  }
  return 0;
}
