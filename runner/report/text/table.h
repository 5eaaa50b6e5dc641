// SPDX-License-Identifier: MIT
// Columns of text that line up. Knows nothing of what the cells mean.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace stepgate {

enum class Align { left, right };

// Prints rows in columns as wide as their widest cell, two blanks apart, each line indented by two
// and without trailing blanks. Columns beyond `alignment` are to the left. A cell's width is its
// number of bytes.
void print_table(std::ostream&, const std::vector<Align>& alignment,
                 const std::vector<std::vector<std::string>>& rows);

}  // namespace stepgate
