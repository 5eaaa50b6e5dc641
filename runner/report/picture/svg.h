// SPDX-License-Identifier: MIT
// The few shapes that pictures need, as SVG text, for draw_timeline and draw_memory.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace stepgate {

// Width of every picture, in pixels.
constexpr double picture_width = 1200;

// The style of all text; must come before the drawing.
constexpr std::string_view text_style =
    R"svg(<style>text{font-family:Helvetica,Arial,"Liberation Sans","DejaVu Sans",sans-serif;fill:#222}</style>
)svg";

constexpr std::string_view white_page =
    R"svg(<rect width="100%" height="100%" fill="#fff"/>
)svg";

// The style of a file's root: a window that is narrower shows all of it.
constexpr std::string_view fitting_style = R"svg( style="max-width:100%;height:auto")svg";

// A file of this height; without a width as wide as every picture.
std::string svg_file(double height, std::string_view content, double width = picture_width);

// A rectangle on the picture, in pixels from its upper left corner.
struct Box {
  double left = 0;
  double top = 0;
  double width = 0;
  double height = 0;
};

enum class Anchor { start, middle, end };

class Svg {
 public:
  // `look` has attributes such as fill="#fff".
  void box(const Box&, std::string_view look);
  // Draws a box with a tooltip.
  void box(const Box&, std::string_view look, std::string_view words);
  // Boxes with the same look are merged into one shape, which keeps files small.
  void small_box(const Box&, const std::string& look);
  void flush_small_boxes();
  void line(double x1, double y1, double x2, double y2, std::string_view look);
  void triangle(double tip, double top, std::string_view look);  // points down at `tip`
  void circle(double x, double y, double radius, std::string_view look,
              std::string_view words = {});
  void path(std::string_view commands, std::string_view look);  // in SVG path syntax
  // `size` is in pixels.
  void text(double x, double y, double size, Anchor, std::string_view text,
            std::string_view look = {});
  const std::string& body() const { return body_; }

 private:
  std::string body_;
  std::map<std::string, std::string> small_boxes_;  // paths by look
};

// The text on one line (visible_text.h), with & < > and quotes as entities.
std::string xml_text(std::string_view);

// Estimated width of text in a sans-serif font of this size; rather too wide than too narrow.
double width_of_text(std::string_view text, double size);

// Returns the text, or its beginning with an ellipsis; empty when not even that fits the width.
std::string shortened(std::string_view text, double size, double width);

}  // namespace stepgate
