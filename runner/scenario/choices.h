// SPDX-License-Identifier: MIT
// The values of knobs that are one of a few words. A value's name here is its word in files, but
// for those that knobs/fields.cpp lists. Plans use them too, where they say the same.
#pragma once

#include <cstdint>

namespace stepgate {

enum class ModelKind { mlp, spin, transformer, elementwise, chase, recommender, resnet, unet };
// Whether such a model has parameters, hence gradients, GEMMs and an update.
constexpr bool learns(ModelKind kind) {
  return kind != ModelKind::spin && kind != ModelKind::elementwise && kind != ModelKind::chase;
}
enum class ModelNorm { layer, rms };
enum class ModelMlp { gelu, swiglu };
// The scales of tensors in fp8: there are none in fp8, a scale is of the tensor's own largest
// number, or of those of earlier steps.
enum class ModelFp8 { none, current, delayed };
enum class ModelPosition { learned, rope };
// The first layer of a ResNet: a 7x7 convolution with stride 2 and a max pool, or a 3x3
// convolution.
enum class ModelStem { imagenet, cifar };
// Memory layout of records: `arrays`, one per field ("soa" in files), or `records` ("aos").
enum class Layout { arrays, records };
// Number format of a sample as the loader delivers it.
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
// The stream that copies the batch's buffer back to the host after the step's last kernel.
enum class CopyBack { none, compute, side };
enum class DeviceBuffer { resident, per_step };
// Advice to the driver about managed memory before the first step (cudaMemAdvise): this device
// mostly reads it, its pages should stay on this device, or this device should map it to avoid
// faults.
enum class ManagedAdvice { none, read_mostly, preferred, accessed_by };
enum class SyncWhere { none, step, micro, phase, op, forward, backward, update, parameter };
enum class SyncHow { device, stream, event, item, memcpy, poll };
// How the host waits: it polls, yields its CPU between polls, or blocks until an interrupt.
enum class SyncWait { spin, yield, block };
// `fixed` is written "static" in files.
enum class Allocator { fixed, cuda, cuda_async, arena, caching, expandable, first_fit };
enum class AllocRound { none, quarters, eighths };  // parts of the power of two below
enum class AllocWhen { never, step, op, resize };   // resize: when the batch size changes
// The stream that memory is allocated for: the compute stream, or the one that writes it first.
enum class AllocStream { compute, writer };
enum class ZeroGrad { none, memset };
enum class Offload { none, activations, optimizer, weights };
enum class OffloadVia { pinned_overlap, pinned, pageable };
enum class OptimKind { sgd, adamw, lion, momentum };
enum class OptimImpl { fused, per_tensor, foreach, operations };
// When 16-bit weights are copied from their fp32 master.
enum class MasterCast { update, forward };
enum class LaunchVia { stream, graph };
enum class Fuse {
  none,
  pointwise,
  attention,
  epilogue
};  // each value also fuses what the previous one does
// How the algorithm of a GEMM or a convolution is chosen: by the heuristics of the library, or by
// measuring once among algorithms with bitwise equal results.
enum class GemmChoice { heuristic, autotune };
// The order of the sums in cuDNN's gradient of attention: one of the shape alone, or any.
enum class AttentionSums { fixed, any };
enum class LogVia { mean_on_device, item, late_pinned, keep_on_device };
enum class SaveVia { blocking, waited, beside };
enum class EvalStore { none, host, device };
enum class RequiredLink { any, nvlink };  // between every two GPUs of a step
// State that is sharded, so that each rank keeps only a part: nothing (DDP), the optimizer's state,
// also the gradients, or also the weights (ZeRO's stages 1 to 3).
enum class Shard { none, optimizer, gradients, parameters };
enum class BucketOrder { reverse, forward };  // of parameters in the forward pass
// Number format of gradients in a reduction: that of the model, or converted to fp32 before.
enum class GradientDtype { model, fp32 };
// How gradients are averaged over ranks: by the collective, or each rank divides its gradients by
// the number of ranks before the collective adds them.
enum class Averaging { collective, before };
// How GPUs are connected: as NCCL chooses, or through host memory only. `usual` is written
// "default" in files.
enum class RankLinks { usual, no_p2p };
// How reductions overlap with the backward pass. `backward`: the step waits for a bucket before the
// update. `early_wait`: as soon as it is issued. `none`: buckets are issued after the backward
// pass.
enum class ReduceOverlap { backward, early_wait, none };
// How variants alternate within a round. `automatic`: step by step where they do not disturb each
// other, otherwise by segments. `segments`: always by segments.
enum class Interleave { automatic, segments };

}  // namespace stepgate
