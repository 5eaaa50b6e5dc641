// SPDX-License-Identifier: MIT
#include "verbs/mutate/mutations_of.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "scenario/knobs/other_values.h"
#include "scenario/read/read_scenario.h"
#include "verbs/decide.h"
#include "verbs/fit_to_device.h"
#include "verbs/trace/trace_planned.h"

namespace stepgate {
namespace {

// A scenario whose knobs are calibrated is asked with what the device found.
std::vector<std::string> overrides_of(const Arguments& arguments, const Planned& planned) {
  std::vector<std::string> overrides = arguments.overrides;
  if (planned.traced && planned.traced->calibrated) {
    const Calibrated& found = *planned.traced->calibrated;
    overrides.push_back(found.knob + "=" + found.value);
  }
  return overrides;
}

std::vector<Knobs> knobs_of(const Scenario& scenario) {
  std::vector<Knobs> knobs;
  for (const Variant& variant : scenario.variants) knobs.push_back(variant.knobs);
  return knobs;
}

// Of a sentence that no override's removal refutes: after so many, nobody knows.
constexpr std::int64_t most_changes = 2000;

bool is_of_the_step(const Field& field) {
  return is_built(field) && field.scope == FieldScope::variant && !field.unscored;
}

class Mutator {
 public:
  Mutator(const Planned& planned, const Arguments& arguments, std::uint64_t seed)
      : arguments_(arguments), seed_(seed) {
    settings_ = settings_for(std::span(&planned, 1));
    original_ = planned;
    before_ = verdict_on(original_);
    if (!original_.traced || !original_.traced->calibrated) return;
    arguments_.overrides = overrides_of(arguments, original_);
    original_ = plan_with(nullptr);
    before_ = verdict_on(original_);
  }

  Mutations all() {
    Mutations result{.scenario = original_.scenario.name};
    for (const SentenceVerdict& sentence : before_.sentences) {
      if (sentence.outcome == Outcome::holds) {
        unnoticed_.insert(sentence.name);
      } else {
        result.not_holding.push_back(sentence);
      }
    }
    for (const VariantOverride& without : original_.scenario.overrides) {
      if (is_of_the_step(*field_named(without.knob))) result.mutations.push_back(mutated(without));
    }
    swap_variants();
    turn_knobs();
    result.changes = changes_;
    result.all_tried = changes_ < most_changes;
    for (const SentenceVerdict& sentence : before_.sentences) {
      if (unnoticed_.contains(sentence.name)) result.vacuous.push_back(sentence);
    }
    return result;
  }

 private:
  Planned planned_as(Scenario scenario) const {
    Planned planned{.scenario = std::move(scenario), .plans = {}};
    planned.plans = plans_on(before_.device, planned.scenario, seed_);
    return planned;
  }

  Planned plan_with(const VariantChange* change) const {
    return planned_as(read_scenario(original_.scenario.file, arguments_.overrides, change));
  }

  // Nothing when there is no such scenario, and then why.
  std::optional<Planned> planned_with(const VariantChange* change, std::string& refusal) const {
    try {
      return plan_with(change);
    } catch (const RequestError& error) {
      refusal = error.diagnostics().front().message;
      return std::nullopt;
    }
  }

  // Traced as well, which stays with what was planned.
  Verdict verdict_on(Planned& planned) const {
    const OpenedDevice opened = open_device_for(arguments_, seed_);
    if (!is_planned_only(planned.scenario))
      planned.traced = trace_planned(*opened.device, arguments_, planned, settings_, seed_);
    return decide_one(planned, *opened.device, seed_, settings_, Forecasts::hidden).verdict;
  }

  // What became of the sentences that held; nothing where the device refuses the step, and then
  // why.
  std::optional<Verdict> decided(Planned& planned, std::string& refusal) const {
    try {
      return verdict_on(planned);
    } catch (const DeviceError& error) {
      refusal = error.what();
    } catch (const RequestError& error) {
      refusal = error.diagnostics().front().message;
    }
    return std::nullopt;
  }

  std::vector<ChangedCount> what_differs(const Planned& changed, const std::string& variant) const {
    const auto of_it = [&](const Planned& planned) {
      return std::ranges::find(planned.plans, variant,
                               [](const StepPlan& plan) { return plan.variant; })
          ->facts();
    };
    return changed_counts(of_it(original_), of_it(changed));
  }

  bool set_elsewhere(const VariantOverride& override) const {
    return std::ranges::any_of(original_.scenario.overrides, [&](const VariantOverride& other) {
      return other.knob == override.knob && other.variant != override.variant;
    });
  }

  // By a sentence that does not hold here, and might where it does.
  bool is_told_of(const std::string& variant) const {
    return std::ranges::any_of(original_.scenario.expect, [&](const Expectation& sentence) {
      const auto now = std::ranges::find(before_.sentences, sentence.name, &SentenceVerdict::name);
      return now->outcome != Outcome::holds && names_variant(sentence, variant);
    });
  }

  Mutation mutated(const VariantOverride& without) {
    const VariantChange change{without.variant, without.knob, std::nullopt};
    Mutation mutation{.without = without};
    std::optional<Planned> planned = planned_with(&change, mutation.refusal);
    if (planned) mutation.different = what_differs(*planned, without.variant);
    if (!planned) {
      mutation.effect = MutationEffect::refused;
    } else if (knobs_of(planned->scenario) == knobs_of(original_.scenario)) {
      mutation.effect =
          set_elsewhere(without) ? MutationEffect::said_for_contrast : MutationEffect::same_step;
    } else if (const auto after = decided(*planned, mutation.refusal)) {
      mutation.effect = effect_of(before_, *after);
      if (mutation.effect == MutationEffect::survives && is_told_of(without.variant))
        mutation.effect = MutationEffect::unknown;
      mutation.sentences =
          no_longer_holding(before_, *after, mutation.effect == MutationEffect::refuted);
      for (const std::string& name : no_longer_holding(before_, *after, true))
        unnoticed_.erase(name);
    } else {
      mutation.effect = MutationEffect::does_not_run;
    }
    return mutation;
  }

  // Whatever its regime: a sentence that is skipped has not been tried.
  void notice(Planned planned) {
    planned.scenario.regime.clear();
    std::string unused;
    const auto after = decided(planned, unused);
    if (!after) return;
    ++changes_;
    for (const std::string& name : no_longer_holding(before_, *after, true)) unnoticed_.erase(name);
  }

  bool is_done() const { return unnoticed_.empty() || changes_ >= most_changes; }

  // Whether another step of that variant could refute anything that nothing refuted so far.
  bool is_of_interest(const Variant& variant) const {
    const bool is_first = variant.name == original_.scenario.variants.front().name;
    return std::ranges::any_of(original_.scenario.expect, [&](const Expectation& sentence) {
      return unnoticed_.contains(sentence.name) &&
             (names_variant(sentence, variant.name) || (is_first && names_a_plan_size(sentence)));
    });
  }

  // Each variant as if it were each other one, until every sentence was refuted once.
  void swap_variants() {
    const std::vector<Variant>& variants = original_.scenario.variants;
    for (std::size_t changed = 0; changed < variants.size(); ++changed) {
      for (const Variant& other : variants) {
        if (is_done()) return;
        if (other.knobs == variants[changed].knobs || !is_of_interest(variants[changed])) continue;
        Scenario swapped = original_.scenario;
        swapped.variants[changed].knobs = other.knobs;
        try {
          notice(planned_as(std::move(swapped)));
        } catch (const RequestError&) {
          continue;  // such as a sentence on a kernel that only the one launches
        }
      }
    }
  }

  // Likewise, with every other value of every knob.
  void turn_knobs() {
    for (const Variant& variant : original_.scenario.variants) {
      for (const Field& field : field_table()) {
        if (!is_of_the_step(field) || !is_of_interest(variant)) continue;
        const Settings settings{.knobs = variant.knobs};
        if (field.condition != nullptr && !field.condition->holds(variant.knobs)) continue;
        for (FieldValue& value : other_values(field, field.get(settings))) {
          if (is_done()) return;
          const VariantChange change{variant.name, std::string(field.name), std::move(value)};
          std::string unused;
          std::optional<Planned> planned = planned_with(&change, unused);
          if (planned) notice(*std::move(planned));
        }
      }
    }
  }

  Arguments arguments_;
  std::uint64_t seed_;
  JudgeSettings settings_;
  Planned original_;
  Verdict before_;
  std::set<std::string> unnoticed_;  // sentences that nothing refuted so far
  std::int64_t changes_ = 0;         // that were decided, besides the removals
};

}  // namespace

void mutate_each(const Arguments& given, const EachMutated& each) {
  Arguments arguments = given;
  if (arguments.device.spec.empty()) arguments.device.spec = "simulated";
  arguments.device.tracing = true;
  const std::uint64_t seed = arguments.seed.value_or(1);
  std::vector<Planned> all = plan_all(arguments, seed);
  const OpenedDevice opened = open_device_for(arguments, seed);
  if (opened.device->identity().kind != DeviceKind::simulated) {
    throw RequestError("mutations are decided by the simulated device, hundreds of them",
                       "leave --device out, or name --device simulated:<profile>");
  }
  fit_to_device(all, opened.device->identity(), seed);
  for (const Planned& planned : all) each(planned, mutations_of(planned, arguments, seed));
}

Mutations mutations_of(const Planned& planned, const Arguments& arguments, std::uint64_t seed) {
  return Mutator(planned, arguments, seed).all();
}

}  // namespace stepgate
