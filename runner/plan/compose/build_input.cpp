// SPDX-License-Identifier: MIT
#include "plan/compose/build_input.h"

#include <algorithm>
#include <string>

#include "base/require.h"

namespace stepgate {
namespace {

struct ManagedBatch {
  int source = 0;    // ordinary host memory, where the loader left the batch
  int batch = 0;     // managed, what the model reads
  int consumed = 0;  // event: the device has read the slot
};

ManagedBatch add_managed_buffers(StepBuilder& builder, const Knobs& knobs,
                                 std::int64_t batch_bytes) {
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

void write_batch(StepBuilder& builder, const Knobs& knobs, const ManagedBatch& made,
                 std::int64_t bytes, int ahead) {
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

// Appends the operations that bring a batch to the device without a copy call. The host writes a
// slot only when the device has read the batch that lay in it.
InputParts build_managed_input(StepBuilder& builder, const Knobs& knobs, std::int64_t batch_bytes) {
  const bool prefetch = knobs.transfer.host == HostMemory::managed_prefetch;
  const bool on_side = knobs.transfer.stream == CopyStream::side;
  const int ahead = on_side ? static_cast<int>(knobs.transfer.buffers) - 1 : 0;
  const ManagedBatch made = add_managed_buffers(builder, knobs, batch_bytes);
  builder.enter(Phase::data_wait);
  builder.look_ahead(ahead);
  builder.act("take a batch from the loader", TakeBatch{});
  builder.act("wait until the slot is free", HostWaits{WaitFor::event, made.consumed});
  write_batch(builder, knobs, made, batch_bytes, ahead);
  if (prefetch && knobs.transfer.blocking) {
    builder.act("wait for the prefetch", HostWaits{WaitFor::stream});
  }
  if (on_side) hand_off(builder, knobs.transfer.buffers);
  return {.batch = made.batch, .consumed = made.consumed};
}

MemoryKind memory_of(HostMemory host) {
  switch (host) {
    case HostMemory::pinned:
      return MemoryKind::pinned;
    case HostMemory::registered:
    case HostMemory::pin_each_step:
      return MemoryKind::registered;
    case HostMemory::pageable:
      return MemoryKind::pageable;
    case HostMemory::managed:
    case HostMemory::managed_prefetch:
    case HostMemory::resident:
      break;
  }
  require(false, "only batches that are copied have host memory of their own");
  return MemoryKind::pageable;
}

// Copies one batch from host memory to the device, with one copy for each of its tensors.
class HostInput {
 public:
  HostInput(StepBuilder& builder, const Knobs& knobs, std::int64_t batch_bytes)
      : builder_(builder),
        knobs_(knobs),
        bytes_(batch_bytes),
        stream_(builder.add_stream(stream_of(knobs.transfer.stream))) {
    host_ = builder.add({.name = "host batch",
                         .memory = memory_of(knobs.transfer.host),
                         .purpose = Purpose::staging,
                         .bytes = bytes_,
                         .slots = distinct_batches,
                         .content = Content::payload});
    device_ = builder.add(
        {.name = "device batch",
         .purpose = Purpose::batch,
         .bytes = bytes_,
         .slots = knobs.transfer.buffers,
         .allocated_by = per_step() ? allocated_by(knobs.alloc.with) : AllocatedBy::the_plan});
  }

  InputParts build() {
    InputParts parts{.batch = device_, .consumed = std::nullopt, .release_batch = per_step()};
    // With one resident buffer there is no handoff. find_races reports the race; a wait would only
    // hide it.
    const bool apart = on_side() || knobs_.transfer.back == CopyBack::side;
    const bool handed_off = apart && !per_step() && knobs_.transfer.buffers > 1;
    const int ahead = on_side() ? static_cast<int>(knobs_.transfer.buffers) - 1 : 0;
    if (handed_off) parts.consumed = builder_.add_event("batch consumed", knobs_.transfer.buffers);
    builder_.enter(Phase::data_wait);
    builder_.look_ahead(ahead);
    builder_.act("take a batch from the loader", TakeBatch{});
    builder_.enter(Phase::h2d, stream_);
    builder_.look_ahead(ahead);
    if (per_step()) builder_.act("allocate the batch", Allocate{device_});
    if (parts.consumed)
      builder_.act("wait until the slot is free", StreamWaitsEvent{*parts.consumed});
    copy();
    if (on_side()) hand_off(builder_, knobs_.transfer.buffers);
    return parts;
  }

 private:
  bool on_side() const { return knobs_.transfer.stream == CopyStream::side; }
  bool per_step() const { return knobs_.transfer.device_buffer == DeviceBuffer::per_step; }

  void copy() {
    const bool locks = knobs_.transfer.host == HostMemory::pin_each_step;
    // A synchronous call exists on the legacy stream only; on other streams, blocking means a copy
    // and a wait for the stream.
    const bool synchronous =
        knobs_.transfer.blocking && knobs_.transfer.stream == CopyStream::legacy;
    if (locks) builder_.act("register the host batch", RegisterHost{host_});
    const std::int64_t tensors = knobs_.batch.tensors;
    for (std::int64_t tensor = 0; tensor < tensors; ++tensor) {
      const TensorBytes part = tensor_of_batch(bytes_, tensor, knobs_.batch);
      const std::string name =
          tensors == 1 ? "copy the batch" : "copy tensor " + std::to_string(tensor);
      builder_.act(name, CopyBytes{StepBuilder::part(device_, part.first, part.bytes),
                                   StepBuilder::part(host_, part.first, part.bytes), synchronous});
    }
    if ((knobs_.transfer.blocking && !synchronous) || locks) {
      builder_.act("wait for the copy", HostWaits{WaitFor::stream});
    }
    if (locks) builder_.act("unregister the host batch", UnregisterHost{host_});
  }

  StepBuilder& builder_;
  const Knobs& knobs_;
  std::int64_t bytes_;
  int stream_;
  int host_ = 0;
  int device_ = 0;
};

}  // namespace

Stream stream_of(CopyStream stream) {
  switch (stream) {
    case CopyStream::compute:
      // The stream is blocking, so that cudaMemcpy on the legacy stream waits for it.
      return {.name = "compute", .kind = StreamKind::blocking};
    case CopyStream::side:
      return {.name = "side", .kind = StreamKind::non_blocking};
    case CopyStream::legacy:
      return {.name = "legacy", .kind = StreamKind::legacy_default};
  }
  require(false, "every copy stream is a stream of a plan");
  return {};
}

Stream way_out() {
  return {.name = "side out", .kind = StreamKind::non_blocking};
}

TensorBytes tensor_of_batch(std::int64_t batch_bytes, std::int64_t tensor,
                            const BatchKnobs& batch) {
  const std::int64_t number_bytes = bytes_of(batch.format);
  const std::int64_t numbers = batch_bytes / number_bytes;
  const std::int64_t first = tensor * numbers / batch.tensors * number_bytes;
  return {first, (tensor + 1) * numbers / batch.tensors * number_bytes - first};
}

void hand_off(StepBuilder& builder, std::int64_t slots) {
  const int filled = builder.add_event("batch filled", slots);
  builder.act("batch is filled", RecordEvent{filled});
  builder.enter(Phase::h2d);
  builder.act("wait for the batch", StreamWaitsEvent{filled});
}

AllocatedBy allocated_by(Allocator with) {
  switch (with) {
    case Allocator::fixed:
      return AllocatedBy::the_plan;
    case Allocator::cuda:
      return AllocatedBy::cuda;
    case Allocator::cuda_async:
      return AllocatedBy::cuda_async;
    case Allocator::arena:
      return AllocatedBy::the_plan;
    case Allocator::caching:
    case Allocator::expandable:
    case Allocator::first_fit:
      return AllocatedBy::step_allocator;
  }
  require(false, "every allocator is known to plans");
  return AllocatedBy::the_plan;
}

std::int64_t bytes_of_batch(const BatchKnobs& batch, std::int64_t samples,
                            std::int64_t sample_bytes) {
  return samples * (sample_bytes / word_bytes) * bytes_of(batch.format);
}

InputParts build_input(StepBuilder& builder, const Knobs& knobs, std::int64_t sample_bytes) {
  const std::int64_t batch_bytes = bytes_of_batch(knobs.batch, knobs.batch.size, sample_bytes);
  builder.plan().batch_bytes = std::max(builder.plan().batch_bytes, batch_bytes);
  const HostMemory host = knobs.transfer.host;
  if (host == HostMemory::managed || host == HostMemory::managed_prefetch) {
    return build_managed_input(builder, knobs, batch_bytes);
  }
  if (host != HostMemory::resident) return HostInput(builder, knobs, batch_bytes).build();
  if (knobs.loader != LoaderKnobs{}) {
    builder.enter(Phase::data_wait);
    builder.act("take a batch from the loader", TakeBatch{});
  }
  return {.batch = builder.add({.name = "device batch",
                                .purpose = Purpose::batch,
                                .bytes = batch_bytes,
                                .slots = distinct_batches,
                                .content = Content::payload}),
          .consumed = std::nullopt};
}

void build_copy_back(StepBuilder& builder, const Knobs& knobs, int batch) {
  if (knobs.transfer.back == CopyBack::none) return;
  const BufferUse from = builder.whole(batch);
  const int host = builder.add({.name = "batch back on the host",
                                .memory = MemoryKind::pinned,
                                .purpose = Purpose::staging,
                                .bytes = from.bytes});
  builder.enter(Phase::save);
  if (knobs.transfer.back == CopyBack::side) {
    const int computed = builder.add_event("batch is computed", 1);
    builder.act("the batch is computed", RecordEvent{computed});
    builder.enter(Phase::save, builder.add_stream(way_out()));
    builder.act("wait: the batch is computed", StreamWaitsEvent{computed});
  }
  builder.act("copy the batch back", CopyBytes{builder.whole(host), from});
}

std::optional<int> build_other_copies(StepBuilder& builder, const Knobs& knobs,
                                      std::int64_t sample_bytes) {
  if (knobs.transfer.others == 0) return std::nullopt;
  const std::int64_t bytes = bytes_of_batch(knobs.batch, knobs.batch.size, sample_bytes);
  const int host = builder.add({.name = "other data on the host",
                                .memory = MemoryKind::pinned,
                                .purpose = Purpose::staging,
                                .bytes = bytes});
  const int device =
      builder.add({.name = "other data", .purpose = Purpose::staging, .bytes = bytes});
  const int begun = builder.add_event("other copies begin", 1);
  const int there = builder.add_event("other data is there", 1);
  builder.enter(Phase::h2d);
  builder.act("other copies begin", RecordEvent{begun});
  builder.enter(Phase::h2d,
                builder.add_stream({.name = "others", .kind = StreamKind::non_blocking}));
  builder.act("wait: other copies begin", StreamWaitsEvent{begun});
  for (std::int64_t copy = 0; copy < knobs.transfer.others; ++copy) {
    builder.act("copy other data " + std::to_string(copy),
                CopyBytes{builder.whole(device), builder.whole(host)});
  }
  builder.act("other data is there", RecordEvent{there});
  return there;
}

}  // namespace stepgate
