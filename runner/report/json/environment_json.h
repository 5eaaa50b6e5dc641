// SPDX-License-Identifier: MIT
// A reading of the GPU's surroundings as JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "device/environment.h"

namespace stepgate {

// What is not known is null.
nlohmann::ordered_json json_of(const EnvironmentReading&);

}  // namespace stepgate
