// SPDX-License-Identifier: MIT
// The functions of cuDNN that its graphs need, loaded from the library at run time; a handle; and
// the plans that were made with both. graph.h builds graphs with them.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace stepgate {

// Members are named like the exported functions, without the prefix.
struct CudnnFunctions {
  decltype(&cudnnGetVersion) get_version;
  decltype(&cudnnGetErrorString) error_string;
  decltype(&cudnnGetLastErrorString) last_error_string;
  decltype(&cudnnCreate) create;
  decltype(&cudnnDestroy) destroy;
  decltype(&cudnnSetStream) set_stream;
  decltype(&cudnnBackendCreateDescriptor) create_descriptor;
  decltype(&cudnnBackendDestroyDescriptor) destroy_descriptor;
  decltype(&cudnnBackendSetAttribute) set_attribute;
  decltype(&cudnnBackendGetAttribute) get_attribute;
  decltype(&cudnnBackendFinalize) finalize;
  decltype(&cudnnBackendExecute) execute;
};

class CudnnPlans;  // plans.h

class Cudnn : public std::enable_shared_from_this<Cudnn> {
 public:
  // Owns the handle.
  Cudnn(const CudnnFunctions& functions, cudnnHandle_t handle);
  ~Cudnn();
  Cudnn(const Cudnn&) = delete;
  Cudnn& operator=(const Cudnn&) = delete;

  const CudnnFunctions& call() const { return functions_; }
  cudnnHandle_t handle() const { return handle_; }
  CudnnPlans& plans() { return *plans_; }
  std::int64_t version() const { return static_cast<std::int64_t>(functions_.get_version()); }

  // Returns a message like "cuDNN 9.19.0: finalize the plan: CUDNN_STATUS_NOT_SUPPORTED: (the
  // library's own words)".
  std::string describe(cudnnStatus_t status, std::string_view what) const;

 private:
  CudnnFunctions functions_;
  cudnnHandle_t handle_;
  std::unique_ptr<CudnnPlans> plans_;
};

// Returns "9.14.0" for 91400, the number by which cuDNN identifies this version.
std::string version_text(std::int64_t version);

}  // namespace stepgate
