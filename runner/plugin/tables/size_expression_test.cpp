// SPDX-License-Identifier: MIT
// Expressions over sizes are what they are in mathematics, and what is none is refused with a way
// out.
#include "plugin/tables/size_expression.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "kernels/norm/norm.h"
#include "plugin/library_file.h"
#include "plugin/testing/contains.h"

namespace stepgate {
namespace {

const std::vector<NamedNumber> given =
    numbers_of(MatrixShape{10, 768}, NormAttributes{.epsilon = 0.5});

std::string fault_in(const std::string& expression) {
  try {
    (void)value_of(expression, given);
  } catch (const KernelLibraryError& error) {
    return error.what();
  }
  return {};
}

TEST(SizeExpression, HasTheValueThatItHasInMathematics) {
  for (const auto& [text, value] :
       {std::pair{"128", 128.0}, std::pair{"rows", 10.0}, std::pair{"epsilon", 0.5},
        std::pair{"rows / 4", 2.5}, std::pair{"ceil(rows / 4)", 3.0},
        std::pair{"floor(rows/4)", 2.0}, std::pair{" 2 + 3 * rows - 1 ", 31.0},
        std::pair{"(2 + 3) * rows", 50.0}, std::pair{"min(columns, max(rows, 64))", 64.0},
        std::pair{"100 - 10 - 1", 89.0}, std::pair{"64 / 2 / 2", 16.0}})
    EXPECT_EQ(value_of(text, given), value) << text;
  EXPECT_TRUE(std::isnan(value_of("rows / 0", given)));
}

TEST(SizeExpression, WhatIsNoneIsRefused) {
  for (const auto& [text, words] :
       {std::pair{"row", "'row' has no size 'row'; did you mean 'rows'?"},
        std::pair{"heads", "write a number or rows, columns, epsilon"},
        std::pair{"", "'' ends where a value should stand"},
        std::pair{"rows /", "ends where a value should stand"},
        std::pair{"rows % 4", "has '%' where it should end; the signs are"},
        std::pair{"(rows", "has 'its end' where ')' should stand"},
        std::pair{"ciel(rows / 4)", "has no function 'ciel'; did you mean 'ceil'?"},
        std::pair{"max(rows)", "has ')' where ',' should stand"},
        std::pair{"-1", "has '-' where a value should stand"}})
    EXPECT_TRUE(contains(fault_in(text), words));
  EXPECT_TRUE(contains(fault_in(std::string(300, '(')), "has more than 200 characters"));
  EXPECT_TRUE(contains(fault_in(std::string(200, '(')), "ends where a value should stand"));
}

}  // namespace
}  // namespace stepgate
