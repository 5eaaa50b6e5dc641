// SPDX-License-Identifier: MIT
// Names of kernels as people write them.
#pragma once

#include <string>

namespace stepgate {

// "stepgate::gelu_kernel<float>" of the symbol that the linker knows, without result, parameters
// and anonymous namespaces. What is no C++ symbol stays as it is.
std::string readable_kernel_name(const char* symbol);

}  // namespace stepgate
