// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>

#include "report/append.h"
#include "report/html/html.h"
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

// One sentence: how it ended, what it says, why, and its number.
struct Item {
  std::string name;
  std::string end;
  Tone tone = Tone::none;
  std::vector<std::string> why;
  Place place;
  const ReportedSentence* sentence = nullptr;  // null where a case is of none
};

std::string html_item(const Item& item) {
  std::string html = fmt::format("<li><div>{}<h4>{}</h4> <span class=\"dim code\">{}</span>\n",
                                 html_badge(item.end, item.tone), html_text(item.name),
                                 html_text(place_in_words(item.place)));
  if (item.sentence != nullptr && !item.sentence->text.empty())
    append(html, "<p><code>{}</code></p>\n", html_text(item.sentence->text));
  for (const std::string& why : item.why) html += html_paragraph(why);
  const bool drawn = item.sentence != nullptr && item.sentence->number;
  return html + "</div>\n<div>" + (drawn ? draw_interval(*item.sentence->number, item.tone) : "") +
         "</div></li>\n";
}

Item item_of(const ReportedCase& one) {
  Item item{.name = one.title,
            .end = one.type,
            .tone = tone_of(one.end),
            .why = {one.why, one.by_itself},
            .place = one.place,
            .sentence = one.sentence};
  if (one.sentence == nullptr) return item;
  item.name = one.sentence->name;
  item.why.push_back(one.sentence->clocks);
  return item;
}

// Cases that did not pass come first; those that passed are folded where there is anything else.
std::string html_sentences(const ReportedScenario& reported) {
  std::string wrong;
  std::string passed;
  for (const ReportedCase& one : reported.cases)
    (one.end == CaseEnd::passed ? passed : wrong) += html_item(item_of(one));
  const auto list = [](const std::string& items) {
    return items.empty() ? "" : "<ul class=\"sentences\">\n" + items + "</ul>\n";
  };
  if (wrong.empty() || passed.empty()) return list(wrong + passed);
  const auto count = static_cast<std::int64_t>(reported.counts[CaseEnd::passed]);
  return list(wrong) +
         html_details(false,
                      fmt::format("<h4>{} that passed</h4>", counted_in_words(count, "sentence")),
                      list(passed), "inner");
}

std::string html_regime(const std::vector<ReportedSentence>& regime) {
  if (regime.empty()) return "";
  std::string html = "<ul class=\"sentences\">\n";
  bool holds = true;
  for (const ReportedSentence& sentence : regime) {
    holds = holds && sentence.outcome == Outcome::holds;
    html += html_item({.name = sentence.name,
                       .end = std::string(in_words(sentence.outcome)),
                       .tone = tone_of(sentence.outcome),
                       .why = {sentence.reason},
                       .place = sentence.place,
                       .sentence = &sentence});
  }
  return html_details(!holds, "<h4>Regime: where the sentences mean something</h4>",
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

// Where variants differ is marked.
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

// "Broken: why"; nothing without a reason.
std::string html_because(std::string what, const std::string& why) {
  if (why.empty()) return "";
  what.front() = static_cast<char>(std::toupper(what.front()));
  return html_paragraph(what + ": " + why);
}

std::string html_verdict(const ReportedScenario& reported, PictureRoom& room, bool open) {
  const ReportedVerdict& decided = *reported.decided;
  const Verdict& verdict = decided.verdict;
  std::string html = html_paragraph(verdict.claim);
  html += html_because(decided.fault, decided.why);
  html += html_because("disturbed", verdict.disturbance.value_or(""));
  html += html_because("skipped", verdict.skipped_because);
  html += html_because("calibrated", decided.calibrated);
  html += html_steps(decided.steps);
  html += html_sentences(reported);
  html += html_regime(decided.regime);
  html += html_pictures(reported, room, open);
  html += html_table("The variants in numbers", decided.variants);
  if (decided.mechanism) html += html_mechanism(*decided.mechanism);
  html += html_list(4, "Environment", verdict.environment);
  html += html_list(4, "Notes", verdict.notes);
  return html + html_cost(decided);
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

std::string html_scenario(const ReportedScenario& reported, PictureRoom& room, bool open) {
  std::string summary = html_badge(reported.ended, tone_of(reported.end)) + " <h3>" +
                        html_text(reported.name) + "</h3>";
  if (reported.decided == nullptr)
    return html_details(open, summary,
                        html_sentences(reported) + html_pictures(reported, room, open), "scenario");
  const std::string& cost = reported.decided->cost;
  append(summary, " <span class=\"dim\">{}{}{}</span>",
         html_text(counted_in_words(std::ssize(reported.cases), "sentence")),
         cost.empty() ? "" : " ", html_text(cost));
  return html_details(open, summary, html_verdict(reported, room, open), "scenario");
}

}  // namespace stepgate
