// SPDX-License-Identifier: MIT
#pragma once

#include <string>

namespace stepgate {

// "stepgate 0.1.0, commit 0123456789ab-dirty" of what was built; "unknown" outside a repository.
std::string version_text();

}  // namespace stepgate
