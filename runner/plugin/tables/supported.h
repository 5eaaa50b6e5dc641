// SPDX-License-Identifier: MIT
// The launches that a kernel without a function of its own to ask supports, as its table says.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/kernel.h"
#include "plugin/open_library.h"
#include "plugin/tables/size_expression.h"

namespace stepgate {

// A size or attribute that the kernel supports within limits.
struct SizeLimits {
  std::string name;
  double at_least = -std::numeric_limits<double>::infinity();
  double at_most = std::numeric_limits<double>::infinity();
  std::int64_t multiple_of = 1;

  bool operator==(const SizeLimits&) const = default;
};

struct Supported {
  std::vector<DType> dtypes;       // empty: all
  std::vector<SizeLimits> limits;  // of sizes and attributes that have some

  bool operator==(const Supported&) const = default;
};

// The names of sizes and attributes that launches of the kernel have, with values of one launch.
std::vector<NamedNumber> names_in(const Kernel&);

// Throws KernelLibraryError, with the nearest name, where the kernel has no such size.
void require_names(const Supported&, const Kernel&);

// Throws KernelUnsupported for a launch that is not supported; `who` is the kernel in words.
void require_supported(const Supported&, std::string_view who, const KernelRequest&);

// All of it in words that tell it from another, for a digest.
std::string text_of(const Supported&);

}  // namespace stepgate
