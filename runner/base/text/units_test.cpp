// SPDX-License-Identifier: MIT
#include "base/text/units.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/random.h"

namespace stepgate {
namespace {

std::int64_t bytes_of_text(std::string_view text) {
  const BytesOrProblem read = parse_bytes(text);
  const auto* problem = std::get_if<std::string>(&read);
  if (problem != nullptr) {
    ADD_FAILURE() << '\'' << text << "' " << *problem;
    return -1;
  }
  return std::get<std::int64_t>(read);
}

std::string problem_with(std::string_view text) {
  const BytesOrProblem read = parse_bytes(text);
  const auto* problem = std::get_if<std::string>(&read);
  return problem != nullptr ? *problem : "";
}

TEST(Units, ReadSizesExactly) {
  EXPECT_EQ(bytes_of_text("0 B"), 0);
  EXPECT_EQ(bytes_of_text("64 KiB"), 65536);
  EXPECT_EQ(bytes_of_text("4GiB"), 4294967296);
  EXPECT_EQ(bytes_of_text("1.5 KiB"), 1536);
  EXPECT_EQ(bytes_of_text("8589934590 GiB"), 8589934590LL << 30);
}

TEST(Units, ReadNumbersThatAreTheWholeText) {
  EXPECT_EQ(parse_whole_number("0"), 0U);
  EXPECT_EQ(parse_whole_number("18446744073709551615"), std::numeric_limits<std::uint64_t>::max());
  for (const char* text : {"", "-1", "+1", " 1", "1 ", "0x10", "010", "00", "1e3", "1.0", "1_000",
                           "18446744073709551616", "99999999999999999999", "nan"})
    EXPECT_EQ(parse_whole_number(text), std::nullopt) << text;
  EXPECT_EQ(parse_number("0"), 0.0);
  EXPECT_EQ(parse_number("0.25"), 0.25);
  EXPECT_EQ(parse_number("1e3"), 1000.0);
  for (const char* text : {"", "-1", "+1", " 1", "1 ", "0x10", "010", "00.5", ".5", "5.", "1e",
                           "inf", "nan", "1e999", "1e-999", "1,5"})
    EXPECT_EQ(parse_number(text), std::nullopt) << text;
}

TEST(Units, SayWhatIsWrongWithASize) {
  EXPECT_EQ(problem_with("64"), "has no unit");
  EXPECT_EQ(problem_with("64 kib"), "has no unit of size, but 'kib'");
  EXPECT_EQ(problem_with("64 us"), "has no unit of size, but 'us'");
  EXPECT_EQ(problem_with("0.3 B"), "is not a whole number of bytes");
  EXPECT_EQ(problem_with("9999999999 GiB"), "is more than can be counted");
  EXPECT_EQ(problem_with("99999999999999999999 B"), "is too long for a size");
  EXPECT_EQ(problem_with("-1 B"), "is not a size");
  EXPECT_EQ(problem_with(""), "is not a size");
}

TEST(Units, PrintSizesThatReadBackToThemselves) {
  const std::uint64_t seed = 20240131;
  SCOPED_TRACE(seed);
  Random random(seed);
  for (int i = 0; i < 10000; ++i) {
    const auto bytes = static_cast<std::int64_t>(random.bits() >> (2 + random.below(62)));
    EXPECT_EQ(bytes_of_text(bytes_text(bytes)), bytes);
  }
}

TEST(Units, ReadQuantitiesInBaseUnits) {
  EXPECT_EQ(parse_quantity("5%"), (Quantity{5 * 0.01, Dimension::plain}));
  EXPECT_EQ(parse_quantity("2 ms"), (Quantity{2e-3, Dimension::seconds}));
  EXPECT_EQ(parse_quantity("10 GB/s"), (Quantity{1e10, Dimension::bytes_per_second}));
  EXPECT_EQ(parse_quantity("1e3"), (Quantity{1000, Dimension::plain}));
}

TEST(Units, RefuseWhatIsNoQuantity) {
  for (const auto* text : {"", "fast", "-1", "inf", "nan", "1 parsec", "1e999", "2 ms ago"}) {
    EXPECT_EQ(parse_quantity(text), std::nullopt) << text;
  }
}

TEST(Units, PrintForPeople) {
  EXPECT_EQ(rounded_bytes_text(1e7), "9.54 MiB");
  EXPECT_EQ(rounded_bytes_text(0), "0 B");
  EXPECT_EQ(rounded_bytes_text(999.4 * 1024 * 1024), "999 MiB");
  EXPECT_EQ(rounded_bytes_text(999.6 * 1024 * 1024), "1000 MiB");
  EXPECT_EQ(rounded_bytes_text(1023 * 1024 * 1024), "1023 MiB");
  EXPECT_EQ(seconds_text(60e-6), "60 us");
  EXPECT_EQ(seconds_text(1.5), "1.5 s");
  EXPECT_EQ(percent_text(0.05), "5%");
  EXPECT_EQ(percent_text(12.5), "1250%");
  EXPECT_EQ(bytes_text(0), "0 B");
}

}  // namespace
}  // namespace stepgate
