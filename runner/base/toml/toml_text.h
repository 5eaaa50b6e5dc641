// SPDX-License-Identifier: MIT
// Values as TOML writes them, for the files that stepgate writes itself. toml.h and toml_keys.h
// read them back.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stepgate {

// Quotes a TOML string. Characters that are not printable ASCII become '?', so texts that are
// compared must not contain any.
std::string toml_string(std::string_view text);

// Writes "0x0123456789abcdef", since TOML's integers have only 63 bits.
std::string hexadecimal(std::uint64_t);

}  // namespace stepgate
