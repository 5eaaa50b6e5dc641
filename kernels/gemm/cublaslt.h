// SPDX-License-Identifier: MIT
// cuBLASLt is opened at the first call of one of its functions, which cublaslt.cpp defines: the
// library is half a gigabyte, and neither a plan, a simulation nor a verdict needs it. Calls look
// as ever.
#pragma once

#include <string>
#include <vector>

namespace stepgate {

// Why there is none, with the loader's words; empty where it is open. Opens it. STEPGATE_CUBLASLT
// may name a file; otherwise it is found as the loader finds libraries, then in the toolkit of the
// build.
const std::string& reason_against_cublaslt();

// Names of the functions that are called here and that the library does not have.
std::vector<std::string> functions_cublaslt_lacks();

}  // namespace stepgate
