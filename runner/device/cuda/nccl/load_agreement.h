// SPDX-License-Identifier: MIT
// Agreement among ranks that all load a plan or none does: if one rank lacks the memory, the others
// must not wait for it in the plan's collectives.
#pragma once

#include <chrono>
#include <string_view>
#include <vector>

#include "device/cuda/handles.h"
#include "device/cuda/nccl/nccl_communicator.h"

namespace stepgate {

// Waits for the streams with the communicator's deadline: a plain wait would never return if a rank
// is missing. Throws DeviceError.
void wait_for_collectives(NcclCommunicator&, const std::vector<cudaStream_t>&,
                          std::string_view what);

class LoadAgreement {
 public:
  // Allocates in advance and connects the ranks, so that a rank without memory can still report
  // that. The communicator must outlive this object. Throws DeviceError.
  explicit LoadAgreement(NcclCommunicator&);

  // Begins a load, or its next part after an agreement; all ranks must call it at the same points.
  void begin() { is_told_ = false; }
  // All ranks call this once after begin(). Returns whether all ranks can continue. Throws
  // DeviceError.
  bool all_can(bool this_one);
  // Tells the other ranks that a load has failed, unless all_can() already did. Does not throw.
  void tell_of_failure() noexcept;

 private:
  NcclCommunicator& communicator_;
  CudaStream stream_;
  DeviceMemoryBlock failures_;  // one float
  bool is_told_ = false;
};

}  // namespace stepgate
