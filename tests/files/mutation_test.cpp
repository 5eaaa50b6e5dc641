// SPDX-License-Identifier: MIT
// Reads scenario files with flipped bytes, swapped lines and pasted pieces: each is read or
// refused, and nothing else happens. It is a short form of fuzzing in every test run, with any
// compiler.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/random.h"
#include "scenario/read/read_scenario.h"
#include "tests/scripts/script.h"

namespace stepgate {
namespace {

constexpr int mutations = 10000;

std::vector<std::string> texts_of(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".toml") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string> texts;
  for (const auto& file : files) texts.push_back(std::get<std::string>(read_file(file, "a file")));
  return texts;
}

std::vector<std::string> bad_texts() {
  std::vector<std::string> texts;
  for (const auto& script : scripts_of("scenarios")) {
    for (const Step& step : read_script(script, {"file", "refuse"})) texts.push_back(step.input);
  }
  return texts;
}

const std::string& one_of(const std::vector<std::string>& texts, Random& random) {
  return texts[random.below(texts.size())];
}

std::size_t place_in(const std::string& text, Random& random) {
  return static_cast<std::size_t>(random.below(text.size() + 1));
}

std::string piece_of(const std::string& text, Random& random) {
  return text.substr(place_in(text, random), static_cast<std::size_t>(random.below(40)));
}

void mutate(std::string& text, const std::string& other, Random& random) {
  const std::size_t at = place_in(text, random);
  switch (random.below(5)) {
    case 0:
      if (at < text.size()) text[at] = static_cast<char>(random.below(256));
      break;
    case 1:
      text.erase(at, static_cast<std::size_t>(random.below(20)));
      break;
    case 2:
      text.insert(at, piece_of(other, random));
      break;
    case 3:
      text.insert(at, piece_of(text, random));
      break;
    default:
      text.insert(at, 1, "\"'=[]{}.\n#*+<>%"[random.below(16)]);
  }
}

TEST(GoodScenarios, AreRead) {
  const std::filesystem::path root(STEPGATE_SOURCE_DIR);
  for (const std::string& text : texts_of(root / "tests/files/good_scenarios")) {
    try {
      EXPECT_GE(parse_scenario(text, "good.toml").variants.size(), 2U);
    } catch (const RequestError& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

TEST(Mutation, LeavesAScenarioReadOrRefusedAndNothingElse) {
  const std::uint64_t seed = 20260101;
  SCOPED_TRACE(seed);
  Random random(seed);
  const std::filesystem::path root(STEPGATE_SOURCE_DIR);
  const std::vector<std::string> good = texts_of(root / "tests/files/good_scenarios");
  const std::vector<std::string> bad = bad_texts();
  ASSERT_FALSE(good.empty() || bad.empty());

  int read = 0;
  int refused = 0;
  for (int i = 0; i < mutations; ++i) {
    // Half of the texts begin valid, since otherwise hardly any would pass the first check.
    std::string text = i % 2 == 0 ? one_of(good, random) : one_of(bad, random);
    const std::string& other = one_of(bad, random);
    for (std::uint64_t left = random.below(4); left > 0; --left) mutate(text, other, random);
    try {
      const Scenario scenario = parse_scenario(text, "mutation.toml");
      EXPECT_FALSE(scenario.variants.empty());
      EXPECT_FALSE(scenario.expect.empty());
      ++read;
    } catch (const RequestError& error) {
      EXPECT_FALSE(error.diagnostics().empty());
      for (const Diagnostic& diagnostic : error.diagnostics()) {
        EXPECT_FALSE(diagnostic.message.empty());
        EXPECT_FALSE(diagnostic.hint.empty()) << to_string(diagnostic);
      }
      ++refused;
    }
  }
  // Both results must be frequent, or the generator would test little.
  EXPECT_GT(read, mutations / 100);
  EXPECT_GT(refused, mutations / 2);
}

}  // namespace
}  // namespace stepgate
