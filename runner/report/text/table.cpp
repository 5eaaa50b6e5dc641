// SPDX-License-Identifier: MIT
// Padding.
#include "report/text/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

namespace stepgate {

void print_table(std::ostream& out, const std::vector<Align>& alignment,
                 const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t column = 0; column < row.size(); ++column) {
      widths[column] = std::max(widths[column], row[column].size());
    }
  }
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t column = 0; column < row.size(); ++column) {
      const bool right = column < alignment.size() && alignment[column] == Align::right;
      line += right ? fmt::format("  {:>{}}", row[column], widths[column])
                    : fmt::format("  {:<{}}", row[column], widths[column]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << '\n';
  }
}

}  // namespace stepgate
