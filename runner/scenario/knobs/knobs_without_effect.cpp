// SPDX-License-Identifier: MIT
// Fields that do nothing beside other knobs, one row each: refused where written, never ignored.
#include <array>

#include "scenario/knobs/knob_rules.h"

namespace stepgate {
namespace {

bool is_ours(const AllocKnobs& alloc) {
  return alloc.with == Allocator::caching || alloc.with == Allocator::expandable ||
         alloc.with == Allocator::first_fit;
}

bool is_elementwise(const Knobs& knobs) {
  return knobs.model.kind == ModelKind::elementwise;
}

// Its kernels have no parameters, hence no gradients and no GEMMs.
bool learns_nothing(const Knobs& knobs) {
  return knobs.model.kind == ModelKind::spin || is_elementwise(knobs);
}

constexpr KnobRule only_for_transformers(std::string_view field, std::string_view message) {
  return {field, [](const Knobs& knobs) { return !is_transformer(knobs); }, message,
          "remove it, or write model.kind = \"transformer\""};
}

constexpr KnobRule only_for_elementwise(std::string_view field, std::string_view message) {
  return {field, [](const Knobs& knobs) { return !is_elementwise(knobs); }, message,
          "remove it, or write model.kind = \"elementwise\""};
}

constexpr KnobRule only_where_something_is_learned(std::string_view field,
                                                   std::string_view message) {
  return {field, learns_nothing, message, "remove it, or write model.kind = \"mlp\""};
}

constexpr std::array without_effect{
    KnobRule{"model.kernels", [](const Knobs& knobs) { return !learns_nothing(knobs); },
             "'model.kernels' is only for spin and elementwise",
             "remove it, or write model.kind = \"spin\""},
    KnobRule{"model.kernel_us",
             [](const Knobs& knobs) { return knobs.model.kind != ModelKind::spin; },
             "'model.kernel_us' is only for spin", "remove it, or write model.kind = \"spin\""},
    only_where_something_is_learned("model.layers",
                                    "kernels that only spin or move memory have no layers"),
    KnobRule{"model.inplace",
             [](const Knobs& knobs) {
               return knobs.model.kind != ModelKind::mlp && !is_elementwise(knobs);
             },
             "'model.inplace' is only for mlp and elementwise",
             "remove it, or write model.kind = \"mlp\""},
    only_where_something_is_learned(
        "model.workspace",
        "kernels that only spin or move memory have no GEMMs that could use workspace"),
    only_where_something_is_learned("memory.zero_grad",
                                    "kernels that only spin or move memory have no gradients"),
    only_where_something_is_learned("optim.kind",
                                    "kernels that only spin or move memory have no parameters"),
    only_where_something_is_learned("optim.impl",
                                    "kernels that only spin or move memory have no parameters"),
    only_where_something_is_learned("launch.gemm",
                                    "kernels that only spin or move memory have no GEMMs"),
    only_for_elementwise("model.layout", "'model.layout' is only for elementwise"),
    only_for_elementwise("model.stride", "'model.stride' is only for elementwise"),
    only_for_elementwise("model.extra_copies", "'model.extra_copies' is only for elementwise"),
    only_for_transformers("model.seq", "'model.seq' is only for transformer"),
    only_for_transformers("model.heads", "'model.heads' is only for transformer"),
    only_for_transformers("model.vocab", "'model.vocab' is only for transformer"),
    only_for_transformers("model.positions", "'model.positions' is only for transformer"),
    only_for_transformers("model.norm", "'model.norm' is only for transformer"),
    only_for_transformers("model.attention_workspace",
                          "'model.attention_workspace' is only for transformer"),
    only_for_transformers("batch.accumulate", "'batch.accumulate' is only for transformer"),
    only_for_transformers("memory.checkpoint", "'memory.checkpoint' is only for transformer"),
    only_for_transformers("optim.master", "'optim.master' is only for transformer"),
    only_for_transformers("optim.clip", "'optim.clip' is only for transformer"),
    only_for_transformers("launch.fuse", "'launch.fuse' is only for transformer"),
    KnobRule{"eval.every", [](const Knobs& knobs) { return knobs.model.kind != ModelKind::mlp; },
             "'eval.every' is only for mlp", "remove it, or write model.kind = \"mlp\""},
    KnobRule{"eval.batches", [](const Knobs& knobs) { return knobs.eval.every == 0; },
             "'eval.batches' has no evaluation to be in when 'eval.every' is 0",
             "remove it, or write eval.every = 1"},
    KnobRule{"eval.store", [](const Knobs& knobs) { return knobs.eval.every == 0; },
             "'eval.store' has no evaluation to be in when 'eval.every' is 0",
             "remove it, or write eval.every = 1"},
    KnobRule{"eval.save_for_backward", [](const Knobs& knobs) { return knobs.eval.every == 0; },
             "'eval.save_for_backward' has no evaluation to be in when 'eval.every' is 0",
             "remove it, or write eval.every = 1"},
    KnobRule{
        "alloc.keep", [](const Knobs& knobs) { return knobs.alloc.with != Allocator::cuda_async; },
        "'alloc.keep' is only for cuda_async", "remove it, or write alloc.with = \"cuda_async\""},
    KnobRule{"alloc.cap",
             [](const Knobs& knobs) {
               return !is_ours(knobs.alloc) && knobs.alloc.with != Allocator::arena &&
                      knobs.alloc.with != Allocator::cuda_async;
             },
             "'alloc.cap' is only for arena, cuda_async, caching, expandable and first_fit",
             "remove it, or write alloc.with = \"caching\""},
    KnobRule{"alloc.empty_cache_every", [](const Knobs& knobs) { return !is_ours(knobs.alloc); },
             "'alloc.empty_cache_every' is only for caching, expandable and first_fit",
             "remove it, or write alloc.with = \"caching\""},
    KnobRule{"alloc.round",
             [](const Knobs& knobs) {
               return !is_ours(knobs.alloc) || knobs.alloc.with == Allocator::first_fit;
             },
             "'alloc.round' is only for caching and expandable",
             "remove it, or write alloc.with = \"caching\""},
    KnobRule{"alloc.split_max",
             [](const Knobs& knobs) { return knobs.alloc.with != Allocator::caching; },
             "'alloc.split_max' is only for caching",
             "remove it, or write alloc.with = \"caching\""},
    KnobRule{"alloc.leak_bytes", [](const Knobs& knobs) { return is_fixed(knobs.alloc); },
             "'alloc.leak_bytes' needs something that allocates",
             "remove it, or write alloc.with = \"caching\""},
    KnobRule{"alloc.release",
             [](const Knobs& knobs) { return knobs.alloc.when == AllocWhen::never; },
             "'alloc.release' is about what steps allocate, and 'alloc.when' is never",
             "remove it, or write alloc.when = \"step\", \"op\" or \"resize\""},
    KnobRule{"alloc.temps", [](const Knobs& knobs) { return is_fixed(knobs.alloc); },
             "'alloc.temps' needs something that allocates",
             "remove it, or write alloc.with = \"caching\""},
    KnobRule{"batch.size", [](const Knobs& knobs) { return !knobs.batch.sizes.empty(); },
             "'batch.size' and 'batch.sizes' are both there", "keep one of them"},
    KnobRule{"batch.largest_first", [](const Knobs& knobs) { return knobs.batch.sizes.empty(); },
             "'batch.largest_first' orders 'batch.sizes', which is not there",
             "remove it, or give 'batch.sizes' a list"},
    KnobRule{"memory.offload_via",
             [](const Knobs& knobs) { return knobs.memory.offload == Offload::none; },
             "'memory.offload_via' says how to offload, and nothing is",
             "remove it, or write memory.offload = \"activations\""},
    KnobRule{"transfer.stream",
             [](const Knobs& knobs) { return knobs.transfer.host == HostMemory::managed; },
             "'transfer.stream' is about a copy, and page faults bring a managed batch",
             "remove it, or write transfer.host = \"managed_prefetch\""},
    KnobRule{"transfer.blocking",
             [](const Knobs& knobs) { return knobs.transfer.host == HostMemory::managed; },
             "'transfer.blocking' is about a copy, and page faults bring a managed batch",
             "remove it, or write transfer.host = \"managed_prefetch\""},
    KnobRule{"transfer.advise", [](const Knobs& knobs) { return !is_managed(knobs.transfer); },
             "'transfer.advise' is about managed memory",
             "remove it, or write transfer.host = \"managed\""},
};

}  // namespace

std::span<const KnobRule> knobs_without_effect() {
  return without_effect;
}

}  // namespace stepgate
