// SPDX-License-Identifier: MIT
// Writes a run or a gate as an HTML page.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <ostream>
#include <set>
#include <utility>

#include "base/seconds.h"
#include "base/text/number_words.h"
#include "base/text/text_stream.h"
#include "report/append.h"
#include "report/command_again.h"
#include "report/html/html.h"
#include "report/picture/pictures.h"
#include "report/writers.h"

namespace stepgate {
namespace {

Tone tone_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::passes:
      return Tone::good;
    case Outcome::fails:
      return Tone::bad;
    case Outcome::undecided:
    case Outcome::no_baseline:
    case Outcome::not_comparable:
    case Outcome::machine_slower:
      return Tone::open;
    case Outcome::skipped:
      return Tone::none;
  }
  return Tone::bad;
}

// The remaining bytes for pictures of a page, and the number of pictures.
struct PictureRoom {
  std::size_t bytes_left = 0;
  int drawn = 0;
  int left_out = 0;
};

// One assertion: outcome, text, reason and number.
struct Item {
  std::string name;
  std::string end;
  Tone tone = Tone::none;
  std::vector<std::string> why;
  Place place;
  const ReportedAssertion* assertion = nullptr;  // null where the case is not an assertion
};

std::string html_item(const Item& item) {
  std::string html = fmt::format("<li><div>{}<h4>{}</h4> <span class=\"dim code\">{}</span>\n",
                                 html_badge(item.end, item.tone), html_text(item.name),
                                 html_text(place_in_words(item.place)));
  if (item.assertion != nullptr && !item.assertion->text.empty())
    append(html, "<p><code>{}</code></p>\n", html_text(item.assertion->text));
  for (const std::string& why : item.why) html += html_paragraph(why);
  const bool drawn = item.assertion != nullptr && item.assertion->number;
  return html + "</div>\n<div>" + (drawn ? draw_interval(*item.assertion->number, item.tone) : "") +
         "</div></li>\n";
}

Item item_of(const ReportedCase& one) {
  Item item{.name = one.title,
            .end = one.type,
            .tone = tone_of(one.end),
            .why = {one.why, one.by_itself},
            .place = one.place,
            .assertion = one.assertion};
  if (one.assertion == nullptr) return item;
  item.name = one.assertion->name;
  item.why.push_back(one.assertion->clocks);
  return item;
}

std::vector<const ReportedCase*> cases_that(const ReportedScenario& reported, bool passed) {
  std::vector<const ReportedCase*> cases;
  for (const ReportedCase& one : reported.cases) {
    if ((one.end == CaseEnd::passed) == passed) cases.push_back(&one);
  }
  return cases;
}

std::string html_cases(const std::vector<const ReportedCase*>& cases) {
  std::string items;
  for (const ReportedCase* one : cases) items += html_item(item_of(*one));
  return items.empty() ? "" : "<ul class=\"assertions\">\n" + items + "</ul>\n";
}

// Shows cases that did not pass first; if there are any, those that passed are collapsed.
std::string html_assertions(const ReportedScenario& reported) {
  const std::vector<const ReportedCase*> wrong = cases_that(reported, false);
  const std::vector<const ReportedCase*> passed = cases_that(reported, true);
  if (wrong.empty() || passed.empty()) return html_cases(wrong) + html_cases(passed);
  return html_cases(wrong) +
         html_details(false,
                      fmt::format("<h4>{} that passed</h4>\n{}",
                                  counted_in_words(std::ssize(passed), "assertion"),
                                  html_forest(passed, ForestNames::names)),
                      html_cases(passed), "inner");
}

std::string html_regime(const std::vector<ReportedAssertion>& regime) {
  if (regime.empty()) return "";
  std::string html = "<ul class=\"assertions\">\n";
  bool holds = true;
  for (const ReportedAssertion& assertion : regime) {
    holds = holds && assertion.outcome == Outcome::passes;
    html += html_item({.name = assertion.name,
                       .end = std::string(in_words(assertion.outcome)),
                       .tone = tone_of(assertion.outcome),
                       .why = {assertion.reason},
                       .place = assertion.place,
                       .assertion = &assertion});
  }
  return html_details(!holds, "<h4>Regime: where the assertions mean something</h4>",
                      html + "</ul>\n", "inner");
}

std::string html_mechanism(const ReportedMechanism& mechanism) {
  if (!mechanism.unavailable.empty()) return html_paragraph(mechanism.unavailable);
  std::vector<std::string> lines;
  for (const auto& variant : mechanism.variants)
    lines.push_back(variant.variant + ": " + variant.diagnosis);
  std::ranges::copy(mechanism.separations, std::back_inserter(lines));
  return html_list(4, "Mechanism", lines) +
         html_table("Where the time of a traced step goes", mechanism.time) +
         html_table("What takes the most of it", mechanism.slowest);
}

std::string html_pictures(const ReportedScenario& reported, PictureRoom& room, bool open) {
  std::string html;
  for (const Picture& picture : reported.pictures) {
    if (picture.svg.size() > room.bytes_left) {
      ++room.left_out;
      html += html_paragraph(picture.title +
                                 " are left out here, since the page would be too "
                                 "large; a report of this scenario alone has them.",
                             "dim");
      continue;
    }
    room.bytes_left -= picture.svg.size();
    const std::string drawn = embedded_picture(picture.svg, picture.words, ++room.drawn);
    html += html_details(open, "<h4>" + html_text(picture.title) + "</h4>",
                         fmt::format("<figure>\n<div class=\"scrolls\" role=\"region\" "
                                     "tabindex=\"0\" aria-label=\"{}\">\n{}</div>\n<figcaption "
                                     "class=\"dim\">{}</figcaption>\n</figure>\n",
                                     html_text(picture.title + " of " + reported.name), drawn,
                                     html_text(picture.words)),
                         "inner");
  }
  return html;
}

std::string html_cost(const ReportedVerdict& decided) {
  std::string words = decided.cost;
  if (words.empty() && decided.verdict.planned_only) words = decided.where;
  if (words.empty()) return "";
  if (decided.verdict.wall_time.count() > 0)
    append(words, "; {} s on the clock", number_in_words(seconds(decided.verdict.wall_time), 3));
  return html_paragraph("Cost: " + words + decided.rates, "dim");
}

// Marks where variants differ.
std::string html_steps(const std::vector<ReportedThing>& steps) {
  TextTable rows;
  for (const ReportedThing& thing : steps) {
    for (const ReportedThing::Alike& alike : thing.groups) {
      const std::string words = html_text(alike.words);
      rows.push_back({html_text(thing.thing), html_paragraph(alike.variants),
                      "<p>" + (thing.differs() ? "<mark>" + words + "</mark>" : words) + "</p>"});
    }
  }
  return html_table_of_html("The step", {"", "variants", "what it is"}, rows, "words");
}

// Returns text such as "Broken: why", or an empty text without a reason.
std::string html_because(std::string what, const std::string& why) {
  if (why.empty()) return "";
  what.front() = static_cast<char>(std::toupper(what.front()));
  return html_paragraph(what + ": " + why);
}

std::string html_again(const std::string& command) {
  return command.empty() ? "" : fmt::format("<p>again: <code>{}</code></p>\n", html_text(command));
}

std::string html_verdict(const ReportedScenario& reported, PictureRoom& room, bool open) {
  const ReportedVerdict& decided = *reported.decided;
  const Verdict& verdict = decided.verdict;
  std::string html = html_paragraph(verdict.claim);
  if (const auto& point = verdict.point) {
    html += html_paragraph(fmt::format("sweep: {} = {} of {}", point->knob, point->value,
                                       fmt::join(point->values, ", ")),
                           "dim");
  }
  html += html_because(decided.fault, decided.why);
  html += html_because("disturbed", verdict.disturbance.value_or(""));
  html += html_because("skipped", verdict.skipped_because);
  html += html_because("calibrated", decided.calibrated);
  html += html_assertions(reported);
  html += html_steps(decided.steps);
  html += html_regime(decided.regime);
  html += html_pictures(reported, room, open);
  for (const std::string& line : decided.program.lines) html += html_paragraph(line, "dim");
  html += html_table("The counts of a step", decided.program.counts, "words");
  html += html_table("Differences", decided.differences);
  html += html_table("The variants in numbers", decided.variants);
  if (decided.mechanism) html += html_mechanism(*decided.mechanism);
  html += html_list(4, "Environment", verdict.environment);
  html += html_list(4, "Notes", verdict.notes);
  return html + html_cost(decided) + html_again(reported.again);
}

std::string html_scenario(const ReportedScenario& reported, PictureRoom& room, bool open) {
  std::string summary = html_badge(reported.ended, tone_of(reported.end)) + " <h3>" +
                        html_text(reported.name) + "</h3>";
  if (reported.decided == nullptr)
    return html_details(open, summary,
                        html_assertions(reported) + html_pictures(reported, room, open) +
                            html_again(reported.again),
                        "scenario");
  const std::string& cost = reported.decided->cost;
  append(summary, " <span class=\"dim\">{}{}{}</span>",
         html_text(counted_in_words(std::ssize(reported.cases), "assertion")),
         cost.empty() ? "" : " ", html_text(cost));
  if (!open) summary += html_forest(cases_that(reported, true), ForestNames::names);
  return html_details(open, summary, html_verdict(reported, room, open), "scenario");
}

// The overall result in a few words.
struct Headline {
  std::string words;
  Tone tone = Tone::bad;
};

bool has_case_of_type(const Report& run, std::string_view type) {
  return std::ranges::any_of(run.scenarios, [&](const ReportedScenario& scenario) {
    return std::ranges::any_of(scenario.cases,
                               [&](const ReportedCase& one) { return one.type == type; });
  });
}

// Whether programs failed, and no device did.
bool is_about_a_program(const Report& run) {
  const auto has = [&](std::string_view how) {
    return std::ranges::find(run.tally, how, &TallyEntry::how) != run.tally.end();
  };
  return run.verb == "attach" || (has(program_failed) && !has(device_failed));
}

bool every_case_holds(const Report& run) {
  return std::ranges::all_of(run.scenarios, [](const ReportedScenario& scenario) {
    return std::ranges::all_of(scenario.cases,
                               [](const ReportedCase& one) { return one.type == "passes"; });
  });
}

Headline answer_of(const Report& run) {
  if (!run.code) {
    if (has_case_of_type(run, "interrupted")) return {"Interrupted: there is no verdict"};
    return {"Not ended: still at work, or killed"};
  }
  switch (*run.code) {
    case ExitCode::passes:
      return {every_case_holds(run) ? "Everything passes" : "Passed: nothing fails", Tone::good};
    case ExitCode::fails:
      return {has_case_of_type(run, "fails") ? "Failed" : "Undecided, which is to fail"};
    case ExitCode::wrong_request:
      return {has_case_of_type(run, "request") ? "The request is wrong" : "Not to be trusted"};
    case ExitCode::device_failed:
      return {is_about_a_program(run) ? "The program failed" : "The device failed"};
    case ExitCode::not_gated:
      return {"Not gated", Tone::open};
    case ExitCode::undecided:
      return {"Undecided", Tone::open};
  }
  return {"Not gated"};
}

Headline answer_of(const ReportedGate& gate) {
  const Severity severity = gate.verdict.severity;
  const Tone tone = severity == Severity::note ? Tone::good
                    : severity == Severity::undecided || severity == Severity::not_gated
                        ? Tone::open
                        : Tone::bad;
  return {gate.answer, tone};
}

std::string_view meaning_of(ExitCode code) {
  switch (code) {
    case ExitCode::passes:
      return "nothing stands in the way";
    case ExitCode::fails:
      return "something fails, or blocks";
    case ExitCode::wrong_request:
      return "the request is wrong, or a run cannot be trusted";
    case ExitCode::device_failed:
      return "the device or a worker failed";
    case ExitCode::not_gated:
      return "not gated: nothing was measured that could be held against a limit";
    case ExitCode::undecided:
      return "undecided or skipped: more evidence would decide";
  }
  return "";
}

std::string tally_of(const Report& run) {
  constexpr std::array ends{
      std::pair(CaseEnd::failed, "failed"), std::pair(CaseEnd::error, "could not be tried"),
      std::pair(CaseEnd::skipped, "left open"), std::pair(CaseEnd::passed, "passed")};
  std::string words;
  for (const auto& [end, what] : ends) {
    const std::size_t count = run.counts[end];
    if (count > 0) append(words, "{}{} {}", words.empty() ? "" : ", ", count, what);
  }
  return counted_in_words(static_cast<std::int64_t>(run.counts.all()),
                          run.verb == "gate" ? "comparison" : "assertion") +
         (words.empty() ? "" : ": " + words);
}

std::string terms_of(const ReportedGate& gate) {
  return fmt::format("BASE {}, HEAD {}{}{}; margin {}", gate.base, gate.head,
                     gate.device.empty() ? "" : ", on ", gate.device, gate.margin);
}

// Lists every device of a run once, with its driver.
std::set<std::string> devices_of(const Report& run) {
  std::set<std::string> devices;
  for (const ReportedScenario& scenario : run.scenarios) {
    if (scenario.decided != nullptr && !scenario.decided->device.empty())
      devices.insert(scenario.decided->device);
  }
  return devices;
}

std::string html_headline(const Report& run) {
  const Headline answer = run.gate == nullptr ? answer_of(run) : answer_of(*run.gate);
  std::string html =
      fmt::format("<header>\n<h1>stepgate {}</h1>\n<p class=\"verdict {}\">{}</p>\n",
                  html_text(run.verb), class_of(answer.tone), html_text(answer.words));
  if (run.simulated)
    html += "<p class=\"simulated\">SIMULATED: times are computed, nothing was measured</p>\n";
  if (run.gate != nullptr) html += html_paragraph(terms_of(*run.gate));
  html += html_paragraph(tally_of(run));
  html += html_paragraph(
      run.code ? fmt::format("Exit code {}: {}", status_of(*run.code), meaning_of(*run.code))
               : "No exit code of a verdict: what is not decided below has not passed");
  for (const std::string& device : devices_of(run)) html += html_paragraph(device);
  html += html_paragraph(fmt::format("{} on {}, scenarios of commit {}, stepgate {}", run.run.date,
                                     run.run.host, run.run.commit, run.run.stepgate),
                         "dim");
  return html + "</header>\n";
}

void add_fact(TextTable& rows, std::string name, std::string value) {
  if (!value.empty()) rows.push_back({std::move(name), std::move(value)});
}

TextTable facts_of(const DeviceIdentity& device) {
  TextTable rows{{"", ""}};
  add_fact(rows, "device", in_words(device));
  add_fact(rows, "driver", device.driver);
  add_fact(rows, "CUDA runtime", device.runtime);
  if (device.compute_capability > 0)
    add_fact(rows, "compute capability", fmt::format("{:.1f}", device.compute_capability));
  if (device.memory_bytes > 0)
    add_fact(rows, "memory", in_words(static_cast<double>(device.memory_bytes), MetricUnit::bytes));
  add_fact(rows, "UUID", device.uuid);
  add_fact(rows, "CPU", device.cpu);
  add_fact(rows, "power limit", device.power_limit);
  add_fact(rows, "PCIe", device.pcie);
  for (const DeviceKey& key : device.keys) add_fact(rows, key.name, key.value);
  return rows;
}

TextTable facts_of(const RunInfo& run) {
  TextTable rows{{"", ""}};
  add_fact(rows, "stepgate", run.stepgate);
  add_fact(rows, "build", run.build);
  add_fact(rows, "commit of the scenarios", run.commit);
  add_fact(rows, "date", run.date);
  add_fact(rows, "host", run.host);
  add_fact(rows, "seed", fmt::format("{} ({:016x})", run.seed, run.seed));
  return rows;
}

// A table of names and values; the names are the row titles.
std::string html_facts(std::string_view caption, const TextTable& rows) {
  std::string html =
      fmt::format("<table class=\"facts\">\n<caption>{}</caption>\n<tbody>\n", html_text(caption));
  for (auto row = rows.begin() + 1; row != rows.end(); ++row)
    append(html, "<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", html_text((*row)[0]),
           html_text((*row)[1]));
  return html + "</tbody>\n</table>\n";
}

// Lists every device once.
std::string html_environment(const Report& run) {
  std::string html = "<section>\n<h2>Environment</h2>\n";
  std::set<TextTable> shown;
  for (const ReportedScenario& scenario : run.scenarios) {
    if (scenario.decided == nullptr || scenario.decided->verdict.planned_only) continue;
    TextTable rows = facts_of(scenario.decided->verdict.device);
    if (!shown.insert(rows).second) continue;
    html += html_facts("Device", rows);
  }
  if (run.gate != nullptr) {
    TextTable rows{{"", ""}};
    add_fact(rows, "BASE", run.gate->base);
    add_fact(rows, "HEAD", run.gate->head);
    add_fact(rows, "device", run.gate->device);
    add_fact(rows, "margin", run.gate->margin);
    html += html_facts("What was compared", rows);
  }
  return html + html_facts("Run", facts_of(run.run)) + "</section>\n";
}

std::string html_all_scenarios(const Report& run) {
  TextTable rows;
  for (const ReportedScenario& scenario : run.scenarios) {
    rows.push_back(
        {html_text(scenario.name), html_text(scenario.ended),
         fmt::format("{} of {}", scenario.counts[CaseEnd::passed], scenario.counts.all())});
    if (scenario.decided == nullptr) {
      rows.back().insert(rows.back().end(), 3, "-");
      continue;
    }
    const Verdict& verdict = scenario.decided->verdict;
    rows.back().push_back(std::to_string(verdict.rounds));
    rows.back().push_back(
        verdict.rounds == 0 ? "-" : fmt::format("{:.3f}", seconds(verdict.device_time)));
    rows.back().push_back(fmt::format("{:.2f}", seconds(verdict.wall_time)));
  }
  const std::string table =
      html_table_of_html("Every scenario, and what it cost",
                         {"scenario", "outcome", "passed", "rounds",
                          run.simulated ? "simulated GPU seconds" : "GPU seconds", "seconds"},
                         rows);
  return html_details(
      false,
      fmt::format("<h2>Cost of {}</h2>", counted_in_words(std::ssize(run.scenarios), "scenario")),
      table);
}

std::string html_sweeps(const Report& run, PictureRoom& room) {
  std::string html;
  for (const ReportedSweep& sweep : run.sweeps) {
    TextStream svg;
    draw_sweep(svg, sweep);
    const std::string words = fmt::format("samples a second over {}", sweep.knob);
    html += fmt::format(
                "<section>\n<h2>Sweep of {}</h2>\n<figure>\n<div class=\"scrolls\" "
                "role=\"region\" tabindex=\"0\" aria-label=\"{}\">\n{}</div>\n</figure>\n",
                html_text(sweep.name), html_text(words),
                embedded_picture(svg.str(), words, ++room.drawn)) +
            html_list(3, "Where they cross", sweep.crossings) +
            html_table("Samples a second, and assertions", sweep.table) + "</section>\n";
  }
  return html;
}

// Lists what was tried and did not pass; nothing where it is of one scenario, which says it.
std::string html_overview(const Report& run) {
  std::vector<const ReportedCase*> wrong;
  std::set<const ReportedScenario*> scenarios;
  for (const CaseEnd end : {CaseEnd::failed, CaseEnd::error, CaseEnd::skipped}) {
    for (const ReportedScenario& scenario : run.scenarios) {
      for (const ReportedCase& one : scenario.cases) {
        if (one.end != end || one.type == not_run) continue;
        wrong.push_back(&one);
        scenarios.insert(&scenario);
      }
    }
  }
  if (scenarios.size() < 2) return "";
  return "<section>\n<h2>At a glance</h2>\n" + html_forest(wrong, ForestNames::titles) +
         "</section>\n";
}

// Shows the worst scenarios first and opened. Passing ones are collapsed, unless the run has only
// one scenario.
std::string html_scenarios(const Report& run, std::string_view title,
                           std::initializer_list<CaseEnd> ends, PictureRoom& room) {
  std::string html;
  int count = 0;
  for (const CaseEnd end : ends) {
    for (const ReportedScenario& scenario : run.scenarios) {
      if (scenario.end != end) continue;
      html += html_scenario(scenario, room, end != CaseEnd::passed || run.scenarios.size() == 1);
      ++count;
    }
  }
  if (count == 0) return "";
  return fmt::format("<section>\n<h2>{} <span class=\"dim\">({})</span></h2>\n{}</section>\n",
                     title, count, html);
}

}  // namespace

void write_html(std::ostream& out, const Report& run, std::size_t picture_bytes) {
  const bool is_gate = run.gate != nullptr;
  const Headline answer = is_gate ? answer_of(*run.gate) : answer_of(run);
  out << html_begin(fmt::format("stepgate {}: {}{}", run.verb, run.simulated ? "SIMULATED: " : "",
                                answer.words))
      << html_headline(run);
  if (is_gate) {
    out << html_gate(*run.gate);
  } else {
    PictureRoom room{.bytes_left = picture_bytes};
    out << html_overview(run)
        << html_table("The articles' figures, and what is true of them here",
                      figure_table(run.figures), "words")
        << html_sweeps(run, room);
    out << html_scenarios(run, "What did not pass",
                          {CaseEnd::failed, CaseEnd::error, CaseEnd::skipped}, room);
    out << html_scenarios(run, "What passes", {CaseEnd::passed}, room) << html_all_scenarios(run);
  }
  out << html_environment(run) << html_again(command_again(run)) << html_end();
}

}  // namespace stepgate
