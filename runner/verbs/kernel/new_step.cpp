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

// The knobs of a step for each kind of kernel; the first that launches it is taken. Pointwise work
// and attention are launches of their own where nothing is fused.
constexpr std::string_view steps[] = {
    R"(model = { kind = "transformer", layers = 4, hidden = 512, heads = 8, seq = 64, vocab = 1024, dtype = "bf16" }
batch.size = 256
optim.kind = "adamw"
launch.fuse = "none"
)",
    R"(model = { kind = "transformer", layers = 4, hidden = 512, heads = 8, seq = 64, vocab = 1024, dtype = "bf16" }
batch.size = 256
optim = { kind = "adamw", master = true }
)",
    R"(model = { kind = "transformer", layers = 4, hidden = 512, heads = 8, seq = 64, vocab = 1024, dtype = "bf16" }
batch.size = 256
optim = { kind = "adamw", impl = "foreach" }
)",
    R"(batch.size = 256
optim.kind = "lion"
launch.fuse = "none"

[model]
kind = "transformer"
layers = 4
hidden = 512
heads = 8
kv_heads = 2
seq = 64
vocab = 1024
dtype = "bf16"
norm = "rms"
mlp = "swiglu"
position = "rope"
bias = false
)",
    R"(batch.size = 256
optim.kind = "adamw"

[model]
kind = "transformer"
layers = 4
hidden = 512
heads = 8
seq = 64
vocab = 1024
dtype = "bf16"
norm = "rms"
mlp = "swiglu"
position = "rope"
)",
    R"(model = { kind = "mlp", layers = 4, hidden = 1024, dtype = "bf16" }
batch.size = 256
)",
    R"(model.kind = "recommender"
batch.size = 256
)",
    R"(model = { kind = "elementwise", hidden = 1024 }
batch.size = 256
)"};

std::string with_variant(std::string_view step, const Kernel& kernel) {
  return fmt::format(
      "claim = \"A {} of one's own makes the step no slower, and it is still the same "
      "step\"\n{}\n[measure]\nmax_seconds = 6\n\n[variant.ours]\n",
      kernel.name, step);
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
  for (const std::string_view step : steps) {
    const std::string scenario = with_variant(step, kernel);
    if (!launches(scenario, kernel)) continue;
    return scenario + fmt::format(R"toml(
[variant.mine.kernels]
{0} = "build/lib{0}.so"  # as seen from the folder that stepgate runs in

[expect]
same_launches = "mine.launches_per_step == ours.launches_per_step"
same_waits = "mine.host_waits_per_step == ours.host_waits_per_step"
kernel = "mine.kernel_us({0}) <= ours.kernel_us({0})"
no_slower = "mine.step_ms_mean <= 1.02 * ours.step_ms_mean"
)toml",
                                  kernel.name);
  }
  return "";
}

}  // namespace stepgate
