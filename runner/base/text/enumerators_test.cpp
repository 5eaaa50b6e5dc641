// SPDX-License-Identifier: MIT
#include "base/text/enumerators.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stepgate {
namespace {

enum class Weather { dry, wet_2, White };

TEST(Enumerators, AreNamedAsTheyAreDeclared) {
  const std::vector<std::string> names(enumerators<Weather>.begin(), enumerators<Weather>.end());
  EXPECT_EQ(names, (std::vector<std::string>{"dry", "wet_2", "White"}));
}

}  // namespace
}  // namespace stepgate
