// SPDX-License-Identifier: MIT
// The part of the environment that a program under test sees. Anybody may have written it, and
// where CI runs it the environment has secrets under names that nobody can list: so what is passed
// on is listed.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stepgate {

// Names, or beginnings of names with a '*' behind: where programs and libraries are, what GPUs and
// their libraries do, the user's language and folders.
std::span<const std::string_view> variables_of_workers();

// "NAME=value" of those of our own variables, and of `also`, which are such names too. Never what
// lets a program write on the page and the lines that a CI system gives to whoever judges it.
std::vector<std::string> worker_environment(std::span<const std::string> also = {});

}  // namespace stepgate
