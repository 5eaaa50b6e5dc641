// SPDX-License-Identifier: MIT
// Where characters stand in a UTF-8 text. Columns count code points, as editors and toml++ do.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace stepgate {

struct TextPosition {
  int line = 1;
  int column = 1;
};

// Position of the first byte that does not belong to valid UTF-8 (RFC 3629); nothing when all do.
std::optional<TextPosition> first_bad_utf8(std::string_view text);

// Code points in valid UTF-8.
int count_code_points(std::string_view text);

// The lines of a text, which must outlive this.
class Utf8Lines {
 public:
  explicit Utf8Lines(std::string_view text);

  // The text of that line from that column on, without the line end; empty past the end.
  std::string_view from(int line, int column) const;

 private:
  std::vector<std::string_view> lines_;
};

}  // namespace stepgate
