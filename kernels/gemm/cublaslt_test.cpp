// SPDX-License-Identifier: MIT
// Tests opening cuBLASLt, without a GPU. kernels_cuda_test.cpp tests the results of its GEMMs.
#include "kernels/gemm/cublaslt.h"

#include <cublasLt.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace stepgate {
namespace {

// Opens the library. Each test calls this in a child process, since a process opens a library only
// once.
int open_where(const char* named) {
  if (named != nullptr) (void)setenv("STEPGATE_CUBLASLT", named, 1);
  cublasLtMatmulPreference_t made = nullptr;
  const cublasStatus_t status = cublasLtMatmulPreferenceCreate(&made);
  std::fprintf(stderr, "status %d, reason: %s, text: %s, lacks %zu\n", status,
               reason_against_cublaslt().c_str(), cublasLtGetStatusString(status),
               functions_cublaslt_lacks().size());
  return made != nullptr ? 0 : 1;
}

TEST(OpenCublaslt, HasAllFunctionsThatAreCalled) {
  EXPECT_EXIT(std::exit(open_where(nullptr)), testing::ExitedWithCode(0),
              "status 0, reason: , text: [A-Za-z_ ]+, lacks 0");
}

TEST(OpenCublaslt, SaysWhatWasNamedWhereNothingCanBeOpened) {
  EXPECT_EXIT(std::exit(open_where("/nowhere/libcublasLt.so")), testing::ExitedWithCode(1),
              "status 1, reason: no cuBLASLt was found .*/nowhere/libcublasLt.so.*cannot open.*"
              "STEPGATE_CUBLASLT may name another.*text: no cuBLASLt was found");
}

TEST(OpenCublaslt, TellsAnotherLibraryByWhatItLacks) {
  EXPECT_EXIT(std::exit(open_where("libm.so.6")), testing::ExitedWithCode(1), "lacks 16");
}

}  // namespace
}  // namespace stepgate
