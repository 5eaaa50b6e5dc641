// SPDX-License-Identifier: MIT
#include "duel/gate/compared_works.h"

#include <gtest/gtest.h>

#include "support/text/diagnostic.h"

namespace stepgate {
namespace {

using Words = std::vector<std::string>;

TEST(ComparedWorks, AreThoseThatBothHaveAndAPatternMatchesInTheOrderOfBase) {
  Introduction both;
  both.base.works = {"c/x", "a/x", "b/x", "a/y"};
  both.head.works = {"a/x", "d/x", "c/x", "a/y"};
  both.base.planned = both.head.planned = {"p/x"};
  EXPECT_EQ(works_in_common(both, &Hello::works, {}), (Words{"c/x", "a/x", "a/y"}));
  EXPECT_EQ(works_in_common(both, &Hello::works, Words{"*/y", "c/*"}), (Words{"c/x", "a/y"}));
  EXPECT_EQ(works_in_common(both, &Hello::planned, {}), Words{"p/x"});
}

TEST(ComparedWorks, APatternThatMatchesNoneIsRefusedWithTheNearest) {
  const Words works{"sort_numbers", "hash_blocks"};
  EXPECT_NO_THROW(refuse_unmatched(Words{"sort*", "hash_blocks"}, works));
  try {
    refuse_unmatched(Words{"sort*", "hash_block"}, works);
    FAIL() << "a pattern that matches nothing was accepted";
  } catch (const RequestError& error) {
    EXPECT_STREQ(error.what(), "no work is named 'hash_block'; did you mean 'hash_blocks'?");
  }
}

}  // namespace
}  // namespace stepgate
