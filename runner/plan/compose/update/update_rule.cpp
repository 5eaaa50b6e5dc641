// SPDX-License-Identifier: MIT
#include "plan/compose/update/update_rule.h"

#include <algorithm>
#include <string_view>

#include "base/require.h"
#include "kernels/kernels.h"
#include "plan/compose/update/update_rates.h"

namespace stepgate {
namespace {

constexpr const char* moment_names[] = {"first moments", "second moments"};

struct UpdateRule {
  OptimKind kind;
  std::size_t moments;
  bool counts_updates;  // the plain kernel reads the number of the step
  KernelAttributes rates;
  std::string_view plain, clipped, master;  // empty: the rule has no such kernel
};

template <class Rule>
UpdateRule rule(OptimKind kind, const KernelAttributes& rates) {
  const auto& [plain, clipped, master] = Rule::names;
  return {kind, Rule::moments, Rule::counts_updates, rates, plain, clipped, master};
}

const UpdateRule& rule_of(OptimKind kind) {
  using namespace kernels;
  static const UpdateRule rules[] = {
      {OptimKind::sgd, 0, false, sgd_rates, Sgd::name, {}, {}},
      rule<Adamw>(OptimKind::adamw, adamw_rates),
      rule<Lion>(OptimKind::lion, lion_rates),
      rule<Momentum>(OptimKind::momentum, momentum_rates),
  };
  return *std::find_if(std::begin(rules), std::end(rules),
                       [kind](const UpdateRule& rule) { return rule.kind == kind; });
}

}  // namespace

std::span<const char* const> moments_of(OptimKind kind) {
  return std::span(moment_names).first(rule_of(kind).moments);
}

void launch_average(StepBuilder& builder, const std::string& name, std::int64_t elements,
                    double decay, DType dtype, const StepBuilder::Operand& average,
                    const StepBuilder::Operand& weights) {
  builder.launch_as<kernels::MovingAverage>(dtype, name, {.columns = elements}, {average, weights},
                                            {.decay = decay});
}

void launch_update(StepBuilder& builder, OptimKind kind, const std::string& name,
                   const RankPiece& parameters, const UpdateOperands& update) {
  const UpdateRule& rule = rule_of(kind);
  std::vector<StepBuilder::Operand> operands = {update.weights, update.gradients};
  if (update.master) operands.push_back(*update.master);
  operands.insert(operands.end(), update.moments.begin(), update.moments.end());
  if (update.control)
    operands.push_back(*update.control);
  else if (rule.counts_updates)
    operands.push_back(update.counter);
  const std::string_view kernel = update.master    ? rule.master
                                  : update.control ? rule.clipped
                                                   : rule.plain;
  require(!kernel.empty(), "the rule can be steered");
  builder.launch(name, kernel, builder.plan().dtype, MatrixShape{.columns = parameters.elements},
                 operands, rule.rates);
  constexpr std::size_t gradients = 1;
  builder.reads_gradients(gradients, parameters);
}

}  // namespace stepgate
