// SPDX-License-Identifier: MIT
// The curves of a sweep: samples a second of each variant over the values of the knob.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <ostream>

#include "report/picture/pictures.h"
#include "report/picture/svg.h"
#include "scenario/assertions/metric_words.h"

namespace stepgate {
namespace {

// Sizes are in pixels.
constexpr double sweep_left = 96;
constexpr double sweep_right = 1000;
constexpr double sweep_top = 66;
constexpr double sweep_bottom = 330;
constexpr double sweep_height = 384;
constexpr double wide_range = 20;  // larger ones are drawn by their logarithms

// The colours of Okabe and Ito, which people with any colour vision tell apart.
constexpr std::array sweep_colours{"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                   "#E69F00", "#56B4E9", "#000000"};

class SweepPicture {
 public:
  explicit SweepPicture(const ReportedSweep& sweep) : sweep_(sweep) {
    for (const SweepCurve& curve : sweep.curves) {
      for (const auto& value : curve.samples_per_s) {
        if (!value || !(*value > 0)) continue;
        least_ = std::min(least_, *value);
        most_ = std::max(most_, *value);
      }
    }
    is_logarithmic_ = most_ > wide_range * least_;
  }

  std::string draw() {
    svg_.box({0, 0, picture_width, sweep_height}, "fill=\"#fff\"");
    svg_.text(20, 32, 19, Anchor::start, shortened(sweep_.name, 19, 700), "font-weight=\"bold\"");
    svg_.text(20, 53, 13, Anchor::start,
              fmt::format("samples a second over {}{}", sweep_.knob,
                          is_logarithmic_ ? ", by their logarithms" : ""));
    draw_axes();
    double label = sweep_top + 14;
    for (std::size_t index = 0; index < sweep_.curves.size(); ++index) {
      const std::string colour = sweep_colours[index % sweep_colours.size()];
      draw_curve(sweep_.curves[index], colour);
      svg_.line(sweep_right + 12, label - 4, sweep_right + 36, label - 4,
                fmt::format("stroke=\"{}\" stroke-width=\"3\"", colour));
      svg_.text(sweep_right + 42, label, 13, Anchor::start,
                shortened(sweep_.curves[index].variant, 13, picture_width - sweep_right - 52));
      label += 20;
    }
    return svg_file(sweep_height, std::string(text_style) + svg_.body());
  }

 private:
  // Values of the knob are equally far from each other.
  double x_of(std::size_t point) const {
    return sweep_left + (static_cast<double>(point) + 0.5) /
                            static_cast<double>(sweep_.values.size()) * (sweep_right - sweep_left);
  }
  double y_of(double value) const {
    const double share = is_logarithmic_
                             ? std::log(value / lowest()) / std::log(highest() / lowest())
                             : value / highest();
    return sweep_bottom - share * (sweep_bottom - sweep_top);
  }
  double lowest() const {
    return is_logarithmic_ ? std::pow(10, std::floor(std::log10(least_))) : 0;
  }
  double highest() const {
    return is_logarithmic_ ? std::pow(10, std::ceil(std::log10(most_)))
                           : step() * std::ceil(most_ / step());
  }
  // The distance of the lines: 1, 2 or 5 of a power of ten, of which three to seven fit.
  double step() const {
    const double power = std::pow(10, std::floor(std::log10(most_ / 3)));
    const double most = most_ / 3 / power;
    return power * (most >= 5 ? 5 : most >= 2 ? 2 : 1);
  }

  void draw_axes() {
    // Nothing may be known, as where plans decide.
    for (double value = lowest(); most_ > 0 && value <= highest() * 1.0001;
         value = is_logarithmic_ ? value * 10 : value + step()) {
      svg_.line(sweep_left, y_of(value), sweep_right, y_of(value), "stroke=\"#e0e0e0\"");
      svg_.text(sweep_left - 8, y_of(value) + 4, 12, Anchor::end,
                in_words(value, MetricUnit::per_second));
    }
    svg_.line(sweep_left, sweep_bottom, sweep_right, sweep_bottom, "stroke=\"#222\"");
    for (std::size_t point = 0; point < sweep_.values.size(); ++point) {
      svg_.line(x_of(point), sweep_bottom, x_of(point), sweep_bottom + 5, "stroke=\"#222\"");
      svg_.text(x_of(point), sweep_bottom + 20, 12, Anchor::middle, sweep_.values[point]);
    }
    svg_.text((sweep_left + sweep_right) / 2, sweep_bottom + 42, 13, Anchor::middle, sweep_.knob);
  }

  void draw_curve(const SweepCurve& curve, const std::string& colour) {
    std::string commands;
    for (std::size_t point = 0; point < curve.samples_per_s.size(); ++point) {
      const auto& value = curve.samples_per_s[point];
      if (!value || !(*value > 0)) continue;
      commands +=
          fmt::format("{}{:.1f} {:.1f}", commands.empty() ? "M" : "L", x_of(point), y_of(*value));
      svg_.circle(x_of(point), y_of(*value), 4, fmt::format("fill=\"{}\"", colour),
                  fmt::format("{} at {}: {}", curve.variant, sweep_.values[point],
                              in_words(*value, MetricUnit::per_second)));
    }
    if (!commands.empty())
      svg_.path(commands, fmt::format("fill=\"none\" stroke=\"{}\" stroke-width=\"2\"", colour));
  }

  const ReportedSweep& sweep_;
  Svg svg_;
  double least_ = std::numeric_limits<double>::infinity();
  double most_ = 0;
  bool is_logarithmic_ = false;
};

}  // namespace

void draw_sweep(std::ostream& out, const ReportedSweep& sweep) {
  out << SweepPicture(sweep).draw();
}

}  // namespace stepgate
