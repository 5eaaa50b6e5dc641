// SPDX-License-Identifier: MIT
#include "plan/compose/replace_kernels.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <variant>

#include "kernels/catalogue.h"

namespace stepgate {
namespace {

std::shared_ptr<const Kernel> row_with(const KernelReplacement& replacement, const Kernel& ours) {
  auto row = std::make_shared<Kernel>();
  row->name = ours.name;
  row->operands = ours.operands;
  row->flops = ours.flops;
  row->reference = ours.reference;
  row->library.gemm = ours.library.gemm;  // what it computes, whoever launches it
  row->library.uses_workspace = replacement.workspace_bytes > 0;
  row->replacement = replacement;
  return row;
}

}  // namespace

void replace_kernels(StepPlan& plan, const ReplacedKernels& kernels) {
  std::int64_t workspace_bytes = 0;
  for (const auto& [name, replacement] : kernels) {
    plan.library_kernels.push_back(row_with(replacement, kernel(name)));
    workspace_bytes = std::max(workspace_bytes, replacement.workspace_bytes);
  }
  for (Operation& operation : plan.operations) {
    auto* launch = std::get_if<LaunchKernel>(&operation.action);
    if (launch == nullptr) continue;
    for (const std::shared_ptr<const Kernel>& row : plan.library_kernels)
      if (launch->kernel == row->name) launch->kernel = KernelRef(*row);
  }
  if (workspace_bytes == 0) return;
  plan.library_workspace = static_cast<int>(plan.buffers.size());
  plan.buffers.push_back(
      {.name = "kernel workspace", .purpose = Purpose::workspace, .bytes = workspace_bytes});
}

std::optional<std::string> unused_replacement(const StepPlan& plan,
                                              const ReplacedKernels& kernels) {
  for (const auto& replaced : kernels) {
    const bool launched = std::ranges::any_of(plan.operations, [&](const Operation& operation) {
      const auto* launch = std::get_if<LaunchKernel>(&operation.action);
      return launch != nullptr && launch->kernel == replaced.first;
    });
    if (!launched) return replaced.first;
  }
  return std::nullopt;
}

}  // namespace stepgate
