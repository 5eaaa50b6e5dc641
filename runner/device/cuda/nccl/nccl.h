// SPDX-License-Identifier: MIT
// NVIDIA's library of collectives (NCCL), opened at run time. The build needs neither NCCL's header
// nor a CUDA toolkit, and linking needs no GPU.
#pragma once

#include <string>
#include <string_view>

#include "device/cuda/nccl/nccl_api.h"

namespace stepgate {

class Nccl {
 public:
  // Loads the file that STEPGATE_NCCL names, or the usual one. Does not throw; unavailable() says
  // what failed. The library stays loaded until the process ends, since it starts threads.
  Nccl();

  // The reason why NCCL cannot be used, with a hint; empty if it can.
  const std::string& unavailable() const { return unavailable_; }
  // The version, such as "2.28.9"; empty where there is no library.
  const std::string& version() const { return version_; }
  // The file that the dynamic loader found.
  const std::string& file() const { return file_; }
  // The functions; all are set unless unavailable() says otherwise.
  const nccl_api::Functions& call() const { return functions_; }

  // Makes the 128 bytes by which the ranks of one communicator find each other. Throws DeviceError.
  std::string make_unique_id() const;

  // Returns a message like "NCCL 2.28.9 cannot all_reduce: unhandled cuda error: (the library's own
  // words)".
  std::string describe(nccl_api::Result, std::string_view what, nccl_api::Handle = nullptr) const;

 private:
  void check_version();

  nccl_api::Functions functions_;
  std::string unavailable_;
  std::string version_;
  std::string file_;
};

}  // namespace stepgate
