// SPDX-License-Identifier: MIT
// The verbs that ask what a scenario would notice: `mutate`, and `check`, which does so when it is
// to be strict and runs nothing otherwise.
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
  return status_of(survivors ? ExitCode::refuted : ExitCode::holds);
}

namespace {

void check_strictly(const Arguments& arguments) {
  std::vector<Diagnostic> faults;
  const auto add = [&](const std::vector<Diagnostic>& more) {
    faults.insert(faults.end(), more.begin(), more.end());
  };
  mutate_each(arguments, [&](const Planned& planned, const Mutations& mutations) {
    print_checked(std::cout, planned.scenario);
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
    for (const Planned& planned : plan_all(arguments, 1))
      print_checked(std::cout, planned.scenario);
  }
  return status_of(ExitCode::holds);
}

}  // namespace stepgate
