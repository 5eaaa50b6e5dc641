// SPDX-License-Identifier: MIT
// Whether a profiler is attached to this process. Callers check it before they start or open
// something on which a second profiler would hang, in this process or in a child.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace stepgate {

// Whether a variable of that name loads a tool into CUDA or NVTX.
bool is_of_a_tool(std::string_view variable);

// The first environment variable found that shows an attached tool.
std::optional<std::string> attached_tool();

}  // namespace stepgate
