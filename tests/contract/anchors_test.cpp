// SPDX-License-Identifier: MIT
// Tests that anchors never change, since stored runs stay comparable only while an anchor's step is
// the same. To change one, give its row in plan/derive/anchors.cpp a new number.
#include "plan/derive/anchors.h"

#include <gtest/gtest.h>

#include <sstream>

#include "plan/count/facts_of.h"
#include "report/text/print_plan.h"
#include "scenario/knobs/fingerprint.h"
#include "tests/golden.h"

namespace stepgate {
namespace {

const std::filesystem::path golden =
    std::filesystem::path(STEPGATE_SOURCE_DIR) / "tests" / "golden";

TEST(Anchors, AreStillTheStepsThatTheirNumbersNamed) {
  for (const AnchorRow& row : anchor_table()) {
    std::ostringstream text;
    print_plan(text, with_facts(anchor_plan(row)));
    expect_golden(golden / "anchors" / (std::string(row.name) + ".txt"), text.str());
  }
}

TEST(Anchors, StillHaveTheirKnobs) {
  std::ostringstream text;
  for (const AnchorRow& row : anchor_table()) {
    text << row.name << ' ' << std::hex << fingerprint_of(row.knobs) << '\n';
  }
  expect_golden(golden / "anchors" / "knobs.txt", text.str());
}

}  // namespace
}  // namespace stepgate
