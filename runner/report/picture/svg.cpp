// SPDX-License-Identifier: MIT
#include "report/picture/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/text/visible_text.h"
#include "report/append.h"

namespace stepgate {
namespace {

// Drops trailing zeros, 12.30 to 12.3 and 12.00 to 12, which saves a third of the file.
std::string pixels(double value) {
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string_view name_of(Anchor anchor) {
  switch (anchor) {
    case Anchor::start:
      return "start";
    case Anchor::middle:
      return "middle";
    case Anchor::end:
      break;
  }
  return "end";
}

}  // namespace

std::string svg_file(double height, std::string_view content, double width) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\"{2}>\n{3}</svg>\n",
      width, height, fitting_style, content);
}

void Svg::box(const Box& box, std::string_view look) {
  append(body_, R"(<rect x="{}" y="{}" width="{}" height="{}" {}/>)", pixels(box.left),
         pixels(box.top), pixels(box.width), pixels(box.height), look);
  body_ += '\n';
}

void Svg::box(const Box& box, std::string_view look, std::string_view words) {
  append(body_, R"(<rect x="{}" y="{}" width="{}" height="{}" {}><title>{}</title></rect>)",
         pixels(box.left), pixels(box.top), pixels(box.width), pixels(box.height), look,
         xml_text(words));
  body_ += '\n';
}

void Svg::small_box(const Box& box, const std::string& look) {
  append(small_boxes_[look], "M{} {}h{}v{}h-{}z", pixels(box.left), pixels(box.top),
         pixels(box.width), pixels(box.height), pixels(box.width));
}

void Svg::flush_small_boxes() {
  for (const auto& [look, path] : small_boxes_) {
    append(body_, "<path d=\"{}\" {}/>\n", path, look);
  }
  small_boxes_.clear();
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view look) {
  append(body_, R"(<line x1="{}" y1="{}" x2="{}" y2="{}" {}/>)", pixels(x1), pixels(y1), pixels(x2),
         pixels(y2), look);
  body_ += '\n';
}

void Svg::triangle(double tip, double top, std::string_view look) {
  append(body_, "<path d=\"M{} {}h7l-3.5 6z\" {}/>\n", pixels(tip - 3.5), pixels(top), look);
}

void Svg::circle(double x, double y, double radius, std::string_view look, std::string_view words) {
  append(body_, R"(<circle cx="{}" cy="{}" r="{}" {})", pixels(x), pixels(y), pixels(radius), look);
  body_ += words.empty() ? "/>\n" : "><title>" + xml_text(words) + "</title></circle>\n";
}

void Svg::path(std::string_view commands, std::string_view look) {
  append(body_, "<path d=\"{}\" {}/>\n", commands, look);
}

void Svg::text(double x, double y, double size, Anchor anchor, std::string_view text,
               std::string_view look) {
  append(body_, R"(<text x="{}" y="{}" font-size="{}" text-anchor="{}" {}>{}</text>)", pixels(x),
         pixels(y), pixels(size), name_of(anchor), look, xml_text(text));
  body_ += '\n';
}

std::string xml_text(std::string_view text) {
  std::string safe;
  for (const char letter : one_line(text)) {
    if (letter == '&') {
      safe += "&amp;";
    } else if (letter == '<') {
      safe += "&lt;";
    } else if (letter == '>') {
      safe += "&gt;";
    } else if (letter == '"') {
      safe += "&quot;";
    } else {
      safe += letter;
    }
  }
  return safe;
}

double width_of_text(std::string_view text, double size) {
  constexpr double of_a_letter = 0.56;  // mean width / size in Helvetica and similar fonts
  return of_a_letter * size * static_cast<double>(text.size());
}

std::string shortened(std::string_view text, double size, double width) {
  if (width_of_text(text, size) <= width) return std::string(text);
  constexpr std::size_t fewest_letters = 4;
  const auto fitting = static_cast<std::size_t>(std::max(width, 0.0) / width_of_text("m", size));
  if (fitting < fewest_letters + 1) return {};
  std::size_t length = fitting - 1;
  // Does not cut within a multi-byte character.
  while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xc0) == 0x80) --length;
  return std::string(text.substr(0, length)) + "\u2026";
}

}  // namespace stepgate
