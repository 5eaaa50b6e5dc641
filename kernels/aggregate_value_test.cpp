// SPDX-License-Identifier: MIT
#include "kernels/aggregate_value.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <string_view>

#include "kernels/kernel.h"

namespace stepgate {
namespace {

// An aggregate with members of every type, in an order in which each needs other padding.
struct Seven {
  bool first = false;
  std::int64_t bytes = 0;
  bool accumulate = false;
  int spare = 0;
  double rate = 0;
  bool last_flag = false;
  std::int64_t seventh = 0;
};

constexpr std::int64_t beyond_doubles = (std::int64_t{1} << 53) + 1;
constexpr Seven all = {true, beyond_doubles, false, -3, 0.1, true, -beyond_doubles};

TEST(AggregateValue, GivesBackEveryMemberAsItWasGiven) {
  const Seven back = AggregateValue(all).to<Seven>();
  EXPECT_EQ(back.first, true);
  EXPECT_EQ(back.bytes, beyond_doubles);
  EXPECT_NE(back.bytes, static_cast<std::int64_t>(static_cast<double>(beyond_doubles)));
  EXPECT_EQ(back.accumulate, false);
  EXPECT_EQ(back.spare, -3);
  EXPECT_EQ(back.rate, 0.1);
  EXPECT_EQ(back.last_flag, true);
  EXPECT_EQ(back.seventh, -beyond_doubles);
}

TEST(AggregateValue, WalksTheMembersInTheirOrder) {
  const AggregateValue value(all);
  const AggregateMember members[] = {true, beyond_doubles, false,          std::int64_t{-3},
                                     0.1,  true,           -beyond_doubles};
  ASSERT_EQ(value.size(), std::size(members));
  for (std::size_t index = 0; index < value.size(); ++index)
    EXPECT_EQ(value.member(index), members[index]) << index;
  EXPECT_EQ(text_of(value), "1 9007199254740993 0 -3 0.1 1 -9007199254740993");
  EXPECT_EQ(text_of(AggregateValue()), "");
}

TEST(AggregateValue, DiffersWhereAnyMemberDoes) {
  const auto differs = [](auto member, auto other) {
    Seven changed = all;
    changed.*member = other;
    return AggregateValue(changed) != AggregateValue(all);
  };
  EXPECT_EQ(AggregateValue(all), AggregateValue(all));
  EXPECT_TRUE(differs(&Seven::first, false));
  EXPECT_TRUE(differs(&Seven::bytes, beyond_doubles - 1));
  EXPECT_TRUE(differs(&Seven::accumulate, true));
  EXPECT_TRUE(differs(&Seven::spare, 3));
  EXPECT_TRUE(differs(&Seven::rate, std::nextafter(0.1, 1.0)));
  EXPECT_TRUE(differs(&Seven::last_flag, false));
  EXPECT_TRUE(differs(&Seven::seventh, beyond_doubles));
}

TEST(AggregateValue, ComparesNoPadding) {
  alignas(Seven) std::byte ones[sizeof(Seven)], zeros[sizeof(Seven)] = {};
  std::memset(ones, 0xff, sizeof ones);
  const auto written_over = [](std::byte* bytes) {
    auto* seven = reinterpret_cast<Seven*>(bytes);
    seven->first = true;
    seven->bytes = 5;
    seven->accumulate = false;
    seven->spare = 1;
    seven->rate = 2;
    seven->last_flag = true;
    seven->seventh = 3;
    return AggregateValue(*seven);
  };
  EXPECT_EQ(written_over(ones), written_over(zeros));
}

TEST(AggregateValue, TellsTypesOfEqualMembersApart) {
  struct A {
    std::int64_t rows = 1;
  };
  struct B {
    std::int64_t columns = 1;
  };
  EXPECT_EQ(AggregateValue(A{3}), AggregateValue(A{3}));
  EXPECT_NE(AggregateValue(A{3}), AggregateValue(B{3}));
  EXPECT_DEATH((void)AggregateValue(A{3}).to<B>(),
               "a kernel is launched with the sizes or attributes of another kernel");
}

TEST(AggregateValue, HasDefaultsWhereItWasGivenNothing) {
  EXPECT_EQ(AggregateValue(), AggregateValue(NoAttributes{}));
  struct WithDefault {
    std::int64_t count = 7;
  };
  EXPECT_EQ(AggregateValue().to<WithDefault>().count, 7);
  EXPECT_NE(AggregateValue(), AggregateValue(WithDefault{}));
}

struct Named {
  static constexpr std::string_view names = "rows columns";
  std::int64_t rows = 1;
  std::int64_t columns = 1;
};

TEST(AggregateValue, HasTheNamesThatItsTypeHas) {
  const AggregateValue named(Named{});
  EXPECT_EQ(named.name(0), "rows");
  EXPECT_EQ(named.name(1), "columns");
  EXPECT_EQ(named.name(2), "");
  struct Unnamed {
    std::int64_t rows = 1;
  };
  EXPECT_EQ(AggregateValue(Unnamed{}).name(0), "");
}

// The compiler counts names; that each is the member's own is read in the headers.
TEST(AggregateValue, NamesAreThoseOfTheMembers) {
  const std::regex names(R"x(std::string_view names = "([a-z0-9_ ]+)";)x");
  const std::regex member(
      R"x(^ +(?:Size|bool|int|double|std::int64_t) ((?:[a-z0-9_]+(?: = [^,;]+)?(?:, )?)+);)x");
  const std::regex declared(R"x(([a-z0-9_]+)(?: = [^,;]+)?(?:, |$))x");
  int lists = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(STEPGATE_SOURCE_DIR "/kernels")) {
    if (entry.path().extension() != ".h" || entry.path().filename() == "aggregate_value.h")
      continue;
    std::ifstream header(entry.path());
    std::string list, members;
    bool is_within = false;
    for (std::string line; std::getline(header, line);) {
      std::smatch found;
      if (std::regex_search(line, found, names)) {
        list = found[1];
        members.clear();
        is_within = true;
      } else if (is_within && std::regex_search(line, found, member)) {
        const std::string every = found[1];
        for (std::sregex_iterator at(every.begin(), every.end(), declared), end; at != end; ++at) {
          if (!members.empty()) members += ' ';
          members += (*at)[1].str();
        }
      } else if (is_within && line.find("};") != std::string::npos) {
        EXPECT_EQ(list, members) << entry.path();
        is_within = false;
        ++lists;
      }
    }
  }
  EXPECT_GT(lists, 30);
}

}  // namespace
}  // namespace stepgate
