// SPDX-License-Identifier: MIT
// The environment of a run as the files of baselines and certificates hold it.
#pragma once

#include <string>

#include "judge/environment/environment.h"
#include "support/toml/toml_keys.h"

namespace stepgate {

// One line a key.
std::string environment_text(const Environment&);

// The required key 'environment' of a table; what is wrong with it becomes faults.
Environment read_environment(TomlKeys& of, TomlKeys::Faults&, std::string_view way_out);

}  // namespace stepgate
