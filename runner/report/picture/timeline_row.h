// SPDX-License-Identifier: MIT
// One row of the picture of a timeline: where moments lie on it, what colours mean, and how pieces
// too narrow to see are put together. draw_timeline chooses the rows.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "report/picture/svg.h"
#include "report/trace/trace_rows.h"

namespace stepgate {

constexpr double right_edge = 1180;        // of the time axis, in pixels
constexpr double narrowest_own_box = 2.5;  // below, boxes have no words and share a shape

struct Colour {
  std::string_view fill;
  std::string_view ink;  // that is legible on it
};

inline constexpr Colour runners_own{"#dddddd", "#555"};

const Colour& colour_of(Phase);

// Laid over a collective that waits for a rank; leaves little of the colour.
inline constexpr std::string_view waiting_pattern = "ranks";

// The mark of one row at one stretch of time.
struct Piece {
  Stretch when;
  const Colour* colour = &runners_own;
  std::string_view pattern;  // laid over the colour
  std::string label;         // within, where there is room
  std::string words;         // under the pointer
};

class Axis {
 public:
  // From `left_edge` on, in pixels.
  Axis(TraceTime begin, TraceTime length, double left_edge)
      : begin_(begin),
        left_edge_(left_edge),
        per_pixel_(static_cast<double>(length.count()) / (right_edge - left_edge)) {}

  double left_edge() const { return left_edge_; }
  // Outside of the picture: its edge.
  double at(TraceTime time) const {
    const double place = left_edge_ + static_cast<double>((time - begin_).count()) / per_pixel_;
    return std::clamp(place, left_edge_, right_edge);
  }
  bool shows(const Stretch& when) const {
    return at(when.end) > left_edge_ && at(when.begin) < right_edge;
  }
  Box box(const Stretch& when, double top, double height) const {
    const double left = at(when.begin);
    return {left, top, at(when.end) - left, height};
  }

 private:
  TraceTime begin_;
  double left_edge_;
  double per_pixel_;
};

// Draws the pieces of one row. Those too narrow to be seen are put together with their neighbours
// of the same look, as dark as the share of the time that they fill: 300 launches stay a pattern.
class RowOfPieces {
 public:
  RowOfPieces(Svg& svg, const Axis& axis, double top, double height)
      : svg_(svg), axis_(axis), top_(top), height_(height) {}

  void draw(const std::vector<Piece>& pieces);

 private:
  void draw_alone(const Box&, const Piece&);
  void merge(const Box&, const Piece&);
  void flush();
  void small(const Box&, const Piece&, double share);

  Svg& svg_;
  const Axis& axis_;
  double top_;
  double height_;
  Box merged_;
  double filled_ = 0;
  const Piece* last_ = nullptr;
};

}  // namespace stepgate
