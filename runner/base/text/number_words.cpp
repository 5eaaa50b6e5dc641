// SPDX-License-Identifier: MIT
#include "base/text/number_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace stepgate {

std::string number_in_words(double value, int digits) {
  // Outside this range a number is written with an exponent.
  constexpr double most = 1e15;
  constexpr double least = 1e-9;
  const double size = std::abs(value);
  if (size == 0) return "0";
  if (!(size < most) || size < least) return fmt::format("{:.{}g}", value, digits);
  const int places = digits - 1 - static_cast<int>(std::floor(std::log10(size)));
  if (places < 0) {
    const double step = std::pow(10.0, -places);
    return fmt::format("{:.0f}", step * std::round(value / step));
  }
  std::string text = fmt::format("{:.{}f}", value, places);
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string counted_in_words(std::int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

}  // namespace stepgate
