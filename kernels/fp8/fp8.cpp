// SPDX-License-Identifier: MIT
// Operands, work and host references of numbers in fp8; fp8.h has their meaning and shapes.
#include "kernels/fp8/fp8.h"

#include <bit>
#include <cmath>

#include "kernels/extents.h"
#include "kernels/fp8/fp8_numbers.h"

namespace stepgate {
namespace {

// A NaN is larger than every number, as its bits are.
float larger_size(float amax, float value) {
  const float size = std::abs(value);
  return std::bit_cast<std::uint32_t>(size) > std::bit_cast<std::uint32_t>(amax) ? size : amax;
}

float largest_size(const void* numbers, DType dtype, std::int64_t first, std::int64_t end) {
  float amax = 0;
  for (std::int64_t i = first; i < end; ++i)
    amax = larger_size(amax, static_cast<float>(number_at(numbers, dtype, i)));
  return amax;
}

constexpr auto amax_parts_operands = operands_of<kernels::AmaxParts>({
    {"x", Access::read, [](const auto& s) { return s.numbers; }},
    {"maxima", Access::write, [](const auto& s) { return s.parts; }, OperandFormat::single},
});

void amax_parts_reference(const CallOf<kernels::AmaxParts>& call) {
  const std::int64_t part = amax_part(call.shape);
  for (std::int64_t p = 0; p < call.shape.parts; ++p)
    set_number(call.buffers[1], DType::fp32, p,
               largest_size(call.buffers[0], call.dtype, p * part,
                            std::min((p + 1) * part, call.shape.numbers)));
}

constexpr auto quantize_operands = operands_of<kernels::QuantizeFp8>({
    {"x", Access::read, extent::elements},
    {"maxima", Access::read, [](const auto& s) { return s.parts; }, OperandFormat::single},
    {"out", Access::write, extent::elements, OperandFormat::byte},
    {"transposed", Access::write, extent::elements, OperandFormat::byte},
    {"inverse_scale", Access::write, extent::one, OperandFormat::single},
});

constexpr auto quantize_delayed_operands = operands_of<kernels::QuantizeFp8Delayed>({
    {"x", Access::read, extent::elements},
    {"maxima", Access::read_write, [](const auto&) -> CheckedSize { return amax_numbers; },
     OperandFormat::single},
    {"out", Access::write, extent::elements, OperandFormat::byte},
    {"transposed", Access::write, extent::elements, OperandFormat::byte},
    {"inverse_scale", Access::write, extent::one, OperandFormat::single},
});

void quantize(const auto& call, float amax) {
  const Fp8Format& format = call.attributes.gradient ? e5m2 : e4m3;
  const float scale = fp8_scale(format, amax);
  auto* const out = static_cast<std::uint8_t*>(call.buffers[2]);
  auto* const transposed = static_cast<std::uint8_t*>(call.buffers[3]);
  for (std::int64_t row = 0; row < call.shape.rows; ++row) {
    for (std::int64_t column = 0; column < call.shape.columns; ++column) {
      const std::int64_t i = row * call.shape.columns + column;
      const auto x = static_cast<float>(number_at(call.buffers[0], call.dtype, i));
      out[i] = transposed[column * call.shape.rows + row] = fp8_from_float(format, x * scale);
    }
  }
  set_number(call.buffers[4], DType::fp32, 0, 1 / scale);
}

void quantize_reference(const CallOf<kernels::QuantizeFp8>& call) {
  quantize(call, largest_size(call.buffers[1], DType::fp32, 0, call.shape.parts));
}

void quantize_delayed_reference(const CallOf<kernels::QuantizeFp8Delayed>& call) {
  auto* const maxima = static_cast<float*>(call.buffers[1]);
  quantize(call, largest_size(maxima, DType::fp32, 1, amax_numbers));
  maxima[0] =
      larger_size(maxima[0], largest_size(call.buffers[0], call.dtype, 0, elements_of(call.shape)));
}

constexpr auto move_histories_operands = operands_of<kernels::MoveAmaxHistories>({
    {"maxima", Access::read_write, [](const auto& s) { return amax_numbers * s.tensors; },
     OperandFormat::single},
});

void move_histories_reference(const CallOf<kernels::MoveAmaxHistories>& call) {
  auto* maxima = static_cast<float*>(call.buffers[0]);
  for (std::int64_t tensor = 0; tensor < call.shape.tensors; ++tensor, maxima += amax_numbers) {
    std::copy_backward(maxima, maxima + amax_history, maxima + amax_numbers);
    maxima[0] = 0;
  }
}

}  // namespace

std::vector<Kernel> fp8_kernels() {
  return {
      row<kernels::AmaxParts, amax_parts_reference>(amax_parts_operands,
                                                    [](const auto& s) { return s.numbers; }),
      row<kernels::QuantizeFp8, quantize_reference>(quantize_operands, flops_an_element<1>),
      row<kernels::QuantizeFp8Delayed, quantize_delayed_reference>(quantize_delayed_operands,
                                                                   flops_an_element<2>),
      row<kernels::MoveAmaxHistories, move_histories_reference>(move_histories_operands, no_flops)};
}

}  // namespace stepgate
