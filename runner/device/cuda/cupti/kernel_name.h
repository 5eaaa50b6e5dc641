// SPDX-License-Identifier: MIT
// Readable names of kernels, of symbols that are trusted: the text, and the time it takes, can grow
// without bound with the symbol (program/matching_names.h bounds them).
#pragma once

#include <string>

namespace stepgate {

// Returns a name like "stepgate::gelu_kernel<float>" for a linker symbol, without return type,
// parameters and anonymous namespaces. Returns text that is not a C++ symbol unchanged.
std::string readable_kernel_name(const char* symbol);

}  // namespace stepgate
