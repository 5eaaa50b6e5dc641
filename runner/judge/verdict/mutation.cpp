// SPDX-License-Identifier: MIT
#include "judge/verdict/mutation.h"

#include <algorithm>

namespace stepgate {

std::vector<std::string> no_longer_holding(const Verdict& before, const Verdict& after,
                                           bool failed_alone) {
  std::vector<std::string> names;
  for (const AssertionVerdict& assertion : before.assertions) {
    if (assertion.outcome != Outcome::passes) continue;
    const auto now = std::ranges::find(after.assertions, assertion.name, &AssertionVerdict::name);
    const bool holds = now != after.assertions.end() && now->outcome == Outcome::passes;
    const bool failed = now != after.assertions.end() && now->outcome == Outcome::fails;
    if (failed_alone ? failed : !holds) names.push_back(assertion.name);
  }
  return names;
}

std::vector<ChangedCount> changed_counts(const std::map<Metric, double>& before,
                                         const std::map<Metric, double>& after) {
  std::vector<ChangedCount> different;
  for (const auto& [metric, value] : before) {
    const auto now = after.find(metric);
    if (now != after.end() && now->second != value)
      different.push_back({metric, value, now->second});
  }
  return different;
}

MutationEffect effect_of(const Verdict& before, const Verdict& after) {
  if ((after.broken && !before.broken) || !no_longer_holding(before, after, true).empty())
    return MutationEffect::fails;
  return no_longer_holding(before, after, false).empty() ? MutationEffect::survives
                                                         : MutationEffect::undecided;
}

bool is_survivor(const Mutation& mutation) {
  return mutation.effect == MutationEffect::undecided ||
         mutation.effect == MutationEffect::survives ||
         mutation.effect == MutationEffect::same_step;
}

}  // namespace stepgate
