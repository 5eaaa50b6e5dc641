// SPDX-License-Identifier: MIT
#pragma once

#include <string>

namespace stepgate {

// "stepgate 0.1.0, commit 0123456789ab-dirty" of the built sources; "unknown" outside a repository.
// A CUDA build adds its GPU architectures: ", for GPUs of 80-real 90".
std::string version_text();

}  // namespace stepgate
