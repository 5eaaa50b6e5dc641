// SPDX-License-Identifier: MIT
#include "report/text/print_mutations.h"

#include <fmt/format.h>
#include <fmt/ostream.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "base/text/visible_text.h"
#include "judge/verdict/words.h"

namespace stepgate {
namespace {

std::string what_happens(const Mutation& mutation) {
  switch (mutation.effect) {
    case MutationEffect::fails:
      return mutation.assertions.empty()
                 ? "it is another step"
                 : fmt::format("refutes {}", fmt::join(mutation.assertions, ", "));
    case MutationEffect::refused:
      return "is refused: " + one_line(mutation.refusal);
    case MutationEffect::does_not_run:
      return "is refused by the device: " + one_line(mutation.refusal);
    case MutationEffect::undecided:
      return fmt::format("leaves {} open and refutes nothing",
                         fmt::join(mutation.assertions, ", "));
    case MutationEffect::survives:
      return "passes all the same";
    case MutationEffect::same_step:
      return "is the same: nothing says otherwise";
    case MutationEffect::said_for_contrast:
      return "is the same, and says so for contrast";
    case MutationEffect::unknown:
      return "passes all the same, as far as anything passes here";
  }
  return "";
}

// Names the first three counts that changed, since an assertion about any of them could have
// noticed.
std::string what_differs(const Mutation& mutation) {
  constexpr std::size_t most = 3;
  if (mutation.different.empty()) return "no count that both plans have differs";
  std::vector<std::string> told;
  for (const ChangedCount& count : mutation.different) {
    const MetricRow& row = row_of(count.metric);
    if (told.size() == most) break;
    told.push_back(fmt::format("{} {} -> {}", row.name, in_words(count.before, row.unit),
                               in_words(count.after, row.unit)));
  }
  const std::size_t more = mutation.different.size() - told.size();
  return fmt::format("{}{}", fmt::join(told, ", "),
                     more == 0 ? "" : fmt::format(" and {} more", more));
}

// Returns the text that ends a line of the table.
std::string told_besides(const Mutation& mutation) {
  if (!is_survivor(mutation) || mutation.effect == MutationEffect::same_step) return "";
  return "; " + what_differs(mutation);
}

Diagnostic fault_of(const Mutation& mutation) {
  const VariantOverride& without = mutation.without;
  const std::string what = fmt::format("'{}' of variant '{}'", without.knob, without.variant);
  if (mutation.effect == MutationEffect::same_step)
    return {without.place, what + " has no effect: without it the step is the same", "remove it"};
  return {without.place,
          fmt::format("{} could be removed and no assertion would fail: {}", what,
                      what_differs(mutation)),
          "say in an assertion what it is there for, write it into the base step, or remove it"};
}

// Errors about an assertion that has the wrong direction, or that is never evaluated.
Diagnostic fault_of_reversed(const AssertionVerdict& assertion) {
  return {assertion.place,
          fmt::format("'{}' fails on every simulated profile, and its reverse passes there: {}",
                      assertion.name, one_line(assertion.text)),
          "turn the comparison round, or claim what is true"};
}

Diagnostic fault_of_regime(const AssertionVerdict& assertion, std::int64_t changes) {
  return {assertion.place,
          fmt::format("no step is inside the regime: of {} that were tried, none satisfies '{}'",
                      changes + 1, one_line(assertion.text)),
          "name a regime that a knob can lead to, or remove it"};
}

std::string how_far(const DistantLimit& limit) {
  return fmt::format(
      "its sides are {} apart, {} where an override is taken away, and only {} "
      "refutes it",
      factor_in_words(limit.distance), factor_in_words(limit.nearest), limit.failed_by);
}

constexpr std::string_view word_of_refused = "refused";
constexpr std::string_view word_of_unknown = "unknown";

std::string_view word_for(const Mutation& mutation) {
  if (is_survivor(mutation)) return "survives";
  switch (mutation.effect) {
    case MutationEffect::refused:
      return word_of_refused;
    case MutationEffect::unknown:
    case MutationEffect::does_not_run:
      return word_of_unknown;
    case MutationEffect::said_for_contrast:
      return "same";
    default:
      return "noticed";
  }
}

// ", refused 2, unknown 1": counts mutations that are neither noticed nor survive; empty if there
// are none.
std::string neither_in_words(const std::vector<Mutation>& mutations) {
  std::string words;
  for (const std::string_view word : {word_of_refused, word_of_unknown}) {
    const auto count = std::ranges::count(mutations, word, word_for);
    if (count > 0) words += fmt::format(", {} {}", word, count);
  }
  return words;
}

}  // namespace

void print_mutations(std::ostream& out, const Mutations& mutations) {
  fmt::print(out, "{}: overrides {}, not noticed {}{}, vacuous assertions {}\n", mutations.scenario,
             mutations.mutations.size(), std::ranges::count_if(mutations.mutations, is_survivor),
             neither_in_words(mutations.mutations),
             mutations.all_tried ? mutations.vacuous.size() : 0);
  for (const Mutation& mutation : mutations.mutations) {
    const VariantOverride& without = mutation.without;
    fmt::print(out, "  {:<9} {} without {} = {} {}{}\n", word_for(mutation), without.variant,
               without.knob, without.value, what_happens(mutation), told_besides(mutation));
  }
  for (const AssertionVerdict& assertion : mutations.vacuous) {
    fmt::print(out, "  {:<9} {}: {}; no other step refutes it, of {} that were tried\n",
               mutations.all_tried ? "vacuous" : "unknown", assertion.name,
               one_line(assertion.text), mutations.changes);
  }
  for (const AssertionVerdict& assertion : mutations.never_inside) {
    fmt::print(out, "  {:<9} {}: {}; no step satisfies it, of {} that were tried\n",
               mutations.all_tried ? "never" : "unknown", assertion.name, one_line(assertion.text),
               mutations.changes + 1);
  }
  for (const AssertionVerdict& assertion : mutations.reversed) {
    fmt::print(out, "  reversed  {}: {}; on every simulated profile its reverse passes\n",
               assertion.name, one_line(assertion.text));
  }
  for (const AssertionVerdict& assertion : mutations.not_holding) {
    fmt::print(out, "  unknown   {}: {}; it {} here\n", assertion.name, one_line(assertion.text),
               predicate_of(assertion.outcome));
  }
}

std::vector<Diagnostic> faults_of(const Mutations& mutations) {
  std::vector<Diagnostic> faults;
  for (const Mutation& mutation : mutations.mutations) {
    if (is_survivor(mutation)) faults.push_back(fault_of(mutation));
  }
  for (const AssertionVerdict& assertion : mutations.reversed)
    faults.push_back(fault_of_reversed(assertion));
  if (!mutations.all_tried) return faults;
  for (const AssertionVerdict& assertion : mutations.never_inside)
    faults.push_back(fault_of_regime(assertion, mutations.changes));
  for (const AssertionVerdict& assertion : mutations.vacuous) {
    faults.push_back(
        {assertion.place,
         fmt::format("'{}' cannot fail: of {} other steps that were tried, none refutes it",
                     assertion.name, mutations.changes),
         "claim something that a knob decides, or remove it"});
  }
  return faults;
}

void print_unknown(std::ostream& out, const Mutations& mutations) {
  for (const Mutation& mutation : mutations.mutations) {
    if (mutation.effect != MutationEffect::does_not_run) continue;
    const VariantOverride& without = mutation.without;
    const Diagnostic note{without.place,
                          fmt::format("without '{}' of variant '{}' the simulated device refuses "
                                      "the step: {}",
                                      without.knob, without.variant, mutation.refusal),
                          "whether an assertion would notice is not known"};
    fmt::print(out, "warning: {}\n", to_string(note));
  }
  for (const DistantLimit& limit : mutations.distant) {
    const Diagnostic note{limit.assertion.place,
                          fmt::format("no override of the file decides '{}': {}",
                                      limit.assertion.name, how_far(limit)),
                          "bring the limit nearer to what the overrides do"};
    fmt::print(out, "note: {}\n", to_string(note));
  }
  for (const AssertionVerdict& assertion : mutations.not_holding) {
    const Diagnostic note{assertion.place,
                          fmt::format("'{}' {} on the simulated device", assertion.name,
                                      predicate_of(assertion.outcome)),
                          "whether it could fail is not known"};
    fmt::print(out, "warning: {}\n", to_string(note));
  }
}

}  // namespace stepgate
