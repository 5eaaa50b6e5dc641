// SPDX-License-Identifier: MIT
// Positions of characters in a UTF-8 text. Columns count code points, as in editors and toml++.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace stepgate {

struct TextPosition {
  int line = 1;
  int column = 1;
};

// The position of the first byte that is not valid UTF-8 (RFC 3629); nullopt when all are valid.
std::optional<TextPosition> first_bad_utf8(std::string_view text);

// The number of code points in valid UTF-8.
int count_code_points(std::string_view text);

// Gives access to the lines of a text, which must outlive this object.
class Utf8Lines {
 public:
  explicit Utf8Lines(std::string_view text);

  // The text of that line from that column on, without the line end; empty beyond the end.
  std::string_view from(int line, int column) const;

 private:
  std::vector<std::string_view> lines_;
};

}  // namespace stepgate
