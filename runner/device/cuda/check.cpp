// SPDX-License-Identifier: MIT
#include "device/cuda/check.h"

#include <fmt/format.h>

#include "device/device.h"

namespace stepgate {
namespace {

[[noreturn]] void fail(std::string_view doing, std::string_view name, std::string_view text,
                       const std::source_location& place) {
  std::string_view file = place.file_name();
  file.remove_prefix(file.find_last_of('/') + 1);
  throw DeviceError(
      fmt::format("cannot {}: {}: {} ({}:{})", doing, name, text, file, place.line()));
}

}  // namespace

void check(cudaError_t status, std::string_view doing, std::source_location place) {
  if (status == cudaSuccess) return;
  (void)cudaGetLastError();  // the error is reported here; the next call starts clean
  fail(doing, cudaGetErrorName(status), cudaGetErrorString(status), place);
}

void check(cublasStatus_t status, std::string_view doing, std::source_location place) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  fail(doing, cublasLtGetStatusName(status), cublasLtGetStatusString(status), place);
}

}  // namespace stepgate
