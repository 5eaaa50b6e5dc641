// SPDX-License-Identifier: MIT
// A call that may wait for other processes, and not for ever.
#pragma once

#include <chrono>
#include <functional>
#include <optional>

namespace stepgate {

// The result of the call, on a thread of its own. Nothing where it takes longer: then the thread is
// left to itself, so the call owns all that it touches. It does not throw.
std::optional<int> call_within(std::chrono::nanoseconds limit, std::function<int()> call);

}  // namespace stepgate
