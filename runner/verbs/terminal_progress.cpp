// SPDX-License-Identifier: MIT
#include "verbs/terminal_progress.h"

#include <unistd.h>

#include <iostream>
#include <memory>
#include <utility>

#include "report/text/print_list.h"
#include "report/text/table.h"

namespace stepgate {

ProgressSink terminal_progress(Forecasts forecasts, std::string position) {
  const auto line = std::make_shared<ProgressLine>(isatty(STDERR_FILENO) ? &std::cerr : nullptr);
  ProgressSink sink;
  sink.tracing = [line](const Scenario& scenario) { line->show("tracing " + scenario.name); };
  sink.starting = [line](const Scenario& scenario, const std::string& command) {
    line->clear();
    std::cerr << scenario.name << ": " << command << '\n' << std::flush;
  };
  sink.measuring = [line, position = std::move(position)](const Scenario& scenario,
                                                          const Progress& now) {
    line->show(position + scenario.name, now.rounds, now.spent);
  };
  if (forecasts == Forecasts::hidden) return sink;
  sink.forecast = [](const Scenario& scenario, const Forecast& cost) {
    print_forecast(std::cout, scenario.name, cost);
    std::cout << std::flush;
  };
  return sink;
}

}  // namespace stepgate
