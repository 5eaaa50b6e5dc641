// SPDX-License-Identifier: MIT
// The local GPU under the contract of traces. Fails, never skips, where there is no GPU or nothing
// to trace it with.
#include "device/open_device.h"
#include "tests/contract/device_contract.h"

namespace stepgate {

std::vector<DeviceCase> device_cases() {
  return {{"cuda", DeviceKind::cuda,
           [] { return open_device({.spec = "cuda", .baselines = {}, .tracing = true}).device; }}};
}

}  // namespace stepgate
