// SPDX-License-Identifier: MIT
// The rules, one row each: a knob without effect is refused, never ignored.
#include "scenario/check_knobs.h"

#include <algorithm>
#include <array>
#include <functional>

namespace stepgate {
namespace {

struct Rule {
  std::string_view field;  // that the diagnostic is placed at
  bool (*broken)(const Knobs&);
  std::string_view message;
  std::string_view hint;
};

constexpr std::int64_t widest_head = 256;

bool is_ours(const AllocKnobs& alloc) {
  return alloc.with == Allocator::caching || alloc.with == Allocator::expandable ||
         alloc.with == Allocator::first_fit;
}

// Nothing is allocated while steps run.
bool is_fixed(const AllocKnobs& alloc) {
  return alloc.with == Allocator::fixed || alloc.with == Allocator::arena;
}

bool is_one_size(const BatchKnobs& batch) {
  return std::adjacent_find(batch.sizes.begin(), batch.sizes.end(), std::not_equal_to<>()) ==
         batch.sizes.end();
}

bool is_managed(const H2dKnobs& h2d) {
  return h2d.host == HostMemory::managed || h2d.host == HostMemory::managed_prefetch;
}

bool is_transformer(const Knobs& knobs) {
  return knobs.model.kind == ModelKind::transformer;
}

bool is_elementwise(const Knobs& knobs) {
  return knobs.model.kind == ModelKind::elementwise;
}

// Its kernels have no parameters, hence no gradients and no products.
bool learns_nothing(const Knobs& knobs) {
  return knobs.model.kind == ModelKind::spin || is_elementwise(knobs);
}

bool leaves_elements_out(const Knobs& knobs) {
  const auto leaves_a_rest = [&](std::int64_t size) {
    return size * knobs.model.hidden % knobs.model.stride != 0;
  };
  const std::vector<std::int64_t>& sizes = knobs.batch.sizes;
  return sizes.empty() ? leaves_a_rest(knobs.batch.size)
                       : std::any_of(sizes.begin(), sizes.end(), leaves_a_rest);
}

bool cannot_be_split(const BatchKnobs& batch) {
  const auto leaves_a_rest = [&](std::int64_t size) { return size % batch.accumulate != 0; };
  return batch.sizes.empty() ? leaves_a_rest(batch.size)
                             : std::any_of(batch.sizes.begin(), batch.sizes.end(), leaves_a_rest);
}

constexpr Rule only_for_transformers(std::string_view field, std::string_view message) {
  return {field, [](const Knobs& knobs) { return !is_transformer(knobs); }, message,
          "remove it, or write model.kind = \"transformer\""};
}

constexpr Rule only_for_elementwise(std::string_view field, std::string_view message) {
  return {field, [](const Knobs& knobs) { return !is_elementwise(knobs); }, message,
          "remove it, or write model.kind = \"elementwise\""};
}

constexpr Rule only_where_something_is_learned(std::string_view field, std::string_view message) {
  return {field, learns_nothing, message, "remove it, or write model.kind = \"mlp\""};
}

bool offloads_the_optimizer(const Knobs& knobs) {
  return knobs.memory.offload == Offload::optimizer && knobs.model.kind == ModelKind::mlp;
}

// Broken by writing the field at all while the knobs are such.
constexpr std::array must_not_be_set{
    Rule{"model.kernels", [](const Knobs& knobs) { return !learns_nothing(knobs); },
         "'model.kernels' is only for spin and elementwise",
         "remove it, or write model.kind = \"spin\""},
    Rule{"model.kernel_us", [](const Knobs& knobs) { return knobs.model.kind != ModelKind::spin; },
         "'model.kernel_us' is only for spin", "remove it, or write model.kind = \"spin\""},
    only_where_something_is_learned("model.layers",
                                    "kernels that only spin or move memory have no layers"),
    Rule{"model.inplace",
         [](const Knobs& knobs) {
           return knobs.model.kind != ModelKind::mlp && !is_elementwise(knobs);
         },
         "'model.inplace' is only for mlp and elementwise",
         "remove it, or write model.kind = \"mlp\""},
    only_where_something_is_learned(
        "model.workspace",
        "kernels that only spin or move memory have no products that could use workspace"),
    only_where_something_is_learned("memory.zero_grad",
                                    "kernels that only spin or move memory have no gradients"),
    only_where_something_is_learned("optim.kind",
                                    "kernels that only spin or move memory have no parameters"),
    only_where_something_is_learned("optim.impl",
                                    "kernels that only spin or move memory have no parameters"),
    only_where_something_is_learned("launch.products",
                                    "kernels that only spin or move memory have no products"),
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
    Rule{"eval.every", [](const Knobs& knobs) { return knobs.model.kind != ModelKind::mlp; },
         "'eval.every' is only for mlp", "remove it, or write model.kind = \"mlp\""},
    Rule{"eval.batches", [](const Knobs& knobs) { return knobs.eval.every == 0; },
         "'eval.batches' has no evaluation to be in when 'eval.every' is 0",
         "remove it, or write eval.every = 1"},
    Rule{"eval.store", [](const Knobs& knobs) { return knobs.eval.every == 0; },
         "'eval.store' has no evaluation to be in when 'eval.every' is 0",
         "remove it, or write eval.every = 1"},
    Rule{"eval.save_for_backward", [](const Knobs& knobs) { return knobs.eval.every == 0; },
         "'eval.save_for_backward' has no evaluation to be in when 'eval.every' is 0",
         "remove it, or write eval.every = 1"},
    Rule{"alloc.keep", [](const Knobs& knobs) { return knobs.alloc.with != Allocator::cuda_async; },
         "'alloc.keep' is only for cuda_async", "remove it, or write alloc.with = \"cuda_async\""},
    Rule{"alloc.cap",
         [](const Knobs& knobs) {
           return !is_ours(knobs.alloc) && knobs.alloc.with != Allocator::arena &&
                  knobs.alloc.with != Allocator::cuda_async;
         },
         "'alloc.cap' is only for arena, cuda_async, caching, expandable and first_fit",
         "remove it, or write alloc.with = \"caching\""},
    Rule{"alloc.empty_cache_every", [](const Knobs& knobs) { return !is_ours(knobs.alloc); },
         "'alloc.empty_cache_every' is only for caching, expandable and first_fit",
         "remove it, or write alloc.with = \"caching\""},
    Rule{"alloc.round",
         [](const Knobs& knobs) {
           return !is_ours(knobs.alloc) || knobs.alloc.with == Allocator::first_fit;
         },
         "'alloc.round' is only for caching and expandable",
         "remove it, or write alloc.with = \"caching\""},
    Rule{"alloc.split_max",
         [](const Knobs& knobs) { return knobs.alloc.with != Allocator::caching; },
         "'alloc.split_max' is only for caching", "remove it, or write alloc.with = \"caching\""},
    Rule{"alloc.leak_bytes", [](const Knobs& knobs) { return is_fixed(knobs.alloc); },
         "'alloc.leak_bytes' needs something that allocates",
         "remove it, or write alloc.with = \"caching\""},
    Rule{"alloc.release", [](const Knobs& knobs) { return knobs.alloc.when == AllocWhen::never; },
         "'alloc.release' is about what steps allocate, and 'alloc.when' is never",
         "remove it, or write alloc.when = \"step\", \"op\" or \"resize\""},
    Rule{"alloc.temps", [](const Knobs& knobs) { return is_fixed(knobs.alloc); },
         "'alloc.temps' needs something that allocates",
         "remove it, or write alloc.with = \"caching\""},
    Rule{"batch.size", [](const Knobs& knobs) { return !knobs.batch.sizes.empty(); },
         "'batch.size' and 'batch.sizes' are both there", "keep one of them"},
    Rule{"batch.largest_first", [](const Knobs& knobs) { return knobs.batch.sizes.empty(); },
         "'batch.largest_first' orders 'batch.sizes', which is not there",
         "remove it, or give 'batch.sizes' a list"},
    Rule{"memory.offload_via",
         [](const Knobs& knobs) { return knobs.memory.offload == Offload::none; },
         "'memory.offload_via' says how to offload, and nothing is",
         "remove it, or write memory.offload = \"activations\""},
    Rule{"h2d.stream", [](const Knobs& knobs) { return knobs.h2d.host == HostMemory::managed; },
         "'h2d.stream' is about a copy, and page faults bring a managed batch",
         "remove it, or write h2d.host = \"managed_prefetch\""},
    Rule{"h2d.blocking", [](const Knobs& knobs) { return knobs.h2d.host == HostMemory::managed; },
         "'h2d.blocking' is about a copy, and page faults bring a managed batch",
         "remove it, or write h2d.host = \"managed_prefetch\""},
    Rule{"h2d.advise", [](const Knobs& knobs) { return !is_managed(knobs.h2d); },
         "'h2d.advise' is about managed memory", "remove it, or write h2d.host = \"managed\""},
};

constexpr std::array must_fit{
    Rule{"loader.workers",
         [](const Knobs& knobs) { return knobs.loader.workers > 1 && knobs.loader.depth == 0; },
         "'loader.workers' have nowhere to put batches when 'loader.depth' is 0",
         "write loader.depth = 2"},
    Rule{"loader.jitter",
         [](const Knobs& knobs) { return knobs.loader.jitter > 0 && knobs.loader.wait_us == 0; },
         "'loader.jitter' has nothing to vary when 'loader.wait_us' is 0", "write loader.wait_us"},
    Rule{"alloc.when",
         [](const Knobs& knobs) {
           return knobs.alloc.when != AllocWhen::never && is_fixed(knobs.alloc);
         },
         "a static allocator or an arena allocates before the first step, never later",
         "write alloc.with = \"cuda\" or \"cuda_async\""},
    Rule{"alloc.when",
         [](const Knobs& knobs) {
           return knobs.alloc.when == AllocWhen::resize && is_one_size(knobs.batch);
         },
         "batches of one size are never resized", "give 'batch.sizes' sizes that differ"},
    Rule{"alloc.cap",
         [](const Knobs& knobs) {
           return knobs.alloc.cap.of != CapOf::nothing &&
                  knobs.alloc.with == Allocator::cuda_async &&
                  knobs.alloc.when != AllocWhen::never && knobs.launch.via == LaunchVia::graph;
         },
         "the cap of a pool does not reach what a graph allocates",
         "write launch.via = \"stream\", or alloc.with = \"caching\""},
    Rule{"h2d.buffers",
         [](const Knobs& knobs) {
           return knobs.h2d.buffers > 1 && knobs.h2d.device_buffer == DeviceBuffer::per_step;
         },
         "a device buffer that is made anew every step cannot be one of several",
         "write h2d.buffers = 1, or h2d.device_buffer = \"resident\""},
    Rule{"h2d.device_buffer",
         [](const Knobs& knobs) {
           return knobs.h2d.device_buffer == DeviceBuffer::per_step && is_managed(knobs.h2d);
         },
         "a managed batch has no device buffer", "write h2d.device_buffer = \"resident\""},
    Rule{"h2d.device_buffer",
         [](const Knobs& knobs) {
           return knobs.h2d.device_buffer == DeviceBuffer::per_step &&
                  knobs.h2d.host == HostMemory::resident;
         },
         "a batch that is resident needs no device buffer", "write h2d.host = \"pinned\""},
    Rule{"eval.every",
         [](const Knobs& knobs) { return knobs.eval.every > 1 && !knobs.batch.sizes.empty(); },
         "'batch.sizes' takes turns, and 'eval.every' would evaluate only some of them",
         "write eval.every = 1, or give batch.size one size"},
    Rule{"memory.offload",
         [](const Knobs& knobs) {
           return knobs.memory.offload != Offload::none && knobs.model.kind != ModelKind::mlp;
         },
         "only an mlp keeps what it does not need in host memory",
         "remove 'memory.offload', or write model.kind = \"mlp\""},
    Rule{"model.heads",
         [](const Knobs& knobs) {
           return is_transformer(knobs) && knobs.model.hidden % (8 * knobs.model.heads) != 0;
         },
         "'model.heads' must share 'model.hidden' in equal parts, each a multiple of 8",
         "choose fewer heads, or a hidden size that is a multiple of 8 times the heads"},
    Rule{"model.heads",
         [](const Knobs& knobs) {
           return is_transformer(knobs) && knobs.model.hidden > widest_head * knobs.model.heads;
         },
         "a head of attention is at most 256 wide",
         "give 'model.heads' at least a 256th of 'model.hidden'"},
    Rule{"model.positions",
         [](const Knobs& knobs) {
           return is_transformer(knobs) &&
                  knobs.model.positions.value_or(knobs.model.seq) < knobs.model.seq;
         },
         "a sample has more tokens ('model.seq') than there are positions",
         "raise 'model.positions', or leave it out"},
    Rule{"model.stride", leaves_elements_out,
         "'model.stride' must divide the elements of every batch, batch.size x model.hidden",
         "choose a divisor, such as a power of two up to 8"},
    Rule{"model.dtype",
         [](const Knobs& knobs) {
           return knobs.model.kind == ModelKind::mlp && knobs.model.dtype == DType::fp16;
         },
         "gradients in fp16 vanish without a loss scale, which an mlp has not",
         "write model.dtype = \"bf16\", or model.kind = \"transformer\""},
    Rule{"batch.accumulate", [](const Knobs& knobs) { return cannot_be_split(knobs.batch); },
         "'batch.accumulate' must split the batch into equal parts",
         "make 'batch.size' a multiple of it"},
    Rule{"optim.master",
         [](const Knobs& knobs) { return knobs.optim.master && !is_narrow(knobs.model.dtype); },
         "weights in 32 bits are their own master", "write model.dtype = \"bf16\", or remove it"},
    Rule{"optim.kind",
         [](const Knobs& knobs) {
           return is_transformer(knobs) && knobs.optim.kind == OptimKind::sgd;
         },
         "a transformer is trained by adamw", "write optim.kind = \"adamw\""},
    Rule{"optim.impl",
         [](const Knobs& knobs) {
           return !is_transformer(knobs) && knobs.optim.impl == OptimImpl::foreach;
         },
         "'foreach' is only for transformer", "write optim.impl = \"fused\" or \"per_tensor\""},
    Rule{"optim.impl",
         [](const Knobs& knobs) {
           return knobs.optim.master && knobs.optim.impl == OptimImpl::foreach;
         },
         "'foreach' updates the weights themselves, not a master of them",
         "write optim.impl = \"fused\", or remove 'optim.master'"},
    Rule{"memory.offload",
         [](const Knobs& knobs) {
           return offloads_the_optimizer(knobs) && knobs.optim.kind == OptimKind::sgd;
         },
         "sgd keeps nothing that could lie in host memory", "write optim.kind = \"adamw\""},
    Rule{"memory.offload",
         [](const Knobs& knobs) {
           return offloads_the_optimizer(knobs) && knobs.optim.kind != OptimKind::sgd &&
                  knobs.optim.impl == OptimImpl::fused;
         },
         "one kernel that updates all parameters needs all their moments at once",
         "write optim.impl = \"per_tensor\""},
    Rule{"batch.tensors",
         [](const Knobs& knobs) {
           return knobs.batch.sample_bytes &&
                  *knobs.batch.sample_bytes * knobs.batch.size < knobs.batch.tensors;
         },
         "more tensors than the batch has bytes", "make batch.sample_bytes larger"},
};

}  // namespace

void check_knobs(const Knobs& knobs, const SettingPlaces& places, const Place& variant,
                 std::vector<Diagnostic>& diagnostics) {
  for (const Rule& rule : must_not_be_set) {
    const auto place = places.find(rule.field);
    if (place == places.end() || !rule.broken(knobs)) continue;
    diagnostics.push_back({place->second, std::string(rule.message), std::string(rule.hint)});
  }
  for (const Rule& rule : must_fit) {
    if (!rule.broken(knobs)) continue;
    const auto place = places.find(rule.field);
    diagnostics.push_back({place != places.end() ? place->second : variant,
                           std::string(rule.message), std::string(rule.hint)});
  }
}

}  // namespace stepgate
