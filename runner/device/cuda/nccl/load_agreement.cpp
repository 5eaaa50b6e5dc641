// SPDX-License-Identifier: MIT
#include "device/cuda/nccl/load_agreement.h"

#include <exception>

#include "device/cuda/check.h"

namespace stepgate {

void wait_for_collectives(NcclCommunicator& communicator, const std::vector<cudaStream_t>& streams,
                          std::string_view what) {
  const auto begin = std::chrono::steady_clock::now();
  for (const cudaStream_t stream : streams) {
    cudaError_t status = cudaErrorNotReady;
    while ((status = cudaStreamQuery(stream)) == cudaErrorNotReady)
      communicator.check_while_waiting(begin, what);
    (void)cudaGetLastError();  // "not ready" must not look like the error of the next launch
    check(status, what);
  }
}

LoadAgreement::LoadAgreement(NcclCommunicator& communicator)
    : communicator_(communicator),
      stream_(make_stream(cudaStreamNonBlocking)),
      failures_(make_device_memory(sizeof(float))) {
  (void)all_can(true);
}

bool LoadAgreement::all_can(bool this_one) {
  is_told_ = true;
  float failures = this_one ? 0 : 1;
  check(cudaMemcpyAsync(failures_.get(), &failures, sizeof failures, cudaMemcpyHostToDevice,
                        stream_.get()),
        "tell the other ranks");
  communicator_.issue_first({.kind = CollectiveKind::all_reduce,
                             .from = failures_.get(),
                             .to = failures_.get(),
                             .elements = 1,
                             .dtype = DType::fp32,
                             .reduction = Reduction::sum},
                            stream_.get());
  wait_for_collectives(communicator_, {stream_.get()}, "hear of the other ranks");
  check(cudaMemcpy(&failures, failures_.get(), sizeof failures, cudaMemcpyDeviceToHost),
        "hear of the other ranks");
  return failures == 0;
}

void LoadAgreement::tell_of_failure() noexcept {
  if (is_told_) return;
  try {
    (void)all_can(false);
  } catch (const std::exception&) {
    // The other ranks notice this at their deadline; the first error is more helpful.
  }
}

}  // namespace stepgate
