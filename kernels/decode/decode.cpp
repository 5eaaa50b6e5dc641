// SPDX-License-Identifier: MIT
// The host side of decode: operands, work and the reference. Meaning and shapes: decode.h.
#include "kernels/decode/decode.h"

#include "kernels/cuda_build.h"
#include "kernels/extents.h"

namespace stepgate {
namespace {

// --- operands ------------------------------------------------------------------------------------

constexpr KernelOperand decode_operands[] = {
    {"bytes", Access::read, extent::elements, OperandFormat::byte},
    {"words", Access::write, extent::elements, OperandFormat::single},
};

// --- work ----------------------------------------------------------------------------------------

// Each number takes a multiplication and a subtraction.
CheckedSize decode_flops(const CheckedShape& shape, const KernelAttributes&) {
  return 2 * elements_of(shape);
}

// --- reference -----------------------------------------------------------------------------------

// In double, rounded once.
constexpr float rounded_once(int byte) {
  return static_cast<float>((2 * byte - 255) / 255.0);
}

constexpr bool every_byte_is_rounded_once() {
  for (int byte = 0; byte < 256; ++byte) {
    const double doubled = 2 * byte - 255;
    // As a multiply-add does, which rounds no product: in double nothing here is rounded.
    const auto in_one_instruction =
        static_cast<float>(doubled * 0x1.01p-8 + doubled * 0x1.0101p-24);
    if (decoded(static_cast<std::uint8_t>(byte)) != rounded_once(byte) ||
        in_one_instruction != rounded_once(byte))
      return false;
  }
  return true;
}
static_assert(every_byte_is_rounded_once());

void decode_reference(const KernelCall& call) {
  const auto* bytes = static_cast<const std::uint8_t*>(call.buffers[0]);
  auto* words = static_cast<float*>(call.buffers[1]);
  for (std::int64_t i = 0; i < elements_of(call.shape); ++i) words[i] = rounded_once(bytes[i]);
}

}  // namespace

// --- the row -------------------------------------------------------------------------------------

std::vector<Kernel> decode_kernels() {
  return {{kernels::Decode::name, decode_operands, decode_flops, decode_reference,
           in_cuda_builds<prepare_decode>()}};
}

}  // namespace stepgate
