// SPDX-License-Identifier: MIT
// The part of the environment that a program under test sees. The program is not trusted, and a CI
// environment has secrets under unknown names. So only listed variables are passed on.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stepgate {

// Names of environment variables, or prefixes followed by '*': search paths of programs and
// libraries, settings of GPUs and their libraries, the user's language and folders.
std::span<const std::string_view> variables_of_workers();

// The variables of this process, "NAME=value", that have one of those names or a name or prefix in
// `also`. Variables by which a program could write to the summary or the log commands of the CI
// system are always left out.
std::vector<std::string> worker_environment(std::span<const std::string> also = {});

}  // namespace stepgate
