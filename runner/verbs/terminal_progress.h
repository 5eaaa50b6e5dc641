// SPDX-License-Identifier: MIT
// Shows what is at work on the last line of the terminal.
#pragma once

#include <string>

#include "line/progress_sink.h"

namespace stepgate {

// Whether what a scenario will cost is printed before its first round.
enum class Forecasts { hidden, printed };

// `position` stands before the scenario that is measured: "[12/69] ". The line is cleared at the
// end of the sink and of its copies. Shows none where standard error is no terminal.
ProgressSink terminal_progress(Forecasts = Forecasts::hidden, std::string position = {});

}  // namespace stepgate
