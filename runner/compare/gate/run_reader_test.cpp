// SPDX-License-Identifier: MIT
// Tests what is read where a program's run wrote something else than stepgate would.
#include "compare/gate/run_reader.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>

namespace stepgate {
namespace {

RunOfProgram read(std::initializer_list<std::string_view> lines) {
  RunReader reader;
  for (const std::string_view line : lines) EXPECT_EQ(reader.take(line), std::nullopt);
  return reader.run();
}

TEST(RunReader, TakesNoValueOfAnotherType) {
  const RunOfProgram run =
      read({R"({"scenario":"a","device":[],"expect":[{"name":"n","outcome":"passes","line":1e9},)"
            R"(7,{"name":[],"outcome":true,"reason":{},"line":-1,"timed":{"smallest_seen":""}}]})",
            R"({"scenario":"b","expect":{"name":"n"}})", R"({"suite":{"fails":1}})",
            R"({"suite":true})", R"({"scenario":7})"});
  ASSERT_EQ(run.assertions.size(), 2U);
  EXPECT_EQ(run.assertions[0].outcome, Outcome::passes);
  EXPECT_EQ(run.assertions[0].place.line, 0);
  EXPECT_EQ(run.assertions[1].outcome, std::nullopt);
  EXPECT_EQ(run.assertions[1].name, "");
  EXPECT_EQ(run.scenarios, 2);
  EXPECT_FALSE(run.suite_failed);
  EXPECT_EQ(run.failure, "");
}

TEST(RunReader, SaysThatALineIsNoJson) {
  for (const char* line : {"", "[]", "{", "{}{}", "\xff", "7"})
    EXPECT_EQ(read({line, "{}"}).failure, "wrote a line that is no JSON") << line;
}

TEST(RunReader, MakesTextsShortAndPrintable) {
  const RunOfProgram run =
      read({R"({"scenario":"\u001b[2J","broken":")" + std::string(9000, 'x') + "\"}"});
  ASSERT_EQ(run.assertions.size(), 1U);
  EXPECT_EQ(run.assertions[0].scenario, "?[2J");
  EXPECT_EQ(run.assertions[0].reason.size(), longest_text_of_run + 3);
}

TEST(RunReader, ReadsHowMuchASlowStepAndItsAnchorGrew) {
  const RunOfProgram run = read(
      {R"({"scenario":"a","expect":[{"name":"n","outcome":"fails","stored":{"raw":{"ratio":1.2},)"
       R"("anchor":{"name":"hbm.1","ratio":1.1,"interval":[1,1.15]}}},{"name":"m","stored":7},)"
       R"({"name":"k","stored":{"raw":{"ratio":"2"},"anchor":{"interval":[1]}}}]})"});
  ASSERT_EQ(run.assertions.size(), 3U);
  ASSERT_TRUE(run.assertions[0].since_stored);
  EXPECT_EQ(run.assertions[0].since_stored->step, 1.2);
  EXPECT_EQ(run.assertions[0].since_stored->anchor, "hbm.1");
  EXPECT_EQ(run.assertions[0].since_stored->most_anchor_growth, 1.15);
  EXPECT_FALSE(run.assertions[1].since_stored);
  EXPECT_FALSE(run.assertions[2].since_stored) << "how much is no number";
}

TEST(RunReader, CountsTheNamesOfAnchorsAmongTheBytesOfAssertions) {
  const std::string anchor(longest_text_of_run, 'x');
  const std::string line = R"({"scenario":"a","expect":[{"name":"n","stored":{"raw":{"ratio":1},)"
                           R"("anchor":{"ratio":1,"name":")" +
                           anchor + "\"}}}]}";
  RunReader reader;
  std::size_t lines = 0;
  while (lines < 3000 && !reader.take(line)) ++lines;
  EXPECT_LT(lines, 2100U) << "of 4 MiB / 2000 bytes";
}

}  // namespace
}  // namespace stepgate
