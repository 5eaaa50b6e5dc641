// SPDX-License-Identifier: MIT
// A number that a launch is given, written over the sizes and attributes of its kernel:
// "ceil(rows / 4)", "2 * columns", "128". It has numbers, names, + - * / and parentheses, and ceil,
// floor, min and max. A division is exact, so that ceil(rows / 4) is what it is in mathematics.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/kernel.h"

namespace stepgate {

struct NamedNumber {
  std::string_view name;
  double value = 0;
};

// The sizes and attributes of a launch; flags are 0 and 1. The names outlive the values.
std::vector<NamedNumber> numbers_of(const KernelShape&, const KernelAttributes&);

// Throws KernelLibraryError, with the nearest name, where the text is no expression over these
// names. The value may be any number, NaN and infinity among them.
double value_of(std::string_view expression, std::span<const NamedNumber>);

}  // namespace stepgate
