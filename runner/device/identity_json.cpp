// SPDX-License-Identifier: MIT
#include "device/identity_json.h"

namespace stepgate {

nlohmann::ordered_json json_of(const std::vector<DeviceKey>& keys) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (const DeviceKey& key : keys) object[key.name] = key.value;
  return object;
}

namespace {

nlohmann::ordered_json json_of(const RankIdentity& rank) {
  const Communication& with = rank.communication;
  return {{"host", rank.host},
          {"uuid", rank.uuid},
          {"library", with.library},
          {"file", with.file},
          {"settings", json_of(with.settings)},
          {"links", with.links}};
}

}  // namespace

nlohmann::ordered_json json_of(const DeviceIdentity& device) {
  nlohmann::ordered_json ranks = nlohmann::ordered_json::array();
  for (const RankIdentity& rank : device.ranks) ranks.push_back(json_of(rank));
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
          {"keys", json_of(device.keys)},
          {"link", device.link},
          {"launcher", device.launcher},
          {"ranks", std::move(ranks)}};
}

}  // namespace stepgate
