// SPDX-License-Identifier: MIT
// The part of the environment that a program under test sees. The program is not trusted, and a CI
// environment has secrets under unknown names. So only listed variables are passed on.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stepgate {

// Names, or beginnings of names with a '*' behind: where programs and libraries are, what GPUs and
// their libraries do, the user's language and folders.
std::span<const std::string_view> variables_of_workers();

// "NAME=value" of those of our own variables, and of `also`, which are such names too. Never a
// variable that lets a program write to the summary or the log commands of the CI system that
// judges it.
std::vector<std::string> worker_environment(std::span<const std::string> also = {});

}  // namespace stepgate
