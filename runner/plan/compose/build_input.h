// SPDX-License-Identifier: MIT
// How the batch arrives: loader, pinning, copies and handoffs between streams. build_model.h has
// the operations that read it.
#pragma once

#include <optional>

#include "plan/compose/step_builder.h"
#include "scenario/scenario.h"

namespace stepgate {

// The number of different batches that the host uses in turns, so that a late or overwritten copy
// changes the loss.
constexpr std::int64_t distinct_batches = 4;

struct InputParts {
  int batch = 0;                // device buffer that the model reads
  std::optional<int> consumed;  // event to record once the batch has been read
  bool release_batch = false;   // the step allocates the batch's buffer and must release it
};

// Bytes of a batch in the loader's format. `sample_bytes` are the bytes of a sample in 32-bit
// words.
std::int64_t bytes_of_batch(const BatchKnobs&, std::int64_t samples, std::int64_t sample_bytes);

// Appends the operations that bring such a batch to the device. A batch in uint8 holds the bytes of
// random words, like any payload.
InputParts build_input(StepBuilder&, const Knobs&, std::int64_t sample_bytes);

// Appends the copies of data other than the batch, which begin with the step. Returns the event
// that the end of the step has to wait for, if there are any.
std::optional<int> build_other_copies(StepBuilder&, const Knobs&, std::int64_t sample_bytes);

// Appends the copy of the batch's buffer back to the host, if the knobs ask for one. It follows the
// kernels that were appended so far, and is the last to read the buffer.
void build_copy_back(StepBuilder&, const Knobs&, int batch);

// Returns the stream as plans list it. Steps may also use it for other data than batches.
Stream stream_of(CopyStream);

// The stream for copies to the host. If they used the side stream, they would delay the copies to
// the device.
Stream way_out();

// The byte range of one of the tensors of a batch. It holds whole numbers.
struct TensorBytes {
  std::int64_t first = 0;
  std::int64_t bytes = 0;
};
TensorBytes tensor_of_batch(std::int64_t batch_bytes, std::int64_t tensor, const BatchKnobs&);

// Makes the compute stream wait until the builder's current stream has filled the batch. Afterwards
// the builder is on the compute stream.
void hand_off(StepBuilder&, std::int64_t slots);

// The allocator of temporary buffers for this value of the knob alloc.with.
AllocatedBy allocated_by(Allocator);

}  // namespace stepgate
