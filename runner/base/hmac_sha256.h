// SPDX-License-Identifier: MIT
// Proves that two processes know the same secret, without sending it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace stepgate {

using Sha256 = std::array<std::uint8_t, 32>;

// SHA-256 of FIPS 180-4.
Sha256 sha256(std::string_view text);
// HMAC of RFC 2104 with SHA-256, as 64 lower-case hexadecimal digits.
std::string hmac_sha256(std::string_view key, std::string_view text);

// Compares in a time that does not depend on where the texts differ, so that nobody can find a
// proof digit by digit.
bool equal_in_constant_time(std::string_view, std::string_view);

// 32 hexadecimal digits that nobody can guess, from the system's random numbers. Throws
// std::system_error where it has none.
std::string unguessable_digits();

}  // namespace stepgate
