// SPDX-License-Identifier: MIT
#include "device/device.h"

namespace stepgate {

std::string_view name_of(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::cuda:
      return "cuda";
    case DeviceKind::simulated:
      return "simulated";
    case DeviceKind::reference:
      return "reference";
  }
  return {};
}

}  // namespace stepgate
