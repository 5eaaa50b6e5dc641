// SPDX-License-Identifier: MIT
#include <cuda_runtime_api.h>

#include "kernels/device_limits.h"

namespace stepgate {
namespace {

// Whether this device tells it.
bool is_told(cudaError_t status) {
  if (status != cudaSuccess) (void)cudaGetLastError();
  return status == cudaSuccess;
}

}  // namespace

std::vector<DeviceLimit> device_limits() {
  struct Known {
    cudaLimit limit;
    const char* name;
    bool may_grow = false;
  };
  constexpr Known known[] = {{cudaLimitStackSize, "stack", true},
                             {cudaLimitPrintfFifoSize, "printf buffer"},
                             {cudaLimitMallocHeapSize, "heap"},
                             {cudaLimitMaxL2FetchGranularity, "L2 fetch granularity"},
                             {cudaLimitPersistingL2CacheSize, "persisting L2"}};
  std::vector<DeviceLimit> limits;
  for (const auto& [limit, name, may_grow] : known) {
    std::size_t value = 0;
    if (is_told(cudaDeviceGetLimit(&value, limit)))
      limits.push_back({name, static_cast<std::int64_t>(value), " B", may_grow});
  }
  cudaFuncCache preference = cudaFuncCachePreferNone;
  if (is_told(cudaDeviceGetCacheConfig(&preference)))
    limits.push_back({"cache preference", preference, ""});
  return limits;
}

}  // namespace stepgate
