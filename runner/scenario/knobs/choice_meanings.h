// SPDX-License-Identifier: MIT
// A line for each choice of a knob, in the order of its enum: for people who know the word of
// PyTorch or CUDA and not ours. Only field_row.h includes this.
#pragma once

#include <array>
#include <string_view>

#include "base/text/enumerators.h"
#include "kernels/kernel.h"
#include "scenario/choices.h"

namespace stepgate::field_row {

// Every enum of a knob has a line for each of its values; an enum without any does not compile.
template <class Enum>
using Meanings = std::array<std::string_view, enumerators<Enum>.size()>;
template <class Enum>
inline constexpr Meanings<Enum> meanings;

template <>
inline constexpr Meanings<ModelKind> meanings<ModelKind>{
    "layers of GEMMs with bias and relu",
    "kernels that only spin for a given time",
    "blocks of attention and MLP, as in GPT-2 and Llama",
    "kernels that read and write memory and hardly compute",
    "one thread's loads, each of which waits for the one before",
    "tables of embeddings under layers of GEMMs, as in DLRM",
    "bottleneck blocks of convolutions and batch norms (v1.5)",
    "residual blocks of convolutions and group norms with skips, and attention, as in diffusers"};
template <>
inline constexpr Meanings<DType> meanings<DType>{
    "32 bits, without tensor cores", "stored in 32 bits, multiplied with 10 bits of mantissa",
    "torch.bfloat16", "torch.float16, with a scaled loss", "for tests, on the host"};
template <>
inline constexpr Meanings<ModelStem> meanings<ModelStem>{
    "a 7x7 convolution with stride 2 and a max pool", "a 3x3 convolution, for images of 32 pixels"};
template <>
inline constexpr Meanings<ModelNorm> meanings<ModelNorm>{"LayerNorm", "RMSNorm"};
template <>
inline constexpr Meanings<ModelMlp> meanings<ModelMlp>{"GELU between two GEMMs, as in GPT-2",
                                                       "SiLU of a gate times up, as in Llama"};
template <>
inline constexpr Meanings<ModelFp8> meanings<ModelFp8>{
    "GEMMs in 'model.dtype'",
    "a tensor is scaled by its largest number, for which it is read once more, as torchao's "
    "tensorwise scaling and Float8CurrentScaling do",
    "a tensor is scaled by the largest number of its last 16 steps, as DelayedScaling does"};
template <>
inline constexpr Meanings<ModelPosition> meanings<ModelPosition>{
    "a table of positions, as in GPT-2", "queries and keys turned by their positions, as in Llama"};
template <>
inline constexpr Meanings<Layout> meanings<Layout>{"an array for each field",
                                                   "an array of records of six fields"};
template <>
inline constexpr Meanings<BatchFormat> meanings<BatchFormat>{"numbers of 32 bits",
                                                             "bytes, decoded on the device"};
template <>
inline constexpr Meanings<HostMemory> meanings<HostMemory>{
    "the batch is on the device already and never copied",
    "ordinary memory, as of malloc",
    "cudaMallocHost, or pin_memory = True",
    "malloc, then cudaHostRegister once",
    "malloc, and cudaHostRegister in every step",
    "cudaMallocManaged, moved by page faults",
    "cudaMallocManaged, moved ahead by cudaMemPrefetchAsync"};
template <>
inline constexpr Meanings<CopyStream> meanings<CopyStream>{
    "the stream of the kernels, before them", "a stream of its own, beside the kernels",
    "stream 0, which every other one waits for"};
template <>
inline constexpr Meanings<CopyBack> meanings<CopyBack>{
    "it is not copied back", "the stream of the kernels, behind them",
    "a stream of its own, beside the next step's kernels"};
template <>
inline constexpr Meanings<DeviceBuffer> meanings<DeviceBuffer>{"kept from step to step",
                                                               "allocated anew in every step"};
template <>
inline constexpr Meanings<ManagedAdvice> meanings<ManagedAdvice>{
    "nothing", "cudaMemAdviseSetReadMostly", "cudaMemAdviseSetPreferredLocation",
    "cudaMemAdviseSetAccessedBy"};
template <>
inline constexpr Meanings<SyncWhere> meanings<SyncWhere>{
    "never",
    "after each step",
    "after the backward pass of each part of a batch",
    "after each phase: transfer, forward, backward, update",
    "after each kernel, copy and fill",
    "after the forward pass of each part of a batch",
    "after the backward pass, before the update",
    "after the update",
    "at each parameter of the update: step.item() in an optimizer's loop"};
template <>
inline constexpr Meanings<SyncHow> meanings<SyncHow>{
    "cudaDeviceSynchronize, or torch.cuda.synchronize",
    "cudaStreamSynchronize",
    "cudaEventSynchronize",
    "loss.item(): a small copy, then a wait for its stream",
    "a cudaMemcpy that blocks",
    "cudaEventQuery, again and again"};
template <>
inline constexpr Meanings<SyncWait> meanings<SyncWait>{
    "it asks without pause and keeps its processor",
    "it asks, and lets other threads run in between", "it sleeps until an interrupt"};
template <>
inline constexpr Meanings<Allocator> meanings<Allocator>{
    "all buffers are there before the first step",
    "cudaMalloc and cudaFree",
    "cudaMallocAsync and its pool",
    "one piece of memory, places planned from the lifetimes",
    "the caching allocator of PyTorch",
    "that allocator with expandable_segments:True",
    "one piece of memory, the first free place that fits"};
template <>
inline constexpr Meanings<AllocRound> meanings<AllocRound>{
    "to 512 bytes", "roundup_power2_divisions:4", "roundup_power2_divisions:8"};
template <>
inline constexpr Meanings<AllocWhen> meanings<AllocWhen>{
    "before the first step alone", "at the start of each step", "before each kernel that needs it",
    "where a step has another size than the one before"};
template <>
inline constexpr Meanings<AllocStream> meanings<AllocStream>{
    "that of the kernels, which waits for what other streams did with it",
    "the one that writes it first, as under torch.cuda.stream(s), which waits for the others"};
template <>
inline constexpr Meanings<ZeroGrad> meanings<ZeroGrad>{
    "gradients are overwritten: zero_grad(set_to_none=True)",
    "gradients are filled with zeros: zero_grad(set_to_none=False)"};
template <>
inline constexpr Meanings<Offload> meanings<Offload>{
    "nothing", "inputs of layers, between the forward and the backward pass",
    "the moments of AdamW, between two updates", "weights and moments, a layer at a time"};
template <>
inline constexpr Meanings<OffloadVia> meanings<OffloadVia>{
    "pinned memory, copied beside the kernels", "pinned memory, copied between the kernels",
    "ordinary memory, for which the host waits"};
template <>
inline constexpr Meanings<OptimKind> meanings<OptimKind>{
    "w -= rate * gradient", "torch.optim.AdamW, two moments", "Lion, one moment",
    "torch.optim.SGD(momentum=0.9), one moment"};
template <>
inline constexpr Meanings<OptimImpl> meanings<OptimImpl>{
    "one kernel for all tensors: fused=True", "one kernel for each tensor",
    "one kernel for each operation of the rule: foreach=True",
    "one kernel for each operation on each tensor: foreach=False"};
template <>
inline constexpr Meanings<MasterCast> meanings<MasterCast>{
    "by the kernel that updates both",
    "tensor by tensor before every forward pass, as autocast does"};
template <>
inline constexpr Meanings<LaunchVia> meanings<LaunchVia>{"one launch after the other",
                                                         "one CUDA graph a step"};
template <>
inline constexpr Meanings<Fuse> meanings<Fuse>{
    "every operation is a kernel, as in eager mode", "pointwise operations share kernels",
    "pointwise operations, and attention without scores in memory",
    "as attention, and gelu and its gradient in the GEMMs before them"};
template <>
inline constexpr Meanings<GemmChoice> meanings<GemmChoice>{
    "the first algorithm that cuBLASLt or cuDNN proposes",
    "the fastest that was measured, of those with the same bits"};
template <>
inline constexpr Meanings<AttentionSums> meanings<AttentionSums>{
    "the same bits in every run, with scores in memory: use_deterministic_algorithms(True)",
    "other last bits in every run, without scores in memory, as PyTorch by default"};
template <>
inline constexpr Meanings<LogVia> meanings<LogVia>{
    "the device adds losses up, and their mean is read where a line is due",
    "loss.item(): a small copy, then a wait for its stream",
    "copied to pinned memory, and read a step later",
    "appended to a list of device scalars that nobody empties"};
template <>
inline constexpr Meanings<SaveVia> meanings<SaveVia>{
    "a tensor at a time into ordinary memory, for which the host waits: tensor.cpu()",
    "into pinned memory, and the host waits for all of them at once",
    "into pinned memory beside the next steps, and the next update waits for them"};
template <>
inline constexpr Meanings<EvalStore> meanings<EvalStore>{
    "dropped", "copied to the host", "kept on the device until the evaluation ends"};
template <>
inline constexpr Meanings<RequiredLink> meanings<RequiredLink>{"any", "NVLink"};
template <>
inline constexpr Meanings<Shard> meanings<Shard>{
    "nothing: DistributedDataParallel", "the optimizer's state: ZeRO 1", "gradients too: ZeRO 2",
    "weights too: ZeRO 3, fully sharded data parallel"};
template <>
inline constexpr Meanings<BucketOrder> meanings<BucketOrder>{
    "the last parameters first, as their gradients come", "the first parameters first"};
template <>
inline constexpr Meanings<GradientDtype> meanings<GradientDtype>{"as the model has them",
                                                                 "fp32, between two conversions"};
template <>
inline constexpr Meanings<Averaging> meanings<Averaging>{
    "ncclAvg", "a kernel divides each bucket, then ncclSum"};
template <>
inline constexpr Meanings<RankLinks> meanings<RankLinks>{"as NCCL chooses",
                                                         "through host memory: NCCL_P2P_DISABLE=1"};
template <>
inline constexpr Meanings<ReduceOverlap> meanings<ReduceOverlap>{
    "beside the backward pass, waited for before the update",
    "waited for as soon as each is issued", "issued after the backward pass"};
template <>
inline constexpr Meanings<Interleave> meanings<Interleave>{
    "step by step where variants do not disturb each other, else by segments",
    "by segments of many steps"};

}  // namespace stepgate::field_row
