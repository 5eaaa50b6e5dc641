// SPDX-License-Identifier: MIT
#include "device/cuda/step/cuda_streams.h"

namespace stepgate {

StepStreams CudaStreams::of(const StepPlan& plan) {
  StepStreams streams;
  for (const Stream& stream : plan.streams) {
    if (stream.kind == StreamKind::legacy_default) {
      streams.push_back(cudaStreamLegacy);
      continue;
    }
    CudaStream& created = created_[{stream.name, stream.kind}];
    if (!created) {
      created = make_stream(stream.kind == StreamKind::blocking ? cudaStreamDefault
                                                                : cudaStreamNonBlocking);
    }
    streams.push_back(created.get());
  }
  return streams;
}

}  // namespace stepgate
