// SPDX-License-Identifier: MIT
// An article says a ratio, and a run measured it: whether that figure holds, is exceeded or is
// refuted here. Decides no assertion.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "judge/verdict/verdict.h"
#include "scenario/scenario.h"

namespace stepgate {

// `open`: nothing was measured, or it is outside the regime.
enum class FigureAnswer { holds, exceeded, refuted, open };
std::string_view in_words(FigureAnswer);

// The figure holds where the interval and the figure have a number in common. It is exceeded where
// the effect is larger than the figure, further from 1 on the same side, and refuted otherwise.
FigureAnswer answer_to(const ArticleFigure&, RatioInterval measured);

struct ReportedFigure {
  std::string scenario;
  ArticleFigure figure;
  std::string bad;                   // variant and value of the side that the figure calls worse
  std::string good;                  // empty, as is `bad`, where nothing is known
  std::optional<double> ratio = {};  // left metric / right metric
  // Absent for counts, which are exact. The range of the rounds where those are too few for more.
  std::optional<RatioInterval> interval = {};
  FigureAnswer answer = FigureAnswer::open;
};

// The scenario may be null, and then has no figures.
std::vector<ReportedFigure> reported_figures(const Verdict&, const Scenario*);

// A row of titles, and one for each figure; empty without figures.
std::vector<std::vector<std::string>> figure_table(std::span<const ReportedFigure>);

}  // namespace stepgate
