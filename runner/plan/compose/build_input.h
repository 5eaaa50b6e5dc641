// SPDX-License-Identifier: MIT
// How the batch arrives: loader, pinning, copies, hand-off between streams. build_model.h has the
// operations that read it.
#pragma once

#include <optional>

#include "plan/compose/step_builder.h"
#include "scenario/scenario.h"

namespace stepgate {

// Batches that the host rotates over, so that a late or overwritten copy shows in the loss.
constexpr std::int64_t distinct_batches = 4;

struct InputParts {
  int batch = 0;                // device buffer that the model reads
  std::optional<int> consumed;  // event to record once the batch has been read
  bool release_batch = false;   // the batch's buffer is this step's own and must be released
};

// Size of a batch as the loader hands it over, in bytes; `sample_bytes` are those of a sample in
// words.
std::int64_t bytes_of_batch(const BatchKnobs&, std::int64_t samples, std::int64_t sample_bytes);

// Appends the operations that bring such a batch to the device. One of bytes holds those of random
// words, as the payload of any batch.
InputParts build_input(StepBuilder&, const Knobs&, std::int64_t sample_bytes);

// As plans list it. Steps have further uses for those that batches may be copied on.
Stream stream_of(CopyStream);

// One of the tensors that a batch consists of, whole numbers each, in bytes from its start.
struct TensorBytes {
  std::int64_t first = 0;
  std::int64_t bytes = 0;
};
TensorBytes tensor_of_batch(std::int64_t batch_bytes, std::int64_t tensor, const BatchKnobs&);

// The compute stream goes on when the stream that the builder is on has filled the batch. The
// builder is on the compute stream afterwards.
void hand_off(StepBuilder&, std::int64_t slots);

// The allocator of buffers that come and go.
AllocatedBy allocated_by(Allocator);

}  // namespace stepgate
