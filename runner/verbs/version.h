// SPDX-License-Identifier: MIT
#pragma once

#include <string>

namespace stepgate {

// "stepgate 0.1.0, commit 0123456789ab-dirty" of what was built; "unknown" outside a repository.
// With CUDA also for which GPUs: ", for GPUs of 80-real 90".
std::string version_text();

}  // namespace stepgate
