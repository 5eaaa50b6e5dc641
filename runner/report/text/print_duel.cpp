// SPDX-License-Identifier: MIT
// The printed report of a duel.
#include "report/text/print_duel.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "judge/verdict/words.h"
#include "report/text/coloured.h"
#include "report/text/table.h"

namespace stepgate {
namespace {

std::string plural(std::int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string program_in_words(const Hello& hello) {
  return hello.version.empty() ? hello.program : fmt::format("{} {}", hello.program, hello.version);
}

std::string step_in_words(const std::optional<double>& seconds) {
  return seconds ? in_words(*seconds, MetricUnit::seconds) : "-";
}

void print_works(std::ostream& out, const std::vector<WorkVerdict>& works) {
  std::vector<std::vector<std::string>> rows{
      {"work", "BASE step", "HEAD step", "pairs", "superblocks"}};
  for (const WorkVerdict& work : works) {
    rows.push_back({work.name, step_in_words(work.base_step_seconds),
                    step_in_words(work.head_step_seconds), std::to_string(work.pairs),
                    std::to_string(work.superblocks)});
  }
  print_table(out, {Align::left, Align::right, Align::right, Align::right, Align::right}, rows);
}

}  // namespace

void print_duel_terms(std::ostream& out, const Introduction& both, const DuelSubject& subject,
                      const DuelSettings& settings, std::int64_t most_pairs) {
  out << fmt::format("duel of {} (BASE) and {} (HEAD)", program_in_words(both.base),
                     program_in_words(both.head));
  if (!both.base.device.empty()) out << " on " << both.base.device;
  out << fmt::format(
      "\n{}; HEAD may be at most {:.3g} % slower. At least {} pairs of launches until a work "
      "holds, "
      "{} until one is refuted, at most {}\n",
      plural(std::ssize(subject.works), "work"), 100 * settings.margin,
      fewest_pairs_to_hold(settings), fewest_pairs_to_refute(subject.works.size(), settings),
      most_pairs);
  out << std::flush;  // the pairs take their time
}

void print_duel(std::ostream& out, const DuelVerdict& verdict, Style style) {
  out << '\n';
  print_works(out, verdict.works);
  out << '\n';
  for (const WorkVerdict& work : verdict.works) {
    out << fmt::format("  {}  {}\n  {:<{}}  {}\n", outcome_cell(work.outcome, style), work.name, "",
                       outcome_width, work.reason);
  }
  out << '\n';
  for (const std::string& note : verdict.notes) out << "note: " << note << '\n';
  const Introduction& both = verdict.introduction;
  if (both.base.simulated || both.head.simulated) out << "SIMULATED ";
  out << fmt::format(
      "duel: {} after {:.3g} s; unit of evidence: launches of fresh processes ({}); any work is "
      "wrongly refuted in at most {:.3g} % of duels, one wrongly held in {:.3g} %{}\n",
      coloured(verdict.outcome, style), std::chrono::duration<double>(verdict.wall_time).count(),
      plural(verdict.pairs, "pair"), 100 * verdict.settings.alpha, 100 * verdict.settings.beta,
      gates(both) ? "" : "; not gated: there is no GPU, and nothing was measured");
}

}  // namespace stepgate
