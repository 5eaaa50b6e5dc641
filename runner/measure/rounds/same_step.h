// SPDX-License-Identifier: MIT
// Do all variants compute the same step? Compares losses and gradients of variants of the same
// arithmetic, step by step. A faster variant that trains something else is not a faster variant.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "measure/rounds/measurement.h"
#include "measure/subject.h"

namespace stepgate {

// How far two losses may lie apart, relative to the larger, `step` steps after both began with the
// same weights. Equal arithmetic in an equal order agrees to the bit; the bound leaves room for
// another order of additions at the precision of the GEMMs, which training amplifies. The first
// eight steps are held to what honest variants showed on a GPU.
double loss_bound(DType dtype, std::int64_t step);

// How far the gradients of a parameter may lie apart in one of the first steps, by norm, relative
// to the larger.
// Variants whose models make the same launches agree to the bit, but for what a library chooses by
// itself; others may add up in another order.
enum class ModelLaunches { same, others };
double gradient_bound(DType dtype, ModelLaunches);

// Every pair of variants that is not compared, once. Variants of the same arithmetic are, each with
// the first one of them whose gradients can be read; one without arithmetic is with none.
std::vector<NotCompared> pairs_not_compared(std::span<const Subject>);

class SameStep {
 public:
  explicit SameStep(std::span<const Subject>);

  // Steps come from `first_step` on, which all variants begin with the same weights.
  void begin(std::int64_t first_step);

  // The steps of each variant must arrive in order, without gaps. Gradients that each rank has the
  // whole of are compared with those of rank 0 at once: after their reduction all have the same.
  void add(int variant, const StepResult&);

  // The first variant with ranks of other gradients, since `begin`. Else the earliest step at which
  // a variant's loss or gradient is not that of the one that it is compared with, among the steps
  // that both have run since the last call; forgets those.
  std::optional<AnotherStep> first_difference();

  // Keeps the gradients that were added since `begin` and not compared yet.
  void remember();
  // The first variant whose gradients, added since `begin` and not compared yet, are not those that
  // it had at the same steps when they were remembered. None where that began with another step:
  // the same step then comes after another number of updates.
  std::optional<AnotherStep> difference_from_before() const;

  // Every pair of variants that is compared, with the largest differences so far.
  const std::vector<ComparedPair>& compared() const { return compared_; }

 private:
  using GradientsByStep = std::map<std::int64_t, std::vector<GradientSketch>>;
  struct Account {
    std::int64_t next_step = 0;
    std::vector<float> pending{};
    GradientsByStep gradients{};
  };

  std::optional<AnotherStep> loss_difference(ComparedPair&, std::int64_t step);
  std::optional<AnotherStep> gradient_difference(ComparedPair&, std::int64_t step,
                                                 const std::vector<GradientSketch>&,
                                                 const std::vector<GradientSketch>& others) const;
  std::optional<AnotherStep> rank_difference(int variant, const StepResult&) const;
  const Arithmetic& arithmetic(int variant) const;
  DType dtype(int variant) const;
  Account& account(int variant) { return accounts_[static_cast<std::size_t>(variant)]; }

  std::span<const Subject> subjects_;
  std::vector<Account> accounts_;
  std::vector<GradientsByStep> remembered_;  // by variant
  std::int64_t remembered_first_step_ = 0;
  std::vector<ComparedPair> compared_;
  std::vector<bool> overflowed_;  // by pair: one of them alone, since `begin`
  std::optional<AnotherStep> other_rank_;
  std::int64_t first_step_ = 0;
  std::int64_t first_pending_step_ = 0;
};

}  // namespace stepgate
