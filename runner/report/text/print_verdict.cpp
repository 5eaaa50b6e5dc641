// SPDX-License-Identifier: MIT
// The printed report.
#include "report/text/print_verdict.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <ostream>
#include <utility>
#include <vector>

#include "judge/judge_clocks.h"
#include "judge/verdict/words.h"
#include "report/text/print_mechanism.h"
#include "report/text/print_step.h"
#include "report/text/table.h"
#include "report/text/verdict_words.h"
#include "support/seconds.h"
#include "support/text/number_words.h"
#include "support/text/visible_text.h"

namespace stepgate {
namespace {

constexpr std::array all_outcomes{
    Outcome::holds,       Outcome::refuted,        Outcome::undecided,     Outcome::skipped,
    Outcome::no_baseline, Outcome::not_comparable, Outcome::machine_slower};

void print_variants(std::ostream& out, const std::vector<VariantSummary>& variants) {
  const std::vector<std::vector<std::string>> rows = variant_rows(variants);
  if (rows.empty()) return;
  std::vector<Align> alignment(rows.front().size(), Align::right);
  alignment.front() = Align::left;
  out << '\n';
  print_table(out, alignment, rows);
}

void print_sentences(std::ostream& out, std::string_view title,
                     const std::vector<SentenceVerdict>& sentences, Style style) {
  if (sentences.empty()) return;
  std::size_t name_width = 0;
  for (const SentenceVerdict& sentence : sentences) {
    name_width = std::max(name_width, sentence.name.size());
  }
  out << '\n' << title << '\n';
  for (const SentenceVerdict& sentence : sentences) {
    out << fmt::format("  {}  {:<{}}  {}\n", outcome_cell(sentence.outcome, style), sentence.name,
                       name_width, one_line(sentence.text));
    out << fmt::format("  {:<{}}  {}\n", "", outcome_width, one_line(sentence.reason));
    if (sentence.clocks) {
      out << fmt::format("  {:<{}}  {}\n", "", outcome_width, in_words(*sentence.clocks));
    }
  }
}

void print_environment(std::ostream& out, const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  out << "\nenvironment\n";
  for (const std::string& line : lines) out << "  " << one_line(line) << '\n';
}

constexpr std::string_view simulated_mark = "SIMULATED";

bool is_simulated(const Verdict& verdict) {
  return !verdict.planned_only && verdict.device.kind == DeviceKind::simulated;
}

void print_last_line(std::ostream& out, const Verdict& verdict, const std::string& more,
                     Style style) {
  if (is_simulated(verdict)) out << simulated_mark << ' ';
  out << verdict.scenario << ": ";
  const auto ended = [&](std::string_view how, const std::string& why) {
    out << coloured(how, colour_of(Outcome::refuted), style) << ": " << visible_lines(why) << '\n';
  };
  if (verdict.not_run) return ended("not run", *verdict.failed);
  if (verdict.failed) return ended("the device failed", *verdict.failed);
  if (verdict.broken) return ended("broken", *verdict.broken);
  out << coloured(verdict.outcome, style);
  if (!verdict.skipped_because.empty()) out << ": " << one_line(verdict.skipped_because);
  if (verdict.planned_only) out << " by its plans";
  out << cost_in_words(verdict) << more << '\n';
}

// " (a.line, b.line)", of many the first.
std::string in_brackets(std::span<const std::string> names) {
  constexpr std::size_t most_named = 6;
  if (names.empty()) return "";
  const std::string rest =
      names.size() > most_named ? fmt::format(" and {} more", names.size() - most_named) : "";
  return fmt::format(" ({}{})", fmt::join(names.first(std::min(names.size(), most_named)), ", "),
                     rest);
}

// Adds the sentences that make the outcome of their scenario what it is, where that is not the good
// one. A scenario that is skipped as a whole adds its own name.
void add_deciding_lines(const Verdict& verdict, std::vector<std::string>& names) {
  if (verdict.outcome == Outcome::holds) return;
  if (!verdict.skipped_because.empty()) return names.push_back(verdict.scenario);
  for (const SentenceVerdict& sentence : verdict.sentences) {
    if (sentence.outcome == verdict.outcome)
      names.push_back(verdict.scenario + "." + sentence.name);
  }
}

// "x", or "x, x.line refuted": what is refuted counts whatever else became of its scenario.
std::string with_refuted_lines(const Verdict& verdict) {
  std::string words = verdict.scenario;
  for (const SentenceVerdict& sentence : verdict.sentences) {
    if (sentence.outcome == Outcome::refuted)
      words += fmt::format(", {}.{} refuted", verdict.scenario, sentence.name);
  }
  return words;
}

// The comparisons that speak most against the suite, the first first.
std::vector<std::string> lines_against(std::span<const Verdict> verdicts) {
  constexpr std::size_t most_named = 3;
  std::vector<std::pair<double, std::string>> lines;
  for (const Verdict& verdict : verdicts) {
    for (const SentenceVerdict& sentence : verdict.sentences) {
      if (verdict.broken || !sentence.timed || sentence.in_doubt) continue;
      if (sentence.timed->evidence_against <= 1) continue;
      lines.emplace_back(-sentence.timed->evidence_against, verdict.scenario + "." + sentence.name);
    }
  }
  std::sort(lines.begin(), lines.end());
  std::vector<std::string> names;
  for (const auto& [evidence, name] : lines) {
    if (names.size() < most_named) names.push_back(name);
  }
  return names;
}

void print_suite_verdict(std::ostream& out, std::span<const Verdict> verdicts,
                         const SuiteVerdict& suite, Style style) {
  const std::string refuted = coloured(Outcome::refuted, style);
  for (const std::string& line : suite.refuted_among_others) {
    out << fmt::format("{}: {}, undecided alone, by the evidence among all {} comparisons\n",
                       refuted, line, suite.lines);
  }
  if (!suite.refuted) return;
  out << fmt::format(
      "{}: the suite as a whole: the evidence against its {} comparisons together is {}, and "
      "{} is enough; wrongly so in at most {} of runs; most of it against {}\n",
      refuted, suite.lines, number_in_words(suite.evidence, 3), number_in_words(1 / suite.alpha, 3),
      share_in_words(suite.alpha), fmt::join(lines_against(verdicts), ", "));
}

void print_notes(std::ostream& out, std::span<const std::string> notes) {
  for (const std::string& note : notes) out << "note: " << visible_lines(note) << '\n';
}

}  // namespace

void print_verdict(std::ostream& out, const Verdict& verdict, Style style) {
  out << verdict.scenario
      << (verdict.planned_only ? ", by its plans: no device takes part"
                               : " on " + in_words(verdict.device))
      << '\n';
  if (!verdict.claim.empty()) out << one_line(verdict.claim) << '\n';
  if (verdict.calibrated) {
    const Calibrated& found = *verdict.calibrated;
    out << fmt::format("calibrated: {} = {}, where the metric is {} (\"{}\", {} trials)\n",
                       found.knob, found.value, in_words(found.metric, found.unit), found.aim,
                       found.trials);
  }
  if (!verdict.steps.empty()) out << "\nstep\n";
  print_steps(out, verdict.steps);
  print_variants(out, verdict.variants);
  print_sentences(out, "regime", verdict.regime, style);
  print_sentences(out, "expect", verdict.sentences, style);
  if (verdict.mechanism) print_mechanism(out, *verdict.mechanism);
  print_environment(out, verdict.environment);
  out << '\n';
  print_notes(out, verdict.notes);
  print_last_line(out, verdict, rates_in_words(verdict), style);
}

void print_outcome(std::ostream& out, const Verdict& verdict, Style style) {
  // All that come after the one that lost the device have its story: the tally counts them.
  if (verdict.not_run && verdict.outcome != Outcome::refuted) return;
  if (verdict.outcome != Outcome::holds || verdict.broken || verdict.failed) {
    out << '\n';
    print_verdict(out, verdict, style);
    out << '\n';
    return;
  }
  const std::span all(verdict.notes);
  print_notes(out, all.first(verdict.notes_told_always));
  const auto left = std::ssize(all) - static_cast<std::ptrdiff_t>(verdict.notes_told_always);
  print_last_line(
      out, verdict,
      left == 0 ? "" : fmt::format("; {}, which --verbose tells", counted_in_words(left, "note")),
      style);
}

void print_suite_table(std::ostream& out, std::span<const Verdict> verdicts, Style style) {
  std::vector<std::vector<std::string>> rows;
  for (const Verdict& verdict : verdicts) {
    const auto cell = [&](std::string_view words) {
      return coloured(fmt::format("{:<{}}", words, outcome_width), colour_of(Outcome::refuted),
                      style);
    };
    rows.push_back({verdict.not_run  ? cell("not run")
                    : verdict.failed ? cell("failed")
                    : verdict.broken ? cell("broken")
                                     : outcome_cell(verdict.outcome, style),
                    verdict.scenario,
                    verdict.rounds == 0 ? "" : counted_in_words(verdict.rounds, "round"),
                    is_simulated(verdict) ? std::string(simulated_mark) : ""});
  }
  print_table(out, {}, rows);
}

void print_tally(std::ostream& out, std::span<const Verdict> verdicts, const SuiteVerdict& suite,
                 const RunInfo& run, Style style) {
  print_suite_verdict(out, verdicts, suite, style);
  std::string tally = counted_in_words(std::ssize(verdicts), "scenario");
  const auto add = [&](std::string_view how, const std::vector<std::string>& which,
                       std::size_t count) {
    if (count > 0) tally += fmt::format(", {} {}{}", count, how, in_brackets(which));
  };
  std::vector<std::string> failed;
  std::vector<std::string> unrun;
  std::vector<std::string> broken;
  for (const Verdict& verdict : verdicts) {
    if (verdict.not_run) {
      unrun.push_back(with_refuted_lines(verdict));
    } else if (verdict.failed) {
      failed.push_back(with_refuted_lines(verdict));
    } else if (verdict.broken) {
      broken.push_back(with_refuted_lines(verdict));
    }
  }
  add("failed", failed, failed.size());
  add("not run", unrun, unrun.size());
  add("broken", broken, broken.size());
  for (const Outcome outcome : all_outcomes) {
    std::vector<std::string> deciding;
    std::size_t count = 0;
    for (const Verdict& verdict : verdicts) {
      if (verdict.failed || verdict.broken || verdict.outcome != outcome) continue;
      ++count;
      add_deciding_lines(verdict, deciding);
    }
    add(in_words(outcome), deciding, count);
  }
  const bool any_alone = std::any_of(verdicts.begin(), verdicts.end(), [](const Verdict& verdict) {
    return verdict.outcome == Outcome::refuted;
  });
  if (!any_alone && (suite.refuted || !suite.refuted_among_others.empty()))
    tally += fmt::format("; {} as a suite", coloured(Outcome::refuted, style));
  if (!run.gated) tally += "; not gated: nothing was measured";
  out << (run.simulated ? fmt::format("{} ", simulated_mark) : "") << tally << '\n';
}

void print_wall_times(std::ostream& out, const WallTimes& times, std::chrono::nanoseconds whole) {
  out << fmt::format("{:.2f} s on the clock:", seconds(whole));
  for (const WallPart part : all_wall_parts()) {
    if (times[part].count() != 0)
      out << fmt::format(" {} {:.2f},", name_of(part), seconds(times[part]));
  }
  out << fmt::format(" other {:.2f}\n", seconds(whole - times.sum()));
}

void print_forecast(std::ostream& out, const std::string& scenario, const Forecast& forecast) {
  const auto cost = [&](double rounds) {
    return fmt::format("{} rounds ({})", number_in_words(std::round(rounds), 3),
                       seconds_in_words(rounds * seconds(forecast.round)));
  };
  out << fmt::format("{}: can hold after {}, be refuted after {}", scenario,
                     cost(static_cast<double>(forecast.rounds_to_hold)),
                     cost(static_cast<double>(forecast.rounds_to_refute)));
  if (forecast.rounds_for_one_percent) {
    out << fmt::format("; a line 1 % from its limit takes about {}",
                       cost(*forecast.rounds_for_one_percent));
  }
  out << fmt::format("; there is room for {}\n", forecast.rounds_that_fit);
}

}  // namespace stepgate
