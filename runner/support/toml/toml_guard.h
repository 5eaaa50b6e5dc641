// SPDX-License-Identifier: MIT
// Texts that toml++ must not see, because they break it instead of being refused. Everything else
// that is wrong with a text is for toml++ to say.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "support/text/diagnostic.h"

namespace stepgate {

// The fault, placed in the file, of a valid UTF-8 text that
// - has a character beyond ASCII outside strings and comments: TOML has none there, and toml++ 3.3
//   runs into undefined behaviour (found by fuzzing);
// - has more dots in a line, outside strings and comments, than any key needs: toml++ limits nested
//   values but not the parts of a key, and frees its tables recursively;
// - goes on beyond ASCII after a backslash that ends a line of a string: toml++ 3.3 then asks its
//   undefined question again.
std::optional<Diagnostic> unfit_for_parser(std::string_view text, const std::string& file);

// The text with a '~' for every character beyond ASCII; a byte order mark at the start stays. Lines
// and columns are the same. toml++ looks at such characters with undefined behaviour when a value
// is malformed: what it refuses of this text, it must not see with the characters themselves.
std::string in_ascii(std::string_view text);

}  // namespace stepgate
