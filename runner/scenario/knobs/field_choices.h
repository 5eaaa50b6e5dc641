// SPDX-License-Identifier: MIT
// The words of a scenario file for every value of an enum. Choices without a value are of the
// format, but not built yet. Only fields.cpp includes this.
#pragma once

#include <array>

#include "scenario/knobs/field_row.h"

namespace stepgate::field_choices {

using field_row::choice;
using field_row::formerly;

inline constexpr std::array model_kinds{
    choice("mlp", ModelKind::mlp), choice("spin", ModelKind::spin),
    choice("transformer", ModelKind::transformer), choice("elementwise", ModelKind::elementwise),
    choice("chase")};
inline constexpr std::array dtypes{choice("fp32", DType::fp32), choice("tf32", DType::tf32),
                                   choice("bf16", DType::bf16), choice("fp16", DType::fp16)};
inline constexpr std::array model_norms{choice("layer", ModelNorm::layer),
                                        choice("rms", ModelNorm::rms)};
inline constexpr std::array layouts{choice("soa", Layout::arrays), choice("aos", Layout::records)};
inline constexpr std::array host_memories{choice("resident", HostMemory::resident),
                                          choice("pageable", HostMemory::pageable),
                                          choice("pinned", HostMemory::pinned),
                                          choice("registered", HostMemory::registered),
                                          choice("pin_each_step", HostMemory::pin_each_step),
                                          choice("mapped"),
                                          choice("managed", HostMemory::managed),
                                          choice("managed_prefetch", HostMemory::managed_prefetch)};
inline constexpr std::array copy_streams{choice("compute", CopyStream::compute),
                                         choice("side", CopyStream::side),
                                         choice("legacy", CopyStream::legacy)};
inline constexpr std::array device_buffers{choice("resident", DeviceBuffer::resident),
                                           choice("per_step", DeviceBuffer::per_step)};
inline constexpr std::array managed_advices{choice("none", ManagedAdvice::none),
                                            choice("read_mostly", ManagedAdvice::read_mostly),
                                            choice("preferred", ManagedAdvice::preferred),
                                            choice("accessed_by", ManagedAdvice::accessed_by)};
inline constexpr std::array sync_wheres{
    choice("none", SyncWhere::none), choice("step", SyncWhere::step),
    choice("micro", SyncWhere::micro), choice("phase", SyncWhere::phase),
    choice("op", SyncWhere::op)};
inline constexpr std::array sync_hows{
    choice("device", SyncHow::device), choice("stream", SyncHow::stream),
    choice("event", SyncHow::event),   choice("item", SyncHow::item),
    choice("memcpy", SyncHow::memcpy), choice("poll", SyncHow::poll)};
inline constexpr std::array sync_waits{choice("spin", SyncWait::spin),
                                       choice("yield", SyncWait::yield),
                                       choice("block", SyncWait::block)};
inline constexpr std::array allocators{
    choice("static", Allocator::fixed),          choice("cuda", Allocator::cuda),
    choice("cuda_async", Allocator::cuda_async), choice("arena", Allocator::arena),
    choice("caching", Allocator::caching),       choice("expandable", Allocator::expandable),
    choice("first_fit", Allocator::first_fit)};
inline constexpr std::array alloc_rounds{choice("none", AllocRound::none),
                                         choice("pow2/4", AllocRound::quarters),
                                         choice("pow2/8", AllocRound::eighths)};
inline constexpr std::array alloc_whens{
    choice("never", AllocWhen::never), choice("step", AllocWhen::step), choice("op", AllocWhen::op),
    choice("resize", AllocWhen::resize)};
inline constexpr std::array zero_grads{choice("none", ZeroGrad::none),
                                       choice("memset", ZeroGrad::memset)};
inline constexpr std::array offloads{choice("none", Offload::none),
                                     choice("activations", Offload::activations),
                                     choice("optimizer", Offload::optimizer)};
inline constexpr std::array offload_vias{choice("pinned_overlap", OffloadVia::pinned_overlap),
                                         choice("pinned", OffloadVia::pinned),
                                         choice("pageable", OffloadVia::pageable)};
inline constexpr std::array optim_kinds{choice("sgd", OptimKind::sgd),
                                        choice("adamw", OptimKind::adamw),
                                        choice("lion", OptimKind::lion)};
inline constexpr std::array optim_impls{choice("fused", OptimImpl::fused),
                                        choice("per_tensor", OptimImpl::per_tensor),
                                        choice("foreach", OptimImpl::foreach)};
inline constexpr std::array launch_vias{choice("stream", LaunchVia::stream),
                                        choice("graph", LaunchVia::graph)};
inline constexpr std::array fuses{choice("attention", Fuse::attention),
                                  choice("pointwise", Fuse::pointwise), choice("none", Fuse::none)};
inline constexpr std::array gemm_choices{
    choice("heuristic", GemmChoice::heuristic),
    formerly("measured", choice("autotune", GemmChoice::autotune))};
inline constexpr std::array<Choice, 9> checkpoints{{{"none", 0},
                                                    {"full", 1},
                                                    {"every 2", 2},
                                                    {"every 3", 3},
                                                    {"every 4", 4},
                                                    {"every 6", 6},
                                                    {"every 8", 8},
                                                    {"every 12", 12},
                                                    {"every 16", 16}}};
inline constexpr std::array log_vias{
    choice("mean_on_device", LogVia::mean_on_device), choice("item", LogVia::item),
    choice("late_pinned", LogVia::late_pinned), choice("keep_on_device", LogVia::keep_on_device)};
inline constexpr std::array eval_stores{choice("none", EvalStore::none),
                                        choice("host", EvalStore::host),
                                        choice("device", EvalStore::device)};
inline constexpr std::array interleave_choices{choice("auto", Interleave::automatic),
                                               choice("segments", Interleave::segments)};

}  // namespace stepgate::field_choices
