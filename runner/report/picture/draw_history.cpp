// SPDX-License-Identifier: MIT
#include "report/picture/pictures.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <ostream>
#include <string>
#include <vector>

#include "report/append.h"
#include "report/picture/svg.h"
#include "report/text/print_history.h"

namespace stepgate {

// The colours of Okabe and Ito, slightly lighter in the dark style.
constexpr std::string_view history_style = R"css(
.history-page{fill:#fff}.history-plot{fill:#fafafa}.history-grid{stroke:#e0e0e0}.history-axis{stroke:#222}
.history-text{fill:#222;font-family:Helvetica,Arial,"Liberation Sans","DejaVu Sans",sans-serif}
.history-quiet{fill:#666}
.history-run{fill:#0072B2}.history-other{fill:none;stroke:#999}.history-alarm{fill:#D55E00}
.history-rounds{stroke:#0072B2;stroke-opacity:.45}.history-odd{fill:#e6e9ed}.history-even{fill:#cfd5db}
.history-oldest{stroke:#222;stroke-dasharray:2 3}
.history-trend{stroke:#0072B2;stroke-width:2;fill:none}.history-band{fill:#0072B2;fill-opacity:.15}
.history-limit{stroke:#D55E00;stroke-width:1.5;stroke-dasharray:8 4}
.history-change{stroke:#009E73;stroke-width:1.5}.history-period{stroke:#888;stroke-dasharray:4 3}
.history-at{stroke:#D55E00;stroke-width:1.5}
@media (prefers-color-scheme:dark){
.history-page{fill:#16181c}.history-plot{fill:#1d2026}.history-grid{stroke:#343842}.history-axis{stroke:#ccc}
.history-text{fill:#e4e4e4}.history-quiet{fill:#a0a4ab}
.history-run{fill:#56B4E9}.history-other{stroke:#8a8f98}.history-alarm{fill:#ff8a3d}
.history-rounds{stroke:#56B4E9}.history-odd{fill:#2b3138}.history-even{fill:#3f4751}
.history-oldest{stroke:#ddd}.history-trend{stroke:#56B4E9}.history-band{fill:#56B4E9;fill-opacity:.2}
.history-limit{stroke:#ff8a3d}.history-change{stroke:#2fd6a5}.history-period{stroke:#8a8f98}
.history-at{stroke:#ff8a3d}
}
)css";

namespace {

// Sizes are in pixels.
constexpr double history_height = 270;
constexpr double label_row = 17;
constexpr double strip_height = 18;
constexpr double point_radius = 3.6;

constexpr double band_error = 0.05;

constexpr std::size_t shown_of_a_commit = 10;

struct Extent {
  double low = 0;
  double high = 0;
  void hold(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

class HistoryPicture {
 public:
  HistoryPicture(const VariantHistory& history, const HistoryLook& look)
      : history_(history), look_(look) {
    weeks_ = {history.runs.front().week, history.runs.back().week};
    const double margin = std::max(0.03 * (weeks_.high - weeks_.low), 0.5);
    weeks_.low -= margin;
    weeks_.high += margin;
    for (const HistoryRun& run : history.runs) {
      for (const double side : {-1, 1})
        changes_.hold(change_of(run) + side * run.half_interval.value_or(0));
    }
    if (history.limit) changes_.hold(*history.limit);
    const double headroom = std::max(0.08 * (changes_.high - changes_.low), 0.001);
    changes_.low -= headroom;
    changes_.high += headroom;
  }

  std::string draw() {
    if (look_.is_file) draw_title();
    draw_legend();
    bottom_ = top_ + history_height;
    draw_axes();
    draw_levels();
    draw_marks();
    draw_runs();
    draw_labels();
    draw_strips();
    std::string page;
    if (look_.is_file) {
      page = fmt::format("<style>{}</style>\n", history_style) +
             "<rect class=\"history-page\" width=\"100%\" height=\"100%\"/>\n";
    }
    return svg_file(strips_top_ + 8, page + svg_.body(), look_.width);
  }

 private:
  struct Label {
    double x;
    std::string words;
  };

  double change_of(const HistoryRun& run) const { return change_from_oldest(history_, run); }

  double x_of(double week) const {
    return left_ + (week - weeks_.low) / (weeks_.high - weeks_.low) * (right_ - left_);
  }
  double y_of(double change) const {
    return bottom_ - (change - changes_.low) / (changes_.high - changes_.low) * history_height;
  }

  void text(double x, double y, double size, Anchor anchor, std::string_view words,
            std::string_view look = "class=\"history-text\"") {
    svg_.text(x, y, size, anchor, words, look);
  }

  void draw_title() {
    const std::string name = history_.scenario + "/" + history_.variant;
    constexpr double name_width = 560;
    text(20, 32, 19, Anchor::start, shortened(name, 19, name_width),
         "class=\"history-text\" font-weight=\"bold\"");
    const std::string where =
        history_.anchor.empty()
            ? fmt::format("time, on {}", history_.device)
            : fmt::format("time beside {}, on {}", history_.anchor, history_.device);
    text(right_, 32, 12, Anchor::end, shortened(where, 12, right_ - 40 - name_width),
         "class=\"history-text history-quiet\"");
    text(20, 53, 13, Anchor::start, shortened(answer(), 13, right_ - 20));
    top_ = 66;
  }

  std::string answer() const {
    if (!history_.drift)
      return fmt::format("{} stored run{}: too few sessions, or too little time, to show a drift",
                         history_.runs.size(), history_.runs.size() == 1 ? "" : "s");
    const SlopeInterval interval = interval_of(history_.drift->now, band_error);
    return fmt::format("{} a week, between {} and {} with 95 %: {}",
                       change_in_words(history_.drift->now.slope), change_in_words(interval.low),
                       change_in_words(interval.high), in_words(history_.outcome));
  }

  void draw_legend() {
    double left = legend_left;
    const auto words = [&](std::string_view said, double of_mark) {
      text(left + of_mark, top_ + 11, 12, Anchor::start, said);
      left += of_mark + width_of_text(said, 12) + 12;
    };
    const auto find_room = [&](std::string_view said, double of_mark) {
      if (left + of_mark + width_of_text(said, 12) <= right_) return;
      left = legend_left;
      top_ += label_row;
    };
    const auto circle = [&](std::string_view look, std::string_view said) {
      find_room(said, 14);
      svg_.circle(left + 6, top_ + 7, point_radius, look);
      words(said, 14);
    };
    const auto line = [&](std::string_view look, std::string_view said) {
      find_room(said, 24);
      svg_.line(left, top_ + 7, left + 18, top_ + 7, look);
      words(said, 24);
    };
    const auto has_other =
        std::ranges::any_of(history_.runs, [](const HistoryRun& run) { return !run.is_compared; });
    const auto has = [&](const auto& what) { return std::ranges::any_of(history_.runs, what); };
    circle("class=\"history-run\"", has(&HistoryRun::is_accepted) ? "an accepted run" : "a run");
    if (has_other) circle("class=\"history-other\"", "not compared");
    if (has([](const HistoryRun& run) { return run.half_interval.has_value(); }))
      line("class=\"history-rounds\"", "95 % interval of its rounds");
    line("class=\"history-oldest\"", "the oldest runs");
    if (history_.drift) line("class=\"history-trend\"", "trend, 95 % band");
    if (history_.limit) line("class=\"history-limit\"", "limit of a run");
    if (alarm()) line("class=\"history-at\"", "alarm");
    if (!history_.changes.empty()) line("class=\"history-change\"", "change");
    if (history_.periods.size() > 1) line("class=\"history-period\"", "a baseline reset");
    top_ += 26;
  }

  std::optional<std::size_t> alarm() const {
    return history_.drift ? history_.drift->alarm : std::nullopt;
  }

  void draw_axes() {
    svg_.box({left_, top_, right_ - left_, history_height}, "class=\"history-plot\"");
    draw_change_ticks();
    draw_date_ticks();
    svg_.line(left_, top_, left_, bottom_, "class=\"history-axis\"");
    svg_.line(left_, bottom_, right_, bottom_, "class=\"history-axis\"");
  }

  // Ticks are changes in percent. Their distance is 1, 2 or 5 times a power of ten.
  void draw_change_ticks() {
    constexpr double most_ticks = 7;
    const double low = 100 * std::expm1(changes_.low);
    const double high = 100 * std::expm1(changes_.high);
    double tick = std::pow(10, std::floor(std::log10((high - low) / most_ticks)));
    for (const double factor : {2.0, 2.5, 2.0}) {
      if ((high - low) / tick > most_ticks) tick *= factor;
    }
    const int digits = std::max(0, static_cast<int>(-std::floor(std::log10(tick) + 1e-9)));
    for (double count = std::ceil(low / tick); count * tick <= high; ++count) {
      const double y = y_of(std::log1p(count * tick / 100));
      svg_.line(left_, y, right_, y, "class=\"history-grid\"");
      const std::string words =
          count == 0 ? "0 %" : fmt::format("{:+.{}f} %", count * tick, digits);
      text(left_ - 7, y + 4, 12, Anchor::end, words);
    }
  }

  // Ticks begin at the day of the first run. Their distance is a number of days or whole weeks.
  void draw_date_ticks() {
    const double most_ticks = std::max(2.0, std::floor(look_.width / 108));
    const double days = 7 * (weeks_.high - weeks_.low);
    double apart = 1;
    for (const double more : {2.0, 7.0, 14.0, 28.0, 56.0, 112.0, 182.0, 364.0}) {
      if (days / apart > most_ticks) apart = more;
    }
    while (days / apart > most_ticks) apart *= 2;
    const double first_week = *weeks_of_date(history_.runs.front().date);
    for (double day = std::floor(7 * first_week); day <= 7 * (first_week + weeks_.high);
         day += apart) {
      const double x = x_of(day / 7 - first_week);
      const std::string words = fmt::format(
          "{:%Y-%m-%d}", fmt::gmtime(static_cast<std::time_t>(std::llround(day * 86400))));
      svg_.line(x, bottom_, x, bottom_ + 5, "class=\"history-axis\"");
      if (x + 0.5 * width_of_text(words, 12) > look_.width) continue;
      text(x, bottom_ + 19, 12, Anchor::middle, words);
    }
    labels_top_ = bottom_ + 28;
  }

  // Draws the trend over the series, and the levels that runs are compared with.
  void draw_levels() {
    const double oldest = y_of(0);
    svg_.line(left_, oldest, right_, oldest, "class=\"history-oldest\"");
    if (history_.limit) {
      const double y = y_of(*history_.limit);
      svg_.line(left_, y, right_, y, "class=\"history-limit\"");
    }
    if (!history_.drift) return;
    const WeeklySlope& line = history_.drift->now;
    const double begin = history_.units.front().week;
    const double length = history_.units.back().week - begin;
    constexpr int pieces = 40;
    std::string above;
    std::string below;
    for (int piece = 0; piece <= pieces; ++piece) {
      const double week = length * piece / pieces;
      const double height = trend_at(week);
      const double half = half_band_at(line, week, band_error);
      append(above, "{}{:.1f} {:.1f}", piece == 0 ? "M" : "L", x_of(begin + week),
             inside(y_of(height + half)));
      below =
          fmt::format("L{:.1f} {:.1f}", x_of(begin + week), inside(y_of(height - half))) + below;
    }
    svg_.path(above + below + "z", "class=\"history-band\"");
    svg_.line(x_of(begin), y_of(trend_at(0)), x_of(begin + length), y_of(trend_at(length)),
              "class=\"history-trend\"");
  }

  double trend_at(double week) const {
    const WeeklySlope& line = history_.drift->now;
    return line.middle + line.slope * (week - line.middle_week) - history_.oldest;
  }

  double inside(double y) const { return std::clamp(y, top_, bottom_); }

  void mark(double week, std::string_view look, std::string words) {
    const double x = x_of(week);
    svg_.line(x, top_, x, bottom_ + 4, look);
    labels_.push_back({x, std::move(words)});
  }

  // A mark stands halfway between its two neighbouring runs, but the mark of an alarm stands at the
  // run that raised it.
  void draw_marks() {
    for (std::size_t period = 1; period < history_.periods.size(); ++period) {
      const auto first = std::ranges::find(history_.runs, period, &HistoryRun::period);
      // The period's first run comes before the first stored one by date.
      if (first == history_.runs.begin()) continue;
      mark(0.5 * (first->week + std::prev(first)->week), "class=\"history-period\"",
           history_.periods[period].why);
    }
    const auto in_label = [&](const CommitRange& commits) {
      return commits.before.substr(0, shown_of_a_commit) + " \u2192 " +
             commits.after.substr(0, shown_of_a_commit);
    };
    for (const HistoryChange& change : history_.changes) {
      const double before = history_.units[change.unit - 1].week;
      mark(0.5 * (before + history_.units[change.unit].week), "class=\"history-change\"",
           change_in_words(change.shift) + ", " + in_label(commits_around(history_, change.unit)));
    }
    if (const auto at = alarm())
      mark(history_.units[*at].week, "class=\"history-at\"",
           "alarm, " + in_label(commits_of_alarm(history_)));
  }

  void draw_runs() {
    const auto at = alarm();
    for (std::size_t index = 0; index < history_.runs.size(); ++index) {
      const HistoryRun& run = history_.runs[index];
      if (run.half_interval) {
        svg_.line(x_of(run.week), y_of(change_of(run) - *run.half_interval), x_of(run.week),
                  y_of(change_of(run) + *run.half_interval), "class=\"history-rounds\"");
      }
      const bool alarms = at && std::ranges::count(history_.units[*at].runs, index) > 0;
      svg_.circle(
          x_of(run.week), y_of(change_of(run)), point_radius,
          !run.is_compared ? "class=\"history-other\""
          : alarms         ? "class=\"history-alarm\""
                           : "class=\"history-run\"",
          fmt::format("{}, commit {}: {} from the oldest, {:.4g} us a step", run.date, run.commit,
                      change_in_words(change_of(run)), 1e6 * std::exp(run.raw)));
    }
  }

  // Draws labels below the axis, each in the first row without overlap. Labels without a place are
  // only printed in the text.
  void draw_labels() {
    constexpr std::size_t most_rows = 6;
    const double widest = std::min(420.0, look_.width - 16);
    std::ranges::stable_sort(labels_, {}, &Label::x);
    std::vector<double> free_from;
    for (const Label& label : labels_) {
      const std::string words = shortened(label.words, 12, widest);
      const double width = width_of_text(words, 12);
      const double left = std::max(8.0, std::min(label.x - width / 2, look_.width - 8 - width));
      const auto row = std::ranges::find_if(free_from, [&](double from) { return from <= left; });
      const auto index = static_cast<std::size_t>(row - free_from.begin());
      if (index >= most_rows) continue;
      if (row == free_from.end()) free_from.push_back(0);
      free_from[index] = left + width + 14;
      const double y = labels_top_ + 12 + static_cast<double>(index) * label_row;
      text(left + width / 2, y, 12, Anchor::middle, words);
    }
    strips_top_ = labels_top_ + static_cast<double>(free_from.size()) * label_row + 8;
  }

  // A row where any run has that; its boxes end halfway between the runs around a change.
  void draw_strip(std::string_view name, std::size_t shown, std::string HistoryRun::*value) {
    const std::vector<HistoryRun>& runs = history_.runs;
    if (std::ranges::all_of(runs, [&](const HistoryRun& run) { return (run.*value).empty(); }))
      return;
    text(left_ - 7, strips_top_ + 13, 12, Anchor::end, name);
    bool is_odd = true;
    for (std::size_t first = 0; first < runs.size(); is_odd = !is_odd) {
      std::size_t next = first + 1;
      while (next < runs.size() && runs[next].*value == runs[first].*value) ++next;
      const double begin =
          first == 0 ? left_ : x_of(0.5 * (runs[first - 1].week + runs[first].week));
      const double end =
          next == runs.size() ? right_ : x_of(0.5 * (runs[next - 1].week + runs[next].week));
      const std::string words = (runs[first].*value).empty() ? "unknown" : runs[first].*value;
      svg_.box({begin, strips_top_, end - begin, strip_height - 2},
               is_odd ? "class=\"history-odd\"" : "class=\"history-even\"",
               fmt::format("{} {}, {}", name, words, runs_in_words(next - first)));
      text(begin + 4, strips_top_ + 12, 11, Anchor::start,
           shortened(words.substr(0, shown), 11, end - begin - 8));
      first = next;
    }
    strips_top_ += strip_height;
  }

  static std::string runs_in_words(std::size_t runs) {
    return counted_in_words(static_cast<std::int64_t>(runs), "run");
  }

  void draw_strips() {
    draw_strip("commit", shown_of_a_commit, &HistoryRun::commit);
    draw_strip("driver", std::string::npos, &HistoryRun::driver);
    draw_strip("GPU", std::string::npos, &HistoryRun::device);
  }

  static constexpr double legend_left = 20;

  const VariantHistory& history_;
  const HistoryLook look_;
  const double left_ = 78;
  const double right_ = look_.width - 24;
  Extent weeks_;
  Extent changes_;
  std::vector<Label> labels_;
  double strips_top_ = 0;
  Svg svg_;
  double top_ = 4;
  double bottom_ = 0;
  double labels_top_ = 0;
};

}  // namespace

void draw_history(std::ostream& out, const VariantHistory& history, const HistoryLook& look) {
  out << HistoryPicture(history, look).draw();
}

}  // namespace stepgate
