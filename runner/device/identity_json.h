// SPDX-License-Identifier: MIT
// A device in JSON, the same in reports and between processes.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "device/device.h"

namespace stepgate {

nlohmann::ordered_json json_of(const std::vector<DeviceKey>&);
nlohmann::ordered_json json_of(const DeviceIdentity&);

}  // namespace stepgate
