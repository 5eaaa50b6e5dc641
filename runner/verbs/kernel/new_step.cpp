// SPDX-License-Identifier: MIT
#include "verbs/kernel/new_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <variant>

#include "plan/compose/build_step_plan.h"
#include "scenario/read/read_scenario.h"

namespace stepgate {
namespace {

constexpr std::string_view gpt = R"(
[model]
kind = "transformer"
layers = 4
hidden = 512
heads = 8
seq = 64
vocab = 1024
dtype = "bf16"
)";
constexpr std::string_view of_llama = R"(norm = "rms"
mlp = "swiglu"
position = "rope"
)";
constexpr std::string_view with_shared_heads = R"(kv_heads = 2
bias = false
)";

constexpr std::string_view mlp =
    "\n[model]\nkind = \"mlp\"\nlayers = 4\nhidden = 1024\ndtype = \"bf16\"\n";

struct Step {
  std::string_view knobs;
  std::string_view model = gpt;
  std::string_view more = {};
  std::string_view still_more = {};
};

// Steps for all kinds of kernels; the first that launches one is taken. Pointwise work and
// attention are launches of their own where nothing is fused.
constexpr Step steps[] = {
    {"optim.kind = \"adamw\"\nlaunch.fuse = \"none\"\n"},
    {"optim.kind = \"adamw\"\noptim.master = true\n"},
    {"optim.kind = \"adamw\"\noptim.impl = \"foreach\"\n"},
    {"optim.kind = \"lion\"\n"},
    {"optim.kind = \"momentum\"\n"},
    {"optim.kind = \"adamw\"\nlaunch.fuse = \"none\"\n", gpt, of_llama, with_shared_heads},
    {"optim.kind = \"adamw\"\n", gpt, of_llama},
    {"optim.kind = \"adamw\"\n", mlp},
    {"optim.kind = \"lion\"\n", mlp},
    {"optim.kind = \"momentum\"\n", mlp},
    {"", mlp},
    {"", "\n[model]\nkind = \"recommender\"\n"},
    {"", "\n[model]\nkind = \"resnet\"\n"},
    {"", "\n[model]\nkind = \"unet\"\n"},
    {"", "\n[model]\nkind = \"elementwise\"\nhidden = 1024\n"}};

std::string with_variant(const Step& step, const Kernel& kernel) {
  return fmt::format(
      "claim = \"A {} of one's own makes the step no slower, and it is still the same step\"\n"
      "batch.size = 256\n{}{}{}{}\n[measure]\nmax_seconds = 6\n\n[variant.ours]\n",
      kernel.name, step.knobs, step.model, step.more, step.still_more);
}

bool launches(const std::string& step, const Kernel& kernel) {
  const std::string whole = step + "[expect]\nany = \"ours.launches_per_step >= 1\"\n";
  const StepPlan plan = build_step_plans(parse_scenario(whole, "step.toml"), 1).front();
  return std::ranges::any_of(plan.operations, [&](const Operation& operation) {
    const auto* launch = std::get_if<LaunchKernel>(&operation.action);
    return launch != nullptr && launch->kernel == kernel.name;
  });
}

}  // namespace

std::string step_with_own(const Kernel& kernel) {
  for (const Step& step : steps) {
    const std::string scenario = with_variant(step, kernel);
    if (!launches(scenario, kernel)) continue;
    return scenario + fmt::format(R"toml(
[variant.mine.kernels]
{0} = "build/lib{0}.so"  # as seen from the folder that stepgate runs in

[expect]
same_launches = "mine.launches_per_step == ours.launches_per_step"
same_waits = "mine.host_waits_per_step == ours.host_waits_per_step"
kernel_faster = "mine.kernel_us({0}) <= 0.98 * ours.kernel_us({0})"
no_slower = "mine.step_ms_mean <= 1.02 * ours.step_ms_mean"
)toml",
                                  kernel.name);
  }
  return "";
}

}  // namespace stepgate
