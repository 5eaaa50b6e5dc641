// SPDX-License-Identifier: MIT
#include "measure/rounds/same_step.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <string_view>

#include "scenario/choices.h"
#include "support/require.h"
#include "support/text/units.h"

namespace stepgate {
namespace {

constexpr std::int64_t first_steps = 8;

// By which cuBLASLt chooses how a GEMM adds up.
std::int64_t workspace_bytes_of(const StepPlan& plan) {
  std::int64_t bytes = 0;
  for (const Buffer& buffer : plan.buffers) {
    if (buffer.purpose == Purpose::workspace) bytes += buffer.bytes;
  }
  return bytes;
}

// Kernels of the model and of the optimizer. What evaluates the model changes nothing of it.
std::set<std::string_view> kernels_of(const StepPlan& plan) {
  std::set<std::string_view> kernels;
  for (const Operation& operation : plan.operations) {
    const bool computes = operation.phase == Phase::forward || operation.phase == Phase::backward ||
                          operation.phase == Phase::optimizer;
    const auto* launch = std::get_if<LaunchKernel>(&operation.action);
    if (computes && launch) kernels.insert(launch->kernel.name());
  }
  return kernels;
}

// Two variants are comparable where they share all of this; the first that they do not share, in
// words, and nothing where they share all: the same batches, as many of them by as many ranks,
// model, parameters, precision and workspace, and the same kernels.
std::string other_arithmetic(const StepPlan& plan, const StepPlan& other) {
  if (plan.seed != other.seed) return "other numbers to begin with";
  if (plan.ranks.count != other.ranks.count)
    return fmt::format("{} ranks and not {}", plan.ranks.count, other.ranks.count);
  if (plan.batch_sizes != other.batch_sizes || plan.batch_bytes != other.batch_bytes ||
      plan.lengths != other.lengths)
    return "other batches";
  if (plan.dtype != other.dtype) return "another precision";
  if (plan.model != other.model || plan.param_bytes != other.param_bytes) return "another model";
  const std::int64_t workspace = workspace_bytes_of(plan);
  const std::int64_t other_workspace = workspace_bytes_of(other);
  if (workspace != other_workspace) {
    return fmt::format("a workspace of {} and not {} bytes, by which its GEMMs are chosen",
                       workspace, other_workspace);
  }
  const std::set<std::string_view> kernels = kernels_of(plan);
  const std::set<std::string_view> other_kernels = kernels_of(other);
  std::vector<std::string_view> differing;
  std::ranges::set_symmetric_difference(kernels, other_kernels, std::back_inserter(differing));
  if (differing.empty()) return "";
  return fmt::format("other kernels: only one of them has {}", fmt::join(differing, ", "));
}

ModelLaunches launches_of(const StepPlan& plan, const StepPlan& other) {
  const auto of_the_model = [](const StepPlan& step) {
    std::vector<const LaunchKernel*> launches;
    for (const Operation& operation : step.operations) {
      const auto* launch = std::get_if<LaunchKernel>(&operation.action);
      if (launch && (operation.phase == Phase::forward || operation.phase == Phase::backward))
        launches.push_back(launch);
    }
    return launches;
  };
  const auto are_alike = [](const LaunchKernel* one, const LaunchKernel* two) {
    return one->kernel.name() == two->kernel.name() && one->shape == two->shape &&
           one->dtype == two->dtype && one->attributes == two->attributes;
  };
  const bool same = plan.gemm_algorithms == other.gemm_algorithms &&
                    std::ranges::equal(of_the_model(plan), of_the_model(other), are_alike);
  return same ? ModelLaunches::same : ModelLaunches::others;
}

std::vector<int> partners_of(std::span<const PlannedStep> plans) {
  std::vector<int> partners;
  for (std::size_t variant = 0; variant < plans.size(); ++variant) {
    std::size_t partner = 0;
    while (partner < variant && !other_arithmetic(plans[variant], plans[partner]).empty())
      ++partner;
    partners.push_back(static_cast<int>(partner));
  }
  return partners;
}

bool is_finite(const GradientSketch& sketch) {
  return std::isfinite(sketch.squares);
}

GradientSketch whole_of(const std::vector<GradientSketch>& gradients) {
  GradientSketch whole;
  for (const GradientSketch& sketch : gradients) whole += sketch;
  return whole;
}

}  // namespace

// The first steps: three times and more what honest ways to run a transformer's step differed by on
// an H100 and on the host reference (tests/contract/same_step_test.cpp).
double loss_bound(DType dtype, std::int64_t step) {
  constexpr std::int64_t early_steps = 100;
  const bool is_first = step < first_steps;
  const double amplification = step < early_steps ? 1 : 10;
  switch (dtype) {
    case DType::fp32:
      return is_first ? 1e-5 : 1e-4 * amplification;
    case DType::tf32:
      return is_first ? 1e-4 : 1e-3 * amplification;
    case DType::bf16:
      return is_first ? 6e-4 : 2e-2 * amplification;
    case DType::fp16:
      return is_first ? 1e-4 : 5e-3 * amplification;
  }
  return 0;
}

double gradient_bound(DType dtype, ModelLaunches launches) {
  const double share = launches == ModelLaunches::same ? 0.1 : 1;
  switch (dtype) {
    case DType::fp32:
      return 1e-4 * share;
    case DType::tf32:
      return 5e-3 * share;
    case DType::bf16:
      return 3e-2 * share;
    case DType::fp16:
      return 1e-2 * share;
  }
  return 0;
}

std::vector<NotCompared> pairs_not_compared(std::span<const PlannedStep> plans) {
  std::vector<NotCompared> pairs;
  const std::vector<int> partners = partners_of(plans);
  for (std::size_t variant = 0; variant < plans.size(); ++variant) {
    const int own = static_cast<int>(variant);
    const int partner = partners[variant];
    if (variant > 0 && partner == own)
      pairs.push_back({.variant = own,
                       .against = 0,
                       .reason = other_arithmetic(plans[variant], plans.front())});
    if (partner == own) continue;
    std::string reason = reason_against_gradients(plans[variant]);
    if (reason.empty()) reason = reason_against_gradients(plans[static_cast<std::size_t>(partner)]);
    if (!reason.empty())
      pairs.push_back(
          {.variant = own, .against = partner, .gradients_alone = true, .reason = reason});
  }
  return pairs;
}

SameStep::SameStep(std::span<const PlannedStep> plans) : plans_(plans), accounts_(plans.size()) {
  const std::vector<int> partners = partners_of(plans);
  for (int variant = 0; variant < std::ssize(partners); ++variant) {
    const int partner = partners[static_cast<std::size_t>(variant)];
    if (partner == variant) continue;
    const StepPlan& plan = plans[static_cast<std::size_t>(variant)];
    const ModelLaunches launches = launches_of(plan, plans[static_cast<std::size_t>(partner)]);
    compared_.push_back({.variant = variant,
                         .against = partner,
                         .gradient_bound = gradient_bound(plan.dtype, launches)});
  }
}

void SameStep::begin(std::int64_t first_step) {
  first_step_ = first_pending_step_ = first_step;
  accounts_.assign(plans_.size(), {.next_step = first_step});
}

bool SameStep::compares(int variant) const {
  return std::ranges::any_of(compared_, [variant](const ComparedPair& pair) {
    return pair.variant == variant || pair.against == variant;
  });
}

void SameStep::add(int variant, const StepResult& result) {
  if (result.losses.empty()) return;  // the device computes no numbers
  Account& own = account(variant);
  require(result.first_step == own.next_step, "a loaded step counts its steps without gaps");
  own.next_step += static_cast<std::int64_t>(result.losses.size());
  own.pending.insert(own.pending.end(), result.losses.begin(), result.losses.end());
  if (!result.gradients.empty()) own.gradients[own.next_step - 1] = result.gradients;
}

std::optional<AnotherStep> SameStep::loss_difference(ComparedPair& pair, std::int64_t step) {
  const auto index = static_cast<std::size_t>(step - first_pending_step_);
  const double loss = account(pair.variant).pending[index];
  const double expected = account(pair.against).pending[index];
  const std::int64_t trained = step - first_step_;
  const double bound = loss_bound(plans_[static_cast<std::size_t>(pair.variant)]->dtype, trained);
  // Below a thousandth, a loss has been learned away and its relative error means nothing.
  const double size = std::max({std::abs(loss), std::abs(expected), 1e-3});
  const double difference = std::abs(loss - expected) / size;
  if (trained < first_steps) pair.loss = std::max(pair.loss, difference);
  // A loss that is not a number fails this comparison too.
  if (difference <= bound) return std::nullopt;
  return AnotherStep{.variant = pair.variant,
                     .against = pair.against,
                     .step = step,
                     .value = loss,
                     .expected = expected,
                     .bound = bound};
}

// A gradient that is infinite on both sides is skipped by both updates; a part that only one of
// them has read is not compared.
std::optional<AnotherStep> SameStep::gradient_difference(ComparedPair& pair, std::int64_t step) {
  const StepPlan& plan = plans_[static_cast<std::size_t>(pair.variant)];
  const std::vector<GradientSketch>& gradients = account(pair.variant).gradients[step];
  const std::vector<GradientSketch>& others = account(pair.against).gradients[step];
  const GradientSketch whole = whole_of(others);
  std::optional<AnotherStep> worst;
  for (std::size_t index = 0; index < std::min(gradients.size(), others.size()); ++index) {
    const GradientSketch& own = gradients[index];
    const GradientSketch& other = others[index];
    if (own.elements == 0 || own.elements != other.elements) continue;
    if (!is_finite(own) && !is_finite(other)) continue;
    // Where only one of them is finite, nothing is further apart.
    const double difference = is_finite(own) && is_finite(other)
                                  ? relative_difference(own, other, negligible_norm(whole, own))
                                  : std::numeric_limits<double>::infinity();
    ++pair.gradients;
    if (difference > pair.gradient) {
      pair.gradient = difference;
      pair.parameter = plan.parameters[index].name;
    }
    if (difference <= (worst ? worst->value : pair.gradient_bound)) continue;
    worst = AnotherStep{.variant = pair.variant,
                        .against = pair.against,
                        .step = step,
                        .parameter = plan.parameters[index].name,
                        .value = difference,
                        .bound = pair.gradient_bound};
  }
  return worst;
}

std::optional<AnotherStep> SameStep::first_difference() {
  std::size_t complete = accounts_.front().pending.size();
  for (const Account& account : accounts_) complete = std::min(complete, account.pending.size());
  const std::int64_t end = first_pending_step_ + static_cast<std::int64_t>(complete);
  std::optional<AnotherStep> found;
  for (std::int64_t step = first_pending_step_; step < end && !found; ++step) {
    for (ComparedPair& pair : compared_) {
      if (!found) found = loss_difference(pair, step);
      if (!found) found = gradient_difference(pair, step);
    }
  }
  first_pending_step_ = end;
  for (Account& account : accounts_) {
    account.pending.erase(account.pending.begin(),
                          account.pending.begin() + static_cast<std::ptrdiff_t>(complete));
    std::erase_if(account.gradients, [&](const auto& of_step) { return of_step.first < end; });
  }
  return found;
}

}  // namespace stepgate
