// SPDX-License-Identifier: MIT
#include "base/stats/solve_monotone.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace stepgate {
namespace {

constexpr double stride = 4;
// A trial keeps at least this part of the bracket's width from both ends.
constexpr double guard = 0.1;
// Smaller changes of a value, as shares of the aim, do not tell the way.
constexpr double noise = 0.01;
constexpr double middle = 0.5;
constexpr double quarter = 0.25;
constexpr double nearly_nothing = 1e-12;

struct Point {
  double argument = 0;
  double value = 0;
};

class Search {
 public:
  Search(const std::function<double(double)>& function, const SolveRequest& request)
      : function_(function), request_(request) {}

  Solution run() {
    const Point start = tried(std::clamp(request_.start, request_.least, request_.most));
    if (!done()) bracket(start);
    while (!done() && low_ && high_) narrow();
    return best_;
  }

 private:
  bool done() const { return best_.found || best_.trials >= request_.most_trials; }

  Point tried(double argument) {
    const Point point{argument, function_(argument)};
    const double distance = std::abs(point.value - request_.aim);
    if (best_.trials == 0 || distance < std::abs(best_.value - request_.aim)) {
      best_.argument = point.argument;
      best_.value = point.value;
    }
    ++best_.trials;
    best_.found = std::abs(best_.value - request_.aim) <= request_.tolerance * request_.aim;
    return point;
  }

  bool above(const Point& point) const { return point.value > request_.aim; }

  // One direction in which arguments are tried.
  struct Way {
    double factor;
    Point from;
    bool is_open = true;
    bool strides = true;  // with half of a stride where there was no value for a whole one
  };

  // Finds arguments whose values enclose the aim. Tries larger ones first, since most values grow
  // with their argument. A way that leads nearer is the right one, one that leads away the wrong
  // one; where a value stays the same, both are tried in turns.
  void bracket(const Point& start) {
    Way larger{stride, start};
    Way smaller{1 / stride, start};
    while (!done() && !low_ && (larger.is_open || smaller.is_open)) {
      step(larger, smaller);
      step(smaller, larger);
    }
  }

  void step(Way& way, Way& other) {
    if (!way.is_open || done() || low_) return;
    const double next = std::clamp(way.from.argument * way.factor, request_.least, request_.most);
    way.is_open = next != way.from.argument;
    if (!way.is_open) return;
    const Point to = tried(next);
    if (std::isnan(to.value)) {
      way.is_open = std::exchange(way.strides, false);
      way.factor = std::sqrt(way.factor);
      return;
    }
    if (above(to) != above(way.from)) {
      low_ = way.factor > 1 ? way.from : to;
      high_ = way.factor > 1 ? to : way.from;
      return;
    }
    const double gain = std::abs(way.from.value - request_.aim) - std::abs(to.value - request_.aim);
    if (gain < -noise * request_.aim) way.is_open = false;
    if (gain > noise * request_.aim) other.is_open = false;
    way.from = to;
  }

  static double log_of(double value) { return std::log(std::max(value, nearly_nothing)); }

  void narrow() {
    const double slope = log_of(high_->value) - log_of(low_->value);
    const bool interpolates = low_->value > 0 && high_->value > 0 && slope != 0;
    const double share =
        interpolates ? (log_of(request_.aim) - log_of(low_->value)) / slope : middle;
    for (const double part : {std::clamp(share, guard, 1 - guard), middle, 1 - quarter, quarter}) {
      if (done()) return;
      const double width = std::log(high_->argument / low_->argument);
      const Point point = tried(low_->argument * std::exp(width * part));
      if (std::isnan(point.value)) continue;
      (above(point) == above(*low_) ? low_ : high_) = point;
      return;
    }
    low_.reset();
  }

  const std::function<double(double)>& function_;
  const SolveRequest& request_;
  Solution best_;
  std::optional<Point> low_;  // the end with the smaller argument
  std::optional<Point> high_;
};

}  // namespace

Solution solve_monotone(const std::function<double(double)>& function,
                        const SolveRequest& request) {
  return Search(function, request).run();
}

}  // namespace stepgate
