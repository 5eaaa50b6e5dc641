// SPDX-License-Identifier: MIT
#include "scenario/assertions/step_counts.h"

namespace stepgate {

std::string_view name_of(Phase phase) {
  constexpr std::array<std::string_view, phase_count> names{
      "data wait",  "h2d", "forward", "backward", "optimizer",
      "evaluation", "log", "sync",    "host",     "save"};
  return names[static_cast<std::size_t>(phase)];
}

std::string_view name_of(CollectiveKind kind) {
  constexpr std::array<std::string_view, 4> names{"all-reduce", "reduce-scatter", "all-gather",
                                                  "broadcast"};
  return names[static_cast<std::size_t>(kind)];
}

}  // namespace stepgate
