// SPDX-License-Identifier: MIT
#include "report/text/print_mutations.h"

#include <gtest/gtest.h>

namespace stepgate {
namespace {

TEST(PrintMutations, TellsOfFaultsUnlessNoticedRefusedOrSaidForContrast) {
  Mutations mutations;
  for (const MutationEffect harmless :
       {MutationEffect::fails, MutationEffect::refused, MutationEffect::does_not_run,
        MutationEffect::said_for_contrast, MutationEffect::unknown}) {
    mutations.mutations = {{.without = {}, .effect = harmless}};
    EXPECT_TRUE(faults_of(mutations).empty());
  }
  for (const MutationEffect bad :
       {MutationEffect::survives, MutationEffect::undecided, MutationEffect::same_step}) {
    mutations.mutations = {{.without = {}, .effect = bad}};
    EXPECT_FALSE(faults_of(mutations).empty());
  }
  mutations.mutations.clear();
  mutations.vacuous.emplace_back();
  EXPECT_FALSE(faults_of(mutations).empty());
  mutations.all_tried = false;
  EXPECT_TRUE(faults_of(mutations).empty()) << "what was not tried is not known";
}

}  // namespace
}  // namespace stepgate
