// SPDX-License-Identifier: MIT
// Checks that all variants compute the same step. Compares losses and gradients of variants of the
// same arithmetic, step by step. A faster variant that trains something else is not a faster
// variant.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "measure/rounds/measurement.h"
#include "measure/subject.h"

namespace stepgate {

// The arithmetic of a model's GEMMs: in its dtype, or with factors in fp8 beside it.
struct Precision {
  DType dtype = DType::fp32;
  bool in_fp8 = false;
};

// Allowed difference of two losses, relative to the larger one, `step` steps after both variants
// began with the same weights. Equal arithmetic in an equal order agrees bit by bit. The bound
// allows for another order of additions at the precision of the GEMMs, which training amplifies.
// For the first eight steps it comes from measurements of correct variants on a GPU.
double loss_bound(const Precision&, std::int64_t step);

// Allowed difference of a parameter's gradients in one of the first steps: norm of the difference,
// relative to the larger norm.
// Variants whose models make the same launches agree bit by bit, except where a library chooses the
// algorithm; others may add up in another order, and so may those whose sums have any order.
enum class ModelLaunches { same, others };
double gradient_bound(const Precision&, ModelLaunches);

// Returns every pair of variants that is not compared, once. Variants of the same arithmetic are
// compared with the first of them whose gradients can be read. A variant without arithmetic is
// compared with none.
std::vector<NotCompared> pairs_not_compared(std::span<const Subject>);

class SameStep {
 public:
  explicit SameStep(std::span<const Subject>);

  // Starts a comparison of steps from `first_step` on, which all variants begin with the same
  // weights.
  void begin(std::int64_t first_step);

  // The steps of each variant must arrive in order, without gaps. Gradients that every rank holds
  // in full are compared with those of rank 0 at once, since they are equal after their reduction.
  void add(int variant, const StepResult&);

  // Returns the first variant since `begin` whose ranks have different gradients. If there is none,
  // returns the earliest step where a variant's loss or gradient differs from that of its
  // reference, among the steps that both have run since the last call. Forgets these steps.
  std::optional<AnotherStep> first_difference();

  // Remembers the gradients that were added since `begin` and not compared yet.
  void remember();
  // Returns the first variant whose gradients since `begin`, not compared yet, differ from its
  // remembered ones at the same steps. nullopt where `begin` was called with another first step:
  // equal step numbers then follow different numbers of updates.
  std::optional<AnotherStep> difference_from_before() const;

  // Returns every compared pair of variants, with the largest differences so far.
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
  Precision precision(int variant) const;
  Account& account(int variant) { return accounts_[static_cast<std::size_t>(variant)]; }

  std::span<const Subject> subjects_;
  std::vector<Account> accounts_;
  std::vector<GradientsByStep> remembered_;  // by variant
  std::int64_t remembered_first_step_ = 0;
  std::vector<ComparedPair> compared_;
  std::vector<bool> overflowed_;  // by pair: only one variant's gradients, since `begin`
  std::optional<AnotherStep> other_rank_;
  std::int64_t first_step_ = 0;
  std::int64_t first_pending_step_ = 0;
};

}  // namespace stepgate
