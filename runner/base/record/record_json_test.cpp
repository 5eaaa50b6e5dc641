// SPDX-License-Identifier: MIT
// Records that cross between two processes come back as they were, or are refused in words.
#include "base/record/record_json.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/record/json_forms.h"
#include "base/text/json_line.h"

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

struct Event {
  std::string name;
  Colour colour = Colour::red;
  std::array<int, 2> size{};
  std::optional<Colour> other;
  std::chrono::nanoseconds time{0};
  bool operator==(const Event&) const = default;
};
template <>
inline constexpr auto fields_of<Event> =
    row_fields<&Event::name, &Event::colour, &Event::size, &Event::other, &Event::time>;
struct Setting {
  Colour of = Colour::red;
  double value = 0;
  bool operator==(const Setting&) const = default;
};
template <>
inline constexpr auto fields_of<Setting> = entry_fields<&Setting::of, &Setting::value>;
struct Label {
  std::string of;
  std::string text;
  bool operator==(const Label&) const = default;
};
template <>
inline constexpr auto fields_of<Label> = entry_fields<&Label::of, &Label::text>;
struct Told {
  std::string name = "nobody";
  std::chrono::nanoseconds elapsed{0};
  std::string words;
  int kept = 7;
  std::map<std::string, double> amounts;
  std::vector<std::string> works;
  bool operator==(const Told&) const = default;
};
template <>
inline constexpr auto fields_of<Told> =
    fields<described<&Told::name, may_be_missing, Text{1, 6}>,
           described<&Told::elapsed, Named("elapsed_ns"), Whole{1, 9}>,
           described<&Told::words, Named("text"), only_if_any>, described<&Told::kept, not_carried>,
           described<&Told::amounts, ObjectOf<Amount{}>{2, Text{1, 3}}>,
           described<&Told::works, ListOf<Text{1, 3}>{2, true}>>;

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

// Returns the error of reading the JSON as a Value, or an empty text if it is valid.
template <class Value>
std::string fault_of(const RecordJson& json) {
  try {
    (void)record_from<Value>(json);
  } catch (const WrongRecord& error) {
    return error.what();
  }
  return "";
}

const std::vector<Event> events{
    {"a", Colour::green, {1, 2}, Colour::red, std::chrono::nanoseconds(7)},
    {"b\xff", Colour::red, {3, 4}, std::nullopt, std::chrono::nanoseconds(0)},
    {"a", Colour::red, {5, 6}, Colour::green, std::chrono::nanoseconds(-1)}};

TEST(RecordJson, HasManyOfARecordAsRowsBehindTheirTexts) {
  const RecordJson json = record_json(events);
  EXPECT_EQ(json_line(json), R"([["a",{"bytes":"62ff"}],[0,1,1,2,"red",7],)"
                             R"([1,0,3,4,null,0],[0,0,5,6,"green",-1]])");
  EXPECT_EQ(record_from<std::vector<Event>>(json), events);
  const std::vector<Event> none;
  EXPECT_EQ(record_from<std::vector<Event>>(record_json(none)), none);
}

TEST(RecordJson, NamesTheFieldOfARowThatIsWrong) {
  const auto fault_with = [](std::size_t row, std::size_t column, const RecordJson& cell) {
    RecordJson json = record_json(events);
    json[row][column] = cell;
    return fault_of<std::vector<Event>>(json);
  };
  EXPECT_EQ(fault_with(1, 0, 2), "has '[0].name' 2, which is none of the texts");
  EXPECT_EQ(fault_with(1, 1, 2), "has '[0].colour' 2, which is none of the choices");
  EXPECT_EQ(fault_with(2, 3, "x"), "has '[1].size' \"x\", which is no whole number");
  EXPECT_EQ(fault_with(2, 4, "x"), "has '[1].other' \"x\", which is none of the choices");
  EXPECT_EQ(fault_with(3, 6, 1),
            "has '[2]' [0,0,5,6,\"green\",-1,1], which has more columns than fields");
  EXPECT_EQ(fault_with(0, 0, 1), "has '[0][0]' 1, which is no text");
  RecordJson json = record_json(events);
  json[3].erase(5);
  EXPECT_EQ(fault_of<std::vector<Event>>(json), "has no '[2].time'");
  json[3] = 7;
  EXPECT_EQ(fault_of<std::vector<Event>>(json), "has '[2]' 7, which is no row");
  EXPECT_EQ(fault_of<std::vector<Event>>(nullptr), "is null, which is no list of rows");
  EXPECT_EQ(fault_of<std::vector<Event>>(RecordJson::array()), "is [], which is no list of rows");
}

TEST(RecordJson, WritesAFieldAsItsListDescribesIt) {
  const Told told{"a", std::chrono::nanoseconds(5), "", 8, {{"x", 0.5}}, {"w"}};
  const RecordJson json = record_json(told);
  EXPECT_EQ(json_line(json), R"({"name":"a","elapsed_ns":5,"amounts":{"x":0.5},"works":["w"]})");
  Told back = record_from<Told>(json);
  EXPECT_EQ(std::exchange(back.kept, 8), 7) << "it is carried";
  EXPECT_EQ(back, told);
  EXPECT_EQ(
      record_from<Told>(RecordJson::parse(R"({"elapsed_ns":5,"amounts":{},"works":[]})")).name,
      "nobody");
}

TEST(RecordJson, RefusesWhatTheFormOfAFieldDoes) {
  const auto fault_with = [](const char* key, const char* value) {
    RecordJson json = RecordJson::parse(R"({"elapsed_ns":5,"amounts":{},"works":[]})");
    json[key] = RecordJson::parse(value);
    return fault_of<Told>(json);
  };
  EXPECT_EQ(fault_with("elapsed_ns", "10"),
            "has 'elapsed_ns' 10, which is not a whole number from 1 to 9");
  EXPECT_EQ(fault_with("name", R"("seventh")"),
            "has 'name' \"seventh\", which is not a text of 1 to 6 printable characters");
  EXPECT_EQ(fault_with("name", R"({"bytes":"61"})"),
            "has 'name' {\"bytes\":\"61\"}, which is not a text of 1 to 6 printable characters");
  EXPECT_EQ(fault_with("text", "1"), "has 'text' 1, which is no text");
  EXPECT_EQ(fault_with("amounts", R"({"a":"7ff0000000000000"})"),
            "has 'amounts.a' \"7ff0000000000000\", which is no number from 0 up");
  EXPECT_EQ(fault_with("amounts", R"({"long":1})"),
            "has 'amounts' \"long\", which is not a text of 1 to 3 printable characters");
  EXPECT_EQ(fault_with("amounts", R"({"a":1,"b":1,"c":1})"),
            "has 'amounts' {\"a\":1,\"b\":1,\"c\":1}, which is not an object of at most 2");
  EXPECT_EQ(fault_with("works", R"(["a","a"])"), "has 'works[1]' \"a\", which is there twice");
  EXPECT_EQ(fault_with("works", R"(["a","b","c"])"),
            "has 'works' [\"a\",\"b\",\"c\"], which is not a list of at most 2");
}

TEST(RecordJson, HasEntriesAsAnObject) {
  const std::vector<Setting> settings{{Colour::green, 2.5}, {Colour::red, 0}};
  const RecordJson json = record_json(settings);
  EXPECT_EQ(json_line(json), R"({"green":2.5,"red":0.0})");
  EXPECT_EQ(record_from<std::vector<Setting>>(json), settings);
  EXPECT_EQ(fault_of<std::vector<Setting>>(RecordJson::parse(R"({"blue":1})")),
            "is \"blue\", which is none of the choices");
  EXPECT_EQ(fault_of<std::vector<Setting>>(RecordJson::parse(R"({"red":true})")),
            "has 'red' true, which is no number");
  EXPECT_EQ(fault_of<std::vector<Setting>>(7), "is 7, which is no object");
}

TEST(RecordJson, KeepsEntriesWhoseNamesAnObjectCannotHave) {
  for (const std::vector<Setting>& settings :
       {std::vector<Setting>{{Colour::red, 1}, {Colour::red, 2}}, {}}) {
    EXPECT_EQ(record_from<std::vector<Setting>>(record_json(settings)), settings);
  }
  const std::vector<Label> labels{{"a\xff", "b"}, {"c", "d"}};
  EXPECT_EQ(record_from<std::vector<Label>>(record_json(labels)), labels);
  EXPECT_EQ(json_line(with_plain_texts(record_json(labels))),
            "[{\"of\":\"a\xef\xbf\xbd\",\"text\":\"b\"},{\"of\":\"c\",\"text\":\"d\"}]");
}

TEST(RecordJson, HasAMapAsPairsAndRefusesAKeyThatIsThereTwice) {
  using Map = std::map<Colour, std::vector<int>>;
  const Map map{{Colour::red, {1}}, {Colour::green, {}}};
  EXPECT_EQ(json_line(record_json(map)), R"([["red",[1]],["green",[]]])");
  EXPECT_EQ(record_from<Map>(record_json(map)), map);
  const auto fault_in = [](const char* text) { return fault_of<Map>(RecordJson::parse(text)); };
  EXPECT_EQ(fault_in(R"([["red",[1]],["red",[]]])"), "has '[1][0]' \"red\", which is there twice");
  EXPECT_EQ(fault_in(R"([["red"]])"), "has '[0]' [\"red\"], which is no pair");
  EXPECT_EQ(fault_in(R"([["red",[0.5]]])"), "has '[0][1][0]' 0.5, which is no whole number");
  EXPECT_EQ(fault_in("{}"), "is {}, which is no list");
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

std::string fault_of_text(const std::string& text) {
  try {
    (void)parsed_object(text);
  } catch (const WrongRecord& wrong) {
    return wrong.what();
  }
  return "";
}

TEST(ParsedObject, IsWhatTheTextSaysInItsOrder) {
  const std::string text =
      R"({"b":[1,-2,0.5,"x\n",true,null,{}],"a":{"b":{"b":18446744073709551615}},"":[[]]})";
  EXPECT_EQ(json_line(parsed_object(text)), text);
}

TEST(ParsedObject, HasNoKeyTwice) {
  EXPECT_EQ(fault_of_text(R"({"a":1,"b":2,"a":1})"), "has 'a' twice");
  EXPECT_EQ(fault_of_text(R"({"a":{},"\u0061":{}})"), "has 'a' twice") << "in other letters";
  EXPECT_EQ(fault_of_text(R"({"":1,"":2})"), "has '' twice");
  EXPECT_EQ(fault_of_text(R"({"x":[0,{"a":1},{"c":{"d":1,"d":{}}}]})"), "has 'x[2].c.d' twice");
  EXPECT_EQ(fault_of_text(R"({"a":{"a":[{"a":1},{"a":1}]},"b":{"a":1}})"), "")
      << "objects of their own";
  const std::string long_key(1 << 20, 'k');
  EXPECT_LT(fault_of_text(R"({")" + long_key + R"(":{"a":1,"a":2}})").size(), 100U);
  EXPECT_LT(fault_of_text(R"({")" + long_key + R"(":1,")" + long_key + R"(":2})").size(), 100U);
}

TEST(ParsedObject, IsAnObjectOfFewLevels) {
  const auto nested = [](int levels) {
    return R"({"a":)" + std::string(static_cast<std::size_t>(levels - 1), '[') +
           std::string(static_cast<std::size_t>(levels - 1), ']') + '}';
  };
  EXPECT_EQ(fault_of_text(nested(32)), "");
  EXPECT_EQ(fault_of_text(nested(33)), "nests deeper than 32 levels");
  EXPECT_EQ(fault_of_text(std::string(100'000, '[')), "nests deeper than 32 levels");
  for (const char* text : {"", "{", R"({"a":1,})", R"({"a":1e999})", "{}{}", "{\"a\":\"\xff\"}"})
    EXPECT_EQ(fault_of_text(text), "is not JSON") << text;
  for (const char* text : {"3", "[{}]", "null", R"("a")"})
    EXPECT_EQ(fault_of_text(text), "is not a JSON object") << text;
}

}  // namespace
}  // namespace stepgate
