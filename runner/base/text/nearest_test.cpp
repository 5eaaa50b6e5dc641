// SPDX-License-Identifier: MIT
#include "base/text/nearest.h"

#include <gtest/gtest.h>

#include <array>

namespace stepgate {
namespace {

constexpr std::array<std::string_view, 4> words{"pageable", "pinned", "registered", "on"};

TEST(Nearest, FindsAWordWithOneLetterMissing) {
  EXPECT_EQ(nearest("pined", words), "pinned");
}

TEST(Nearest, CountsASwapOfNeighboursAsOneEdit) {
  EXPECT_EQ(nearest("pagaeble", words), "pageable");
  constexpr std::array<std::string_view, 1> short_word{"abc"};
  EXPECT_EQ(nearest("acb", short_word), "abc");
}

TEST(Nearest, TakesCapitalsForNoEdit) {
  constexpr std::array<std::string_view, 3> names{"gelu", "swiglu", "rms"};
  EXPECT_EQ(nearest("SwiGLU", names), "swiglu");
  EXPECT_EQ(nearest("RMS", names), "rms");
  EXPECT_EQ(nearest("GLEU", names), "gelu");
}

TEST(Nearest, SuggestsNothingWhenTheWordIsFarFromAll) {
  EXPECT_EQ(nearest("zebra", words), std::nullopt);
  EXPECT_EQ(nearest("", words), std::nullopt);
  EXPECT_EQ(nearest("x", words), std::nullopt);
}

TEST(Nearest, PrefersTheFirstOfEquallyNearWords) {
  constexpr std::array<std::string_view, 2> pair{"cat", "car"};
  EXPECT_EQ(nearest("caz", pair), "cat");
}

TEST(Nearest, GivesUpOnWordsThatNobodyMistyped) {
  EXPECT_EQ(nearest(std::string(100000, 'p'), words), std::nullopt);
}

TEST(Nearest, KnowsHowANameBeginsAndEnds) {
  constexpr std::array<std::string_view, 4> names{"step", "step_ms_mean", "step_ms_p50", "no"};
  EXPECT_EQ(nearest("step_ms", names), "step_ms_mean");
  EXPECT_EQ(nearest("every_step", names), "step");
  EXPECT_EQ(nearest("everystep", names), std::nullopt) << "no part of a name";
  EXPECT_EQ(nearest("in_no", names), std::nullopt) << "too short to mean anything";
}

TEST(DidYouMean, FallsBackToTheOtherHint) {
  EXPECT_EQ(did_you_mean("pined", words, "no"), "did you mean 'pinned'?");
  EXPECT_EQ(did_you_mean("zebra", words, "see the list"), "see the list");
}

}  // namespace
}  // namespace stepgate
