// SPDX-License-Identifier: MIT
#include "device/identity_json.h"

namespace stepgate {

nlohmann::ordered_json json_of(const std::vector<DeviceKey>& keys) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (const DeviceKey& key : keys) object[key.name] = key.value;
  return object;
}

nlohmann::ordered_json json_of(const DeviceIdentity& device) {
  return {{"kind", name_of(device.kind)},
          {"name", device.name},
          {"driver", device.driver},
          {"runtime", device.runtime},
          {"compute_capability", device.compute_capability},
          {"memory_bytes", device.memory_bytes},
          {"uuid", device.uuid},
          {"cpu", device.cpu},
          {"power_limit", device.power_limit},
          {"pcie", device.pcie},
          {"keys", json_of(device.keys)}};
}

}  // namespace stepgate
