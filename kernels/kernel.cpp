// SPDX-License-Identifier: MIT
#include "kernels/kernel.h"

#include <algorithm>
#include <utility>

namespace stepgate {

std::string_view name_of(DType dtype) {
  constexpr std::string_view names[] = {"fp32", "tf32", "bf16", "fp16", "fp64"};
  return names[static_cast<int>(dtype)];
}

void record_choice(const LaunchContext& context, KernelChoice choice) {
  if (context.choices == nullptr) return;
  if (std::ranges::find(*context.choices, choice) == context.choices->end())
    context.choices->push_back(std::move(choice));
}

std::int64_t operand_alignment(const Kernel& kernel) {
  return kernel.library.is_gemm() || kernel.library.is_attention ? 16 : 8;
}

Access access_of(const KernelOperand& operand, const KernelAttributes& attributes) {
  const bool overwrites = operand.accumulates != nullptr && !operand.accumulates(attributes);
  return overwrites ? Access::write : operand.access;
}

std::int64_t operand_bytes(const KernelOperand& operand, const KernelShape& shape, DType dtype,
                           const KernelAttributes& attributes) {
  return operand.elements(shape, dtype, attributes) * bytes_of(operand.format, dtype);
}

KernelWork work_of(const Kernel& kernel, const KernelShape& shape, DType dtype,
                   const KernelAttributes& attributes) {
  CheckedSize read, written;
  for (const KernelOperand& operand : kernel.operands) {
    if (operand.format == OperandFormat::scratch) continue;
    const Extent moved = operand.touched != nullptr ? operand.touched : operand.elements;
    const CheckedSize bytes = moved(shape, dtype, attributes) * bytes_of(operand.format, dtype);
    const Access access = access_of(operand, attributes);
    if (access != Access::write && !operand.keeps_rest) read += bytes;
    if (access != Access::read) written += bytes;
  }
  return {.bytes_read = read,
          .bytes_written = written,
          .flops = kernel.flops(shape, dtype, attributes)};
}

}  // namespace stepgate
