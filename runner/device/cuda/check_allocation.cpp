// SPDX-License-Identifier: MIT
#include "device/cuda/check_allocation.h"

#include <fmt/format.h>

#include "device/cuda/check.h"
#include "support/text/units.h"

namespace stepgate {

void check_allocation(cudaError_t status, const Buffer& buffer) {
  if (status == cudaSuccess) return;
  (void)cudaGetLastError();
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  (void)cudaMemGetInfo(&free_bytes, &total_bytes);
  check(status, fmt::format("allocate {:.3f} MiB for '{}' where {:.3f} MiB are free",
                            static_cast<double>(buffer.bytes) / mebibyte, buffer.name,
                            static_cast<double>(free_bytes) / mebibyte));
}

}  // namespace stepgate
