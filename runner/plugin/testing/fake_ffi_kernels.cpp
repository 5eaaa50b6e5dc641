// SPDX-License-Identifier: MIT
// Functions for tvm-ffi and FakeTrialDevice that call themselves layer_norm: arguments are x,
// weight, bias, y, statistics, epsilon. A function is named after what is wrong with it.
#include <cmath>
#include <vector>

#include "kernels/number_format.h"
#include "runner/plugin/testing/fake_stream.h"
#include "runner/plugin/testing/fake_tvm_ffi.h"

namespace {

using stepgate::DType;
using stepgate::FakeStream;

int fail(const char* kind, const char* why) {
  TVMFFIErrorSetRaisedFromCStr(kind, why);
  return -1;
}

bool is_tensor(const TVMFFIAny& argument, int dimensions) {
  if (argument.type_index != 7) return false;
  const auto& tensor = *static_cast<const DLTensor*>(argument.v_ptr);
  std::int64_t stride = 1;
  for (int index = tensor.ndim - 1; index >= 0; --index) {
    if (tensor.strides[index] != stride) return false;
    stride *= tensor.shape[index];
  }
  return tensor.ndim == dimensions && tensor.device.device_type == 2 && tensor.dtype.lanes == 1 &&
         tensor.byte_offset == 0;
}

// Every argument is as the table says, or the function raises.
int norm(const void* given, int count, std::int64_t left_out) {
  const auto* arguments = static_cast<const TVMFFIAny*>(given);
  constexpr int dimensions[] = {2, 1, 1, 2, 2};
  if (count != 6 || arguments[5].type_index != 3) return fail("TypeError", "wants epsilon last");
  std::vector<DLTensor> at;
  for (int index = 0; index < 5; ++index) {
    if (!is_tensor(arguments[index], dimensions[index]))
      return fail("TypeError", "wants five tensors");
    at.push_back(*static_cast<const DLTensor*>(arguments[index].v_ptr));
  }
  const std::int64_t rows = at[0].shape[0], columns = at[0].shape[1];
  if (at[1].shape[0] != columns || at[4].shape[0] != rows || at[4].shape[1] != 2)
    return fail("ValueError", "wants other shapes");
  if (at[4].dtype.code != 2 || at[4].dtype.bits != 32)
    return fail("ValueError", "wants statistics in fp32");
  const DType dtype = at[0].dtype.bits == 32  ? DType::fp32
                      : at[0].dtype.code == 4 ? DType::bf16
                                              : DType::fp16;
  static_cast<FakeStream*>(TVMFFIEnvGetStream(2, 0))
      ->enqueue([=, epsilon = arguments[5].v_float64] {
        for (std::int64_t row = 0; row < rows - left_out; ++row) {
          const auto x = [&](std::int64_t column) {
            return stepgate::number_at(at[0].data, dtype, row * columns + column);
          };
          double sum = 0, squares = 0;
          for (std::int64_t i = 0; i < columns; ++i) sum += x(i);
          const double mean = sum / static_cast<double>(columns);
          for (std::int64_t i = 0; i < columns; ++i) squares += std::pow(x(i) - mean, 2);
          const double scale = 1 / std::sqrt(squares / static_cast<double>(columns) + epsilon);
          for (std::int64_t i = 0; i < columns; ++i) {
            const double y = (x(i) - mean) * scale * stepgate::number_at(at[1].data, dtype, i) +
                             stepgate::number_at(at[2].data, dtype, i);
            stepgate::set_number(at[3].data, dtype, row * columns + i, y);
          }
          static_cast<float*>(at[4].data)[2 * row] = static_cast<float>(mean);
          static_cast<float*>(at[4].data)[2 * row + 1] = static_cast<float>(scale);
        }
      });
  return 0;
}

}  // namespace

#define FUNCTION(name)                                                       \
  extern "C" __attribute__((visibility("default"))) int __tvm_ffi_##name(    \
      [[maybe_unused]] void* handle, [[maybe_unused]] const void* arguments, \
      [[maybe_unused]] std::int32_t count, [[maybe_unused]] void* result)

FUNCTION(layer_norm) {
  return norm(arguments, count, 0);
}
FUNCTION(forgets_the_last_row) {
  return norm(arguments, count, 1);
}
FUNCTION(raises) {
  return fail("RuntimeError", "columns must be even");
}
FUNCTION(fails_without_an_error) {
  return -1;
}
FUNCTION(returns_a_tensor) {
  TVMFFIErrorSetRaisedFromCStr("", "");  // an object that the caller must release
  auto& returned = *static_cast<TVMFFIAny*>(result);
  TVMFFIErrorMoveFromRaised(&returned.v_ptr);
  returned.type_index = 70;
  return 0;
}
