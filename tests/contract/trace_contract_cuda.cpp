// SPDX-License-Identifier: MIT
// Runs the contract of traces on the local GPU. Fails, never skips, where there is no GPU or it
// cannot be traced.
#include "device/open_device.h"
#include "tests/contract/device_contract.h"

namespace stepgate {

std::vector<DeviceCase> device_cases() {
  return {{"cuda", DeviceKind::cuda,
           [] { return open_device({.spec = "cuda", .baselines = {}, .tracing = true}).device; }}};
}

}  // namespace stepgate
