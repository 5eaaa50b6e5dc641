// SPDX-License-Identifier: MIT
// Texts that toml++ must not see, because they break it instead of being refused. Everything else
// that is wrong with a text is for toml++ to say.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "support/diagnostic.h"

namespace stepgate {

// What is wrong, placed in the file, in a valid UTF-8 text that
// - has a character beyond ASCII outside strings and comments: TOML has none there, and toml++ 3.3
//   runs into undefined behaviour (found by fuzzing);
// - has more dots in a line, outside strings and comments, than any key needs: toml++ limits nested
//   values but not the parts of a key, and frees its tables recursively.
std::optional<Diagnostic> unfit_for_parser(std::string_view text, const std::string& file);

}  // namespace stepgate
