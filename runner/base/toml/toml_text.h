// SPDX-License-Identifier: MIT
// Values as TOML writes them, for the files that stepgate writes itself. toml.h and toml_keys.h
// read them back.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stepgate {

// A TOML string. What is not printable ASCII becomes '?': nothing that is compared may contain any.
std::string toml_string(std::string_view text);

// "0x0123456789abcdef": TOML's own integers end at 63 bits.
std::string hexadecimal(std::uint64_t);

}  // namespace stepgate
