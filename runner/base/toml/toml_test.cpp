// SPDX-License-Identifier: MIT
#include "base/toml/toml.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/files/read_file.h"
#include "base/files/temporary_folder.h"

namespace stepgate {
namespace {

TomlTable parsed(std::string_view text) {
  std::vector<Diagnostic> diagnostics;
  const auto table = parse_toml(text, "a.toml", diagnostics);
  for (const Diagnostic& diagnostic : diagnostics) ADD_FAILURE() << to_string(diagnostic);
  return table.value_or(TomlTable{});
}

std::string refusal(std::string_view text) {
  std::vector<Diagnostic> diagnostics;
  EXPECT_EQ(parse_toml(text, "a.toml", diagnostics), std::nullopt);
  return diagnostics.size() == 1 ? to_string(diagnostics.front()) : "not one diagnostic";
}

Place at(int line, int column) {
  return {"a.toml", line, column};
}

const TomlTable& table_of(const TomlEntry& entry) {
  return std::get<TomlTable>(entry.value.content);
}

std::string keys_of(const TomlTable& table) {
  std::string keys;
  for (const TomlEntry& entry : table) keys += entry.key + ' ';
  return keys;
}

TEST(Toml, KeepsTheOrderOfTheFile) {
  EXPECT_EQ(keys_of(parsed("zebra = 1\napple = 2\nmango = 3\n")), "zebra apple mango ");
}

TEST(Toml, PlacesKeysAndValues) {
  const TomlTable table = parsed("[transfer]\n  buffers = 2\n");
  EXPECT_EQ(table[0].place, at(1, 2));
  EXPECT_EQ(table_of(table[0])[0].place, at(2, 3));
  EXPECT_EQ(table_of(table[0])[0].value.place, at(2, 13));
}

TEST(Toml, CountsColumnsInCharactersNotBytes) {
  const TomlTable table = parsed("x = { \"h\xc3\xb6he\" = 1, next = 2 }\n");
  EXPECT_EQ(table_of(table[0])[1].place, at(1, 19));
}

TEST(Toml, PlacesTheTextInsideItsQuotes) {
  EXPECT_EQ(parsed("a = \"text\"")[0].value.text_place, at(1, 6));
  EXPECT_EQ(parsed("a = '''text'''")[0].value.text_place, at(1, 8));
  EXPECT_EQ(parsed("a = \"\"\"\ntext\"\"\"")[0].value.text_place, at(2, 1));
}

TEST(Toml, MergesHeadersAndDottedKeys) {
  const TomlTable table = parsed("[variant.fix]\nsync.where = 1\nsync.how = 2\n[variant.other]\n");
  ASSERT_EQ(keys_of(table), "variant ");
  EXPECT_EQ(keys_of(table_of(table[0])), "fix other ");
  EXPECT_EQ(keys_of(table_of(table_of(table_of(table[0])[0])[0])), "where how ");
}

TEST(Toml, NamesTypesInWords) {
  const TomlTable table = parsed("a = 1.5\nb = 1979-05-27\nc = [1]\n");
  EXPECT_EQ(type_text(table[0].value), "a decimal number");
  EXPECT_EQ(type_text(table[1].value), "a date");
  EXPECT_EQ(type_text(table[2].value), "a list");
}

TEST(Toml, FindsKeys) {
  const TomlTable table = parsed("a = 1\n");
  ASSERT_NE(find(table, "a"), nullptr);
  EXPECT_EQ(find(table, "b"), nullptr);
}

TEST(Toml, PlacesTheFirstByteThatIsNotUtf8) {
  EXPECT_EQ(refusal("a = 1\nb = \"\xc3\xa4\xff\"\n"),
            "a.toml:2:7: not UTF-8; save the file as UTF-8 text");
}

TEST(Toml, RefusesOverlongEncodingsSurrogatesAndNumbersPastTheLast) {
  for (const auto* text :
       {"\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2"}) {
    EXPECT_EQ(refusal(text), "a.toml:1:1: not UTF-8; save the file as UTF-8 text");
  }
}

TEST(Toml, RefusesDepthsThatWouldExhaustTheStack) {
  std::string key = "a";
  for (int i = 0; i < 100000; ++i) key += ".a";
  EXPECT_EQ(refusal(key + " = 1"),
            "a.toml:1:258: more than 128 dots in one line; break the line up");
  EXPECT_NE(refusal("a = " + std::string(100000, '[')), "");
  EXPECT_NE(refusal("a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a = 1"),
            "");
}

TEST(Toml, RefusesCharactersBeyondAsciiOutsideQuotes) {
  const std::string refused = "a character beyond ASCII outside quotes; put it in quotes";
  EXPECT_EQ(refusal("a = 1\n[oc\xc8\x94]\n"), "a.toml:2:4: " + refused);
  EXPECT_EQ(refusal("a = \"\"\"b\"\"\"\"\" \xc8\x94\n"), "a.toml:1:15: " + refused);
  EXPECT_EQ(refusal("a = \"\\\"\" \xc8\x94\n"), "a.toml:1:10: " + refused);
}

TEST(Toml, ShowsTextWithoutQuotesThatMayHaveBeenMeantAsOne) {
  EXPECT_EQ(refusal("a = graph x # why"),
            "a.toml:1:5: not TOML: 'graph x' without quotes; put it in quotes: \"graph x\"");
  for (const std::string& other : {std::string(201, 'x'), std::string(40, '[')}) {
    const std::string refused = refusal("a = " + other);
    EXPECT_TRUE(refused.ends_with("see https://toml.io")) << refused;
    EXPECT_LT(refused.size(), 150U);
  }
}

// It may be a link to a file of somebody else.
TEST(Toml, ShowsNoTextOfAFileThatIsFoundByItsName) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "device.toml";
  for (const char* text : {"TOKEN=hunter2", "a = [hunter2", "a = hunter2 # x", "{ hunter2"}) {
    std::ofstream(file) << text;
    try {
      read_toml(file, "a device profile");
      FAIL() << text;
    } catch (const RequestError& error) {
      EXPECT_EQ(std::string(error.what()).find("hunter2"), std::string::npos) << error.what();
    }
  }
}

TEST(Toml, RefusesAMalformedValueWithCharactersBeyondAsciiInIt) {
  EXPECT_EQ(refusal("a = -=\"0\"'\u06db\ufcff\"'"),
            "a.toml:1:6: not TOML: expected expected digit or sign, saw '=' (in the decimal "
            "integer); see https://toml.io");
}

TEST(Toml, RefusesCharactersBeyondAsciiAfterALineEndingBackslash) {
  EXPECT_EQ(refusal("a = \"\"\"x\\\n \u00e9\"\"\""),
            "a.toml:1:9: a character beyond ASCII after a backslash that ends the line; put it on "
            "the line before");
  EXPECT_EQ(keys_of(parsed("a = \"\"\"\u00e9\\\n x\"\"\"")), "a ");
}

TEST(Toml, AllowsAByteOrderMarkBeforeCharactersBeyondAscii) {
  EXPECT_EQ(keys_of(parsed("\ufeffa = '\u00e9'")), "a ");
}

TEST(Toml, AllowsCharactersBeyondAsciiAndDotsInStringsAndComments) {
  const std::string text = "\xc8\x94" + std::string(300, '.');
  const TomlTable table = parsed("\xef\xbb\xbf\"\xc8\x94\" = 'x" + text + "' # " + text +
                                 "\nb = \"\"\"\n" + text + "\"\"\"\"\"\n");
  EXPECT_EQ(keys_of(table), "\xc8\x94 b ");
}

class TomlFile : public testing::Test {
 protected:
  TomlFile() { std::filesystem::create_directories(folder); }
  ~TomlFile() override { std::filesystem::remove_all(folder); }

  std::string refusal_of(const std::filesystem::path& path) {
    try {
      read_toml(path, "a scenario");
    } catch (const RequestError& error) {
      return error.what();
    }
    return "accepted";
  }

  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) /
      testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(TomlFile, IsReadWhole) {
  std::ofstream(folder / "a.toml") << "a = 1\n";
  EXPECT_EQ(keys_of(read_toml(folder / "a.toml", "a scenario")), "a ");
}

TEST_F(TomlFile, IsRefusedWhenMissing) {
  EXPECT_EQ(refusal_of(folder / "b.toml"),
            (folder / "b.toml").string() + ": no such file; check the path");
}

TEST_F(TomlFile, IsRefusedWhenItIsAFolder) {
  EXPECT_EQ(refusal_of(folder),
            folder.string() + ": is a folder; name the file of a scenario in it");
}

TEST_F(TomlFile, IsRefusedWhenItIsNoOrdinaryFile) {
  EXPECT_EQ(refusal_of("/dev/zero"), "/dev/zero: is not an ordinary file; a scenario is one");
}

TEST_F(TomlFile, IsRefusedUnreadWhenItIsHuge) {
  std::ofstream(folder / "a.toml") << "";
  std::filesystem::resize_file(folder / "a.toml", largest_text_file_bytes + 1);
  EXPECT_EQ(refusal_of(folder / "a.toml"),
            (folder / "a.toml").string() + ": is 1 MiB; a scenario is at most 1 MiB");
}

}  // namespace
}  // namespace stepgate
