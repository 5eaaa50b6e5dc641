// SPDX-License-Identifier: MIT
// Operands, work and references of the family on the host; the header has meaning and shapes.
#include "kernels/optimizer/optimizer.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <utility>

#include "kernels/cuda_build.h"
#include "kernels/extents.h"
#include "kernels/number_format.h"
#include "kernels/optimizer/update_kernels.h"
#include "kernels/update_control.h"

namespace stepgate {
namespace {

struct AdamwRule {
  using Named = kernels::Adamw;
  // m 3, v 4, corrections 2, root, sum, quotient, decay 2, step 2
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
  return update_kernels<AdamwRule>(in_cuda_builds<adamw_launchers>());
}

struct LionRule {
  using Named = kernels::Lion;
  static constexpr std::int64_t flops = 11;  // c 3, its sign, decay 2, step 2, m 3

  static double step(const Named::Attributes& rates, double, double weight, double gradient,
                     double* moments) {
    double& m = moments[0];
    const double c = rates.beta1 * m + (1 - rates.beta1) * gradient;
    m = rates.beta2 * m + (1 - rates.beta2) * gradient;
    const double sign = c > 0 ? 1 : c < 0 ? -1 : c;  // of 0, and of what is no number, itself
    return weight - rates.learning_rate * (sign + rates.weight_decay * weight);
  }
};

std::vector<Kernel> lion_kernels() {
  return update_kernels<LionRule>(in_cuda_builds<lion_launchers>());
}

constexpr KernelOperand sgd_operands[] = {
    {"weights", Access::read_write, extent::elements},
    {"gradients", Access::read, extent::elements},
};

CheckedSize sgd_flops(const CheckedShape& shape, const KernelAttributes&) {
  return 2 * elements_of(shape);
}

void sgd_reference(const KernelCall& call) {
  const double learning_rate = call.attributes.as<kernels::Sgd>().learning_rate;
  for (std::int64_t i = 0; i < call.shape.rows * call.shape.columns; ++i) {
    set_number(call.buffers[0], call.dtype, i,
               number_at(call.buffers[0], call.dtype, i) -
                   learning_rate * number_at(call.buffers[1], call.dtype, i));
  }
}

constexpr KernelOperand control{"control", Access::read, extent::control, OperandFormat::control};

// A tensor in the storage format, and one in fp32.
constexpr KernelOperand stored(std::string_view name, Access access) {
  return {name, access, extent::elements};
}
constexpr KernelOperand single(std::string_view name, Access access) {
  return {name, access, extent::elements, OperandFormat::single};
}

constexpr KernelOperand gradients = stored("gradients", Access::read);
constexpr KernelOperand weights_target = stored("weights", Access::read_write);
constexpr KernelOperand m_target = single("m", Access::read_write);
constexpr KernelOperand v_target = single("v", Access::read_write);
constexpr KernelOperand denominators_target = single("denominators", Access::read_write);

constexpr KernelOperand foreach_unscale_operands[] = {stored("gradients", Access::read_write),
                                                      control};
constexpr KernelOperand foreach_decay_operands[] = {weights_target, control};
constexpr KernelOperand foreach_lerp_operands[] = {m_target, gradients, control};
constexpr KernelOperand foreach_mul_operands[] = {v_target, control};
constexpr KernelOperand foreach_addcmul_operands[] = {v_target, gradients, control};
constexpr KernelOperand foreach_sqrt_operands[] = {single("denominators", Access::write),
                                                   single("v", Access::read)};
constexpr KernelOperand foreach_div_operands[] = {denominators_target, control};
constexpr KernelOperand foreach_add_operands[] = {denominators_target};
constexpr KernelOperand foreach_addcdiv_operands[] = {
    weights_target, single("m", Access::read), single("denominators", Access::read), control};

struct PassRow {
  std::string_view name;
  std::span<const KernelOperand> operands;
  std::int64_t flops;  // a number
};

// In the order of ForeachPass.
constexpr PassRow pass_rows[] = {
    {kernels::Foreach<ForeachPass::unscale>::name, foreach_unscale_operands, 1},
    {kernels::Foreach<ForeachPass::decay>::name, foreach_decay_operands, 1},
    {kernels::Foreach<ForeachPass::lerp>::name, foreach_lerp_operands, 3},
    {kernels::Foreach<ForeachPass::mul>::name, foreach_mul_operands, 1},
    {kernels::Foreach<ForeachPass::addcmul>::name, foreach_addcmul_operands, 3},
    {kernels::Foreach<ForeachPass::sqrt>::name, foreach_sqrt_operands, 1},
    {kernels::Foreach<ForeachPass::div>::name, foreach_div_operands, 1},
    {kernels::Foreach<ForeachPass::add>::name, foreach_add_operands, 1},
    {kernels::Foreach<ForeachPass::addcdiv>::name, foreach_addcdiv_operands, 3},
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

template <ForeachPass pass>
CheckedSize foreach_flops(const CheckedShape& shape, const KernelAttributes&) {
  return row_of(pass).flops * elements_of(shape);
}

// One number of the target, and of the operands behind it in their order.
struct Numbers {
  double target;
  double first;
  double second;
};

double formula(ForeachPass pass, const Numbers& x, const float* control_numbers,
               const KernelAttributes& attributes) {
  const auto rule = attributes.as<kernels::Adamw>();
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
void foreach_reference(const KernelCall& call) {
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
  return {row_of(pass).name, row_of(pass).operands, foreach_flops<pass>, foreach_reference<pass>,
          in_cuda_builds<prepare_foreach<pass>>()};
}

template <int... pass>
std::vector<Kernel> kernels_of(std::integer_sequence<int, pass...>) {
  return {kernel_of<static_cast<ForeachPass>(pass)>()...};
}

std::vector<Kernel> foreach_kernels() {
  return kernels_of(std::make_integer_sequence<int, std::ssize(kernels::foreach_names)>());
}

constexpr KernelOperand clip_operands[] = {
    {"partials", Access::read, extent::depth, OperandFormat::single},
    {"control", Access::read_write, extent::control, OperandFormat::control},
};

CheckedSize clip_flops(const CheckedShape& shape, const KernelAttributes&) {
  return shape.depth;
}

double clipped(double norm, double max_norm) {
  return max_norm == 0 ? 1.0 : std::min(1.0, max_norm / (norm + clip_epsilon));
}

void skip(float* control, const KernelAttributes& attributes) {
  control[update_control::factor] = 0;
  control[update_control::good_updates] = 0;
  if (attributes.as<kernels::Clip>().growth_interval == 0) return;
  control[update_control::loss_scale] *= static_cast<float>(attributes.as<kernels::Clip>().backoff);
}

void count_good_update(float* control, const KernelAttributes& attributes) {
  control[update_control::updates] += 1;
  control[update_control::good_updates] += 1;
  const double interval = attributes.as<kernels::Clip>().growth_interval;
  if (interval == 0 || control[update_control::good_updates] < interval) return;
  control[update_control::loss_scale] *= static_cast<float>(attributes.as<kernels::Clip>().growth);
  control[update_control::good_updates] = 0;
}

void clip_reference(const KernelCall& call) {
  const auto* partials = static_cast<const float*>(call.buffers[0]);
  auto* control = static_cast<float*>(call.buffers[1]);
  double sum = 0;
  for (std::int64_t i = 0; i < call.shape.depth; ++i) sum += partials[i];
  const double scale = control[update_control::loss_scale];
  const double norm = std::sqrt(sum) / scale;
  control[update_control::norm] = static_cast<float>(norm);
  if (!std::isfinite(norm)) return skip(control, call.attributes);
  control[update_control::factor] =
      static_cast<float>(clipped(norm, call.attributes.as<kernels::Clip>().max_norm) / scale);
  count_good_update(control, call.attributes);
}

constexpr KernelOperand square_sums_operands[] = {
    {"gradients", Access::read, extent::columns},
    {"partials", Access::write, extent::depth, OperandFormat::single},
};

CheckedSize square_sums_flops(const CheckedShape& shape, const KernelAttributes&) {
  return 2 * shape.columns;
}

void square_sums_reference(const KernelCall& call) {
  const std::int64_t piece = square_sum_piece(call.shape);
  for (std::int64_t p = 0; p < call.shape.depth; ++p) {
    const std::int64_t end = std::min((p + 1) * piece, call.shape.columns);
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
      {kernels::Sgd::name, sgd_operands, sgd_flops, sgd_reference, in_cuda_builds<prepare_sgd>()},
      {kernels::Clip::name, clip_operands, clip_flops, clip_reference,
       in_cuda_builds<prepare_clip>()},
      {kernels::SquareSums::name, square_sums_operands, square_sums_flops, square_sums_reference,
       in_cuda_builds<prepare_square_sums>()}};
  for (const std::vector<Kernel>& rule : {adamw_kernels(), lion_kernels(), foreach_kernels()})
    all.insert(all.end(), rule.begin(), rule.end());
  return all;
}

}  // namespace stepgate
