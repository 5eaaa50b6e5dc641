// SPDX-License-Identifier: MIT
#include "kernels/gemm/cublaslt.h"

#include <cublasLt.h>

#include <string_view>

#include "kernels/dynamic_library.h"

namespace stepgate {
namespace {

// The library stays loaded until the process ends.
const DynamicLibrary& library() {
  static const DynamicLibrary opened(
      {.name = "cuBLASLt",
       .variable = "STEPGATE_CUBLASLT",
       .places = {{"libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR)},
                  {STEPGATE_CUBLASLT_LIBRARY}},
       .binds_lazily = true});
  return opened;
}

std::vector<std::string_view>& names_of_functions() {
  static std::vector<std::string_view> names;
  return names;
}

// There is one instance for each function that is defined below.
template <class Function>
class Forwarded {
 public:
  explicit Forwarded(const char* name) : name_(name) { names_of_functions().push_back(name); }
  // Returns nullptr where there is no library, or where it lacks the function.
  Function* find() const { return reinterpret_cast<Function*>(library().find(name_)); }

 private:
  const char* name_;
};

}  // namespace

const std::string& reason_against_cublaslt() {
  return library().unavailable();
}

std::vector<std::string> functions_cublaslt_lacks() {
  std::vector<std::string> lacks;
  for (const std::string_view name : names_of_functions()) {
    if (library().find(name.data()) == nullptr) lacks.emplace_back(name);
  }
  return lacks;
}

}  // namespace stepgate

// A definition that differs from cublasLt.h's declaration does not compile.
#define STEPGATE_FORWARD(Result, name, parameters, arguments, without) \
  namespace {                                                          \
  const stepgate::Forwarded<decltype(name)> name##_in_library(#name);  \
  }                                                                    \
  Result name parameters {                                             \
    static const auto function = name##_in_library.find();             \
    return function == nullptr ? (without) : function arguments;       \
  }
#define STEPGATE_FORWARD_STATUS(name, parameters, arguments) \
  STEPGATE_FORWARD(cublasStatus_t, name, parameters, arguments, CUBLAS_STATUS_NOT_INITIALIZED)

STEPGATE_FORWARD(const char*, cublasLtGetStatusName, (cublasStatus_t status), (status),
                 "no library")
STEPGATE_FORWARD(const char*, cublasLtGetStatusString, (cublasStatus_t status), (status),
                 stepgate::library().unavailable().c_str())
STEPGATE_FORWARD(size_t, cublasLtGetVersion, (), (), 0)
STEPGATE_FORWARD_STATUS(cublasLtCreate, (cublasLtHandle_t * handle), (handle))
STEPGATE_FORWARD_STATUS(cublasLtDestroy, (cublasLtHandle_t handle), (handle))
STEPGATE_FORWARD_STATUS(cublasLtMatmulPreferenceCreate, (cublasLtMatmulPreference_t * made), (made))
STEPGATE_FORWARD_STATUS(cublasLtMatmulPreferenceDestroy, (cublasLtMatmulPreference_t it), (it))
STEPGATE_FORWARD_STATUS(cublasLtMatmulPreferenceSetAttribute,
                        (cublasLtMatmulPreference_t it, cublasLtMatmulPreferenceAttributes_t which,
                         const void* value, size_t bytes),
                        (it, which, value, bytes))
STEPGATE_FORWARD_STATUS(cublasLtMatrixLayoutCreate,
                        (cublasLtMatrixLayout_t * made, cudaDataType type, uint64_t rows,
                         uint64_t columns, int64_t stride),
                        (made, type, rows, columns, stride))
STEPGATE_FORWARD_STATUS(cublasLtMatrixLayoutDestroy, (cublasLtMatrixLayout_t it), (it))
STEPGATE_FORWARD_STATUS(cublasLtMatrixLayoutSetAttribute,
                        (cublasLtMatrixLayout_t it, cublasLtMatrixLayoutAttribute_t which,
                         const void* value, size_t bytes),
                        (it, which, value, bytes))
STEPGATE_FORWARD_STATUS(cublasLtMatmulDescCreate,
                        (cublasLtMatmulDesc_t * made, cublasComputeType_t compute,
                         cudaDataType scale),
                        (made, compute, scale))
STEPGATE_FORWARD_STATUS(cublasLtMatmulDescDestroy, (cublasLtMatmulDesc_t it), (it))
STEPGATE_FORWARD_STATUS(cublasLtMatmulDescSetAttribute,
                        (cublasLtMatmulDesc_t it, cublasLtMatmulDescAttributes_t which,
                         const void* value, size_t bytes),
                        (it, which, value, bytes))
STEPGATE_FORWARD_STATUS(cublasLtMatmulAlgoGetHeuristic,
                        (cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                         cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                         cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                         cublasLtMatmulPreference_t preference, int most,
                         cublasLtMatmulHeuristicResult_t* results, int* count),
                        (handle, operation, a, b, c, d, preference, most, results, count))
STEPGATE_FORWARD_STATUS(cublasLtMatmul,
                        (cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, const void* alpha,
                         const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                         cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                         cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t d_layout,
                         const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                         size_t workspace_bytes, cudaStream_t stream),
                        (handle, operation, alpha, a, a_layout, b, b_layout, beta, c, c_layout, d,
                         d_layout, algorithm, workspace, workspace_bytes, stream))
