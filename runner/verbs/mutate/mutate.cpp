// SPDX-License-Identifier: MIT
// The verbs that ask what a scenario would notice: `mutate`, and `check`, which does so when it is
// to be strict and runs nothing otherwise.
#include <fmt/format.h>

#include <iostream>

#include "report/exit_code.h"
#include "report/text/print_list.h"
#include "report/text/print_mutations.h"
#include "scenario/read/lint.h"
#include "verbs/mutate/mutations_of.h"
#include "verbs/verbs.h"

namespace stepgate {

int mutate_scenarios(const Arguments& arguments) {
  bool survivors = false;
  mutate_each(arguments, [&](const Planned&, const Mutations& mutations) {
    print_mutations(std::cout, mutations);
    std::cout << std::flush;
    survivors = survivors || has_survivors(mutations);
  });
  return status_of(survivors ? ExitCode::fails : ExitCode::passes);
}

namespace {

// An assertion on what the plans of two variants count differently, which is true of them; empty
// where there is none.
std::string count_that_differs(const Planned& planned) {
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

void print_with_warnings(const Planned& planned) {
  print_checked(std::cout, planned.scenario, lint(planned.scenario, count_that_differs(planned)));
}

void check_strictly(const Arguments& arguments) {
  std::vector<Diagnostic> faults;
  const auto add = [&](const std::vector<Diagnostic>& more) {
    faults.insert(faults.end(), more.begin(), more.end());
  };
  mutate_each(arguments, [&](const Planned& planned, const Mutations& mutations) {
    print_with_warnings(planned);
    print_unknown(std::cout, mutations);
    add(identical_variants(planned.scenario));
    add(faults_of(mutations));
  });
  if (!faults.empty()) throw RequestError(std::move(faults));
}

}  // namespace

int check_scenarios(const Arguments& arguments) {
  if (arguments.strict) {
    check_strictly(arguments);
  } else {
    for (const Planned& planned : plan_all(arguments, 1)) print_with_warnings(planned);
  }
  return status_of(ExitCode::passes);
}

}  // namespace stepgate
