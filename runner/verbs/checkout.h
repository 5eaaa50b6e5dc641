// SPDX-License-Identifier: MIT
// Asks git about the checkout that a file lies in. Files there may come from anybody, and a
// repository may name programs for git to run.
#pragma once

#include <filesystem>
#include <string>

namespace stepgate {

// The commit, with "-dirty" where tracked files differ from it; "unknown" where there is no
// repository, or where to compare files git would run what the repository's own configuration
// names.
std::string commit_of_checkout(const std::filesystem::path& folder);

}  // namespace stepgate
