// SPDX-License-Identifier: MIT
// Selects the ranks of a variant, and the part of their traces, that a timeline shows, and makes
// its rows of labelled boxes. draw_timeline.cpp places them on the picture.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/trace.h"
#include "measure/trace/meetings.h"
#include "measure/trace/traced.h"
#include "plan/step_plan.h"
#include "report/picture/svg.h"
#include "report/trace/trace_rows.h"

namespace stepgate {

// More ranks would be too small to read.
inline constexpr std::size_t most_drawn_ranks = 8;

struct DrawnRanks {
  std::vector<const Trace*> traces;  // by rank
  std::string note;  // which ranks are shown if not all, and whether they share no clock
};

// Returns all ranks. If there are too many, returns the first, the last, the one that the report
// shows, and the one whose collectives are hidden least. The traces must outlive the result.
DrawnRanks drawn_ranks(std::span<const Trace>, const WorstRanks&);

struct Window {
  TraceTime begin{0};
  Stretch host_recorded;    // the time that the trace covers of the host and of the device
  Stretch device_recorded;  // likewise
  // How far the host is ahead, where its work of the drawn steps lies before them: its row is drawn
  // so much later. Otherwise 0.
  TraceTime lead{0};
};

struct Windows {
  TraceTime length{0};                           // the same for all
  std::vector<std::vector<Window>> of_variants;  // of the variants' ranks
};

using TracesOfRanks = std::vector<const Trace*>;

// Each window begins with a step of the device from which both host and device are recorded, if
// there is one. If the host is recorded for less than half of what it shows of the device, the
// host's row shows the steps that the device's rows show. A window is long enough for `steps` steps
// of the slowest variant, if the traces are.
Windows windows_of(std::span<const TracesOfRanks> variants, double steps);

// Returns when the stream with the most work runs the work of each step.
std::vector<NumberedStep> steps_of_the_device(const Trace&);

constexpr double right_edge = 1180;        // of the time axis, in pixels
constexpr double narrowest_own_box = 2.5;  // narrower boxes have no words and share a shape

struct Colour {
  std::string_view fill;
  std::string_view ink;  // legible text colour on it
};

inline constexpr Colour runners_own{"#dddddd", "#555"};

const Colour& colour_of(Phase);

// Pattern over a collective that waits for a rank; it hides most of the colour.
inline constexpr std::string_view waiting_pattern = "ranks";

// A box in one row.
struct Piece {
  Stretch when;
  const Colour* colour = &runners_own;
  std::string_view pattern;  // laid over the colour
  std::string label;         // inside, where there is room
  std::string words;         // tooltip
};

class Axis {
 public:
  // `left_edge` is in pixels.
  Axis(TraceTime begin, TraceTime length, double left_edge)
      : begin_(begin),
        left_edge_(left_edge),
        per_pixel_(static_cast<double>(length.count()) / (right_edge - left_edge)) {}

  double left_edge() const { return left_edge_; }
  // Times outside of the picture are moved to its edge.
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

// Draws the boxes of one row. Adjacent boxes of the same look that are too narrow to be visible are
// merged, with a shade by the share of time that they fill: 300 launches stay visible as a pattern.
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

// "12.5 us".
std::string time_text(TraceTime);

// "step 293 us   GPU idle 29 %   1 host wait a step".
std::string facts_of(const TracedStep&);

Piece piece_of(const StepPlan&, const HostSpan&);
Piece piece_of(const StepPlan&, const DeviceWork&);
// Splits a collective in two where its rank waits in it for the last rank.
std::vector<Piece> pieces_of(const StepPlan&, const DeviceWork&, const MeetingsOfRanks&);

}  // namespace stepgate
