// SPDX-License-Identifier: MIT
// The link to a rank that is a child of this process.
#pragma once

#include <memory>
#include <string_view>

#include "base/process/command.h"
#include "device/ranked/rank_link.h"

namespace stepgate {

// Starts the process of this command, and sends it `first_line` before all other lines. Throws
// std::system_error when the system has no process or pipe left. The child and its descendants end
// with the link.
std::unique_ptr<RankLink> start_rank(const Command&, std::string_view first_line);

}  // namespace stepgate
