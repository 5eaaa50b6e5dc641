// SPDX-License-Identifier: MIT
// Conditions on other knobs under which a knob has an effect, for the last argument of a row of the
// field table. Only fields.cpp includes this.
#pragma once

#include "scenario/knobs/fields.h"
#include "scenario/knobs/knob_rules.h"

namespace stepgate::knob_conditions {

template <ModelKind... kinds>
bool model_is(const Knobs& knobs) {
  return ((knobs.model.kind == kinds) || ...);
}

template <Allocator... allocators>
bool allocator_is(const Knobs& knobs) {
  return ((knobs.alloc.with == allocators) || ...);
}

inline constexpr KnobCondition for_transformer{
    .holds = is_transformer,
    .only_for = "transformer",
    .hint = "remove it, or write model.kind = \"transformer\""};
inline constexpr KnobCondition for_recommender{
    .holds = model_is<ModelKind::recommender>,
    .only_for = "recommender",
    .hint = "remove it, or write model.kind = \"recommender\""};
inline constexpr KnobCondition for_transformer_and_recommender{
    .holds = model_is<ModelKind::transformer, ModelKind::recommender>,
    .only_for = "transformer, recommender",
    .hint = "remove it, or write model.kind = \"transformer\""};
inline constexpr KnobCondition where_fused{
    .holds = model_is<ModelKind::transformer, ModelKind::recommender, ModelKind::resnet,
                      ModelKind::unet>,
    .only_for = "transformer, recommender, resnet, unet",
    .hint = "remove it, or write model.kind = \"transformer\""};
inline constexpr KnobCondition for_resnet{.holds = model_is<ModelKind::resnet>,
                                          .only_for = "resnet",
                                          .hint = "remove it, or write model.kind = \"resnet\""};
inline constexpr KnobCondition with_images{.holds = has_images,
                                           .only_for = "resnet, unet",
                                           .hint = "remove it, or write model.kind = \"resnet\""};
inline constexpr KnobCondition without_images{
    .holds = [](const Knobs& knobs) { return !has_images(knobs); },
    .hint = "remove it, or write model.width = 64",
    .message =
        "'{}' is not for resnet and unet, whose channels are 'model.width' and multiples of it"};
inline constexpr KnobCondition for_transformer_and_images{
    .holds = model_is<ModelKind::transformer, ModelKind::resnet, ModelKind::unet>,
    .only_for = "transformer, resnet, unet",
    .hint = "remove it, or write model.kind = \"transformer\""};
inline constexpr KnobCondition for_transformer_and_resnet{
    .holds = model_is<ModelKind::transformer, ModelKind::resnet>,
    .only_for = "transformer, resnet",
    .hint = "remove it, or write model.kind = \"transformer\""};
inline constexpr KnobCondition for_elementwise{
    .holds = model_is<ModelKind::elementwise>,
    .only_for = "elementwise",
    .hint = "remove it, or write model.kind = \"elementwise\""};
inline constexpr KnobCondition for_spin{.holds = model_is<ModelKind::spin>,
                                        .only_for = "spin",
                                        .hint = "remove it, or write model.kind = \"spin\""};
inline constexpr KnobCondition for_spin_and_elementwise{
    .holds = model_is<ModelKind::spin, ModelKind::elementwise>,
    .only_for = "spin, elementwise",
    .hint = "remove it, or write model.kind = \"spin\""};
inline constexpr KnobCondition for_chase{.holds = model_is<ModelKind::chase>,
                                         .only_for = "chase",
                                         .hint = "remove it, or write model.kind = \"chase\""};
inline constexpr KnobCondition for_mlp{.holds = model_is<ModelKind::mlp>,
                                       .only_for = "mlp",
                                       .hint = "remove it, or write model.kind = \"mlp\""};
inline constexpr KnobCondition for_mlp_and_images{
    .holds = model_is<ModelKind::mlp, ModelKind::resnet, ModelKind::unet>,
    .only_for = "mlp, resnet, unet",
    .hint = "remove it, or write model.kind = \"mlp\""};
inline constexpr KnobCondition where_inplace{
    .holds =
        model_is<ModelKind::mlp, ModelKind::recommender, ModelKind::resnet, ModelKind::elementwise>,
    .hint = "remove it, or write model.kind = \"mlp\"",
    .message = "'{}' is only for mlp, recommender, resnet and elementwise"};

// The knob has an effect only on a model that learns. Other models have no parameters, hence no
// gradients and no GEMMs.
constexpr KnobCondition where_learned(std::string_view message) {
  return {.holds = [](const Knobs& knobs) { return learns(knobs.model.kind); },
          .hint = "remove it, or write model.kind = \"mlp\"",
          .message = message};
}
inline constexpr KnobCondition with_layers =
    where_learned("kernels that only spin, move memory or follow a chain have no layers");
inline constexpr KnobCondition with_gemms =
    where_learned("kernels that only spin, move memory or follow a chain have no GEMMs");
inline constexpr KnobCondition with_workspace = where_learned(
    "kernels that only spin, move memory or follow a chain have no GEMMs that could use workspace");
inline constexpr KnobCondition with_gradients =
    where_learned("kernels that only spin, move memory or follow a chain have no gradients");
inline constexpr KnobCondition with_parameters =
    where_learned("kernels that only spin, move memory or follow a chain have no parameters");

inline constexpr KnobCondition where_evaluated{
    .holds = [](const Knobs& knobs) { return knobs.eval.every != 0; },
    .hint = "remove it, or write eval.every = 1",
    .message = "'{}' has no evaluation to be in when 'eval.every' is 0"};

inline constexpr KnobCondition where_saved{
    .holds = [](const Knobs& knobs) { return knobs.save.every != 0; },
    .hint = "remove it, or write save.every = 100",
    .message = "'{}' has nothing to say when 'save.every' is 0"};
inline constexpr KnobCondition with_host_work{
    .holds = [](const Knobs& knobs) { return knobs.host.step_us > 0; },
    .hint = "remove it, or write host.step_us = 500",
    .message = "'{}' has nothing to vary when 'host.step_us' is 0"};
inline constexpr KnobCondition with_pauses{
    .holds = [](const Knobs& knobs) { return knobs.host.pause_us > 0; },
    .hint = "remove it, or write host.pause_us = 5000",
    .message = "'{}' says how often the host pauses, and 'host.pause_us' is 0"};
inline constexpr KnobCondition with_ranks{
    .holds = [](const Knobs& knobs) { return knobs.ranks.count > 1; },
    .hint = "remove it, or write ranks.count = 2",
    .message = "'{}' is about several ranks, and 'ranks.count' is 1"};
inline constexpr KnobCondition with_buckets{
    .holds =
        [](const Knobs& knobs) {
          return knobs.ranks.count > 1 && knobs.ranks.shard != Shard::parameters;
        },
    .hint = "remove it, or write ranks.count = 2 and ranks.shard = \"none\"",
    .message =
        "'{}' is about buckets of several ranks' gradients; where they share the weights too, a "
        "bucket is a block's"};
inline constexpr KnobCondition where_reductions_are_hidden{
    .holds =
        [](const Knobs& knobs) {
          return knobs.ranks.count > 1 && knobs.ranks.overlap == ReduceOverlap::backward;
        },
    .hint = "remove it, or write ranks.count = 2 and ranks.overlap = \"backward\"",
    .message = "'{}' is about reductions beside the backward pass of several ranks"};
inline constexpr KnobCondition where_weights_are_gathered{
    .holds =
        [](const Knobs& knobs) {
          return knobs.ranks.count > 1 && knobs.ranks.shard == Shard::parameters;
        },
    .hint = "remove it, or write ranks.shard = \"parameters\"",
    .message = "'{}' is about weights that several ranks gather"};
inline constexpr KnobCondition with_ranks_and_parts{
    .holds = [](const Knobs& knobs) { return knobs.ranks.count > 1 && knobs.batch.accumulate > 1; },
    .hint = "remove it, or write ranks.count = 2 and batch.accumulate = 2",
    .message = "'{}' is about several ranks and the parts of a batch"};
inline constexpr KnobCondition with_broadcasts{
    .holds =
        [](const Knobs& knobs) { return knobs.ranks.count > 1 && knobs.ranks.broadcast_bytes > 0; },
    .hint = "remove it, or write ranks.broadcast = \"4 MiB\"",
    .message = "'{}' is about buffers that rank 0 sends to all, and 'ranks.broadcast' is 0"};
inline constexpr KnobCondition with_a_slow_rank{
    .holds = [](const Knobs& knobs) { return knobs.ranks.count > 1 && knobs.ranks.slow_us > 0; },
    .hint = "remove it, or write ranks.slow_us = 200",
    .message = "'{}' says which rank is slow, and 'ranks.slow_us' is 0"};

inline constexpr KnobCondition with_a_program{
    .holds = [](const Knobs& knobs) { return !knobs.program.command.empty(); },
    .hint = "remove it, or write program.command = [\"python3\", \"train.py\"]",
    .message = "'{}' is about a program, and 'program.command' names none"};

inline constexpr KnobCondition for_cuda_async{
    .holds = allocator_is<Allocator::cuda_async>,
    .only_for = "cuda_async",
    .hint = "remove it, or write alloc.with = \"cuda_async\""};
inline constexpr std::string_view write_caching = "remove it, or write alloc.with = \"caching\"";
inline constexpr KnobCondition for_caching{
    .holds = allocator_is<Allocator::caching>, .only_for = "caching", .hint = write_caching};
inline constexpr KnobCondition for_caching_and_expandable{
    .holds = allocator_is<Allocator::caching, Allocator::expandable>,
    .only_for = "caching, expandable",
    .hint = write_caching};
inline constexpr KnobCondition for_our_allocators{
    .holds = allocator_is<Allocator::caching, Allocator::expandable, Allocator::first_fit>,
    .hint = write_caching,
    .message = "'{}' is only for caching, expandable and first_fit"};
inline constexpr KnobCondition where_capped{
    .holds = allocator_is<Allocator::arena, Allocator::cuda_async, Allocator::caching,
                          Allocator::expandable, Allocator::first_fit>,
    .hint = write_caching,
    .message = "'{}' is only for arena, cuda_async, caching, expandable and first_fit"};
inline constexpr KnobCondition where_allocated{
    .holds = [](const Knobs& knobs) { return !is_fixed(knobs.alloc); },
    .hint = write_caching,
    .message = "'{}' needs something that allocates"};
inline constexpr KnobCondition where_steps_allocate{
    .holds = [](const Knobs& knobs) { return knobs.alloc.when != AllocWhen::never; },
    .hint = "remove it, or write alloc.when = \"step\", \"op\" or \"resize\"",
    .message = "'{}' is about what steps allocate, and 'alloc.when' is never"};

inline constexpr KnobCondition from_a_cache{
    .holds =
        [](const Knobs& knobs) {
          return allocator_is<Allocator::caching, Allocator::expandable>(knobs) &&
                 knobs.alloc.when != AllocWhen::never && knobs.launch.via == LaunchVia::stream;
        },
    .hint =
        "remove it, or write alloc = { with = \"caching\", when = \"op\" } and launch.via = "
        "\"stream\"",
    .message = "'{}' is about a cache that steps allocate from, outside of a graph"};

inline constexpr KnobCondition with_workers{
    .holds = [](const Knobs& knobs) { return knobs.loader.depth > 0; },
    .hint = "remove it, or write loader.depth = 2",
    .message = "'{}' is about threads of the loader, which has none when 'loader.depth' is 0"};
inline constexpr KnobCondition with_loading{
    .holds = [](const Knobs& knobs) { return knobs.loader.wait_us > 0; },
    .hint = "remove it, or write loader.wait_us = 1000",
    .message = "'{}' says how a batch is made, and 'loader.wait_us' is 0"};
inline constexpr KnobCondition without_sizes{
    .holds = [](const Knobs& knobs) { return knobs.batch.sizes.empty(); },
    .hint = "keep one of them",
    .message = "'{}' and 'batch.sizes' are both there"};
inline constexpr KnobCondition with_sizes{
    .holds = [](const Knobs& knobs) { return !knobs.batch.sizes.empty(); },
    .hint = "remove it, or give 'batch.sizes' a list",
    .message = "'{}' orders 'batch.sizes', which is not there"};
inline constexpr KnobCondition with_a_master{
    .holds = [](const Knobs& knobs) { return is_transformer(knobs) && knobs.optim.master; },
    .hint = "remove it, or write optim.master = true with model.kind = \"transformer\"",
    .message = "'{}' is about a transformer's master of the weights, and this step has none"};
inline constexpr KnobCondition with_attention_of_cudnn{
    .holds =
        [](const Knobs& knobs) {
          return is_transformer(knobs) && is_16_bit(knobs.model.dtype) &&
                 knobs.launch.fuse >= Fuse::attention;
        },
    .hint =
        "remove it, or write model.kind = \"transformer\", model.dtype = \"bf16\" and launch.fuse "
        "= \"attention\"",
    .message =
        "'{}' is about cuDNN's attention, which a transformer of 16 bits has without scores in "
        "memory alone"};
inline constexpr KnobCondition where_offloaded{
    .holds = [](const Knobs& knobs) { return knobs.memory.offload != Offload::none; },
    .hint = "remove it, or write memory.offload = \"activations\"",
    .message = "'{}' says how to offload, and nothing is"};
inline constexpr KnobCondition where_copied{
    .holds = [](const Knobs& knobs) { return knobs.transfer.host != HostMemory::managed; },
    .hint = "remove it, or write transfer.host = \"managed_prefetch\"",
    .message = "'{}' is about a copy, and page faults bring a managed batch"};
inline constexpr KnobCondition where_managed{
    .holds = [](const Knobs& knobs) { return is_managed(knobs.transfer); },
    .hint = "remove it, or write transfer.host = \"managed\"",
    .message = "'{}' is about managed memory"};

}  // namespace stepgate::knob_conditions
