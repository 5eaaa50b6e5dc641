// SPDX-License-Identifier: MIT
#include "kernels/layout/layout.h"

#include <gtest/gtest.h>

#include "kernels/testing/expect_formulas.h"

namespace stepgate {
namespace {

TEST(ChangeLayout, PutsTheRowsOfEachImageSideBySide) {
  expect_formulas<kernels::ChangeLayout>(
      {{1, [](const TrialOf<kernels::ChangeLayout>& t, std::int64_t i) {
          const auto [images, rows, columns] = t.shape;
          const std::int64_t row = i % rows, column = i / rows % columns;
          return value_at(t, 0, (i / rows / columns * rows + row) * columns + column);
        }}});
}

}  // namespace
}  // namespace stepgate
