// SPDX-License-Identifier: MIT
// Comparing losses step by step.
#include "measure/rounds/loss_ledger.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>
#include <tuple>

#include "support/require.h"

namespace stepgate {
namespace {

// By which cuBLASLt chooses how a GEMM adds up.
std::int64_t workspace_bytes_of(const StepPlan& plan) {
  std::int64_t bytes = 0;
  for (const Buffer& buffer : plan.buffers) {
    if (buffer.purpose == Purpose::workspace) bytes += buffer.bytes;
  }
  return bytes;
}

// What two variants must share for their losses to be comparable: the same batches, as many of them
// by as many ranks, model,
// parameters, precision and workspace, and the same kernels for the model and the optimizer. What
// evaluates the model changes nothing of it.
auto arithmetic_of(const StepPlan& plan) {
  std::set<std::string_view> kernels;
  for (const Operation& operation : plan.operations) {
    const bool computes = operation.phase == Phase::forward || operation.phase == Phase::backward ||
                          operation.phase == Phase::optimizer;
    const auto* launch = std::get_if<LaunchKernel>(&operation.action);
    if (computes && launch) kernels.insert(launch->kernel.name());
  }
  return std::tuple(plan.seed, plan.ranks.count, plan.batch_sizes, plan.batch_bytes, plan.lengths,
                    plan.model, plan.param_bytes, plan.dtype, workspace_bytes_of(plan),
                    std::move(kernels));
}

}  // namespace

double loss_bound(DType dtype, std::int64_t step) {
  constexpr std::int64_t early_steps = 100;
  const double amplification = step < early_steps ? 1 : 10;
  switch (dtype) {
    case DType::fp32:
      return 1e-4 * amplification;
    case DType::tf32:
      return 1e-3 * amplification;
    case DType::bf16:
      return 2e-2 * amplification;
    case DType::fp16:
      return 5e-3 * amplification;
  }
  return 0;
}

LossLedger::LossLedger(std::span<const PlannedStep> plans, std::int64_t first_step)
    : first_step_(first_step), first_pending_step_(first_step) {
  for (std::size_t variant = 0; variant < plans.size(); ++variant) {
    const auto arithmetic = arithmetic_of(plans[variant]);
    std::size_t partner = 0;
    while (arithmetic_of(plans[partner]) != arithmetic) ++partner;  // ends at itself
    accounts_.push_back({.partner = static_cast<int>(partner), .next_step = first_step});
    dtypes_.push_back(plans[variant]->dtype);
  }
}

void LossLedger::add(int variant, const StepResult& result) {
  if (result.losses.empty()) return;  // the device computes no numbers
  Account& account = accounts_[static_cast<std::size_t>(variant)];
  require(result.first_step == account.next_step, "a loaded step counts its steps without gaps");
  account.next_step += static_cast<std::int64_t>(result.losses.size());
  account.pending.insert(account.pending.end(), result.losses.begin(), result.losses.end());
}

std::optional<LossDisagreement> LossLedger::disagreement_at(std::size_t variant,
                                                            std::size_t index) const {
  const int partner = accounts_[variant].partner;
  const double loss = accounts_[variant].pending[index];
  const double expected = accounts_[static_cast<std::size_t>(partner)].pending[index];
  const std::int64_t step = first_pending_step_ + static_cast<std::int64_t>(index);
  const double bound = loss_bound(dtypes_[variant], step - first_step_);
  // Below a thousandth, a loss has been learned away and its relative error means nothing.
  const double size = std::max({std::abs(loss), std::abs(expected), 1e-3});
  // A loss that is not a number fails this comparison too.
  if (std::abs(loss - expected) <= bound * size) return std::nullopt;
  return LossDisagreement{.variant = static_cast<int>(variant),
                          .against = partner,
                          .step = step,
                          .loss = loss,
                          .expected = expected,
                          .bound = bound};
}

std::optional<LossDisagreement> LossLedger::first_disagreement() {
  std::size_t complete = accounts_.front().pending.size();
  for (const Account& account : accounts_) complete = std::min(complete, account.pending.size());
  std::optional<LossDisagreement> found;
  for (std::size_t index = 0; index < complete && !found; ++index) {
    for (std::size_t variant = 0; variant < accounts_.size() && !found; ++variant) {
      found = disagreement_at(variant, index);
    }
  }
  for (Account& account : accounts_) {
    account.pending.erase(account.pending.begin(),
                          account.pending.begin() + static_cast<std::ptrdiff_t>(complete));
  }
  first_pending_step_ += static_cast<std::int64_t>(complete);
  return found;
}

}  // namespace stepgate
