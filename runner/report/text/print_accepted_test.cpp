// SPDX-License-Identifier: MIT
#include "report/text/print_list.h"

#include <gtest/gtest.h>

#include <sstream>

namespace stepgate {
namespace {

std::string printed(const AcceptedRuns& runs) {
  std::ostringstream out;
  print_accepted_runs(out, runs);
  return out.str();
}

TEST(PrintAcceptedRuns, SaysWhatBecameOfEach) {
  EXPECT_EQ(printed({.asked = 99, .stored = 96, .refused = 3}),
            "99 runs asked for: 96 stored, 3 not accepted\n");
  EXPECT_EQ(printed({.asked = 5, .stored = 1, .refused = 1, .failed = 1}),
            "5 runs asked for: 1 stored, 1 not accepted, 1 failed, 2 not run to the end\n");
  EXPECT_EQ(printed({.asked = 1}),
            "1 run asked for: 0 stored, 0 not accepted, 1 not run to the end\n");
}

}  // namespace
}  // namespace stepgate
