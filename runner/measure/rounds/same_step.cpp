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

#include "base/require.h"
#include "base/text/units.h"
#include "scenario/choices.h"

namespace stepgate {
namespace {

constexpr std::int64_t first_steps = 8;
constexpr const char* unknown_arithmetic = "what they compute is not known";

// Returns the first property, in words, in which two variants differ so that their numbers cannot
// be compared; empty where they are comparable. The properties are: batches and their number over
// all ranks, number of ranks, model, parameters, precision, workspace and kernels.
std::string other_arithmetic(const Subject& subject, const Subject& against) {
  if (!subject.arithmetic || !against.arithmetic) return unknown_arithmetic;
  const Arithmetic& own = *subject.arithmetic;
  const Arithmetic& other = *against.arithmetic;
  if (own.seed != other.seed) return "other numbers to begin with";
  if (subject.ranks != against.ranks)
    return fmt::format("{} ranks and not {}", subject.ranks, against.ranks);
  if (own.batch_sizes != other.batch_sizes || subject.batch_bytes != against.batch_bytes ||
      own.lengths != other.lengths)
    return "other batches";
  if (subject.dtype != against.dtype) return "another precision";
  if (own.model != other.model || subject.param_bytes != against.param_bytes)
    return "another model";
  if (own.rows_of_norm != other.rows_of_norm) return "batch norms of other parts of the batch";
  if (own.scaled_matrices != other.scaled_matrices)
    return "scales in fp8 of other parts of the batch";
  if (own.workspace_bytes != other.workspace_bytes) {
    return fmt::format("a workspace of {} and not {} bytes, by which its GEMMs are chosen",
                       own.workspace_bytes, other.workspace_bytes);
  }
  std::vector<std::string> differing;
  std::ranges::set_symmetric_difference(own.kernels, other.kernels, std::back_inserter(differing));
  if (differing.empty())
    return std::ranges::is_permutation(own.update, other.update) ? "" : "another update";
  return fmt::format("other kernels: only one of them has {}", fmt::join(differing, ", "));
}

ModelLaunches launches_of(const Arithmetic& own, const Arithmetic& other) {
  const bool has_an_order = own.attention_sums == AttentionSums::fixed;
  const bool same = has_an_order && own.gemm_algorithms == other.gemm_algorithms &&
                    own.model_work == other.model_work;
  return same ? ModelLaunches::same : ModelLaunches::others;
}

const Subject& subject_at(std::span<const Subject> subjects, int variant) {
  return subjects[static_cast<std::size_t>(variant)];
}

std::string reason_against_gradients(const Subject& subject) {
  return subject.arithmetic ? subject.arithmetic->against_gradients : "";
}

// Groups variants of the same arithmetic into classes, in the order of their first members.
std::vector<std::vector<int>> classes_of(std::span<const Subject> subjects) {
  std::vector<std::vector<int>> classes;
  for (int variant = 0; variant < std::ssize(subjects); ++variant) {
    const auto own = std::ranges::find_if(classes, [&](const std::vector<int>& alike) {
      return other_arithmetic(subject_at(subjects, variant), subject_at(subjects, alike.front()))
          .empty();
    });
    (own == classes.end() ? classes.emplace_back() : *own).push_back(variant);
  }
  return classes;
}

// Returns the first variant whose gradients can be read, else the first variant.
int reference_of(const std::vector<int>& alike, std::span<const Subject> subjects) {
  const auto found = std::ranges::find_if(alike, [&](int variant) {
    return reason_against_gradients(subject_at(subjects, variant)).empty();
  });
  return found == alike.end() ? alike.front() : *found;
}

bool is_finite(const GradientSketch& sketch) {
  return std::isfinite(sketch.squares);
}

bool all_finite(const std::vector<GradientSketch>& gradients) {
  return std::ranges::all_of(gradients, is_finite);
}

// The bounds were measured with 128 rows and two layers. With fewer rows, the loss is a mean of
// fewer rounded numbers; with more layers, rounding errors grow.
double fewer_rows_than_measured(const Arithmetic& arithmetic) {
  return std::sqrt(std::max(1.0, 128 / std::max(arithmetic.rows, 1.0)));
}
double deeper_than_measured(const Arithmetic& arithmetic) {
  return std::sqrt(std::max(1.0, static_cast<double>(arithmetic.model.layers) / 8));
}

GradientSketch whole_of(const std::vector<GradientSketch>& gradients) {
  GradientSketch whole;
  for (const GradientSketch& sketch : gradients) add_finite(whole, sketch);
  return whole;
}

}  // namespace

// Bounds of the first steps: at least three times the difference between correct implementations of
// a transformer's step, on an H100 and on the host reference (tests/contract/same_step_test.cpp).
// With GEMMs in fp8 they are those of an H200 from the host reference, 0.08 % of a loss and 8 % of
// all gradients together (tests/numbers/step_numbers_cuda_test.cpp).
double loss_bound(const Precision& precision, std::int64_t step) {
  constexpr std::int64_t early_steps = 100;
  const bool is_first = step < first_steps;
  const double amplification = step < early_steps ? 1 : 10;
  if (precision.in_fp8 && is_first) return 3e-3;
  switch (precision.dtype) {
    case DType::fp32:
    case DType::fp64:
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

double gradient_bound(const Precision& precision, ModelLaunches launches) {
  const double share = launches == ModelLaunches::same ? 0.1 : 1;
  if (precision.in_fp8 && launches == ModelLaunches::others) return 0.5;
  switch (precision.dtype) {
    case DType::fp32:
    case DType::fp64:
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

std::vector<NotCompared> pairs_not_compared(std::span<const Subject> subjects) {
  std::vector<NotCompared> pairs;
  const std::vector<std::vector<int>> classes = classes_of(subjects);
  // Nothing of programs can be compared: one entry says so for all of them.
  if (std::ranges::none_of(subjects,
                           [](const Subject& one) { return one.arithmetic.has_value(); })) {
    for (std::size_t own = 1; own < classes.size(); ++own) {
      if (pairs.empty())
        pairs.push_back({.variants = {}, .against = classes.front(), .reason = unknown_arithmetic});
      pairs.front().variants.insert(pairs.front().variants.end(), classes[own].begin(),
                                    classes[own].end());
    }
    return pairs;
  }
  for (std::size_t own = 0; own < classes.size(); ++own) {
    const std::ptrdiff_t before = std::ssize(pairs);
    for (std::size_t other = 0; other < own; ++other) {
      const std::string reason = other_arithmetic(subject_at(subjects, classes[own].front()),
                                                  subject_at(subjects, classes[other].front()));
      auto told =
          std::ranges::find(pairs.begin() + before, pairs.end(), reason, &NotCompared::reason);
      if (told == pairs.end())
        told = pairs.insert(told, {.variants = classes[own], .against = {}, .reason = reason});
      told->against.insert(told->against.end(), classes[other].begin(), classes[other].end());
    }
    std::vector<int> others = classes[own];
    for (const int variant : classes[own]) {
      const std::string reason = reason_against_gradients(subject_at(subjects, variant));
      if (reason.empty()) continue;
      std::erase(others, variant);
      if (others.empty()) break;
      pairs.push_back(
          {.variants = {variant}, .against = others, .gradients_alone = true, .reason = reason});
    }
  }
  return pairs;
}

SameStep::SameStep(std::span<const Subject> subjects)
    : subjects_(subjects), accounts_(subjects.size()) {
  for (const std::vector<int>& alike : classes_of(subjects)) {
    const int reference = reference_of(alike, subjects);
    for (const int variant : alike) {
      if (variant == reference) continue;
      const Arithmetic& own = arithmetic(variant);
      const ModelLaunches launches = launches_of(own, arithmetic(reference));
      compared_.push_back({.variant = variant,
                           .against = reference,
                           .adds_alike = launches == ModelLaunches::same,
                           .gradient_bound = gradient_bound(precision(variant), launches) *
                                             deeper_than_measured(own)});
    }
  }
}

const Arithmetic& SameStep::arithmetic(int variant) const {
  return subject_at(subjects_, variant).arithmetic.value();
}

Precision SameStep::precision(int variant) const {
  return {subject_at(subjects_, variant).dtype.value(),
          arithmetic(variant).model.fp8 != ModelFp8::none};
}

void SameStep::begin(std::int64_t first_step) {
  first_step_ = first_pending_step_ = first_step;
  accounts_.assign(subjects_.size(), {.next_step = first_step});
  overflowed_.assign(compared_.size(), false);
  other_rank_.reset();
}

void SameStep::add(int variant, const StepResult& result) {
  if (result.losses.empty()) return;  // the device computes no numbers
  Account& own = account(variant);
  require(result.first_step == own.next_step, "a loaded step counts its steps without gaps");
  own.next_step += static_cast<std::int64_t>(result.losses.size());
  own.pending.insert(own.pending.end(), result.losses.begin(), result.losses.end());
  if (!subject_at(subjects_, variant).arithmetic) return;  // not compared with others
  if (!result.gradients.empty()) own.gradients[own.next_step - 1] = result.gradients;
  if (!other_rank_) other_rank_ = rank_difference(variant, result);
}

std::optional<AnotherStep> SameStep::loss_difference(ComparedPair& pair, std::int64_t step) {
  const auto index = static_cast<std::size_t>(step - first_pending_step_);
  const double loss = account(pair.variant).pending[index];
  const double expected = account(pair.against).pending[index];
  const std::int64_t trained = step - first_step_;
  // fp16 skips an update whose gradients overflow, and they may overflow in only one variant's
  // order of additions.
  const bool may_skip =
      precision(pair.variant).dtype == DType::fp16 && !pair.adds_alike && trained >= 2;
  const double bound =
      loss_bound(precision(pair.variant), may_skip ? std::max(trained, first_steps) : trained) *
      (trained < first_steps ? fewer_rows_than_measured(arithmetic(pair.variant)) : 1);
  // A loss below a thousandth has converged, and its relative error is meaningless.
  const double size = std::max({std::abs(loss), std::abs(expected), 1e-3});
  const double difference = std::abs(loss - expected) / size;
  if (trained < first_steps) pair.loss = std::max(pair.loss, difference);
  // A NaN loss fails this comparison too.
  if (difference <= bound) return std::nullopt;
  return AnotherStep{.variant = pair.variant,
                     .against = pair.against,
                     .step = step,
                     .value = loss,
                     .expected = expected,
                     .bound = bound};
}

// Returns the largest difference of gradients above the bound. Where a gradient is infinite in both
// variants, both skip the update, and it is not compared. Gradients that only one variant has read
// are not compared either.
std::optional<AnotherStep> SameStep::gradient_difference(
    ComparedPair& pair, std::int64_t step, const std::vector<GradientSketch>& gradients,
    const std::vector<GradientSketch>& others) const {
  const std::vector<std::string>& parameters = arithmetic(pair.variant).parameters;
  const GradientSketch whole = whole_of(others);
  std::optional<AnotherStep> worst;
  for (std::size_t index = 0; index < std::min(gradients.size(), others.size()); ++index) {
    const GradientSketch& own = gradients[index];
    const GradientSketch& other = others[index];
    if (own.elements == 0 && other.elements == 0) continue;
    if (!is_finite(own) && !is_finite(other)) continue;
    // The difference is infinite where only one gradient is finite, or their element counts differ.
    const bool comparable = is_finite(own) && is_finite(other) && own.elements == other.elements;
    const double difference = comparable
                                  ? relative_difference(own, other, negligible_norm(whole, own))
                                  : std::numeric_limits<double>::infinity();
    ++pair.gradients;
    if (difference > pair.gradient) {
      pair.gradient = difference;
      pair.parameter = parameters[index];
    }
    if (difference <= (worst ? worst->value : pair.gradient_bound)) continue;
    worst = AnotherStep{.variant = pair.variant,
                        .against = pair.against,
                        .step = step,
                        .parameter = parameters[index],
                        .value = difference,
                        .bound = pair.gradient_bound};
  }
  return worst;
}

std::optional<AnotherStep> SameStep::rank_difference(int variant, const StepResult& result) const {
  ComparedPair ranks{.variant = variant, .against = variant};
  ranks.gradient_bound = gradient_bound(precision(variant), ModelLaunches::same);
  const std::int64_t step = result.first_step + static_cast<std::int64_t>(result.losses.size()) - 1;
  std::optional<AnotherStep> found;
  for (std::size_t other = 0; other < result.other_gradients.size() && !found; ++other) {
    found = gradient_difference(ranks, step, result.other_gradients[other], result.gradients);
    if (found) found->rank = static_cast<int>(other) + 1;
  }
  return found;
}

void SameStep::remember() {
  remembered_.clear();
  remembered_first_step_ = first_step_;
  for (const Account& account : accounts_) remembered_.push_back(account.gradients);
}

std::optional<AnotherStep> SameStep::difference_from_before() const {
  std::optional<AnotherStep> found;
  if (first_step_ != remembered_first_step_) return found;
  for (std::size_t variant = 0; variant < remembered_.size() && !found; ++variant) {
    const int own = static_cast<int>(variant);
    ComparedPair itself{.variant = own, .against = own};
    for (const auto& [step, gradients] : accounts_[variant].gradients) {
      itself.gradient_bound = gradient_bound(precision(own), ModelLaunches::others);
      const auto before = remembered_[variant].find(step);
      if (before != remembered_[variant].end() && !found)
        found = gradient_difference(itself, step, gradients, before->second);
    }
  }
  return found;
}

std::optional<AnotherStep> SameStep::first_difference() {
  if (other_rank_) return other_rank_;
  std::size_t complete = accounts_.front().pending.size();
  for (const Account& account : accounts_) complete = std::min(complete, account.pending.size());
  const std::int64_t end = first_pending_step_ + static_cast<std::int64_t>(complete);
  std::optional<AnotherStep> found;
  for (std::int64_t step = first_pending_step_; step < end && !found; ++step) {
    for (std::size_t index = 0; index < compared_.size() && !found; ++index) {
      ComparedPair& pair = compared_[index];
      if (overflowed_[index]) continue;
      found = loss_difference(pair, step);
      if (found) continue;
      const auto& own = account(pair.variant).gradients[step];
      const auto& other = account(pair.against).gradients[step];
      overflowed_[index] = precision(pair.variant).dtype == DType::fp16 && !pair.adds_alike &&
                           all_finite(own) != all_finite(other);
      if (!overflowed_[index]) found = gradient_difference(pair, step, own, other);
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
