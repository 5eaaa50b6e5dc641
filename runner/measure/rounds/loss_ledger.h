// SPDX-License-Identifier: MIT
// Do all variants compute the same thing? Compares the losses of variants of the same arithmetic,
// step by step. A faster variant that trains something else is not a faster variant.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "measure/rounds/measurement.h"
#include "plan/planned_step.h"

namespace stepgate {

// How far two losses may lie apart, relative to the larger. Equal arithmetic in an equal order
// agrees to the bit; the bound leaves room for another order of additions at the precision of the
// GEMMs, which training amplifies: ten times as much after the first hundred steps.
double loss_bound(DType dtype, std::int64_t step);

class LossLedger {
 public:
  // Of steps from `first_step` on.
  LossLedger(std::span<const PlannedStep>, std::int64_t first_step);

  // The steps of each variant must arrive in order, without gaps.
  void add(int variant, const StepResult&);

  // The earliest step at which a variant's loss is not that of the first variant of its arithmetic,
  // among the steps that both have run since the last call; forgets those.
  std::optional<LossDisagreement> first_disagreement();

 private:
  struct Account {
    int partner = 0;  // the first variant of the same arithmetic; itself when it is the first
    std::int64_t next_step = 0;
    std::vector<float> pending{};
  };

  std::optional<LossDisagreement> disagreement_at(std::size_t variant, std::size_t index) const;

  std::vector<Account> accounts_;
  std::vector<DType> dtypes_;
  std::int64_t first_step_;
  std::int64_t first_pending_step_;
};

}  // namespace stepgate
