// SPDX-License-Identifier: MIT
// Whether a profiler has put itself into this process. Asked by those who start or open what a
// second one in the same process, or in a child, would wait for.
#pragma once

#include <optional>
#include <string>

namespace stepgate {

// The variable of the environment by which it shows, of the first that is found.
std::optional<std::string> attached_tool();

}  // namespace stepgate
