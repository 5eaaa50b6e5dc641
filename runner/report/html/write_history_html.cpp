// SPDX-License-Identifier: MIT
// The page of `stepgate history`.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ostream>
#include <sstream>

#include "base/text/number_words.h"
#include "base/text/text_stream.h"
#include "report/append.h"
#include "report/html/html.h"
#include "report/picture/pictures.h"
#include "report/text/print_history.h"

namespace stepgate {
namespace {

// Each history is drawn twice, and the style shows the picture that fits the page.
struct PageWidth {
  std::string_view name;
  double pixels;
};
constexpr std::array page_widths{PageWidth{"wide", 1000}, PageWidth{"narrow", 356}};

constexpr std::string_view page_style = R"css(svg.history{display:block;width:100%;height:auto}
svg.history.narrow{display:none;max-width:36rem}
@media (max-width:720px){svg.history.wide{display:none}svg.history.narrow{display:block}}
)css";

Tone tone_of(HistoryOutcome outcome) {
  switch (exit_code(outcome)) {
    case ExitCode::passes:
      return Tone::good;
    case ExitCode::fails:
      return Tone::bad;
    default:
      return Tone::open;
  }
}

std::string name_of(const VariantHistory& history) {
  return history.scenario + "/" + history.variant;
}

std::string html_headline(const RunInfo& run, std::span<const VariantHistory> all,
                          std::span<const std::string> missing, ExitCode code) {
  const std::string_view words = code == ExitCode::fails    ? "A step drifts"
                                 : code == ExitCode::passes ? "Steady"
                                                            : "Not gated";
  const Tone tone = code == ExitCode::fails    ? Tone::bad
                    : code == ExitCode::passes ? Tone::good
                                               : Tone::open;
  TextStream printed;
  print_history_end(printed, all, missing.size(), code);
  std::string end = printed.str();
  end.pop_back();  // the end of the line
  return fmt::format("<header>\n<h1>stepgate history</h1>\n<p class=\"verdict {}\">{}</p>\n",
                     class_of(tone), words) +
         html_paragraph(end) + html_paragraph(fmt::format("Exit code {}", status_of(code))) +
         html_paragraph(fmt::format("{} on {}, stepgate {}", run.date, run.host, run.stepgate),
                        "dim") +
         "</header>\n";
}

std::string html_figure(const VariantHistory& history) {
  const std::string words = fmt::format("How the stored runs of {} changed over the weeks: {}",
                                        name_of(history), in_words(history.outcome));
  std::string html = "<figure>\n";
  for (const PageWidth& width : page_widths) {
    TextStream svg;
    draw_history(svg, history, {.width = width.pixels, .is_file = false});
    html += embedded_picture(svg.str(), words, 0, fmt::format("history {}", width.name));
  }
  return html + "</figure>\n";
}

std::string html_runs(const VariantHistory& history) {
  std::vector<std::vector<std::string>> rows{
      {"date", "time of a step", "from the oldest", "commit", "compared", "driver", "GPU"}};
  for (const HistoryRun& run : history.runs) {
    const double change = change_from_oldest(history, run);
    std::string words = change_in_words(change);
    if (run.half_interval) {
      append(words, " [{:+.2f}, {:+.2f}]", 100 * std::expm1(change - *run.half_interval),
             100 * std::expm1(change + *run.half_interval));
    }
    rows.push_back({run.date, fmt::format("{:.4g} us", 1e6 * std::exp(run.raw)), std::move(words),
                    run.commit, run.is_compared ? "yes" : "no", run.driver, run.device});
  }
  const std::string caption = "Every stored run of " + name_of(history);
  return html_details(
      false, counted_in_words(std::ssize(history.runs), "run") + ", with their times and commits",
      html_table(caption, rows, "words"), "inner");
}

// The lines that the verb prints about the variant: the first has the answer, and each other one a
// change or a period.
std::string html_history(const VariantHistory& history) {
  TextStream printed;
  print_history(printed, history);
  std::istringstream lines(printed.str());
  std::string answer;
  std::getline(lines, answer);
  std::vector<std::string> more;
  for (std::string line; std::getline(lines, line);) more.push_back(line);
  const std::string summary = html_badge(in_words(history.outcome), tone_of(history.outcome)) +
                              " <h3>" + html_text(name_of(history)) + "</h3> <span class=\"dim\">" +
                              html_text(history.device) + "</span>";
  return html_details(true, summary,
                      html_paragraph(answer) + html_figure(history) +
                          html_list(4, "Changes and periods", more) + html_runs(history));
}

}  // namespace

void write_history_html(std::ostream& out, const RunInfo& run, std::span<const VariantHistory> all,
                        std::span<const std::string> missing, ExitCode code) {
  out << html_begin("stepgate history", std::string(page_style) + std::string(history_style))
      << html_headline(run, all, missing, code);
  constexpr std::array gravest_first{HistoryOutcome::drifts, HistoryOutcome::machine_drifts,
                                     HistoryOutcome::wanders, HistoryOutcome::too_few,
                                     HistoryOutcome::steady};
  if (!all.empty()) out << "<section>\n<h2>Stored runs</h2>\n";
  for (const HistoryOutcome outcome : gravest_first) {
    for (const VariantHistory& history : all) {
      if (history.outcome == outcome) out << html_history(history);
    }
  }
  if (!all.empty()) out << "</section>\n";
  out << html_list(2, "No run is stored of", {missing.begin(), missing.end()}) << html_end();
}

}  // namespace stepgate
