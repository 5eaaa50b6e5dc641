// SPDX-License-Identifier: MIT
// Operands, work and host references of the optimizer kernels; optimizer.h has their meaning and
// shapes.
#include "kernels/optimizer/optimizer.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <utility>

#include "kernels/extents.h"
#include "kernels/number_format.h"
#include "kernels/optimizer/update_kernels.h"
#include "kernels/update_control.h"

namespace stepgate {
namespace {

struct AdamwRule {
  using Named = kernels::Adamw;
  // The flops are 3 for m, 4 for v, 2 for corrections, 1 each for root, sum and quotient, 2 for
  // decay and 2 for the step.
  static constexpr std::int64_t flops = 16;

  static double step(const Named::Attributes& rates, double updates, double weight, double gradient,
                     double* moments) {
    double& m = moments[0];
    double& v = moments[1];
    m = rates.beta1 * m + (1 - rates.beta1) * gradient;
    v = rates.beta2 * v + (1 - rates.beta2) * gradient * gradient;
    const double m_hat = m / (1 - std::pow(rates.beta1, updates));
    const double v_hat = v / (1 - std::pow(rates.beta2, updates));
    const double direction = m_hat / (std::sqrt(v_hat) + rates.epsilon);
    return weight - rates.learning_rate * (direction + rates.weight_decay * weight);
  }
};

std::vector<Kernel> adamw_kernels() {
  return update_kernels<AdamwRule>();
}

struct LionRule {
  using Named = kernels::Lion;
  static constexpr std::int64_t flops = 11;  // c 3, sign 1, decay 2, step 2, m 3

  static double step(const Named::Attributes& rates, double, double weight, double gradient,
                     double* moments) {
    double& m = moments[0];
    const double c = rates.beta1 * m + (1 - rates.beta1) * gradient;
    m = rates.beta2 * m + (1 - rates.beta2) * gradient;
    const double sign = c > 0 ? 1 : c < 0 ? -1 : c;  // keeps 0 and NaN
    return weight - rates.learning_rate * (sign + rates.weight_decay * weight);
  }
};

std::vector<Kernel> lion_kernels() {
  return update_kernels<LionRule>();
}

struct MomentumRule {
  using Named = kernels::Momentum;
  static constexpr std::int64_t flops = 6;  // decay 2, m 2, step 2

  static double step(const Named::Attributes& rates, double, double weight, double gradient,
                     double* moments) {
    moments[0] = rates.momentum * moments[0] + (gradient + rates.weight_decay * weight);
    return weight - rates.learning_rate * moments[0];
  }
};

std::vector<Kernel> momentum_kernels() {
  return update_kernels<MomentumRule>();
}

constexpr auto sgd_operands = operands_of<kernels::Sgd>({
    {"weights", Access::read_write, extent::elements},
    {"gradients", Access::read, extent::elements},
});

void sgd_reference(const CallOf<kernels::Sgd>& call) {
  const double learning_rate = call.attributes.learning_rate;
  for (std::int64_t i = 0; i < call.shape.rows * call.shape.columns; ++i) {
    set_number(call.buffers[0], call.dtype, i,
               number_at(call.buffers[0], call.dtype, i) -
                   learning_rate * number_at(call.buffers[1], call.dtype, i));
  }
}

constexpr auto moving_average_operands = operands_of<kernels::MovingAverage>({
    {"average", Access::read_write, extent::elements, OperandFormat::single},
    {"weights", Access::read, extent::elements},
});

void moving_average_reference(const CallOf<kernels::MovingAverage>& call) {
  auto* average = static_cast<float*>(call.buffers[0]);
  for (std::int64_t i = 0; i < elements_of(call.shape); ++i) {
    const double weight = number_at(call.buffers[1], call.dtype, i);
    average[i] =
        static_cast<float>(average[i] + (1 - call.attributes.decay) * (weight - average[i]));
  }
}

// An operand of a foreach pass; all passes have the shape and attributes of adamw.
using Tensor = OperandOf<kernels::Adamw>;

constexpr Tensor control{"control", Access::read, extent::control, OperandFormat::control};

// Operands of one tensor: in the storage format, and below in fp32.
constexpr Tensor stored(std::string_view name, Access access) {
  return {name, access, extent::elements};
}
constexpr Tensor single(std::string_view name, Access access) {
  return {name, access, extent::elements, OperandFormat::single};
}

constexpr Tensor gradients = stored("gradients", Access::read);
constexpr Tensor weights_target = stored("weights", Access::read_write);
constexpr Tensor m_target = single("m", Access::read_write);
constexpr Tensor v_target = single("v", Access::read_write);
constexpr Tensor denominators_target = single("denominators", Access::read_write);

constexpr auto foreach_unscale_operands =
    operands_of<kernels::Adamw>({stored("gradients", Access::read_write), control});
constexpr auto foreach_decay_operands = operands_of<kernels::Adamw>({weights_target, control});
constexpr auto foreach_lerp_operands = operands_of<kernels::Adamw>({m_target, gradients, control});
constexpr auto foreach_mul_operands = operands_of<kernels::Adamw>({v_target, control});
constexpr auto foreach_addcmul_operands =
    operands_of<kernels::Adamw>({v_target, gradients, control});
constexpr auto foreach_sqrt_operands =
    operands_of<kernels::Adamw>({single("denominators", Access::write), single("v", Access::read)});
constexpr auto foreach_div_operands = operands_of<kernels::Adamw>({denominators_target, control});
constexpr auto foreach_add_operands = operands_of<kernels::Adamw>({denominators_target});
constexpr auto foreach_addcdiv_operands = operands_of<kernels::Adamw>(
    {weights_target, single("m", Access::read), single("denominators", Access::read), control});

struct PassRow {
  std::span<const KernelOperand> operands;
  std::int64_t flops;  // per element
};

// The rows are in the order of ForeachPass.
constexpr PassRow pass_rows[] = {
    {foreach_unscale_operands, 1}, {foreach_decay_operands, 1},   {foreach_lerp_operands, 3},
    {foreach_mul_operands, 1},     {foreach_addcmul_operands, 3}, {foreach_sqrt_operands, 1},
    {foreach_div_operands, 1},     {foreach_add_operands, 1},     {foreach_addcdiv_operands, 3},
};

constexpr const PassRow& row_of(ForeachPass pass) {
  return pass_rows[static_cast<std::size_t>(pass)];
}

bool is_control(const KernelOperand& operand) {
  return operand.format == OperandFormat::control;
}

DType format_of(const KernelOperand& operand, DType dtype) {
  return operand.format == OperandFormat::storage ? dtype : DType::fp32;
}

// One element of the target, and of the other operands in their order.
struct Numbers {
  double target;
  double first;
  double second;
};

double formula(ForeachPass pass, const Numbers& x, const float* control_numbers,
               const kernels::Adamw::Attributes& rule) {
  const double rate = rule.learning_rate;
  const auto correction = [&](double beta) {
    return 1 - std::pow(beta, control_numbers[update_control::updates]);
  };
  switch (pass) {
    case ForeachPass::unscale:
      return x.target * control_numbers[update_control::factor];
    case ForeachPass::decay:
      return x.target * (1 - rate * rule.weight_decay);
    case ForeachPass::lerp:
      return x.target + (1 - rule.beta1) * (x.first - x.target);
    case ForeachPass::mul:
      return x.target * rule.beta2;
    case ForeachPass::addcmul:
      return x.target + (1 - rule.beta2) * x.first * x.first;
    case ForeachPass::sqrt:
      return std::sqrt(x.first);
    case ForeachPass::div:
      return x.target / std::sqrt(correction(rule.beta2));
    case ForeachPass::add:
      return x.target + rule.epsilon;
    case ForeachPass::addcdiv:
      return x.target - rate / correction(rule.beta1) * x.first / x.second;
  }
  std::fprintf(stderr, "no such foreach pass\n");
  std::abort();
}

template <ForeachPass pass>
void foreach_reference(const CallOf<kernels::Foreach<pass>>& call) {
  const std::span<const KernelOperand> operands = row_of(pass).operands;
  const bool controlled = is_control(operands.back());
  const auto* control_numbers =
      controlled ? static_cast<const float*>(call.buffers[operands.size() - 1]) : nullptr;
  if (controlled && control_numbers[update_control::factor] == 0) return;
  const std::size_t tensors = operands.size() - (controlled ? 1 : 0);
  const DType target_format = format_of(operands[0], call.dtype);
  for (std::int64_t i = 0; i < call.shape.rows * call.shape.columns; ++i) {
    const auto number = [&](std::size_t operand) {
      if (operand >= tensors) return 0.0;
      return number_at(call.buffers[operand], format_of(operands[operand], call.dtype), i);
    };
    const Numbers numbers{number(0), number(1), number(2)};
    set_number(call.buffers[0], target_format, i,
               formula(pass, numbers, control_numbers, call.attributes));
  }
}

template <ForeachPass pass>
Kernel kernel_of() {
  return row<kernels::Foreach<pass>, foreach_reference<pass>>(row_of(pass).operands,
                                                              flops_an_element<row_of(pass).flops>);
}

template <int... pass>
std::vector<Kernel> kernels_of(std::integer_sequence<int, pass...>) {
  return {kernel_of<static_cast<ForeachPass>(pass)>()...};
}

std::vector<Kernel> foreach_kernels() {
  return kernels_of(std::make_integer_sequence<int, std::ssize(kernels::foreach_names)>());
}

constexpr auto clip_operands = operands_of<kernels::Clip>({
    {"partials", Access::read, [](const auto& s) { return s.partials; }, OperandFormat::single},
    {"control", Access::read_write, extent::control, OperandFormat::control},
});

double clipped(double norm, double max_norm) {
  return max_norm == 0 ? 1.0 : std::min(1.0, max_norm / (norm + clip_epsilon));
}

void skip(float* control, const kernels::Clip::Attributes& attributes) {
  control[update_control::factor] = 0;
  control[update_control::good_updates] = 0;
  if (attributes.growth_interval == 0) return;
  control[update_control::loss_scale] *= static_cast<float>(attributes.backoff);
}

void count_good_update(float* control, const kernels::Clip::Attributes& attributes) {
  control[update_control::updates] += 1;
  control[update_control::good_updates] += 1;
  const double interval = attributes.growth_interval;
  if (interval == 0 || control[update_control::good_updates] < interval) return;
  control[update_control::loss_scale] *= static_cast<float>(attributes.growth);
  control[update_control::good_updates] = 0;
}

void clip_reference(const CallOf<kernels::Clip>& call) {
  const auto* partials = static_cast<const float*>(call.buffers[0]);
  auto* control = static_cast<float*>(call.buffers[1]);
  double sum = 0;
  for (std::int64_t i = 0; i < call.shape.partials; ++i) sum += partials[i];
  const double scale = control[update_control::loss_scale];
  const double norm = std::sqrt(sum) / scale;
  control[update_control::norm] = static_cast<float>(norm);
  if (!std::isfinite(norm)) return skip(control, call.attributes);
  control[update_control::factor] =
      static_cast<float>(clipped(norm, call.attributes.max_norm) / scale);
  count_good_update(control, call.attributes);
}

constexpr auto square_sums_operands = operands_of<kernels::SquareSums>({
    {"gradients", Access::read, [](const auto& s) { return s.numbers; }},
    {"partials", Access::write, [](const auto& s) { return s.pieces; }, OperandFormat::single},
});

void square_sums_reference(const CallOf<kernels::SquareSums>& call) {
  const std::int64_t piece = square_sum_piece(call.shape);
  for (std::int64_t p = 0; p < call.shape.pieces; ++p) {
    const std::int64_t end = std::min((p + 1) * piece, call.shape.numbers);
    double sum = 0;
    for (std::int64_t i = p * piece; i < end; ++i) {
      const double number = number_at(call.buffers[0], call.dtype, i);
      sum += number * number;
    }
    static_cast<float*>(call.buffers[1])[p] = static_cast<float>(sum);
  }
}

}  // namespace

std::vector<Kernel> optimizer_kernels() {
  std::vector<Kernel> all{
      row<kernels::Sgd, sgd_reference>(sgd_operands, flops_an_element<2>),
      row<kernels::MovingAverage, moving_average_reference>(moving_average_operands,
                                                            flops_an_element<3>),
      row<kernels::Clip, clip_reference>(clip_operands, [](const auto& s) { return s.partials; }),
      row<kernels::SquareSums, square_sums_reference>(
          square_sums_operands, [](const auto& shape) { return 2 * shape.numbers; })};
  for (const std::vector<Kernel>& rule :
       {adamw_kernels(), lion_kernels(), momentum_kernels(), foreach_kernels()})
    all.insert(all.end(), rule.begin(), rule.end());
  return all;
}

}  // namespace stepgate
