// SPDX-License-Identifier: MIT
// The verbs that run nothing: list, plan, fields.
#include <unistd.h>

#include <iostream>
#include <utility>
#include <vector>

#include "base/files/line_file.h"
#include "base/files/write_file.h"
#include "base/text/text_stream.h"
#include "line/fit_to_device.h"
#include "line/planned.h"
#include "plan/allocate/run_allocator.h"
#include "plan/analyse/access.h"
#include "plan/count/facts_of.h"
#include "report/json/write_plan_json.h"
#include "report/picture/pictures.h"
#include "report/text/print_list.h"
#include "report/text/print_plan.h"
#include "report/text/table.h"
#include "scenario/knobs/field_documents.h"
#include "scenario/read/read_scenario.h"
#include "verbs/outputs.h"
#include "verbs/verbs.h"

namespace stepgate {

namespace {

// Writes a line for every file, so that an error in one does not hide the others.
int list_for_programs(const Arguments& arguments) {
  int code = 0;
  for (const std::filesystem::path& file : scenario_files(arguments)) {
    try {
      write_listed(std::cout, read_scenario(file));
    } catch (const RequestError& error) {
      write_unlisted(std::cout, file.string(), error);
      std::cerr << error.what() << '\n';
      code = status_of(ExitCode::wrong_request);
    }
  }
  return code;
}

}  // namespace

int list_scenarios(const Arguments& arguments) {
  if (arguments.as_json) return list_for_programs(arguments);
  for (const std::filesystem::path& file : scenario_files(arguments)) {
    const Scenario scenario = read_scenario(file);
    print_fitted(std::cout, style_of(STDOUT_FILENO),
                 [&](std::ostream& out) { print_listed(out, scenario); });
  }
  return 0;
}

namespace {

// Returns the scenarios with a requested variant, each with the plans of these.
std::vector<Planned> plans_asked_for(const Arguments& arguments) {
  std::vector<Planned> scenarios;
  for (Planned& planned : plan_all(arguments, 1)) {
    std::erase_if(planned.plans, [&](const StepPlan& plan) {
      return !arguments.variant.empty() && plan.variant != arguments.variant;
    });
    refuse_shares_of_a_device(planned);
    if (!planned.plans.empty()) scenarios.push_back(std::move(planned));
  }
  if (!scenarios.empty()) return scenarios;
  throw RequestError("no variant is named '" + arguments.variant + "'",
                     "`stepgate list` shows them");
}

// Writes a line for every variant with its own allocator.
void write_memory_lines(const std::vector<Planned>& scenarios, const std::filesystem::path& file) {
  TextStream lines;
  for (const Planned& planned : scenarios) {
    for (const StepPlan& plan : planned.plans) {
      if (!plan.allocator) continue;
      MemoryHistory history;
      (void)run_allocator(plan, plan.counted_steps, &history);
      write_memory_json(lines, planned.scenario, plan, history);
    }
  }
  if (lines.view().empty())
    throw RequestError("no variant has an allocator of its own, so there is nothing to look at",
                       "set 'alloc.with' to caching, expandable or first_fit");
  LineFile(file).append(lines.view());
}

}  // namespace

int print_plans(const Arguments& arguments) {
  check_outputs(arguments);
  std::vector<Planned> scenarios = plans_asked_for(arguments);
  if (!arguments.json.empty()) write_memory_lines(scenarios, arguments.json);
  bool first = true;
  for (Planned& planned : scenarios) {
    for (PlannedStep& plan : planned.plans) {
      // With several batch sizes in turn, the largest one needs the most memory.
      if (arguments.memory && plan->batch_sizes.size() > 1) plan = with_facts(largest_turn(plan));
      if (!std::exchange(first, false)) std::cout << '\n';
      const auto print = arguments.memory ? print_memory : print_plan;
      print_fitted(std::cout, style_of(STDOUT_FILENO),
                   [&](std::ostream& out) { print(out, plan); });
    }
    if (arguments.picture.empty()) continue;
    TextStream picture;
    draw_memory(picture, planned.plans);
    write_file(picture_file(arguments.picture, planned.plans.front(), scenarios.size()),
               picture.str());
  }
  return 0;
}

int print_fields(const Arguments& arguments) {
  const std::string fields = fields_text(arguments.filter);
  if (fields.empty()) {
    throw RequestError("no field and no metric has '" + arguments.filter + "' in its name",
                       "`stepgate fields` shows all of them");
  }
  std::cout << fields;
  return 0;
}

}  // namespace stepgate
