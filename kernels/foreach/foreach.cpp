// SPDX-License-Identifier: MIT
// The host side of the foreach passes: operands, work and the reference. Meaning and shapes:
// foreach.h.
#include "kernels/foreach/foreach.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <utility>

#include "kernels/adamw/adamw.h"
#include "kernels/cuda_build.h"
#include "kernels/extents.h"
#include "kernels/number_format.h"
#include "kernels/update_control.h"

namespace stepgate {
namespace {

// --- operands ------------------------------------------------------------------------------------

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

// --- work ----------------------------------------------------------------------------------------

template <ForeachPass pass>
CheckedSize foreach_flops(const CheckedShape& shape, const KernelAttributes&) {
  return row_of(pass).flops * elements_of(shape);
}

// --- reference -----------------------------------------------------------------------------------

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

// --- the rows ------------------------------------------------------------------------------------

template <ForeachPass pass>
Kernel kernel_of() {
  return {row_of(pass).name, row_of(pass).operands, foreach_flops<pass>, foreach_reference<pass>,
          in_cuda_builds<prepare_foreach<pass>>()};
}

template <int... pass>
std::vector<Kernel> kernels_of(std::integer_sequence<int, pass...>) {
  return {kernel_of<static_cast<ForeachPass>(pass)>()...};
}

}  // namespace

std::vector<Kernel> foreach_kernels() {
  return kernels_of(std::make_integer_sequence<int, std::ssize(kernels::foreach_names)>());
}

}  // namespace stepgate
