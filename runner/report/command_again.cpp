// SPDX-License-Identifier: MIT
#include "report/command_again.h"

#include <algorithm>
#include <filesystem>

#include "base/process/command.h"
#include "base/process/masked_words.h"
#include "report/report.h"

namespace stepgate {

std::string command_again(const RunInfo& run, const std::string& scenario_file) {
  const CommandOfRun& command = run.command;
  if (command.options.empty()) return "";
  Command words{"stepgate"};
  std::ranges::copy(command.options, std::back_inserter(words));
  if (command.takes_seed) words.insert(words.end(), {"--seed", std::to_string(run.seed)});
  if (scenario_file.empty() || !command.takes_scenarios) {
    std::ranges::copy(command.choice, std::back_inserter(words));
  } else {
    words.push_back(file_word(scenario_file));
  }
  return to_text(masked(std::move(words)));
}

std::string command_again(const Report& report) {
  const auto did_not_pass = [](const ReportedScenario& scenario) {
    return scenario.end != CaseEnd::passed;
  };
  const auto count = std::ranges::count_if(report.scenarios, did_not_pass);
  if (count == 0) return "";
  if (count > 1) return command_again(report.run);
  return std::ranges::find_if(report.scenarios, did_not_pass)->again;
}

std::string again_in_words(const std::string& command) {
  return command.empty() ? "" : "again: " + command;
}

}  // namespace stepgate
