// SPDX-License-Identifier: MIT
// Tests the notes about the libraries whose kernels the variants got.
#include "judge/mechanism/diagnose.h"

#include <gtest/gtest.h>

#include "judge/testing/fake_scenario.h"

namespace stepgate {
namespace {

KernelChoice library_s(const std::string& kernel) {
  return {.kernel = kernel, .library = "cuDNN 9.14.0", .reason = {}};
}

KernelChoice ours(const std::string& kernel, const std::string& reason) {
  return {.kernel = kernel, .library = {}, .reason = reason};
}

MeasuredVariant variant(const std::string& name, std::vector<KernelChoice> choices) {
  MeasuredVariant subject{.name = name, .batch_size = 1};
  subject.choices = std::move(choices);
  return subject;
}

std::vector<std::string> notes_of(std::vector<MeasuredVariant> variants) {
  Measurement measurement;
  measurement.variants = std::move(variants);
  return library_notes(measurement);
}

TEST(LibraryNotes, AreOneSentenceForVariantsThatWentTheSameWay) {
  const std::vector<KernelChoice> both{library_s("attention"), library_s("attention_gradient")};
  EXPECT_EQ(notes_of({variant("a", both), variant("none", {}), variant("b", both)}),
            std::vector<std::string>{
                "in 'a' and 'b', attention and attention_gradient are cuDNN 9.14.0's"});
}

TEST(LibraryNotes, SayWhyOneKernelWentAnotherWay) {
  EXPECT_EQ(notes_of({variant("fix", {library_s("attention"),
                                      ours("attention_gradient", "there is no workspace")})}),
            std::vector<std::string>{"in 'fix', attention is cuDNN 9.14.0's; attention_gradient is "
                                     "stepgate's own: there is no workspace"});
}

TEST(LibraryNotes, CountTheLaunchesThatALibraryDoesNotSupport) {
  KernelChoice some = ours("layer_norm", "'norm' of 'm.so' does not support rows of 3");
  some.own_launches = 3;
  some.launches = 25;
  EXPECT_EQ(notes_of({variant("fix", {library_s("layer_norm"), some})}),
            std::vector<std::string>{
                "in 'fix', layer_norm is cuDNN 9.14.0's; 3 of 25 launches of layer_norm are ours: "
                "'norm' of 'm.so' does not support rows of 3"});
}

TEST(LibraryNotes, NameVariantsApartThatWentOtherWays) {
  const std::vector<std::string> notes =
      notes_of({variant("a", {ours("attention", "no cuDNN was found")}),
                variant("b", {ours("attention", "the samples are too short")})});
  EXPECT_EQ(notes, (std::vector<std::string>{
                       "in 'a', attention is stepgate's own: no cuDNN was found",
                       "in 'b', attention is stepgate's own: the samples are too short"}));
}

TEST(LibraryNotes, NameBothWaysOfAKernelThatALaterLoadChoseOtherwise) {
  EXPECT_EQ(notes_of({variant("a", {library_s("attention"), ours("attention", "no memory")})}),
            std::vector<std::string>{
                "in 'a', attention is cuDNN 9.14.0's; attention is stepgate's own: no memory"});
}

TEST(LibraryNotes, StandInTheVerdictOfARunAndNowhereElse) {
  const Scenario scenario =
      scenario_of({fix_against_baseline(Metric::samples_per_s, Relation::at_least, 1.05)});
  Script script;
  script.step_time = noisy(0.5, 3);
  const Judged without = measure_and_judge(scenario, script, 3);
  Script chosen;
  chosen.step_time = noisy(0.5, 3);
  chosen.choices = [](const std::string& name, int) {
    return name == "fix" ? std::vector{library_s("attention")} : std::vector<KernelChoice>{};
  };
  const Judged with = measure_and_judge(scenario, chosen, 3);
  ASSERT_FALSE(with.verdict.notes.empty());
  EXPECT_EQ(with.verdict.notes.front(), "in 'fix', attention is cuDNN 9.14.0's");
  EXPECT_EQ(with.verdict.notes.size(), without.verdict.notes.size() + 1);
}

}  // namespace
}  // namespace stepgate
