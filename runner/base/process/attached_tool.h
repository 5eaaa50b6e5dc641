// SPDX-License-Identifier: MIT
// Whether a profiler is attached to this process. Callers check it before they start or open
// something on which a second profiler would hang, in this process or in a child.
#pragma once

#include <optional>
#include <string>

namespace stepgate {

// The variable of the environment by which it shows, of the first that is found.
std::optional<std::string> attached_tool();

}  // namespace stepgate
