// SPDX-License-Identifier: MIT
// Tests report.html: the place of its parts, that numbers lie on the right side of their limits,
// and that text from files never becomes markup. ci/look_at_report checks how browsers show it.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <regex>
#include <sstream>

#include "report/html/html.h"
#include "report/testing/reports.h"
#include "report/times.h"
#include "report/writers.h"

namespace stepgate {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

bool shows(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

// Returns the number after the first match.
double number_at(const std::string& text, const std::string& pattern) {
  std::smatch found;
  if (!std::regex_search(text, found, std::regex(pattern + "([-0-9.]+)"))) return -1;
  return std::stod(found[1]);
}

ReportedNumber number_of_value(double value) {
  return {.value = value,
          .interval = RatioInterval{value - 0.01, value + 0.01},
          .limit = 1.05,
          .allowed = {1.05, infinite},
          .value_words = "v",
          .limit_words = "limit"};
}

TEST(DrawInterval, PutsTheNumberOnItsSideOfTheLimit) {
  for (const double value : {1.2, 0.9}) {
    const std::string svg = draw_interval(number_of_value(value), Tone::good);
    const double limit = number_at(svg, "class=\"limit\" x1=\"");
    EXPECT_EQ(number_at(svg, "cx=\"") > limit, value > 1.05) << svg;
    const double bar = number_at(svg, "class=\"range good\" x=\"");
    EXPECT_EQ(bar > limit, value > 1.05) << svg;
    EXPECT_DOUBLE_EQ(number_at(svg, "class=\"allowed\" x=\""), limit) << svg;
  }
}

TEST(DrawInterval, EndsInAnArrowBeyondASharedAxis) {
  const std::string drawn = draw_interval(number_of_value(3), Tone::good, Span{0.9, 1.1});
  EXPECT_EQ(times(drawn, "<path"), 1);
  EXPECT_LE(number_at(drawn, "cx=\""), 320);
  EXPECT_EQ(times(draw_interval(number_of_value(1.2), Tone::good), "<path"), 0);
}

TEST(DrawInterval, DrawsNothingOfWhatIsNoNumber) {
  ReportedNumber drawn = number_of_value(std::nan(""));
  EXPECT_EQ(draw_interval(drawn, Tone::good), "");
  drawn = number_of_value(1);
  drawn.limit = infinite;
  EXPECT_EQ(draw_interval(drawn, Tone::good), "");
  drawn = number_of_value(1);
  drawn.interval = RatioInterval{std::nan(""), 1};
  EXPECT_EQ(draw_interval(drawn, Tone::good), "");
  drawn = number_of_value(0);
  drawn.interval = RatioInterval{0, 0};
  drawn.limit = 0;
  drawn.allowed = {0, 0};
  EXPECT_FALSE(shows(draw_interval(drawn, Tone::good), "nan"));
}

// Draws an assertion as the page does; empty where it has no number.
std::string draw_assertion(const AssertionVerdict& assertion, const Expectation* expectation) {
  const auto number = number_of(assertion, expectation);
  return number ? draw_interval(*number, Tone::good) : "";
}

TEST(DrawInterval, KnowsTheAllowedSideFromTheAssertion) {
  AssertionVerdict assertion;
  assertion.timed = TimedEvidence{.ratio = 1.2, .interval = RatioInterval{1.1, 1.3}};
  assertion.estimate = Estimate{.value = 1.2, .interval = RatioInterval{1.1, 1.3}, .limit = 1.0};
  Expectation expectation;
  expectation.relation = Relation::at_most;
  const std::string at_most = draw_assertion(assertion, &expectation);
  EXPECT_EQ(number_at(at_most, "class=\"allowed\" x=\""), 0) << at_most;
  EXPECT_TRUE(shows(at_most, "at most 1x")) << at_most;
  expectation.relation = Relation::about;
  expectation.within = 0.5;
  const std::string about = draw_assertion(assertion, &expectation);
  EXPECT_GT(number_at(about, "class=\"allowed\" x=\""), 0) << about;
  EXPECT_TRUE(shows(about, "about 1x within 50 %")) << about;
  EXPECT_TRUE(shows(draw_assertion(assertion, nullptr), "limit 1x"));
  assertion.estimate.reset();
  EXPECT_EQ(draw_assertion(assertion, nullptr), "");
}

TEST(DrawInterval, DrawsTheBoundThatTheReasonNames) {
  AssertionVerdict assertion;
  assertion.outcome = Outcome::passes;
  assertion.timed = TimedEvidence{.ratio = 1.2, .shown = {.level = 0.95, .low = 1.1}};
  assertion.estimate = Estimate{.value = 1.2, .limit = 1.05};
  Expectation expectation;
  expectation.relation = Relation::at_least;
  const auto number = number_of(assertion, &expectation);
  ASSERT_TRUE(number && number->interval);
  EXPECT_DOUBLE_EQ(number->interval->low, 1.1);
  EXPECT_EQ(number->interval->high, infinite);
  EXPECT_EQ(number->interval_words, ", at least 1.10x");
  const std::string svg = draw_interval(*number, Tone::good);
  EXPECT_GT(number_at(svg, "class=\"range good\" x=\""), number_at(svg, "class=\"limit\" x1=\""));
  EXPECT_LT(number_at(svg, "class=\"range good\" x=\""), number_at(svg, "cx=\""));
  EXPECT_EQ(times(svg, "<path"), 1);  // its other end is open
  assertion.outcome = Outcome::undecided;
  EXPECT_FALSE(number_of(assertion, &expectation)->interval);
}

TEST(DrawInterval, DrawsACountWithoutAnInterval) {
  AssertionVerdict assertion;
  assertion.left = 3;
  assertion.right = 0;
  assertion.unit = MetricUnit::count;
  Expectation expectation;
  expectation.relation = Relation::equal;
  const auto number = number_of(assertion, &expectation);
  ASSERT_TRUE(number);
  EXPECT_FALSE(number->interval);
  EXPECT_EQ(number->value_words, "3");
  EXPECT_EQ(number->limit_words, "exactly 0");
  const std::string svg = draw_interval(*number, Tone::bad);
  EXPECT_GT(number_at(svg, "cx=\""), number_at(svg, "class=\"limit\" x1=\""));
  assertion.unit = MetricUnit::bound_class;
  EXPECT_FALSE(number_of(assertion, &expectation));
  assertion.unit = MetricUnit::count;
  assertion.left.reset();
  EXPECT_FALSE(number_of(assertion, &expectation));
}

ReportedAssertion counted(const std::string& name, double value, double limit) {
  return {.name = name,
          .number = ReportedNumber{.value = value,
                                   .limit = limit,
                                   .allowed = {limit, limit},
                                   .value_words = std::to_string(static_cast<int>(value)),
                                   .limit_words = "exactly 0"}};
}

TEST(Forest, HasARowForEachNumberAndOneForCountsAsAsserted) {
  const std::vector<ReportedAssertion> assertions{
      {.name = "faster", .number = number_of_value(1.2)},
      counted("none", 0, 0),
      counted("waits", 7, 7),
      counted("more", 3, 0),
      {.name = "bound"}};
  std::vector<ReportedCase> cases;
  for (const ReportedAssertion& one : assertions) {
    cases.push_back({.title = "a." + one.name,
                     .end = one.name == "more" ? CaseEnd::failed : CaseEnd::passed,
                     .type = "fails",
                     .why = "copy in 7 <traced> rounds",
                     .assertion = &one});
  }
  std::vector<const ReportedCase*> shown;
  for (const ReportedCase& one : cases) shown.push_back(&one);
  const std::string forest = html_forest(shown, ForestNames::names);
  EXPECT_EQ(times(forest, "<svg class=\"interval\""), 2) << forest;
  EXPECT_EQ(times(forest, "class=\"row\""), 3) << forest;
  EXPECT_TRUE(shows(forest, "exactly: none&#160;0, waits&#160;7</span>")) << forest;
  EXPECT_TRUE(shows(forest, "badge bad\">fails</span> more</span>")) << forest;
  EXPECT_TRUE(shows(forest, "<span>3 <span class=\"dim\">asked: exactly 0</span>")) << forest;
  EXPECT_TRUE(shows(forest, "copy in 7 &lt;traced&gt; rounds")) << forest;
  EXPECT_FALSE(shows(forest, "<text")) << forest;
  EXPECT_TRUE(shows(html_forest(shown, ForestNames::titles), ">a.faster</span>"));
  EXPECT_EQ(html_forest({}, ForestNames::names), "");
}

TEST(DrawInterval, DrawsAnAssertionAboutStoredRunsBesideItsAnchor) {
  AssertionVerdict assertion;
  assertion.stored = StoredEvidence{};
  EXPECT_EQ(draw_assertion(assertion, nullptr), "");  // too few rounds
  assertion.stored->normalised = {.ratio = 0.8, .interval = RatioInterval{0.75, 0.9}};
  Expectation expectation;
  const MetricOf now{.variant = "fix", .metric = Metric::step_ms_mean};
  expectation.relation = Relation::at_most;
  expectation.left = {{now}};
  expectation.right = {{1.25, MetricOf{.variant = "fix", .metric = now.metric, .stored = true}}};
  const std::string svg = draw_assertion(assertion, &expectation);
  EXPECT_TRUE(shows(svg, "at most 1.25x")) << svg;
  EXPECT_TRUE(shows(svg, "1.000x [0.938x, 1.12x]")) << svg;
  EXPECT_LT(number_at(svg, "cx=\""), number_at(svg, "class=\"limit\" x1=\""));
}

TEST(EmbeddedPicture, HasNothingThatReachesBeyondIt) {
  const std::string svg =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"9\">\n<defs><pattern id=\"wait\">"
      "</pattern></defs><rect fill=\"url(#wait)\"/><text>id=&quot;wait&quot; "
      "url(#wait)</text></svg>";
  const std::string embedded = embedded_picture(svg, "a \"b\" <c>", 3);
  EXPECT_EQ(embedded,
            "<svg class=\"picture\" role=\"img\" aria-label=\"a &quot;b&quot; &lt;c&gt;\" "
            "width=\"9\">\n<defs><pattern id=\"p3-wait\"></pattern></defs>"
            "<rect fill=\"url(#p3-wait)\"/><text>id=&quot;wait&quot; url(#wait)</text></svg>");
}

Verdict verdict_on_page(const std::string& name, std::vector<Outcome> outcomes) {
  Verdict verdict;
  verdict.scenario = name;
  verdict.claim = "it is fast";
  verdict.device.kind = DeviceKind::cuda;
  verdict.device.name = "NVIDIA H200";
  verdict.device.driver = "580.159";
  verdict.device.keys = {{"clocks", "locked"}};
  for (const Outcome outcome : outcomes) {
    AssertionVerdict assertion;
    assertion.name = "line" + std::to_string(verdict.assertions.size() + 1);
    assertion.text = "a.x >= 1 * b.x";
    assertion.reason = "1.31x in a typical round";
    assertion.place = {"scenarios/" + name + ".toml", 10, 3};
    assertion.outcome = outcome;
    verdict.assertions.push_back(assertion);
  }
  verdict.outcome = worst(verdict.assertions);
  return verdict;
}

std::string page_of(const std::vector<Verdict>& verdicts, UndecidedPolicy policy = {},
                    std::vector<RunFailure> failures = {}) {
  RunSoFar run = ended_run(verdicts, policy);
  run.failures = std::move(failures);
  std::ostringstream out;
  write_html(out, report_of(run));
  return out.str();
}

TEST(HtmlReport, MarksWhatVariantsDoDifferently) {
  Verdict verdict = verdict_on_page("waits", {Outcome::passes});
  std::vector<Variant> variants(2);
  variants[0].name = "baseline";
  variants[1].name = "fix";
  verdict.steps = described_steps(variants);
  const std::string alike = page_of({verdict});
  EXPECT_TRUE(shows(alike, "<p>mlp, layers 4, hidden 1024, fp32</p>")) << alike;
  EXPECT_FALSE(shows(alike, "<mark>"));
  variants[0].knobs.sync.where = SyncWhere::step;
  verdict.steps = described_steps(variants);
  const std::string page = page_of({verdict});
  EXPECT_TRUE(shows(page,
                    "<th scope=\"row\">sync</th><td data-title=\"variants\"><p>baseline</p>\n</td>"
                    "<td data-title=\"what it is\"><p><mark>step</mark></p></td>"))
      << page;
  EXPECT_TRUE(
      shows(page, "<p>fix</p>\n</td><td data-title=\"what it is\"><p><mark>none</mark></p>"));
  EXPECT_FALSE(shows(page, "<mark>mlp"));
}

struct Ended {
  Outcome outcome;
  const char* words;
  const char* code;
};

TEST(Page, SaysInItsFirstLinesWhatTheProcessEndsWith) {
  for (const Ended& ended : {Ended{Outcome::passes, "Everything passes", "Exit code 0"},
                             Ended{Outcome::fails, "Failed", "Exit code 1"},
                             Ended{Outcome::undecided, "Undecided", "Exit code 77"},
                             Ended{Outcome::skipped, "Undecided", "Exit code 77"},
                             Ended{Outcome::no_baseline, "Not gated", "Exit code 4"},
                             Ended{Outcome::machine_slower, "Not gated", "Exit code 4"}}) {
    const std::string page = page_of({verdict_on_page("a", {ended.outcome})});
    const std::string head = page.substr(0, page.find("</header>"));
    EXPECT_TRUE(shows(head, std::string(">") + ended.words + "</p>")) << head;
    EXPECT_TRUE(shows(head, ended.code)) << head;
    EXPECT_FALSE(shows(page, "SIMULATED"));
  }
  const std::vector<Verdict> open{verdict_on_page("a", {Outcome::undecided})};
  EXPECT_TRUE(shows(page_of(open, UndecidedPolicy::fail), "Undecided, which is to fail"));
  EXPECT_TRUE(shows(page_of(open, UndecidedPolicy::pass), "Passed: nothing fails"));
  std::vector<Verdict> broken{verdict_on_page("a", {Outcome::passes})};
  broken[0].broken = "losses disagree";
  EXPECT_TRUE(shows(page_of(broken), "Not to be trusted"));
  broken[0].failed = "out of memory";
  EXPECT_TRUE(shows(page_of(broken), "The device failed"));
  const std::vector<Verdict> good{verdict_on_page("a", {Outcome::passes})};
  EXPECT_TRUE(shows(page_of(good, {}, {{"not gated", {}, "there is no GPU"}}), "Exit code 4"));
  EXPECT_TRUE(shows(page_of({}, {}, {{"interrupted", {}, "x"}}), "Interrupted"));
}

TEST(Page, ShowsTheWorstFirstAndFoldsWhatPasses) {
  const std::string page = page_of({verdict_on_page("good", {Outcome::passes}),
                                    verdict_on_page("open", {Outcome::undecided}),
                                    verdict_on_page("bad", {Outcome::passes, Outcome::fails})});
  const auto at = [&](const std::string& words) { return page.find(words); };
  const std::string open = "<details class=\"scenario\" open=\"open\">\n<summary><span class=";
  EXPECT_LT(at(open + "\"badge bad\">fails</span> <h3>bad"), at("<h3>open"));
  EXPECT_LT(at(open + "\"badge open\">undecided</span> <h3>open"), at("<h3>good"));
  EXPECT_NE(at("<details class=\"scenario\">\n<summary><span class=\"badge good\">passes</span> "
               "<h3>good"),
            std::string::npos)
      << page;
  EXPECT_LT(at("<h4>line2"), at("<h4>line1"));
  for (const char* words : {"580.159", "locked", "0123abc", "00ff", "runner-7", "0.1.0"})
    EXPECT_TRUE(shows(page, words)) << words;
}

TEST(Page, NamesTheDeviceItsDriverAndTheCommitInItsHead) {
  const std::string page = page_of({verdict_on_page("a", {Outcome::passes})});
  const std::string head = page.substr(0, page.find("</header>"));
  for (const char* words : {"NVIDIA H200, driver 580.159", "0123abc", "2026-11-22T10:00:00Z",
                            "runner-7", "stepgate 0.1.0"})
    EXPECT_TRUE(shows(head, words)) << words << '\n' << head;
}

TEST(Page, BeginsWithWhatDidNotPassOfSeveralScenarios) {
  const std::string page = page_of({verdict_on_page("good", {Outcome::passes}),
                                    verdict_on_page("open", {Outcome::undecided}),
                                    verdict_on_page("bad", {Outcome::passes, Outcome::fails})});
  const std::size_t begin = page.find("<h2>At a glance</h2>");
  ASSERT_NE(begin, std::string::npos);
  const std::string glance = page.substr(begin, page.find("</section>", begin) - begin);
  EXPECT_LT(glance.find("bad.line2"), glance.find("open.line1")) << glance;
  EXPECT_NE(glance.find("open.line1"), std::string::npos);
  EXPECT_FALSE(shows(glance, "bad.line1")) << glance;
  EXPECT_FALSE(shows(page_of({verdict_on_page("bad", {Outcome::fails})}), "At a glance"));
  std::vector<Verdict> lost{verdict_on_page("bad", {Outcome::fails}),
                            verdict_on_page("later", {Outcome::undecided})};
  lost[1].failed = "the device was lost at 'bad'";
  lost[1].not_run = true;
  EXPECT_FALSE(shows(page_of(lost), "At a glance"));
}

TEST(Page, KeepsForeignTextInItsPlace) {
  const std::string hostile =
      "</style><script>x</script> <b> & \"q\" ]]> \x01\x1b[31m\xff\xe2\x80\xae";
  std::vector<Verdict> verdicts{verdict_on_page(hostile, {Outcome::fails})};
  Verdict& verdict = verdicts[0];
  verdict.claim = hostile;
  verdict.device.name = hostile;
  verdict.device.keys = {{hostile, hostile}};
  verdict.environment = verdict.notes = {hostile};
  verdict.disturbance = hostile;
  verdict.variants = {{.name = hostile}};
  verdict.regime = verdict.assertions;
  for (AssertionVerdict* assertion : {&verdict.assertions[0], &verdict.regime[0]})
    assertion->name = assertion->text = assertion->reason = assertion->place.file = hostile;
  const std::string page = page_of(verdicts, {}, {{hostile, {hostile, 1, 1}, hostile}});
  for (const char* markup : {"<script", "<b>", "\x01", "\x1b", "\xff", "\xe2\x80\xae"})
    EXPECT_FALSE(shows(page, markup)) << markup;
  EXPECT_EQ(times(page, "</style>"), 1);
  EXPECT_GT(times(page, "&lt;script&gt;"), 10);
}

TEST(Page, CutsWhatNobodyReads) {
  std::vector<Verdict> verdicts{verdict_on_page("a", {Outcome::fails})};
  verdicts[0].claim = std::string(5'000'000, 'x');
  EXPECT_LT(page_of(verdicts).size(), 100'000U);
}

TEST(Page, GivesTheRoomForPicturesToWhatDidNotHold) {
  const std::vector<Verdict> verdicts{verdict_on_page("good", {Outcome::passes}),
                                      verdict_on_page("bad", {Outcome::fails})};
  const std::vector<std::vector<Picture>> pictures{
      {{"Timelines", "of good", "<svg><!--good--></svg>" + std::string(1000, ' ')}},
      {{"Timelines", "of bad", "<svg><!--bad--></svg>" + std::string(1000, ' ')}}};
  RunSoFar run = run_of(verdicts);
  run.pictures = pictures;
  const auto page = [&](std::size_t room) {
    std::ostringstream out;
    write_html(out, report_of(run), room);
    return out.str();
  };
  EXPECT_TRUE(shows(page(5000), "<!--good-->"));
  EXPECT_FALSE(shows(page(1500), "<!--good-->"));
  EXPECT_TRUE(shows(page(1500), "<!--bad-->"));
  EXPECT_TRUE(shows(page(1500), "Timelines are left out here"));
  EXPECT_TRUE(shows(page(1500), "Not ended"));
}

}  // namespace
}  // namespace stepgate
