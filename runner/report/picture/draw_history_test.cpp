// SPDX-License-Identifier: MIT
// Tests the content of history pictures, pages and lines, and that no elements overlap. With
// STEPGATE_PICTURES=FOLDER the pictures are kept for viewing.
#include "report/picture/pictures.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <sstream>

#include "base/random.h"
#include "ledger/series/history.h"
#include "report/picture/svg.h"
#include "report/text/print_history.h"
#include "tests/golden.h"

namespace stepgate {
namespace {

struct Drawn {
  std::size_t runs = 16;
  double a_week = 0.003;
  double step = 0;  // added from the middle on
  std::size_t baseline_reset_at = 0;
  std::string text = "fix";  // name of the variant, and why the period began
};

std::string monday(std::size_t week) {
  using namespace std::chrono;
  const year_month_day day(sys_days(year(2026) / 1 / 5) + days(7 * week));
  return fmt::format("{:04}-{:02}-{:02}T10:00:00Z", static_cast<int>(day.year()),
                     static_cast<unsigned>(day.month()), static_cast<unsigned>(day.day()));
}

VariantHistory drawn_history(const Drawn& wanted) {
  Scenario scenario;
  scenario.name = "train_step";
  scenario.variants.push_back({.name = wanted.text, .knobs = {}, .place = {}});
  Baseline baseline{"baselines/nvidia-h200/train_step.toml", "train_step", {}};
  Random random(3);
  for (std::size_t run = 0; run < wanted.runs; ++run) {
    const auto week = static_cast<double>(run);
    const bool after = run >= wanted.runs / 2;
    StoredVariant variant{.name = wanted.text, .anchor = "hbm.1", .anchor_seconds = 1e-3};
    variant.times.push_back(
        {.metric = Metric::step_ms_mean,
         .contrasts = std::vector<double>(
             12, wanted.a_week * week + (after ? wanted.step : 0) + 0.002 * random.normal())});
    StoredRun stored{
        .provenance = {.date = monday(run), .commit = fmt::format("{:07x}", random.bits() >> 36)},
        .environment = {.kind = "cuda", .gpu = "NVIDIA H200", .uuid = "GPU-1"},
        .variants = {variant}};
    if (wanted.baseline_reset_at > 0 && run == wanted.baseline_reset_at)
      stored.baseline_reset = wanted.text;
    baseline.runs.push_back(std::move(stored));
  }
  std::vector<VariantHistory> all = histories_of(baseline, scenario);
  all.front().limit = -std::log(0.98);
  judge_drifts(all);
  return all.front();
}

std::string picture_of(const VariantHistory& history, const std::string& name) {
  std::ostringstream out;
  draw_history(out, history);
  if (const char* folder = std::getenv("STEPGATE_PICTURES"))
    std::ofstream(std::string(folder) + "/" + name + ".svg") << out.str();
  return out.str();
}

std::size_t count_in(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

struct Words {
  double left, right, top, bottom;
  std::string text;
};

std::vector<Words> words_in(const std::string& picture) {
  const std::regex text(
      R"re(<text x="([-\d.]+)" y="([-\d.]+)" font-size="([\d.]+)" text-anchor="(\w+)" [^>]*>([^<]*)<)re");
  std::vector<Words> all;
  for (std::sregex_iterator at(picture.begin(), picture.end(), text), end; at != end; ++at) {
    const double x = std::stod((*at)[1]);
    const double y = std::stod((*at)[2]);
    const double size = std::stod((*at)[3]);
    const double width = 0.5 * size * static_cast<double>((*at)[5].length());
    const std::string anchor = (*at)[4];
    const double left = anchor == "start" ? x : anchor == "end" ? x - width : x - width / 2;
    all.push_back({left, left + width, y - 0.8 * size, y + 0.2 * size, (*at)[5]});
  }
  return all;
}

void expect_no_overlap(const std::string& picture, double wide = 1200) {
  const std::vector<Words> all = words_in(picture);
  ASSERT_GT(all.size(), 5U);
  for (std::size_t one = 0; one < all.size(); ++one) {
    EXPECT_GE(all[one].left, 0) << all[one].text;
    EXPECT_LE(all[one].right, wide) << all[one].text;
    for (std::size_t other = 0; other < one; ++other) {
      const Words& a = all[one];
      const Words& b = all[other];
      const bool apart =
          a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
      EXPECT_TRUE(apart) << a.text << " | " << b.text;
    }
  }
}

TEST(DrawHistory, HasAPointForEveryRunWhateverTheirNumber) {
  for (const std::size_t runs : {1U, 2U, 5U, 12U, 52U}) {
    const VariantHistory history = drawn_history({.runs = runs});
    const std::string picture = picture_of(history, fmt::format("runs_{}", runs));
    EXPECT_EQ(count_in(picture, "step</title></circle>"), runs);
    EXPECT_EQ(count_in(picture, "class=\"history-trend\""), runs < 6 ? 0U : 2U) << runs;
    EXPECT_EQ(count_in(picture, "nan"), 0U);
    EXPECT_EQ(count_in(picture, "inf"), 0U);
    expect_no_overlap(picture);
  }
}

TEST(DrawHistory, MarksTheAlarmTheChangesTheLimitAndThePeriodsInBothColours) {
  const std::string drift = picture_of(drawn_history({}), "drift");
  EXPECT_EQ(count_in(drift, "class=\"history-alarm\""), 1U);
  EXPECT_EQ(count_in(drift, "class=\"history-limit\""), 2U) << "one is the legend's";
  EXPECT_EQ(count_in(drift, "prefers-color-scheme:dark"), 1U);
  EXPECT_EQ(count_in(drift, " id="), 0U) << "several stand in one page";
  const std::string step =
      picture_of(drawn_history({.runs = 30, .a_week = 0, .step = 0.02}), "step");
  EXPECT_EQ(count_in(step, "class=\"history-change\""), 2U);
  EXPECT_EQ(count_in(step, " \u2192 "), 2U) << "change and alarm name commits";
  expect_no_overlap(step);
  const std::string periods = picture_of(
      drawn_history(
          {.runs = 30, .a_week = 0, .baseline_reset_at = 17, .text = "driver 590 <b> & all"}),
      "periods");
  EXPECT_EQ(count_in(periods, "class=\"history-other\""), 18U);
  EXPECT_EQ(count_in(periods, "class=\"history-period\""), 2U);
  EXPECT_EQ(count_in(periods, "driver 590 &lt;b&gt; &amp; all"), 2U) << "as variant and as reason";
  expect_no_overlap(periods);
}

TEST(DrawHistory, SaysInRowsBelowWhichCommitDriverAndGpuEachRunHas) {
  VariantHistory history = drawn_history({.runs = 30, .a_week = 0});
  for (std::size_t run = 0; run < 30; ++run) {
    history.runs[run].commit = run < 12 ? "aaaaaaaaaaaa" : "bbbbbbbbbbbb";
    history.runs[run].driver = run == 5 ? "580.1" : "590.2";  // has no room for its words
  }
  history.runs[7].half_interval.reset();
  for (const double width : {1200.0, 356.0}) {
    std::ostringstream out;
    draw_history(out, history, {.width = width, .is_file = false});
    const std::string picture = out.str();
    expect_no_overlap(picture, width);
    EXPECT_EQ(count_in(picture, "<title>commit aaaaaaaaaaaa, 12 runs</title>"), 1U);
    EXPECT_EQ(count_in(picture, ">aaaaaaaaaa<"), 1U) << picture;
    EXPECT_EQ(count_in(picture, "<title>driver 580.1, 1 run</title>"), 1U);
    EXPECT_EQ(count_in(picture, "<title>driver 590.2, 24 runs</title>"), 1U);
    EXPECT_EQ(count_in(picture, "<title>GPU GPU-1, 30 runs</title>"), 1U);
    EXPECT_EQ(count_in(picture, "class=\"history-rounds\""), 30U) << "one is the legend's";
    EXPECT_EQ(count_in(picture, "<style>"), 0U);
    EXPECT_EQ(count_in(picture, ">train_step/fix<"), 0U) << "the page has the title";
  }
}

// A bar reaches from the low end of the interval to the high one.
TEST(DrawHistory, DrawsTheIntervalOfARunByHowItsRoundsScatter) {
  const auto height = [](const VariantHistory& history) {
    const std::string picture = picture_of(history, "interval");
    const std::regex bar(R"re(y1="([\d.]+)" x2="[\d.]+" y2="([\d.]+)" class="history-rounds")re");
    double tallest = 0;
    for (std::sregex_iterator at(picture.begin(), picture.end(), bar), end; at != end; ++at)
      tallest = std::max(tallest, std::stod((*at)[1]) - std::stod((*at)[2]));
    return tallest;
  };
  VariantHistory history = drawn_history({});
  EXPECT_EQ(*history.runs.front().half_interval, 0) << "its rounds are equal";
  EXPECT_EQ(height(history), 0);
  for (HistoryRun& run : history.runs) run.half_interval = 0.01;
  EXPECT_GT(height(history), 20);
}

TEST(Shortened, IsEmptyWhereThereIsNoRoomAtAll) {
  EXPECT_EQ(shortened("words", 11, -5), "");
  EXPECT_EQ(shortened("words", 11, 0), "");
}

// Without the head, whose style html.cpp and draw_history.cpp have.
TEST(HistoryPage, IsAsItsGoldenFile) {
  std::vector<VariantHistory> all{drawn_history({.runs = 4, .text = "steady <b>"}),
                                  drawn_history({.runs = 12, .a_week = 0.01})};
  all.front().runs[2].driver = "590.2";
  const std::vector<std::string> missing{"train_step/new & unknown"};
  std::ostringstream out;
  write_history_html(out, {.stepgate = "0.2.0", .date = "2026-11-28T07:00:00Z", .host = "a host"},
                     all, missing, ExitCode::fails);
  const std::string page = out.str();
  const std::size_t head = page.find("<header>");
  ASSERT_NE(head, std::string::npos);
  EXPECT_EQ(count_in(page.substr(0, head), "@media (max-width:720px){svg.history.wide"), 1U);
  EXPECT_EQ(count_in(page.substr(0, head), ".history-run"), 2U) << "the style, light and dark";
  expect_golden(std::filesystem::path(STEPGATE_SOURCE_DIR) / "tests/golden/history.html",
                page.substr(head));
}

TEST(PrintHistory, SaysTheDriftInOneLine) {
  std::ostringstream out;
  print_history(out, drawn_history({}));
  EXPECT_TRUE(std::regex_search(
      out.str(),
      std::regex(R"(^train_step/fix on NVIDIA H200: 16 runs since 2026-01-05, \+0\.\d\d % )"
                 R"(a week \[\+0\.\d\d, \+0\.\d\d\]; ALARM at run 1\d, 2026-0[34]-\d\d )"
                 R"(\(commit [0-9a-f]{7} -> [0-9a-f]{7}\)\n)")))
      << out.str();
}

TEST(PrintHistory, SaysWhatIsMissing) {
  std::ostringstream out;
  print_history(out, drawn_history({.runs = 3}));
  EXPECT_EQ(out.str(),
            "train_step/fix on NVIDIA H200: 3 runs since 2026-01-05; not gated: a drift takes 6 "
            "sessions over at least 1 week to show\n");
}

}  // namespace
}  // namespace stepgate
