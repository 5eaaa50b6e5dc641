// SPDX-License-Identifier: MIT
// The verbs that run nothing: list, check, plan, fields.
#include <iostream>

#include "report/print_list.h"
#include "report/print_plan.h"
#include "scenario/field_documents.h"
#include "scenario/read_scenario.h"
#include "verbs/planned.h"
#include "verbs/verbs.h"

namespace stepgate {

int check_scenarios(const Arguments& arguments) {
  const std::vector<Planned> all = plan_all(arguments, 1);
  for (const Planned& planned : all) print_checked(std::cout, planned.scenario);
  return 0;
}

int list_scenarios(const Arguments& arguments) {
  for (const std::filesystem::path& file : scenario_files(arguments))
    print_listed(std::cout, read_scenario(file));
  return 0;
}

int print_plans(const Arguments& arguments) {
  bool found = false;
  for (const Planned& planned : plan_all(arguments, 1)) {
    for (const StepPlan& plan : planned.plans) {
      if (!arguments.variant.empty() && plan.variant != arguments.variant) continue;
      if (found) std::cout << '\n';
      print_plan(std::cout, plan);
      found = true;
    }
  }
  if (found) return 0;
  throw RequestError("no variant is named '" + arguments.variant + "'",
                     "`stepgate list` shows them");
}

int print_fields(const Arguments& arguments) {
  std::cout << fields_text(arguments.filter);
  return 0;
}

}  // namespace stepgate
