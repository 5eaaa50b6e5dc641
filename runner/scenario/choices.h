// SPDX-License-Identifier: MIT
// The values of knobs that are one of a few words. A value's name here is its word in files, but
// for those that knobs/fields.cpp lists. Plans use them too, where they say the same.
#pragma once

#include <cstdint>

namespace stepgate {

enum class ModelKind { mlp, spin, transformer, elementwise, chase, recommender };
enum class ModelNorm { layer, rms };
enum class ModelMlp { gelu, swiglu };
enum class ModelPosition { learned, rope };
// Written "soa" and "aos" in files: arrays of fields, or an array of records of all fields.
enum class Layout { arrays, records };
// Format of a sample's numbers, as the loader hands them over.
enum class BatchFormat { fp32, uint8 };
constexpr std::int64_t bytes_of(BatchFormat format) {
  return format == BatchFormat::uint8 ? 1 : 4;
}
enum class HostMemory {
  resident,
  pageable,
  pinned,
  registered,
  pin_each_step,
  managed,
  managed_prefetch
};
enum class CopyStream { compute, side, legacy };
enum class DeviceBuffer { resident, per_step };
// Advice to the driver about managed memory before the first step: that this device mostly reads
// it, that pages should stay on this device, or that this device should have mappings and need not
// fault.
enum class ManagedAdvice { none, read_mostly, preferred, accessed_by };
enum class SyncWhere { none, step, micro, phase, op };
enum class SyncHow { device, stream, event, item, memcpy, poll };
// How the host waits: it burns its processor, offers it to others, or sleeps until an interrupt.
enum class SyncWait { spin, yield, block };
// `fixed` is written "static" in files.
enum class Allocator { fixed, cuda, cuda_async, arena, caching, expandable, first_fit };
enum class AllocRound { none, quarters, eighths };  // of the power of two below
enum class AllocWhen { never, step, op, resize };   // resize: when the batch has another size
enum class ZeroGrad { none, memset };
enum class Offload { none, activations, optimizer, weights };
enum class OffloadVia { pinned_overlap, pinned, pageable };
enum class OptimKind { sgd, adamw, lion };
enum class OptimImpl { fused, per_tensor, foreach };
enum class LaunchVia { stream, graph };
enum class Fuse { none, pointwise, attention };  // each fuses what the one before does, and more
// How the algorithm of a GEMM is chosen: by the heuristics of the library, or by measuring once
// among algorithms with bitwise equal results.
enum class GemmChoice { heuristic, autotune };
enum class LogVia { mean_on_device, item, late_pinned, keep_on_device };
enum class EvalStore { none, host, device };
enum class RequiredLink { any, nvlink };  // between each two GPUs of a step
// State of which every rank keeps only its part: nothing (DDP), the optimizer's state, the
// gradients too, or the weights too (ZeRO's stages 1 to 3).
enum class Shard { none, optimizer, gradients, parameters };
enum class BucketOrder { reverse, forward };  // of parameters, as the forward pass uses them
// Format of gradients while they are reduced: as the model has them, or made larger before.
enum class GradientDtype { model, fp32 };
// How gradients become those of all ranks together: the collective takes their mean, or the sum of
// what each rank has divided before by how many there are.
enum class Averaging { collective, before };
// How GPUs reach each other: as NCCL finds best, or through host memory alone. `usual` is written
// "default" in files.
enum class RankLinks { usual, no_p2p };
// Where the step waits for a bucket: before the update, as soon as it is issued, or when it is
// issued only after the backward pass.
enum class ReduceOverlap { backward, early_wait, none };
// How the variants take turns within a round: by steps where those do not disturb each other and by
// segments elsewhere, or always by segments.
enum class Interleave { automatic, segments };

}  // namespace stepgate
