// SPDX-License-Identifier: MIT
#include "compare/worker/kernel_workload.h"

#include <gtest/gtest.h>

#include "scenario/read/read_scenario.h"

namespace stepgate {
namespace {

TEST(KernelWorkload, ItsNameSaysWorkloadAndKernel) {
  const KernelWorkload one{.workload = "big.v2/fix", .kernel = "layer_norm"};
  EXPECT_EQ(name_of(one), "big.v2/fix.kernel_us(layer_norm)");
  EXPECT_EQ(kernel_workload_named(name_of(one)), one);
  EXPECT_EQ(workload_in(name_of(one)), "big.v2/fix");
  for (const std::string other : {"big/fix", "big/fix.kernel_us(", "big/fix kernel_us(gemm)"}) {
    EXPECT_EQ(kernel_workload_named(other), std::nullopt) << other;
    EXPECT_EQ(workload_in(other), other);
  }
}

TEST(KernelWorkload, ThoseOfAScenarioAreInItsAssertionsEachOnce) {
  const Scenario scenario = parse_scenario(
      "claim = \"c\"\nmodel.kind = \"mlp\"\n[variant.a]\n[variant.b]\n[expect]\n"
      "less = \"a.kernel_us(sgd) <= 0.9 * b.kernel_us(sgd)\"\n"
      "few = \"a.kernel_us(sgd) <= 1 ms\"\nfaster = \"a.step_ms_mean <= b.step_ms_mean\"\n",
      "s.toml");
  EXPECT_EQ(kernel_workloads_of(scenario),
            (std::vector<std::string>{"s/a.kernel_us(sgd)", "s/b.kernel_us(sgd)"}));
}

}  // namespace
}  // namespace stepgate
