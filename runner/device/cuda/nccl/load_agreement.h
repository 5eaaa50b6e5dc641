// SPDX-License-Identifier: MIT
// All ranks load a plan or none does: where one lacks the memory, the others must not wait for it
// in the plan's collectives.
#pragma once

#include <chrono>
#include <string_view>
#include <vector>

#include "device/cuda/handles.h"
#include "device/cuda/nccl/nccl_communicator.h"

namespace stepgate {

// Waits until the streams have done what is in their queues, under the communicator's deadline: a
// call that waits would never return if a rank does not come. Throws DeviceError.
void wait_for_collectives(NcclCommunicator&, const std::vector<cudaStream_t>&,
                          std::string_view what);

class LoadAgreement {
 public:
  // Takes what it needs and connects the ranks, since a rank that lacks memory has to say so. The
  // communicator outlives it. Throws DeviceError.
  explicit LoadAgreement(NcclCommunicator&);

  // Before a load, and before what of it comes after an agreement, of all ranks alike.
  void begin() { is_told_ = false; }
  // Once since then, at every rank: whether all of them can go on. Throws DeviceError.
  bool all_can(bool this_one);
  // For the handler of whatever made a load fail: tells the others, if nothing was told before.
  // Does not throw.
  void tell_of_failure() noexcept;

 private:
  NcclCommunicator& communicator_;
  CudaStream stream_;
  DeviceMemoryBlock failures_;  // one float
  bool is_told_ = false;
};

}  // namespace stepgate
