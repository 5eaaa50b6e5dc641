// SPDX-License-Identifier: MIT
// Runs each collective of a step once when the step is loaded. The first collective of a kind and
// size connects ranks and allocates memory, which must not happen in a step. All ranks load the
// same plans in the same order, so these collectives match too.
#include <algorithm>
#include <set>
#include <tuple>
#include <vector>

#include "device/cuda/check.h"
#include "device/cuda/nccl/load_agreement.h"
#include "device/cuda/nccl/nccl_words.h"
#include "device/cuda/step/cuda_step.h"

namespace stepgate {
namespace {

// The properties by which NCCL chooses its algorithm.
using CollectiveClass = std::tuple<int, CollectiveKind, DType, Reduction, std::int64_t>;

CollectiveClass class_of(const Collective& collective) {
  return {collective.communicator, collective.kind, collective.dtype, collective.reduction,
          nccl_elements_of(collective)};
}

std::int64_t free_memory() {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  check(cudaMemGetInfo(&free_bytes, &total_bytes), "ask for the free memory");
  return static_cast<std::int64_t>(free_bytes);
}

}  // namespace

// Runs the collectives on the buffers of the step, since the device may lack memory for scratch
// buffers. Restores the contents afterwards. Only buffers without memory get memory of their own.
void CudaStep::run_first_collectives(const CudaServices& services) {
  if (plan_.ranks.count == 1) return;
  if (!services.agreement->all_can(true)) throw DeviceError("another rank cannot load it");
  std::set<CollectiveClass> done;
  std::set<int> written;
  std::vector<DeviceMemoryBlock> scratch;
  // The contents must be complete; they are filled on the compute stream.
  check(cudaStreamSynchronize(stream(compute_stream)), "fill the buffers");
  const std::int64_t free_before = free_memory();
  for (const Operation& operation : plan_.operations) {
    const auto* collective = std::get_if<Collective>(&operation.action);
    if (collective == nullptr || !done.insert(class_of(*collective)).second) continue;
    CollectiveCall call = call_of(*collective, first_step_);
    const bool is_there = buffers_.address(collective->from.buffer, first_step_) != nullptr &&
                          buffers_.address(collective->to.buffer, first_step_) != nullptr;
    if (!is_there) {
      scratch.push_back(make_device_memory(collective->from.bytes));
      call.from = scratch.back().get();
      scratch.push_back(make_device_memory(collective->to.bytes));
      call.to = scratch.back().get();
    }
    const cudaStream_t on = stream(operation.stream);
    NcclCommunicator& with = communicator(*collective);
    with.issue_first(call, on);
    // A communicator connects its ranks while none of another one's kernels waits on a GPU.
    wait_for_collectives(with, {on}, name_of(collective->kind));
    written.insert(collective->to.buffer);
  }
  if (written.empty()) return;
  // NCCL allocates memory in the first load that needs it, and keeps it. This memory must not count
  // as memory of the step.
  scratch.clear();
  buffers_.leave_out(free_before - free_memory());
  for (const int buffer : written)
    buffers_.fill_again(buffer, services.contents, stream(compute_stream));
}

}  // namespace stepgate
