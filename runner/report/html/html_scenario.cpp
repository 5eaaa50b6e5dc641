// SPDX-License-Identifier: MIT
#include "report/html/html_scenario.h"

#include <fmt/format.h>

#include <algorithm>

#include "judge/judge_clocks.h"
#include "judge/verdict/words.h"
#include "report/append.h"
#include "report/html/draw_interval.h"
#include "report/text/print_mechanism.h"
#include "report/text/print_step.h"
#include "report/text/verdict_words.h"
#include "support/seconds.h"
#include "support/text/number_words.h"

namespace stepgate {
namespace {

Tone tone_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::holds:
      return Tone::good;
    case Outcome::refuted:
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

const Expectation* named(const std::vector<Expectation>& all, const std::string& name) {
  const auto found = std::ranges::find(all, name, &Expectation::name);
  return found == all.end() ? nullptr : &*found;
}

std::string place_in_words(const Place& place) {
  if (place.file.empty()) return "";
  return place.line > 0 ? fmt::format("{}:{}", place.file, place.line) : place.file;
}

// One sentence: how it ended, what it says, why, and its number.
struct Item {
  std::string name;
  std::string end;
  Tone tone = Tone::none;
  std::string text;
  std::vector<std::string> why;
  std::string place;
  std::string picture;
};

std::string html_item(const Item& item) {
  std::string html =
      fmt::format("<li><div>{}<h4>{}</h4> <span class=\"dim code\">{}</span>\n",
                  html_badge(item.end, item.tone), html_text(item.name), html_text(item.place));
  if (!item.text.empty()) append(html, "<p><code>{}</code></p>\n", html_text(item.text));
  for (const std::string& why : item.why) html += html_paragraph(why);
  return html + "</div>\n<div>" + item.picture + "</div></li>\n";
}

// How it ended for those who read exit codes, where that is not what the sentence itself says.
Item item_of(const ReportedCase& one, const Scenario* scenario) {
  Item item{.name = one.title,
            .end = one.type,
            .tone = tone_of(one.end),
            .text = {},
            .why = {},
            .place = place_in_words(one.place),
            .picture = {}};
  if (one.sentence == nullptr) {
    item.why.push_back(one.message);
    return item;
  }
  const SentenceVerdict& sentence = *one.sentence;
  item.name = sentence.name;
  item.text = sentence.text;
  item.why.push_back(sentence.reason);
  // More than the sentence's own reason: broken, or refuted among all.
  if (one.message != sentence.text + ": " + sentence.reason) {
    std::string more = one.message;
    if (more.starts_with(sentence.text + ": ")) more.erase(0, sentence.text.size() + 2);
    item.why = {more};
    if (!more.starts_with(sentence.reason))
      item.why.push_back(
          fmt::format("by itself: {}: {}", in_words(sentence.outcome), sentence.reason));
  }
  if (sentence.clocks) item.why.push_back(in_words(*sentence.clocks));
  item.picture = draw_interval(
      sentence, scenario == nullptr ? nullptr : named(scenario->expect, sentence.name), item.tone);
  return item;
}

Item item_of_regime(const SentenceVerdict& sentence, const Scenario* scenario) {
  const Tone tone = tone_of(sentence.outcome);
  return {
      .name = sentence.name,
      .end = std::string(in_words(sentence.outcome)),
      .tone = tone,
      .text = sentence.text,
      .why = {sentence.reason},
      .place = place_in_words(sentence.place),
      .picture = draw_interval(
          sentence, scenario == nullptr ? nullptr : named(scenario->regime, sentence.name), tone)};
}

// Cases that did not pass come first; those that passed are folded where there is anything else.
std::string html_sentences(const ReportedScenario& reported) {
  std::string wrong;
  std::string passed;
  for (const ReportedCase& one : reported.cases)
    (one.end == CaseEnd::passed ? passed : wrong) += html_item(item_of(one, reported.scenario));
  const auto list = [](const std::string& items) {
    return items.empty() ? "" : "<ul class=\"sentences\">\n" + items + "</ul>\n";
  };
  if (wrong.empty() || passed.empty()) return list(wrong + passed);
  const auto count = static_cast<std::int64_t>(count_of({&reported, 1}, CaseEnd::passed));
  return list(wrong) +
         html_details(false,
                      fmt::format("<h4>{} that passed</h4>", counted_in_words(count, "sentence")),
                      list(passed), "inner");
}

std::string html_regime(const ReportedScenario& reported) {
  const Verdict& verdict = *reported.verdict;
  if (verdict.regime.empty()) return "";
  std::string html = "<ul class=\"sentences\">\n";
  bool holds = true;
  for (const SentenceVerdict& sentence : verdict.regime) {
    holds = holds && sentence.outcome == Outcome::holds;
    html += html_item(item_of_regime(sentence, reported.scenario));
  }
  return html_details(!holds, "<h4>Regime: where the sentences mean something</h4>",
                      html + "</ul>\n", "inner");
}

std::string html_mechanism(const Mechanism& mechanism) {
  if (mechanism.variants.empty()) {
    return html_paragraph(
        mechanism.unavailable.empty() ? "" : "trace unavailable: " + mechanism.unavailable);
  }
  std::vector<std::string> lines;
  for (const VariantMechanism& variant : mechanism.variants)
    lines.push_back(variant.variant + ": " + variant.diagnosis);
  for (const Separation& separation : mechanism.separations) lines.push_back(separation.sentence);
  std::string html = html_list(4, "Mechanism", lines) +
                     html_table("Where the time of a traced step goes", time_rows(mechanism));
  if (const auto slowest = slowest_rows(mechanism); !slowest.empty())
    html += html_table("What takes the most of it", slowest);
  return html;
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

std::string html_cost(const Verdict& verdict) {
  std::string words = cost_in_words(verdict);
  if (words.starts_with(' ')) words.erase(0, 1);
  if (words.empty())
    words = verdict.planned_only ? "decided by its plans; no device took part" : "";
  if (words.empty()) return "";
  if (verdict.wall_time.count() > 0)
    words += fmt::format("; {} s on the clock", number_in_words(seconds(verdict.wall_time), 3));
  return html_paragraph("Cost: " + words + rates_in_words(verdict), "dim");
}

// The five things; where variants differ is marked.
std::string html_steps(const std::vector<DescribedStep>& steps) {
  std::vector<std::vector<std::string>> rows;
  for (const ComparedThing& thing : compared_things(steps)) {
    for (const AlikeVariants& alike : thing.groups) {
      const std::string words = html_text(described_in_words(alike));
      rows.push_back({html_text(thing.thing), html_paragraph(variants_in_words(thing, alike)),
                      "<p>" + (thing.differs() ? "<mark>" + words + "</mark>" : words) + "</p>"});
    }
  }
  return html_table_of_html("The step", {"", "variants", "what it is"}, rows, "words");
}

std::string html_verdict(const ReportedScenario& reported, PictureRoom& room, bool open) {
  const Verdict& verdict = *reported.verdict;
  std::string html = html_paragraph(verdict.claim);
  if (verdict.failed) {
    html +=
        html_paragraph((verdict.not_run ? "Not run: " : "The device failed: ") + *verdict.failed);
  }
  if (verdict.broken) html += html_paragraph("Broken: " + *verdict.broken);
  if (verdict.disturbance) html += html_paragraph("Disturbed: " + *verdict.disturbance);
  if (!verdict.skipped_because.empty())
    html += html_paragraph("Skipped: " + verdict.skipped_because);
  if (verdict.calibrated) {
    const Calibrated& found = *verdict.calibrated;
    html += html_paragraph(fmt::format("Calibrated: {} = {}, where the metric is {} (\"{}\")",
                                       found.knob, found.value, in_words(found.metric, found.unit),
                                       found.aim));
  }
  html += html_steps(verdict.steps);
  html += html_sentences(reported);
  html += html_regime(reported);
  html += html_pictures(reported, room, open);
  html += html_table("The variants in numbers", variant_rows(verdict.variants));
  if (verdict.mechanism) html += html_mechanism(*verdict.mechanism);
  html += html_list(4, "Environment", verdict.environment);
  html += html_list(4, "Notes", verdict.notes);
  return html + html_cost(verdict);
}

Tone tone_of(const ReportedScenario& reported) {
  for (const CaseEnd end : {CaseEnd::failed, CaseEnd::error, CaseEnd::skipped}) {
    if (count_of({&reported, 1}, end) > 0) return tone_of(end);
  }
  return has_passed(reported) ? Tone::good : Tone::bad;
}

}  // namespace

Tone tone_of(CaseEnd end) {
  switch (end) {
    case CaseEnd::passed:
      return Tone::good;
    case CaseEnd::failed:
    case CaseEnd::error:
      return Tone::bad;
    case CaseEnd::skipped:
      return Tone::open;
  }
  return Tone::bad;
}

std::string scenario_outcome(const ReportedScenario& reported) {
  if (count_of({&reported, 1}, CaseEnd::failed) > 0) {
    const auto failed = std::ranges::find(reported.cases, CaseEnd::failed, &ReportedCase::end);
    return failed->type;
  }
  if (reported.verdict == nullptr) {
    const auto wrong = std::ranges::find_if(
        reported.cases, [](const ReportedCase& one) { return one.end != CaseEnd::passed; });
    if (wrong != reported.cases.end()) return wrong->type;
    return reported.cases.empty() ? std::string(not_run) : "passed";
  }
  if (reported.verdict->not_run) return std::string(not_run);
  if (reported.verdict->failed) return "device failed";
  if (reported.verdict->broken) return "broken";
  return std::string(in_words(reported.verdict->outcome));
}

bool has_passed(const ReportedScenario& reported) {
  return count_of({&reported, 1}, CaseEnd::passed) == reported.cases.size() &&
         (reported.verdict == nullptr || (!reported.verdict->broken && !reported.verdict->failed));
}

std::string html_scenario(const ReportedScenario& reported, PictureRoom& room, bool open) {
  std::string summary = html_badge(scenario_outcome(reported), tone_of(reported)) + " <h3>" +
                        html_text(reported.name) + "</h3>";
  const Verdict* verdict = reported.verdict;
  if (verdict != nullptr) {
    const auto count = std::ssize(reported.cases);
    append(summary, " <span class=\"dim\">{}{}</span>",
           html_text(counted_in_words(count, "sentence")), html_text(cost_in_words(*verdict)));
  }
  const std::string content = verdict == nullptr
                                  ? html_sentences(reported) + html_pictures(reported, room, open)
                                  : html_verdict(reported, room, open);
  return html_details(open, summary, content, "scenario");
}

}  // namespace stepgate
