// SPDX-License-Identifier: MIT
#include "kernels/aggregate_value.h"

#include <charconv>

namespace stepgate {

std::string text_of(const AggregateValue& value, const char* separator) {
  std::string text;
  for (std::size_t index = 0; index < value.size(); ++index) {
    if (index > 0) text += separator;
    char digits[32];
    const auto end = std::visit(
        [&](auto number) {
          if constexpr (std::same_as<decltype(number), bool>)
            return std::to_chars(digits, digits + sizeof digits, int{number}).ptr;
          else
            return std::to_chars(digits, digits + sizeof digits, number).ptr;
        },
        value.member(index));
    text.append(digits, end);
  }
  return text;
}

}  // namespace stepgate
