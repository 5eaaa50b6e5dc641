// SPDX-License-Identifier: MIT
// Records that cross between two processes come back as they were, or are refused in words.
#include "support/record/record_json.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/text/json_line.h"

namespace stepgate {

enum class Colour { red, green };
struct Key {
  std::string name;
  std::string value;
  bool operator==(const Key&) const = default;
};
struct Everything {
  bool flag = false;
  int small = 0;
  std::uint64_t large = 0;
  double number = 0;
  float single = 0;
  Colour colour = Colour::red;
  std::chrono::nanoseconds time{0};
  std::optional<double> absent = 1;
  std::vector<Key> keys;
  std::array<double, 2> pair{};
  bool operator==(const Everything&) const = default;
};
template <>
inline constexpr auto fields_of<Key> = fields<&Key::name, &Key::value>;
template <>
inline constexpr auto fields_of<Everything> =
    fields<&Everything::flag, &Everything::small, &Everything::large, &Everything::number,
           &Everything::single, &Everything::colour, &Everything::time, &Everything::absent,
           &Everything::keys, &Everything::pair>;

namespace {

const Everything sample{.flag = true,
                        .small = -7,
                        .large = UINT64_MAX,
                        .number = 0.1 + 0.2,
                        .single = 1e-45F,
                        .colour = Colour::green,
                        .time = std::chrono::nanoseconds(5),
                        .absent = std::nullopt,
                        .keys = {{"a \"b\"", std::string("\0\xff\n", 3)}},
                        .pair = {-0.0, std::numeric_limits<double>::infinity()}};

Everything from(const std::string& text) {
  return record_from<Everything>(RecordJson::parse(text));
}
std::string wrong(const std::string& from_text, const std::string& to) {
  std::string text = json_line(record_json(sample));
  text.replace(text.find(from_text), from_text.size(), to);
  try {
    (void)from(text);
  } catch (const WrongRecord& error) {
    return error.what();
  }
  return "";
}

TEST(RecordJson, CarriesEveryFieldToTheLastBit) {
  const Everything back = from(json_line(record_json(sample)));
  EXPECT_EQ(back, sample);
  EXPECT_TRUE(std::signbit(back.pair[0]));
  Everything none = sample;
  none.number = std::bit_cast<double>(0x7ff8000000000007);
  const double number = from(json_line(record_json(none))).number;
  EXPECT_EQ(std::bit_cast<std::uint64_t>(number), 0x7ff8000000000007U);
}

TEST(RecordJson, CallsFieldsWhatTheMembersAreCalled) {
  EXPECT_EQ(json_line(record_json(Key{"x", "y"})), R"({"name":"x","value":"y"})");
  EXPECT_EQ(record_json(sample).at("colour"), "green");
}

TEST(RecordJson, NamesThePlaceThatIsWrong) {
  EXPECT_EQ(wrong("\"small\":-7", "\"small\":1.5"), "has 'small' 1.5, which is no whole number");
  EXPECT_EQ(wrong("\"small\":-7", "\"small\":3000000000"),
            "has 'small' 3000000000, which is not from -2147483648 to 2147483647");
  EXPECT_EQ(wrong("\"small\":-7", "\"small\":18446744073709551615"),
            "has 'small' 18446744073709551615, which is not from -2147483648 to 2147483647");
  EXPECT_EQ(wrong("\"large\":18446744073709551615", "\"large\":-1"),
            "has 'large' -1, which is no whole number from 0 to 18446744073709551615");
  EXPECT_EQ(wrong("\"green\"", "\"blue\""), "has 'colour' \"blue\", which is none of the choices");
  EXPECT_EQ(wrong("\"flag\":true", "\"flag\":1"), "has 'flag' 1, which is neither true nor false");
  EXPECT_EQ(wrong("\"name\":", "\"nome\":"), "has no 'keys[0].name'");
  EXPECT_EQ(wrong("\"number\":", "\"nomber\":"), "has no 'number'");
  EXPECT_EQ(wrong("00ff0a", "00ff0"), "has 'keys[0].value' \"00ff0\", which has half a byte");
  EXPECT_EQ(wrong("00ff0a", "00fg0a"), "has 'keys[0].value' \"00fg0a\", which is not hexadecimal");
  EXPECT_EQ(wrong("7ff0000000000000", "3ff0000000000000"),
            "has 'pair[1]' \"3ff0000000000000\", which is no number");
  EXPECT_EQ(wrong("[-0.0,", "["), "has 'pair' [\"7ff0000000000000\"], which has another length");
}

TEST(RecordJson, RefusesEveryOtherKindOfValueInWords) {
  const RecordJson good = record_json(sample);
  const std::vector<RecordJson> others{
      nullptr, true, -3, 0.5, "text", RecordJson::array(), RecordJson::object()};
  int refused = 0;
  for (const auto& [name, value] : good.items()) {
    for (const RecordJson& other : others) {
      RecordJson damaged = good;
      damaged[name] = other;
      try {
        (void)record_from<Everything>(damaged);
      } catch (const WrongRecord& error) {
        EXPECT_EQ(std::string(error.what()).find("has '" + name + "' "), 0U) << error.what();
        ++refused;
      }
    }
    RecordJson without = good;
    without.erase(name);
    EXPECT_THROW((void)record_from<Everything>(without), WrongRecord) << name;
  }
  EXPECT_GT(refused, 50);
  for (const RecordJson& other : others) {
    if (other.is_object()) continue;
    EXPECT_THROW((void)record_from<Everything>(other), WrongRecord);
  }
}

}  // namespace
}  // namespace stepgate
