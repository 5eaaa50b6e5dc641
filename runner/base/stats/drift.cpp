// SPDX-License-Identifier: MIT
// Lines, looks and splits.
#include "base/stats/drift.h"

#include <algorithm>
#include <cmath>

#include "base/require.h"
#include "base/stats/moments.h"
#include "base/stats/rank_tests.h"

namespace stepgate {
namespace {

constexpr double weeks_of_year = 52;
// Stored values are rounded to this. Smaller deviations are not noise, and no deviation is
// estimated below it.
constexpr double resolution = 1e-6;
constexpr std::size_t fewest_of_a_part = 2;

// The residuals of a fit: sum of squares, and sum of products of neighbours.
struct Residuals {
  double squares = 0;
  double neighbours = 0;
};

template <class Fit>
Residuals residuals_of(std::span<const double> values, const Fit& fit) {
  Residuals left;
  double before = 0;
  for (std::size_t index = 0; index < values.size(); ++index) {
    const double residual = values[index] - fit(index);
    left.squares += residual * residual;
    left.neighbours += residual * before;
    before = residual;
  }
  return left;
}

// Residuals of the best line that is flat up to index `bend` and straight from there.
std::optional<Residuals> beside_a_bend(std::span<const double> weeks,
                                       std::span<const double> values, std::size_t bend) {
  std::vector<double> since;
  for (const double week : weeks) since.push_back(std::max(week - weeks[bend], 0.0));
  const auto line = weekly_slope(since, values);
  if (!line) return std::nullopt;
  return residuals_of(values, [&](std::size_t index) {
    return line->middle + line->slope * (since[index] - line->middle_week);
  });
}

Residuals beside_a_step(std::span<const double> values, std::size_t first_after) {
  const double before = moments_of(values.first(first_after)).mean;
  const double after = moments_of(values.subspan(first_after)).mean;
  return residuals_of(values,
                      [&](std::size_t index) { return index < first_after ? before : after; });
}

// An upper estimate of the lag-one correlation, from the residuals of the best bend or step, in [0,
// most_alike]. A fit lowers the correlation of its residuals, the more the fewer values there are.
// The correction for that is large enough for the rates stated in the header.
double correlation_of(std::span<const double> weeks, std::span<const double> values) {
  constexpr double most_alike = 0.95;
  constexpr double taken_out = 10;
  constexpr double taken_out_of_alike = 4;
  std::optional<Residuals> least;
  const auto take = [&](const std::optional<Residuals>& left) {
    if (left && (!least || left->squares < least->squares)) least = left;
  };
  for (std::size_t at = 0; at + 3 < weeks.size(); ++at) {
    take(beside_a_bend(weeks, values, at));
    if (at >= fewest_of_a_part) take(beside_a_step(values, at));
  }
  if (!least || !(least->squares > 0)) return 0;
  const double seen = least->neighbours / least->squares;
  const double hidden = taken_out + taken_out_of_alike * std::max(seen, 0.0);
  return std::clamp(seen + hidden / static_cast<double>(values.size()), 0.0, most_alike);
}

// Statistics of a stretch of a series: count, mean, and sum of squares about the mean.
struct Part {
  double count = 0;
  double mean = 0;
  double squares = 0;
};

Part part_of(std::span<const double> values) {
  const Moments moments = moments_of(values);
  const auto count = static_cast<double>(moments.count);
  return {.count = count, .mean = moments.mean, .squares = moments.variance * count};
}

// Computes the Part of any stretch, or of the rest, in constant time.
class Parts {
 public:
  explicit Parts(std::span<const double> values) : all_(part_of(values)) {
    for (const double value : values) {
      const double offset = value - all_.mean;  // centred, against cancellation
      sums_.push_back(sums_.back() + offset);
      squares_.push_back(squares_.back() + offset * offset);
    }
  }
  Part of(std::size_t begin, std::size_t end) const {
    return part(static_cast<double>(end - begin), sums_[end] - sums_[begin],
                squares_[end] - squares_[begin]);
  }
  Part without(std::size_t begin, std::size_t end) const {
    return part(all_.count - static_cast<double>(end - begin),
                sums_.back() - sums_[end] + sums_[begin],
                squares_.back() - squares_[end] + squares_[begin]);
  }

 private:
  static Part part(double count, double sum, double squares) {
    const double mean = sum / count;
    return {.count = count, .mean = mean, .squares = std::max(squares - mean * sum, 0.0)};
  }
  Part all_;
  std::vector<double> sums_{0};
  std::vector<double> squares_{0};
};

// Student's t of the difference of the means of two parts with a common deviation; absolute value.
double separation_of(const Part& one, const Part& other) {
  const double squares = one.squares + other.squares;
  const double deviation = std::max(std::sqrt(squares / (one.count + other.count - 2)), resolution);
  return std::abs(other.mean - one.mean) / (deviation * std::sqrt(1 / one.count + 1 / other.count));
}

// A stretch of the values that differs from the rest of them.
struct Stretch {
  std::size_t begin = 0;
  std::size_t end = 0;
  double separation = 0;
  double looked_at = 0;  // number of stretches that were compared
};

Stretch most_separate(std::span<const double> values) {
  const Parts parts(values);
  Stretch best;
  const std::size_t size = values.size();
  for (std::size_t begin = 0; begin < size; ++begin) {
    for (std::size_t end = begin + fewest_of_a_part; end <= size; ++end) {
      const std::size_t outside = size - (end - begin);
      const bool leaves_too_few =
          (begin > 0 && begin < fewest_of_a_part) || (end < size && size - end < fewest_of_a_part);
      // Skips a stretch that reaches the end: it is the rest of one at the beginning, compared
      // already.
      if (outside < fewest_of_a_part || leaves_too_few || (begin > 0 && end == size)) continue;
      const double separation = separation_of(parts.of(begin, end), parts.without(begin, end));
      best.looked_at += 1;
      if (separation <= best.separation) continue;
      best = {.begin = begin, .end = end, .separation = separation, .looked_at = best.looked_at};
    }
  }
  return best;
}

void add_changes(std::span<const double> values, std::size_t first, double level,
                 std::vector<std::size_t>& changes) {
  if (values.size() < 2 * fewest_of_a_part) return;
  const Stretch found = most_separate(values);
  if (found.separation <= t_beyond(std::ssize(values) - 2, level / found.looked_at)) return;
  add_changes(values.first(found.begin), first, level, changes);
  if (found.begin > 0) changes.push_back(first + found.begin);
  add_changes(values.subspan(found.begin, found.end - found.begin), first + found.begin, level,
              changes);
  if (found.end == values.size()) return;
  changes.push_back(first + found.end);
  add_changes(values.subspan(found.end), first + found.end, level, changes);
}

// Segmentation may put a change a little off its place, or where there is none. Drops changes that
// do not separate the two neighbouring parts significantly, the weakest first.
void drop_the_weak(std::span<const double> values, double level,
                   std::vector<std::size_t>& changes) {
  while (!changes.empty()) {
    std::size_t weakest = 0;
    double least = 1;
    for (std::size_t at = 0; at < changes.size(); ++at) {
      const std::size_t from = at == 0 ? 0 : changes[at - 1];
      const std::size_t to = at + 1 == changes.size() ? values.size() : changes[at + 1];
      const double separation =
          separation_of(part_of(values.subspan(from, changes[at] - from)),
                        part_of(values.subspan(changes[at], to - changes[at])));
      const auto degrees = static_cast<std::int64_t>(to - from) - 2;
      const double share = separation / t_beyond(degrees, level / static_cast<double>(to - from));
      if (share >= least) continue;
      least = share;
      weakest = at;
    }
    if (least >= 1) return;
    changes.erase(changes.begin() + static_cast<std::ptrdiff_t>(weakest));
  }
}

}  // namespace

std::optional<WeeklySlope> weekly_slope(std::span<const double> weeks,
                                        std::span<const double> values) {
  require(weeks.size() == values.size(), "every value has its week");
  if (values.size() < 3) return std::nullopt;
  WeeklySlope line;
  line.values = std::ssize(values);
  line.middle_week = moments_of(weeks).mean;
  line.middle = moments_of(values).mean;
  double spread = 0;
  double product = 0;
  for (std::size_t index = 0; index < values.size(); ++index) {
    const double offset = weeks[index] - line.middle_week;
    spread += offset * offset;
    product += offset * (values[index] - line.middle);
  }
  if (!(spread > 0)) return std::nullopt;
  line.slope = product / spread;
  double squares = 0;
  for (std::size_t index = 0; index < values.size(); ++index) {
    const double on_line = line.middle + line.slope * (weeks[index] - line.middle_week);
    squares += (values[index] - on_line) * (values[index] - on_line);
  }
  const double deviation =
      std::max(std::sqrt(squares / static_cast<double>(line.degrees())), resolution);
  line.standard_error = deviation / std::sqrt(spread);
  line.middle_error = deviation / std::sqrt(static_cast<double>(line.values));
  return line;
}

SlopeInterval interval_of(const WeeklySlope& line, double error) {
  const double half_width = t_beyond(line.degrees(), error) * line.standard_error;
  return {.low = line.slope - half_width, .high = line.slope + half_width};
}

double half_band_at(const WeeklySlope& line, double week, double error) {
  // The errors of the line's height at middle_week and of its slope are independent.
  const double from_slope = line.standard_error * (week - line.middle_week);
  return t_beyond(line.degrees(), error) * std::hypot(line.middle_error, from_slope);
}

double spent_by(double week, double yearly_error) {
  const double years = std::max(week, 0.0) / weeks_of_year;
  return yearly_error * (years < 1 ? std::sqrt(years) : years);
}

std::optional<Drift> drift_of(std::span<const double> weeks, std::span<const double> values,
                              double yearly_error) {
  require(std::is_sorted(weeks.begin(), weeks.end()), "weeks do not fall");
  if (values.size() < fewest_values_of_drift || weeks.back() < fewest_weeks_of_drift)
    return std::nullopt;
  const auto now = weekly_slope(weeks, values);
  if (!now) return std::nullopt;
  Drift drift{.now = *now, .alarm = std::nullopt};
  double spent = 0;
  for (std::size_t count = fewest_values_of_drift; count <= values.size(); ++count) {
    const double week = weeks[count - 1];
    if (week < fewest_weeks_of_drift) continue;
    const double unspent = spent_by(week, yearly_error) - spent;
    const auto line = weekly_slope(weeks.first(count), values.first(count));
    if (!line || !(unspent > 0)) continue;
    spent += unspent;
    // After a pause of years, or with a date that is wrong by centuries, `unspent` may exceed
    // yearly_error and even 1.
    const double level = std::min(unspent, yearly_error);
    const double bound = t_beyond(line->degrees(), 2 * level) * line->standard_error;
    if (line->slope <= bound) continue;
    if (!drift.rise) drift.rise = count - 1;
    const double beyond_a_season = line->slope - most_of_a_season / week;
    if (beyond_a_season <= bound) continue;  // the next bound is at least as large
    const double correlation = correlation_of(weeks.first(count), values.first(count));
    if (beyond_a_season <= bound * std::sqrt((1 + correlation) / (1 - correlation))) continue;
    drift.alarm = count - 1;
    break;
  }
  return drift;
}

std::vector<std::size_t> change_points(std::span<const double> values, double level) {
  std::vector<std::size_t> changes;
  add_changes(values, 0, level, changes);
  drop_the_weak(values, level, changes);
  return changes;
}

}  // namespace stepgate
