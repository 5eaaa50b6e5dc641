// SPDX-License-Identifier: MIT
#include "verbs/terminal_progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <memory>
#include <utility>

#include "base/text/number_words.h"
#include "line/decide.h"
#include "report/text/print_list.h"

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
    print_fitted(std::cout, style_of(STDOUT_FILENO),
                 [&](std::ostream& out) { print_forecast(out, scenario.name, cost); });
    std::cout << std::flush;
  };
  return sink;
}

namespace {

class TracingProgress {
 public:
  TracingProgress(std::size_t scenarios, Traces traces, Style style)
      : scenarios_(scenarios), traces_(traces), style_(style) {}

  void tracing(const Scenario& scenario) {
    const TimedSoFar timed{.begin = begin_, .count = traced_ - std::min<std::size_t>(traced_, 1)};
    std::string words = scenarios_ < 2 ? "" : position_in_words(traced_, scenarios_, timed);
    words += "tracing " + scenario.name;
    if (passed_ > 0) words += fmt::format("; {} pass", counted_in_words(passed_, "count"));
    if (failed_ > 0) words += fmt::format("; {} fail", failed_);
    line_.show(words);
  }

  void traced(const Planned& planned, const Traced& trace) {
    // The first one waits for the tracing process too.
    if (++traced_ == 1) begin_ = std::chrono::steady_clock::now();
    if (scenarios_ < 2) return;
    for (const AssertionVerdict& count : decide_counts(planned, trace)) {
      passed_ += count.outcome == Outcome::passes ? 1 : 0;
      if (count.outcome != Outcome::fails) continue;
      ++failed_;
      line_.clear();
      print_fitted(std::cout, style_, [&](std::ostream& out) {
        print_early(out, planned.scenario.name, count, traces_, style_);
      });
      std::cout << std::flush;
    }
  }

 private:
  ProgressLine line_{isatty(STDERR_FILENO) != 0 ? &std::cerr : nullptr};
  std::size_t scenarios_;
  Traces traces_;
  Style style_;
  std::size_t traced_ = 0;
  std::int64_t passed_ = 0;
  std::int64_t failed_ = 0;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace

std::string position_in_words(std::size_t done, std::size_t all, const TimedSoFar& timed) {
  std::string left;
  if (timed.count > 0) {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - timed.begin;
    const double each = spent.count() / static_cast<double>(timed.count);
    left = fmt::format(", ~{:.0f} s left", each * static_cast<double>(all - done));
  }
  return fmt::format("[{}/{}{}] ", done + 1, all, left);
}

ProgressSink tracing_progress(std::size_t scenarios, Traces traces, Style style) {
  const auto progress = std::make_shared<TracingProgress>(scenarios, traces, style);
  ProgressSink sink;
  sink.tracing = [progress](const Scenario& scenario) { progress->tracing(scenario); };
  sink.traced = [progress](const Planned& planned, const Traced& trace) {
    progress->traced(planned, trace);
  };
  return sink;
}

}  // namespace stepgate
