// SPDX-License-Identifier: MIT
// The verbs that test whether a scenario notices changes: `mutate`, and `check --strict`. Without
// --strict, `check` runs nothing.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iostream>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "base/text/number_words.h"
#include "judge/verdict/mutation.h"
#include "line/decide.h"
#include "line/fit_to_device.h"
#include "line/planned.h"
#include "line/trace/trace_planned.h"
#include "line/wrong_libraries.h"
#include "report/exit_code.h"
#include "report/text/print_list.h"
#include "report/text/print_mutations.h"
#include "scenario/knobs/field_value.h"
#include "scenario/knobs/other_values.h"
#include "scenario/read/lint.h"
#include "scenario/read/read_scenario.h"
#include "verbs/mutate/faults_of_files.h"
#include "verbs/terminal_progress.h"
#include "verbs/verbs.h"

namespace stepgate {
namespace {

// Makes every mutation of a scenario and decides it on the device, for `mutate` and `check
// --strict`. The judge says which mutations were noticed.

using EachMutated = std::function<void(const Planned&, const Mutations&)>;

// Returns the overrides, with the calibrated value for a scenario with [calibrate].
std::vector<std::string> with_calibrated(const Planned& planned,
                                         std::vector<std::string> overrides) {
  if (planned.traced && planned.traced->calibrated && !planned.traced->calibrated->is_kept) {
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

// Largest number of changes for an assertion that no removed override makes fail. Beyond it the
// effect is unknown.
constexpr std::int64_t most_changes = 2000;

// Limit of the operations in all steps that are decided, for each of these two: removed overrides
// and other changes. The suite's largest scenario has half a million.
constexpr std::int64_t most_operations_decided = 20'000'000;

// A limit at this factor from all results of the file's own overrides says little.
constexpr double far_away = 1.3;

bool is_of_the_step(const Field& field) {
  return is_built(field) && field.scope == FieldScope::variant && !field.unscored;
}

bool is_of_the_step(const VariantOverride& said) {
  return said.knob == like_key || is_of_the_step(*field_named(said.knob));
}

// The name of a variant that stands for a stored one; users cannot use it, since it has a dot.
std::string as_stored(const std::string& variant) {
  return "stored." + variant;
}

// Replaces stored variants in the assertion by variants that are the original ones.
Expectation with_stored_as_variants(Expectation assertion) {
  for (Side* side : {&assertion.left, &assertion.right}) {
    for (Product& product : *side) {
      for (Factor& factor : product) {
        auto* of = std::get_if<MetricOf>(&factor);
        if (of != nullptr && of->stored) *of = {as_stored(of->variant), of->metric, false, {}};
      }
    }
  }
  return assertion;
}

// The name of a regime assertion among those of [expect], which may have one of the same name.
std::string as_expected(const std::string& regime) {
  return "[regime] " + regime;
}

// The distance between the sides, as a factor of 1 or more; nullopt where one of them is 0.
std::optional<double> distance_of(const AssertionVerdict& assertion) {
  if (!assertion.left || !assertion.right || !(*assertion.left > 0) || !(*assertion.right > 0))
    return std::nullopt;
  return std::max(*assertion.left / *assertion.right, *assertion.right / *assertion.left);
}

std::optional<Relation> reversed(Relation relation) {
  switch (relation) {
    case Relation::less:
      return Relation::at_least;
    case Relation::at_most:
      return Relation::greater;
    case Relation::at_least:
      return Relation::less;
    case Relation::greater:
      return Relation::at_most;
    case Relation::equal:
    case Relation::about:
      return std::nullopt;
  }
  return std::nullopt;
}

class Mutator {
 public:
  Mutator(const Planned& planned, const Arguments& arguments, std::uint64_t seed)
      : arguments_(arguments), seed_(seed) {
    settings_ = settings_for(std::span(&planned, 1));
    original_ = planned;
    arguments_.overrides = overrides_of(planned.scenario, arguments.overrides);
    limit_changes();
    before_ = verdict_on(original_);
    if (!original_.traced || !original_.traced->calibrated) return;
    arguments_.overrides = with_calibrated(original_, arguments_.overrides);
    original_ = plan_with(nullptr);
    before_ = verdict_on(original_);
  }

  Mutations all() {
    Mutations result{.scenario = original_.scenario.name};
    const Verdict alone = decided_alone();
    for (const VariantOverride& without : original_.scenario.overrides) {
      if (is_of_the_step(without)) result.mutations.push_back(mutated(without));
    }
    swap_variants();
    const std::set<std::string> open_by_the_file = unnoticed_;
    turn_knobs();
    result.changes = changes_;
    result.all_tried = changes_ < most_changes_;
    for (const AssertionVerdict& assertion : before_.assertions) {
      const auto tried =
          std::ranges::find(alone.assertions, assertion.name, &AssertionVerdict::name);
      if (unnoticed_.contains(assertion.name)) result.vacuous.push_back(assertion);
      if (is_reversed(*tried)) {
        result.reversed.push_back(*tried);
      } else if (!assertion.about_stored_runs && assertion.outcome != Outcome::passes) {
        result.not_holding.push_back(assertion);
      } else if (tried->outcome != Outcome::passes) {
        result.not_holding.push_back(*tried);
      } else if (open_by_the_file.contains(assertion.name)) {
        add_distance(*tried, result.distant);
      }
    }
    for (const AssertionVerdict& assertion : before_.regime) {
      if (outside_.contains(as_expected(assertion.name))) result.never_inside.push_back(assertion);
    }
    return result;
  }

 private:
  // Throws RequestError where to remove the overrides alone would take too long.
  void limit_changes() {
    std::int64_t operations = 1;
    for (const StepPlan& plan : original_.plans) operations += std::ssize(plan.operations);
    const std::int64_t decided = most_operations_decided / operations;
    most_changes_ = std::min(most_changes, decided);
    const std::int64_t overrides =
        std::ranges::count_if(original_.scenario.overrides,
                              [](const VariantOverride& said) { return is_of_the_step(said); });
    if (overrides <= decided) return;
    throw RequestError(
        {{original_.scenario.file, 0, 0},
         fmt::format("has {} overrides in variants whose steps have {} operations "
                     "together, and a mutation decides all of them again; there is "
                     "room for {}",
                     overrides, operations - 1, counted_in_words(decided, "mutation")),
         "give it fewer variants, or smaller steps"});
  }

  Planned planned_as(Scenario scenario) const {
    Planned planned{.scenario = std::move(scenario), .plans = {}};
    planned.scenario.calibrate.reset();  // changed steps have the knob's value of the original
    planned.plans = plans_on(before_.device, planned.scenario, seed_);
    return planned;
  }

  Planned plan_with(const VariantChange* change) const {
    return planned_as(read_scenario(original_.scenario.file, arguments_.overrides, change));
  }

  // Returns nullopt when there is no such scenario, and then sets `refusal`.
  std::optional<Planned> planned_with(const VariantChange* change, std::string& refusal) const {
    try {
      return plan_with(change);
    } catch (const RequestError& error) {
      refusal = error.diagnostics().front().message;
      return std::nullopt;
    }
  }

  // Traces too, and checks that the trace matches the plan.
  Verdict verdict_on(Planned& planned) const { return verdict_on(planned, arguments_); }

  Verdict verdict_on(Planned& planned, const Arguments& arguments) const {
    const OpenedDevice opened = open_device_for(arguments, seed_);
    if (!is_planned_only(planned.scenario))
      planned.traced = trace_planned(*opened.device, arguments, planned, settings_, seed_);
    return decide_one(planned, *opened.device, seed_, settings_, terminal_progress()).verdict;
  }

  // Decides the assertions that passed; returns nullopt where the device refuses the step, and then
  // sets `refusal`.
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
          ->facts()
          .counts;
    };
    return changed_counts(of_it(original_), of_it(changed));
  }

  bool set_elsewhere(const VariantOverride& override) const {
    return std::ranges::any_of(original_.scenario.overrides, [&](const VariantOverride& other) {
      return other.knob == override.knob && other.variant != override.variant;
    });
  }

  // Returns whether an assertion that does not pass on this device names the variant.
  bool is_told_of(const std::string& variant) const {
    return std::ranges::any_of(original_.scenario.expect, [&](const Expectation& assertion) {
      const auto now =
          std::ranges::find(before_.assertions, assertion.name, &AssertionVerdict::name);
      return now->outcome != Outcome::passes && names_variant(assertion, variant);
    });
  }

  // Returns the scenario whose assertions are tested. It has no regime; regime assertions that do
  // not pass become ordinary assertions. `stored.` refers to the original variants.
  Scenario to_try(Scenario scenario) const {
    std::set<std::string> stored;
    for (const Expectation& assertion : scenario.regime) {
      const auto now = std::ranges::find(before_.regime, assertion.name, &AssertionVerdict::name);
      if (now->outcome == Outcome::passes) continue;
      scenario.expect.push_back(assertion);
      scenario.expect.back().name = as_expected(assertion.name);
    }
    scenario.regime.clear();
    for (Expectation& assertion : scenario.expect) {
      for (const MetricOf& of : metrics_in(assertion)) {
        if (of.stored) stored.insert(of.variant);
      }
      assertion = with_stored_as_variants(std::move(assertion));
    }
    for (const Variant& variant : original_.scenario.variants) {
      if (!stored.contains(variant.name)) continue;
      scenario.variants.push_back(variant);
      scenario.variants.back().name = as_stored(variant.name);
    }
    return scenario;
  }

  // Decides each assertion of the unchanged scenario. For each passing one, some change must make
  // it fail.
  Verdict decided_alone() {
    Planned planned = planned_as(to_try(original_.scenario));
    Verdict alone = verdict_on(planned);
    for (const AssertionVerdict& assertion : alone.assertions) {
      const bool is_expected =
          std::ranges::find(before_.assertions, assertion.name, &AssertionVerdict::name) !=
          before_.assertions.end();
      if (!is_expected) {
        outside_.insert(assertion.name);
      } else if (assertion.outcome == Outcome::passes) {
        unnoticed_.insert(assertion.name);
      }
    }
    see(alone, "");
    return alone;
  }

  // Records which assertions this change is the first to make fail.
  void see(const Verdict& after, const std::string& change) {
    for (const AssertionVerdict& assertion : after.assertions) {
      if (assertion.outcome == Outcome::passes) outside_.erase(assertion.name);
      if (assertion.outcome == Outcome::fails && unnoticed_.erase(assertion.name) > 0)
        failed_by_[assertion.name] = change;
      const auto distance = distance_of(assertion);
      if (!distance || turns_knobs_) continue;
      const auto [nearest, is_new] = nearest_.try_emplace(assertion.name, *distance);
      if (!is_new) nearest->second = std::min(nearest->second, *distance);
    }
  }

  // Adds an assertion that only steps unlike those of the file make fail.
  void add_distance(const AssertionVerdict& assertion, std::vector<DistantLimit>& distant) const {
    const auto here = distance_of(assertion);
    const auto by = failed_by_.find(assertion.name);
    if (!here || by == failed_by_.end() || nearest_.at(assertion.name) < far_away) return;
    if (!reversed(assertion_named(assertion.name).relation)) return;
    distant.push_back({assertion, *here, nearest_.at(assertion.name), by->second});
  }

  const Expectation& assertion_named(const std::string& name) const {
    return *std::ranges::find(original_.scenario.expect, name, &Expectation::name);
  }

  // Returns whether it compares two variants, and fails while its reverse passes on every profile
  // that can run them inside its regime.
  bool is_reversed(const AssertionVerdict& verdict) const {
    const Expectation& assertion = assertion_named(verdict.name);
    const auto relation = reversed(assertion.relation);
    if (verdict.outcome != Outcome::fails || !compares_two_variants(assertion) || !relation)
      return false;
    Expectation reverse = assertion;
    reverse.relation = *relation;
    reverse.name = "reversed " + assertion.name;
    Scenario scenario = original_.scenario;
    scenario.expect = {assertion, std::move(reverse)};
    bool asked = false;
    for (const std::string& spec : simulated_specs(arguments_.device.baselines)) {
      const auto on_profile = decided_on(spec, scenario);
      if (!on_profile || on_profile->outcome == Outcome::skipped) continue;
      if (on_profile->assertions[0].outcome != Outcome::fails ||
          on_profile->assertions[1].outcome != Outcome::passes)
        return false;
      asked = true;
    }
    return asked;
  }

  // Returns nullopt where the device cannot run it.
  std::optional<Verdict> decided_on(const std::string& spec, const Scenario& scenario) const {
    Arguments arguments = arguments_;
    arguments.device.spec = spec;
    try {
      Planned planned{.scenario = scenario, .plans = {}};
      planned.plans =
          plans_on(open_device_for(arguments, seed_).device->identity(), scenario, seed_);
      return verdict_on(planned, arguments);
    } catch (const DeviceError&) {
      return std::nullopt;
    } catch (const RequestError&) {
      return std::nullopt;
    }
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
      mutation.assertions =
          no_longer_holding(before_, *after, mutation.effect == MutationEffect::fails);
      see(*after, without.variant + " without " + without.knob);
    } else {
      mutation.effect = MutationEffect::does_not_run;
    }
    return mutation;
  }

  void notice(Scenario scenario, const std::string& change) {
    std::string unused;
    try {
      Planned planned = planned_as(to_try(std::move(scenario)));
      const auto after = decided(planned, unused);
      if (!after) return;
      ++changes_;
      see(*after, change);
    } catch (const RequestError&) {
      return;  // such as an assertion about a kernel that only the original variant launches
    }
  }

  bool is_done() const {
    return (unnoticed_.empty() && outside_.empty()) || changes_ >= most_changes_;
  }

  // Returns whether changes of that variant could make an unnoticed assertion fail.
  bool is_of_interest(const Variant& variant) const {
    const bool is_first = variant.name == original_.scenario.variants.front().name;
    const auto speaks_of_it = [&](const Expectation& assertion) {
      return names_variant(assertion, variant.name) || (is_first && names_a_plan_size(assertion));
    };
    const Scenario& scenario = original_.scenario;
    return std::ranges::any_of(scenario.expect,
                               [&](const Expectation& assertion) {
                                 return unnoticed_.contains(assertion.name) &&
                                        speaks_of_it(assertion);
                               }) ||
           std::ranges::any_of(scenario.regime, [&](const Expectation& assertion) {
             return outside_.contains(as_expected(assertion.name)) && speaks_of_it(assertion);
           });
  }

  // Replaces each variant by each other one, until every assertion has failed once.
  void swap_variants() {
    const std::vector<Variant>& variants = original_.scenario.variants;
    for (std::size_t changed = 0; changed < variants.size(); ++changed) {
      for (const Variant& other : variants) {
        if (is_done()) return;
        if (other.knobs == variants[changed].knobs || !is_of_interest(variants[changed])) continue;
        Scenario swapped = original_.scenario;
        swapped.variants[changed].knobs = other.knobs;
        notice(std::move(swapped), variants[changed].name + " as " + other.name);
      }
    }
  }

  // Tries every other value of every knob, until every assertion has failed once.
  void turn_knobs() {
    turns_knobs_ = true;
    for (const Variant& variant : original_.scenario.variants) {
      for (const Field& field : field_table()) {
        if (!is_of_the_step(field) || !is_of_interest(variant)) continue;
        const Settings settings{.knobs = variant.knobs};
        if (field.condition != nullptr && !field.condition->holds(variant.knobs)) continue;
        for (FieldValue& value : other_values(field, field.get(settings))) {
          if (is_done()) return;
          const VariantChange change{variant.name, std::string(field.name), std::move(value)};
          const std::string in_words = fmt::format("{}.{} = {}", variant.name, field.name,
                                                   field_value_text(field, *change.value));
          try {
            notice(read_scenario(original_.scenario.file, arguments_.overrides, &change), in_words);
          } catch (const RequestError&) {
            continue;
          }
        }
      }
    }
  }

  Arguments arguments_;
  std::uint64_t seed_;
  JudgeSettings settings_;
  Planned original_;
  Verdict before_;
  std::set<std::string> unnoticed_;  // assertions that no change has made fail so far
  std::set<std::string> outside_;    // assertions of the regime that nothing has satisfied so far
  bool turns_knobs_ = false;
  std::map<std::string, double> nearest_;  // smallest distance_of with the file's own overrides
  std::map<std::string, std::string> failed_by_;  // first change that made it fail
  std::int64_t most_changes_ = most_changes;
  std::int64_t changes_ = 0;  // number of decided changes, besides removals
};

// Removes each override of a variant in turn. Then, for assertions that no change has made fail,
// tries other values of knobs until one does. Each is decided on a fresh device, so that none
// depends on earlier ones. Throws RequestError and DeviceError when the scenario itself cannot be
// decided.
Mutations mutations_of(const Planned& planned, const Arguments& arguments, std::uint64_t seed) {
  return Mutator(planned, arguments, seed).all();
}

// The seed without which mutations are the same from run to run.
std::uint64_t seed_of_mutations(const Arguments& arguments) {
  return arguments.seed.value_or(1);
}

// A simulated device cannot know the times of libraries, and decides no step without them.
void require_times(std::span<const Planned> all) {
  std::vector<Diagnostic> faults;
  for (const Planned& planned : all) {
    if (is_planned_only(planned.scenario)) continue;
    for (const Variant& variant : planned.scenario.variants) {
      for (const auto& [name, replacement] : variant.knobs.kernels) {
        if (replacement.microseconds) continue;
        faults.push_back(
            {place_of_kernel(variant, name),
             fmt::format(
                 "nobody has said how long the '{}' of '{}' takes, and mutations are decided "
                 "by the simulated device, which cannot know it",
                 name, variant.name),
             fmt::format("write kernels.{} = {{ library = \"{}\", time_us = 8 }}, with the time of "
                         "a call",
                         name,
                         replacement.library +
                             (replacement.function == name ? "" : ':' + replacement.function))});
      }
    }
  }
  if (!faults.empty()) throw RequestError(std::move(faults));
}

// Mutates the scenarios, fitted to the device of the arguments, which is the simulated one by
// default. Returns why scenarios could not be decided there. Throws RequestError for any other
// device.
std::vector<Diagnostic> mutate_each(const Arguments& given, std::vector<Planned> all,
                                    std::uint64_t seed, const EachMutated& each) {
  Arguments arguments = given;
  if (arguments.device.spec.empty()) arguments.device.spec = "simulated";
  arguments.device.tracing = true;
  const OpenedDevice opened = open_device_for(arguments, seed);
  if (opened.device->identity().kind != DeviceKind::simulated) {
    throw RequestError("mutations are decided by the simulated device, hundreds of them",
                       "leave --device out, or name --device simulated:<profile>");
  }
  require_times(all);
  fit_to_device(all, opened.device->identity(), seed);
  std::vector<Diagnostic> undecided;
  for (const Planned& planned : all) {
    try {
      each(planned, mutations_of(planned, arguments, seed));
    } catch (const DeviceLost&) {
      throw;
    } catch (const DeviceError& error) {
      undecided.push_back({{planned.scenario.file, 0, 0},
                           error.what(),
                           "mutations are decided by the simulated device: name another with "
                           "--device, or leave the file out"});
    } catch (const RequestError& error) {
      undecided.insert(undecided.end(), error.diagnostics().begin(), error.diagnostics().end());
    }
  }
  return undecided;
}

}  // namespace

int mutate_scenarios(const Arguments& arguments) {
  FaultsOfFiles faults;
  const std::uint64_t seed = seed_of_mutations(arguments);
  std::vector<Diagnostic> undecided =
      mutate_each(arguments, plan_all(arguments, seed), seed,
                  [&](const Planned& planned, const Mutations& mutations) {
                    print_mutations(std::cout, mutations);
                    std::cout << std::flush;
                    faults.add(planned.scenario, faults_of(mutations));
                  });
  if (!undecided.empty()) throw RequestError(std::move(undecided));
  return status_of(faults.all().empty() ? ExitCode::passes : ExitCode::fails);
}

namespace {

// Returns an assertion about a count that differs between the plans of two variants, and which is
// true for them; empty where there is none.
std::string count_that_differs(const Planned& planned) {
  if (runs_programs(planned.scenario))
    return fmt::format("{}.host_waits_per_step <= 0", planned.scenario.variants.front().name);
  const StepPlan& first = planned.plans.front();
  for (const PlannedStep& one : planned.plans) {
    const StepPlan& step = one;
    const std::vector<ChangedCount> changed =
        changed_counts(planned.plans.front().facts().counts, one.facts().counts);
    if (changed.empty()) continue;
    const ChangedCount& count = changed.front();
    return fmt::format("{0}.{1} {2} {3}.{1}", step.variant, row_of(count.metric).name,
                       count.after < count.before ? '<' : '>', first.variant);
  }
  return "";
}

// Prints a file with [sweep] once.
void print_with_warnings(const Planned& planned) {
  const auto& point = planned.scenario.point;
  const bool is_listed =
      point && std::ranges::find(point->values, point->value) != point->values.end();
  if (is_listed && point->value != point->values.front()) return;
  std::vector<Diagnostic> warnings = lint(planned.scenario, count_that_differs(planned));
  std::vector<Diagnostic> faults;
  for (WrongLibrary& wrong : wrong_libraries(planned))
    (wrong.is_absent ? warnings : faults).push_back(std::move(wrong.fault));
  if (!faults.empty()) throw RequestError(std::move(faults));
  print_checked(std::cout, planned.scenario, warnings);
}

void check_strictly(const Arguments& arguments) {
  FaultsOfFiles found;
  const std::uint64_t seed = seed_of_mutations(arguments);
  std::vector<Planned> all = plan_all(arguments, seed, Programs::kept);
  // Nothing but a GPU could say what another value does to a program.
  for (const Planned& planned : all) {
    if (!runs_programs(planned.scenario)) continue;
    print_with_warnings(planned);
    found.add(planned.scenario, identical_variants(planned.scenario));
  }
  std::erase_if(all, [](const Planned& planned) { return runs_programs(planned.scenario); });
  refuse_wrong_libraries(all);
  std::vector<Diagnostic> faults;
  if (!all.empty())
    faults = mutate_each(arguments, std::move(all), seed,
                         [&](const Planned& planned, const Mutations& mutations) {
                           print_with_warnings(planned);
                           print_unknown(std::cout, mutations);
                           std::vector<Diagnostic> of_one = identical_variants(planned.scenario);
                           std::ranges::move(faults_of(mutations), std::back_inserter(of_one));
                           found.add(planned.scenario, std::move(of_one));
                         });
  std::ranges::move(found.all(), std::back_inserter(faults));
  if (!faults.empty()) throw RequestError(std::move(faults));
}

}  // namespace

int check_scenarios(const Arguments& arguments) {
  if (arguments.strict) {
    check_strictly(arguments);
  } else {
    for (const Planned& planned : plan_all(arguments, 1, Programs::kept))
      print_with_warnings(planned);
  }
  return status_of(ExitCode::passes);
}

}  // namespace stepgate
