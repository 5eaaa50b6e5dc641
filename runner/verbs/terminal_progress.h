// SPDX-License-Identifier: MIT
// Shows what is at work on the last line of the terminal, and what is known before its turn.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "line/progress_sink.h"
#include "report/text/print_list.h"
#include "report/text/table.h"

namespace stepgate {

// Whether what a scenario will cost is printed before its first round.
enum class Forecasts { hidden, printed };

// `position` stands before the scenario that is measured: "[12/69] ". The line is cleared at the
// end of the sink and of its copies. Shows none where standard error is no terminal.
ProgressSink terminal_progress(Forecasts = Forecasts::hidden, std::string position = {});

// How many scenarios were done since `begin`.
struct TimedSoFar {
  std::chrono::steady_clock::time_point begin;
  std::size_t count = 0;
};
// "[12/69, ~40 s left] ": the others take as long each as those that were timed.
std::string position_in_words(std::size_t done, std::size_t all, const TimedSoFar&);

// Shows while scenarios are traced how many are, how long the others take, and what their counts
// decide: "[12/69, ~9 s left] tracing input_path; 63 counts pass, 1 fails". Where there are
// several, prints a count that fails at once: its scenario is timed only after all are traced.
ProgressSink tracing_progress(std::size_t scenarios, Traces, Style);

}  // namespace stepgate
