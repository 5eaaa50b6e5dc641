// SPDX-License-Identifier: MIT
// NVIDIA's library of collectives, opened while the program runs. Needs no header of its and no
// CUDA toolkit to build, and no GPU to link.
#pragma once

#include <string>
#include <string_view>

#include "device/cuda/nccl/nccl_api.h"

namespace stepgate {

class Nccl {
 public:
  // Opens the file that STEPGATE_NCCL names, or the usual one. Does not throw: what fails is
  // unavailable(). The library stays open until the process ends, since it starts threads.
  Nccl();

  // Why there is none that can be used, with a way out; empty where there is one.
  const std::string& unavailable() const { return unavailable_; }
  // "2.28.9"; empty where there is no library.
  const std::string& version() const { return version_; }
  // Where the loader found it.
  const std::string& file() const { return file_; }
  // All of them are there unless it is unavailable.
  const nccl_api::Functions& call() const { return functions_; }

  // The name by which the ranks of one communicator find each other: 128 bytes. Throws DeviceError.
  std::string make_unique_id() const;

  // "NCCL 2.28.9 cannot all_reduce: unhandled cuda error: (the library's own words)"
  std::string describe(nccl_api::Result, std::string_view what, nccl_api::Handle = nullptr) const;

 private:
  void check_version();

  nccl_api::Functions functions_;
  std::string unavailable_;
  std::string version_;
  std::string file_;
};

}  // namespace stepgate
