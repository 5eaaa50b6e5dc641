// SPDX-License-Identifier: MIT
#include "plan/compose/build_managed_input.h"

#include <string>

namespace stepgate {
namespace {

struct ManagedBatch {
  int source = 0;    // ordinary host memory, where the loader left the batch
  int batch = 0;     // managed, what the model reads
  int consumed = 0;  // event: the device has read the slot
};

ManagedBatch add_buffers(StepBuilder& builder, const Knobs& knobs, std::int64_t batch_bytes) {
  return {.source = builder.add({.name = "host batch",
                                 .memory = MemoryKind::pageable,
                                 .purpose = Purpose::staging,
                                 .bytes = batch_bytes,
                                 .slots = distinct_batches,
                                 .content = Content::payload}),
          .batch = builder.add({.name = "managed batch",
                                .memory = MemoryKind::managed,
                                .purpose = Purpose::batch,
                                .bytes = batch_bytes,
                                .slots = knobs.transfer.buffers,
                                .advice = knobs.transfer.advise}),
          .consumed = builder.add_event("batch consumed", knobs.transfer.buffers)};
}

void write(StepBuilder& builder, const Knobs& knobs, const ManagedBatch& made, std::int64_t bytes,
           int ahead) {
  const bool prefetch = knobs.transfer.host == HostMemory::managed_prefetch;
  const std::int64_t tensors = knobs.batch.tensors;
  for (std::int64_t tensor = 0; tensor < tensors; ++tensor) {
    const TensorBytes part = tensor_of_batch(bytes, tensor, knobs.batch);
    const std::string what = tensors == 1 ? " the batch" : " tensor " + std::to_string(tensor);
    builder.enter(Phase::data_wait);
    builder.look_ahead(ahead);
    builder.act("write" + what, HostCopies{StepBuilder::part(made.batch, part.first, part.bytes),
                                           StepBuilder::part(made.source, part.first, part.bytes)});
    if (prefetch) {
      builder.enter(Phase::h2d, builder.add_stream(stream_of(knobs.transfer.stream)));
      builder.look_ahead(ahead);
      builder.act("prefetch" + what,
                  Prefetch{StepBuilder::part(made.batch, part.first, part.bytes)});
    }
  }
}

}  // namespace

InputParts build_managed_input(StepBuilder& builder, const Knobs& knobs, std::int64_t batch_bytes) {
  const bool prefetch = knobs.transfer.host == HostMemory::managed_prefetch;
  const bool on_side = knobs.transfer.stream == CopyStream::side;
  const int ahead = on_side ? static_cast<int>(knobs.transfer.buffers) - 1 : 0;
  const ManagedBatch made = add_buffers(builder, knobs, batch_bytes);
  builder.enter(Phase::data_wait);
  builder.look_ahead(ahead);
  builder.act("take a batch from the loader", TakeBatch{});
  builder.act("wait until the slot is free", HostWaits{WaitFor::event, made.consumed});
  write(builder, knobs, made, batch_bytes, ahead);
  if (prefetch && knobs.transfer.blocking) {
    builder.act("wait for the prefetch", HostWaits{WaitFor::stream});
  }
  if (on_side) hand_off(builder, knobs.transfer.buffers);
  return {.batch = made.batch, .consumed = made.consumed};
}

}  // namespace stepgate
