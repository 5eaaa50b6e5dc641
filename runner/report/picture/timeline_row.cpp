// SPDX-License-Identifier: MIT
#include "report/picture/timeline_row.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace stepgate {
namespace {

constexpr double narrowest_box = 0.5;  // in pixels; below, neighbours are merged

// Okabe and Ito's colours, which people with any colour vision tell apart, by phase.
constexpr std::array<Colour, phase_count> colours{
    Colour{"#E69F00", "#000"}, Colour{"#56B4E9", "#000"}, Colour{"#0072B2", "#fff"},
    Colour{"#D55E00", "#000"}, Colour{"#009E73", "#000"}, Colour{"#000000", "#fff"},
    Colour{"#CC79A7", "#000"}, Colour{"#F0E442", "#000"}, Colour{"#999999", "#000"}};

}  // namespace

const Colour& colour_of(Phase phase) {
  return colours.at(static_cast<std::size_t>(phase));
}

void RowOfPieces::draw(const std::vector<Piece>& pieces) {
  for (const Piece& piece : pieces) {
    if (!axis_.shows(piece.when)) continue;
    const Box box = axis_.box(piece.when, top_, height_);
    if (box.width < narrowest_box) {
      merge(box, piece);
      continue;
    }
    flush();
    if (box.width < narrowest_own_box) {
      small(box, piece, 1);
    } else {
      draw_alone(box, piece);
    }
  }
  flush();
  svg_.flush_small_boxes();
}

void RowOfPieces::draw_alone(const Box& box, const Piece& piece) {
  svg_.box(box, fmt::format("fill=\"{}\"", piece.colour->fill), piece.words);
  if (!piece.pattern.empty()) {
    svg_.box(box, fmt::format("fill=\"url(#{})\" pointer-events=\"none\"", piece.pattern));
  }
  constexpr double size = 11;
  const std::string label = shortened(piece.label, size, box.width - 6);
  if (label.empty()) return;
  // On a pattern, letters need an edge of their own; where it leaves little of the colour, they are
  // as on paper.
  const bool pale = piece.pattern == waiting_pattern;
  std::string look = pale ? "" : fmt::format("style=\"fill:{}\" ", piece.colour->ink);
  if (!piece.pattern.empty()) {
    look += fmt::format("stroke=\"{}\" stroke-width=\"3\" paint-order=\"stroke\" ",
                        pale ? "#fff" : piece.colour->fill);
  }
  svg_.text(box.left + box.width / 2, top_ + height_ / 2 + 4, size, Anchor::middle, label,
            look + "pointer-events=\"none\"");
}

void RowOfPieces::merge(const Box& box, const Piece& piece) {
  constexpr double widest = 1;
  const double end = merged_.left + merged_.width;
  const bool goes_on = last_ != nullptr && last_->colour == piece.colour &&
                       last_->pattern == piece.pattern && box.left - end < narrowest_box &&
                       box.left + box.width - merged_.left <= widest;
  if (!goes_on) {
    flush();
    merged_ = box;
    filled_ = 0;
  }
  merged_.width = std::max(merged_.width, box.left + box.width - merged_.left);
  filled_ += box.width;
  last_ = &piece;
}

void RowOfPieces::flush() {
  if (last_ == nullptr) return;
  const double width = std::max(merged_.width, narrowest_box);
  const double share = std::min(1.0, filled_ / width);
  merged_.width = width;
  small(merged_, *last_, share);
  last_ = nullptr;
}

void RowOfPieces::small(const Box& box, const Piece& piece, double share) {
  const double shade = std::clamp(std::round(share * 5) / 5, 0.2, 1.0);  // few looks, few shapes
  svg_.small_box(box, shade == 1 ? fmt::format("fill=\"{}\"", piece.colour->fill)
                                 : fmt::format("fill=\"{}\" fill-opacity=\"{:.1f}\"",
                                               piece.colour->fill, shade));
}

}  // namespace stepgate
