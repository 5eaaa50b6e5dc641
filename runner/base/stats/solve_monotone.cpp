// SPDX-License-Identifier: MIT
#include "base/stats/solve_monotone.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace stepgate {
namespace {

constexpr double stride = 4;
// A trial keeps at least this part of the bracket's width from both ends.
constexpr double guard = 0.1;
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

  // Finds arguments whose values enclose the aim. Tries larger ones first, since most values grow
  // with their argument; then smaller ones.
  void bracket(const Point& start) {
    for (const double factor : {stride, 1 / stride}) {
      Point from = start;
      while (!done()) {
        const double next = std::clamp(from.argument * factor, request_.least, request_.most);
        if (next == from.argument) break;
        const Point to = tried(next);
        if (above(to) != above(from)) {
          low_ = factor > 1 ? from : to;
          high_ = factor > 1 ? to : from;
          return;
        }
        // The values move away from the aim: search the other direction.
        const bool leaves = std::abs(to.value - request_.aim) > std::abs(from.value - request_.aim);
        from = to;
        if (leaves) break;
      }
    }
  }

  static double log_of(double value) { return std::log(std::max(value, nearly_nothing)); }

  void narrow() {
    const double slope = log_of(high_->value) - log_of(low_->value);
    const double share = slope == 0 ? 0.5 : (log_of(request_.aim) - log_of(low_->value)) / slope;
    const double width = std::log(high_->argument / low_->argument);
    const double argument = low_->argument * std::exp(width * std::clamp(share, guard, 1 - guard));
    const Point point = tried(argument);
    (above(point) == above(*low_) ? low_ : high_) = point;
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
