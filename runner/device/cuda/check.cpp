// SPDX-License-Identifier: MIT
#include "device/cuda/check.h"

#include <fmt/format.h>

#include "device/device.h"

namespace stepgate {
namespace {

using namespace cuda_codes;
static_assert(memory_allocation == cudaErrorMemoryAllocation &&
              stub_library == cudaErrorStubLibrary &&
              insufficient_driver == cudaErrorInsufficientDriver &&
              devices_unavailable == cudaErrorDevicesUnavailable &&
              no_device == cudaErrorNoDevice && ecc_uncorrectable == cudaErrorECCUncorrectable &&
              nvlink_uncorrectable == cudaErrorNvlinkUncorrectable &&
              illegal_address == cudaErrorIllegalAddress &&
              launch_timeout == cudaErrorLaunchTimeout && assertion == cudaErrorAssert &&
              hardware_stack == cudaErrorHardwareStackError &&
              illegal_instruction == cudaErrorIllegalInstruction &&
              misaligned_address == cudaErrorMisalignedAddress &&
              invalid_address_space == cudaErrorInvalidAddressSpace &&
              invalid_pc == cudaErrorInvalidPc && launch_failure == cudaErrorLaunchFailure &&
              system_not_ready == cudaErrorSystemNotReady &&
              system_driver_mismatch == cudaErrorSystemDriverMismatch &&
              compat_not_supported == cudaErrorCompatNotSupportedOnDevice &&
              mps_connection_failed == cudaErrorMpsConnectionFailed &&
              mps_client_terminated == cudaErrorMpsClientTerminated && unknown == cudaErrorUnknown);

std::string cannot(std::string_view doing, std::string_view name, std::string_view text,
                   const std::source_location& place) {
  std::string_view file = place.file_name();
  file.remove_prefix(file.find_last_of('/') + 1);
  return fmt::format("cannot {}: {}: {} ({}:{})", doing, name, text, file, place.line());
}

// Prefixes the message with where the error was noticed, unless the message names the variant.
std::string noticed(const std::string& at, const std::string& what) {
  return at.empty() || what.starts_with("variant '") ? what : at + ": " + what;
}

}  // namespace

void check(cudaError_t status, std::string_view doing, std::source_location place) {
  if (status == cudaSuccess) return;
  (void)cudaGetLastError();  // the error is reported here; the next call starts clean
  const std::string words =
      cannot(doing, cudaGetErrorName(status), cudaGetErrorString(status), place);
  if (status == cudaErrorMemoryAllocation) throw DeviceMemoryFull(words);
  throw DeviceError(words);
}

void check(cublasStatus_t status, std::string_view doing, std::source_location place) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw DeviceError(
      cannot(doing, cublasLtGetStatusName(status), cublasLtGetStatusString(status), place));
}

CudaFailure failure_of(cudaError_t status) {
  return {.code = static_cast<int>(status),
          .name = cudaGetErrorName(status),
          .text = cudaGetErrorString(status)};
}

// Returns the failure if it is permanent. The first error may belong to failed work only; a
// permanent error is returned again.
std::optional<CudaFailure> failure_for_good() {
  (void)cudaDeviceSynchronize();
  (void)cudaGetLastError();
  const cudaError_t status = cudaDeviceSynchronize();
  (void)cudaGetLastError();
  if (status == cudaSuccess) return std::nullopt;
  return failure_of(status);
}

void rethrow_from_gpu(const std::string& at) {
  try {
    throw;
  } catch (const DeviceLost&) {
    throw;
  } catch (const DeviceError& error) {
    if (const auto failure = failure_for_good())
      throw DeviceLost(lost_in_words(noticed(at, error.what()), *failure));
    throw;
  } catch (const std::runtime_error& error) {  // of launchers and libraries, which know no device
    const std::string words = noticed(at, error.what());
    if (const auto failure = failure_for_good()) throw DeviceLost(lost_in_words(words, *failure));
    throw DeviceError(words);
  }
}

}  // namespace stepgate
