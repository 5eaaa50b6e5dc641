// SPDX-License-Identifier: MIT
// The link to a rank that is a child of this process.
#pragma once

#include <memory>

#include "verbs/job.h"
#include "verbs/ranks/rank_link.h"

namespace stepgate {

// Throws std::system_error when no process or pipe can be created. The child and all its
// descendants end with the link.
std::unique_ptr<RankLink> start_rank(const Job&);

}  // namespace stepgate
