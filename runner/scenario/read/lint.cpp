// SPDX-License-Identifier: MIT
#include "scenario/read/lint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace stepgate {
namespace {

bool is_compared(const Scenario& scenario, const std::string& left, const std::string& right) {
  return std::ranges::any_of(scenario.expect, [&](const Expectation& assertion) {
    return names_variant(assertion, left) && names_variant(assertion, right);
  });
}

// The product of a side's numbers.
double factor_of(const Side& side) {
  double factor = 1;
  for (const Factor& one : side.front()) {
    if (const auto* number = std::get_if<double>(&one)) factor *= *number;
  }
  return factor;
}

bool has_no_margin(const Expectation& assertion) {
  if (evidence_of(assertion) < Evidence::timed || assertion.relation == Relation::about)
    return false;
  if (!compares_two_variants(assertion) && !compares_with_itself(assertion)) return false;
  return factor_of(assertion.left) == factor_of(assertion.right);
}

// The rates come from 400 runs on the simulated H200, where processes shift a variant by 0.1 %. For
// stored runs they are the rates at a limit that docs/verdict.md promises.
Diagnostic no_margin(const Expectation& assertion) {
  const std::string_view rates = names_stored(assertion)
                                     ? "1 % of runs refute it, 5 % hold and the rest is undecided"
                                     : "6 % of runs refute it and 10 % hold";
  return {assertion.place,
          fmt::format("'{}' has a limit of exactly 1x: where the two are the same, about {}",
                      assertion.name, rates),
          "leave a margin on either side, such as 1 %"};
}

const Variant& variant_of(const Scenario& scenario, const VariantOverride& own) {
  return *std::ranges::find(scenario.variants, own.variant, &Variant::name);
}

// The loader makes no more batches at a time than it may have ahead.
std::optional<Diagnostic> idle_workers(const VariantOverride& own, const Variant& variant) {
  const auto& loader = variant.knobs.loader;
  if (own.knob != "loader.workers" || loader.depth == 0 || loader.workers <= loader.depth)
    return std::nullopt;
  return Diagnostic{own.place,
                    fmt::format("variant '{}' has {} workers, and {} at a time have a batch to "
                                "make: 'loader.depth' is {}",
                                variant.name, loader.workers, loader.depth, loader.depth),
                    fmt::format("write loader.depth = {}, or fewer workers", loader.workers)};
}

// A group of knobs that says how something is done, and the knob by which it is done at all.
struct Switch {
  std::string_view group;
  std::string_view knob;
  std::string_view off;  // the value by which it is not done
  bool (*is_off)(const Knobs&);
  std::string_view way_out;
};

constexpr std::array switches{
    Switch{"sync.", "sync.where", "none",
           [](const Knobs& knobs) { return knobs.sync.where == SyncWhere::none; },
           "write sync.where = \"step\", or remove it"},
    Switch{"log.", "log.every", "0", [](const Knobs& knobs) { return knobs.log.every == 0; },
           "write log.every = 1, or remove it"},
};

std::optional<Diagnostic> switched_off(const VariantOverride& own, const Variant& variant) {
  for (const Switch& one : switches) {
    if (!own.knob.starts_with(one.group) || own.knob == one.knob || !one.is_off(variant.knobs))
      continue;
    return Diagnostic{own.place,
                      fmt::format("'{} = {}' of variant '{}' does nothing: its '{}' is {}",
                                  own.knob, own.value, variant.name, one.knob, one.off),
                      std::string(one.way_out)};
  }
  return std::nullopt;
}

void add_without_effect(const Scenario& scenario, std::vector<Diagnostic>& warnings) {
  for (const VariantOverride& own : scenario.overrides) {
    const Variant& variant = variant_of(scenario, own);
    for (const auto& check : {idle_workers, switched_off}) {
      if (auto found = check(own, variant)) warnings.push_back(*std::move(found));
    }
  }
}

}  // namespace

std::vector<Diagnostic> lint(const Scenario& scenario, const std::string& counted) {
  std::vector<Diagnostic> warnings;
  for (const Expectation& assertion : scenario.expect) {
    if (has_no_margin(assertion)) warnings.push_back(no_margin(assertion));
  }
  add_without_effect(scenario, warnings);
  const bool counts = std::any_of(
      scenario.expect.begin(), scenario.expect.end(),
      [](const Expectation& assertion) { return evidence_of(assertion) <= Evidence::exact; });
  if (counts || counted.empty()) return warnings;
  warnings.push_back({scenario.expect.front().place,
                      "[expect] has no exact assertion: a timed one says how much, not why",
                      "add a count, such as " + counted});
  return warnings;
}

std::vector<Diagnostic> identical_variants(const Scenario& scenario) {
  std::vector<Diagnostic> found;
  for (auto later = scenario.variants.begin(); later != scenario.variants.end(); ++later) {
    const auto earlier =
        std::find_if(scenario.variants.begin(), later,
                     [&](const Variant& variant) { return variant.knobs == later->knobs; });
    if (earlier == later || is_compared(scenario, earlier->name, later->name)) continue;
    found.push_back({later->place,
                     "variant '" + later->name + "' is the same step as '" + earlier->name + "'",
                     "remove one, or claim in an assertion that they tie"});
  }
  return found;
}

std::vector<Diagnostic> replaced_settings(const Scenario& scenario,
                                          std::span<const std::string> overrides) {
  std::vector<Diagnostic> warnings;
  for (const std::string& text : overrides) {
    const std::string_view knob = std::string_view(text).substr(0, text.find('='));
    for (const VariantOverride& own : scenario.overrides) {
      if (own.knob != knob) continue;
      warnings.push_back({own.place,
                          fmt::format("'{} = {}' of variant '{}' is replaced by --set {}", own.knob,
                                      own.value, own.variant, text),
                          "leave the option out to compare what the file says"});
    }
  }
  return warnings;
}

}  // namespace stepgate
