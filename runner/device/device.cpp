// SPDX-License-Identifier: MIT
#include "device/device.h"

#include <fmt/format.h>

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

std::string in_words(const DeviceIdentity& device) {
  switch (device.kind) {
    case DeviceKind::cuda:
      return device.driver.empty() ? device.name
                                   : fmt::format("{}, driver {}", device.name, device.driver);
    case DeviceKind::simulated:
      return fmt::format("a simulated {} (no measurement)", device.name);
    case DeviceKind::reference:
      return "the host reference (no times)";
  }
  return {};
}

}  // namespace stepgate
