// SPDX-License-Identifier: MIT
// A cubin that is loaded onto the GPU of this process.
#pragma once

#include <cstdint>
#include <utility>

#include "plugin/tables/cubin.h"

struct CUkern_st;  // cudaKernel_t is a pointer to it

namespace stepgate {

class OpenCubin {
 public:
  explicit OpenCubin(Cubin cubin) : cubin_(std::move(cubin)) {}

  // Loads the bytes that were read, the first time that a launch fits the device. They stay loaded
  // until the process ends, since graphs outlive steps. This object must outlive the launches.
  // Throws KernelLibraryError, KernelUnsupported.
  PreparedKernel prepare(const KernelRequest&, const DeviceFacts&);

 private:
  void load(const DeviceFacts&);

  Cubin cubin_;
  CUkern_st* kernel_ = nullptr;
  std::uint32_t most_shared_bytes_ = 0;  // that a launch may ask for
};

}  // namespace stepgate
