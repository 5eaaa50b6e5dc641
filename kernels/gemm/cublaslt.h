// SPDX-License-Identifier: MIT
// cuBLASLt is opened at the first call of one of its functions, which cublaslt.cpp defines. The
// library is half a gigabyte, and plans, simulations and verdicts do not need it. Callers use its
// functions as declared in cublasLt.h.
#pragma once

#include <string>
#include <vector>

namespace stepgate {

// Loads cuBLASLt. Returns the reason if that failed, with the loader's message; empty on success.
// STEPGATE_CUBLASLT may name a file. Otherwise the loader's usual places are searched, then the
// toolkit of the build.
const std::string& reason_against_cublaslt();

// Names of the functions called here that the library lacks.
std::vector<std::string> functions_cublaslt_lacks();

}  // namespace stepgate
