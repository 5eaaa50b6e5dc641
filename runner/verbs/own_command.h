// SPDX-License-Identifier: MIT
// This program as a child process: the command line of a verb that works on the same profiles and
// with the same knobs as the one that starts it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "support/process/command.h"
#include "verbs/arguments.h"

namespace stepgate {

// An empty `device` is the best there is, as everywhere. `more` are the verb's own options.
Command own_command(const Arguments&, const std::string& verb, const std::string& device,
                    std::uint64_t seed, std::span<const std::filesystem::path> files,
                    const std::vector<std::string>& more = {});

}  // namespace stepgate
