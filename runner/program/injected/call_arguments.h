// SPDX-License-Identifier: MIT
// Positions of the arguments of CUDA calls that are recorded. CUPTI passes the arguments of a call
// as a struct, all of whose members begin at multiples of 8 bytes: a position is such a multiple.
#pragma once

#include <cstdint>
#include <string_view>

namespace stepgate::attached {

constexpr std::int8_t no_argument = -1;

struct CallArguments {
  std::string_view name;  // as plain_call_name gives it, or its beginning, ending with a star
  // The recorded number is the product of these; of a launch the first is the kernel.
  std::int8_t numbers[3] = {no_argument, no_argument, no_argument};
  // Copies: the addresses of both ends. An end without one is on the device.
  std::int8_t source = no_argument;
  std::int8_t target = no_argument;
  std::int8_t direction = no_argument;  // a cudaMemcpyKind; without one the addresses decide
  bool is_indirect = false;  // the only argument is a pointer to the struct with these members
};

// Null for a call whose arguments are not known.
const CallArguments* arguments_of(std::string_view plain_name);

// The argument at that position, as 8 bytes.
std::uint64_t argument(const CallArguments&, const void* parameters, std::int8_t position);

}  // namespace stepgate::attached
