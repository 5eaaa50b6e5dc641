// SPDX-License-Identifier: MIT
// A reading of the GPU's surroundings as JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "device/environment.h"

namespace stepgate {

// Unknown values are null.
nlohmann::ordered_json json_of(const EnvironmentReading&);

}  // namespace stepgate
