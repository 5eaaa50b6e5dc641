// SPDX-License-Identifier: MIT
// Knobs that cannot be had together, one row each.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <numeric>

#include "scenario/knobs/knob_rules.h"
#include "scenario/resnet_blocks.h"
#include "scenario/unet_levels.h"

namespace stepgate {
namespace {

constexpr std::int64_t widest_head = 256;

bool is_one_size(const BatchKnobs& batch) {
  return std::adjacent_find(batch.sizes.begin(), batch.sizes.end(), std::not_equal_to<>()) ==
         batch.sizes.end();
}

bool leaves_elements_out(const Knobs& knobs) {
  const auto leaves_a_rest = [&](std::int64_t size) {
    return size * knobs.model.hidden % knobs.model.stride != 0;
  };
  const std::vector<std::int64_t>& sizes = knobs.batch.sizes;
  return sizes.empty() ? leaves_a_rest(knobs.batch.size)
                       : std::any_of(sizes.begin(), sizes.end(), leaves_a_rest);
}

// A step of a model without gradients has neither a backward pass nor an update.
bool waits_for_a_phase_that_is_not_there(const Knobs& knobs) {
  const SyncWhere where = knobs.sync.where;
  return !learns(knobs.model.kind) && (where == SyncWhere::micro || where == SyncWhere::backward ||
                                       where == SyncWhere::update || where == SyncWhere::parameter);
}

// A rule that concerns the size of a batch names the one of the two knobs that was written.
template <bool (*clashes)(const Knobs&)>
bool with_one_size(const Knobs& knobs) {
  return knobs.batch.sizes.empty() && clashes(knobs);
}
template <bool (*clashes)(const Knobs&)>
bool with_several_sizes(const Knobs& knobs) {
  return !knobs.batch.sizes.empty() && clashes(knobs);
}

bool cannot_be_split(const Knobs& knobs) {
  const BatchKnobs& batch = knobs.batch;
  const auto leaves_a_rest = [&](std::int64_t size) { return size % batch.accumulate != 0; };
  return batch.sizes.empty() ? leaves_a_rest(batch.size)
                             : std::any_of(batch.sizes.begin(), batch.sizes.end(), leaves_a_rest);
}

bool has_lengths(const Knobs& knobs) {
  return is_transformer(knobs) && !knobs.batch.lengths.empty();
}

bool has_too_long_a_sample(const Knobs& knobs) {
  return has_lengths(knobs) && std::ranges::max(knobs.batch.lengths) > knobs.model.seq;
}

bool leaves_a_turn_unfinished(const Knobs& knobs) {
  const auto turns = std::ssize(knobs.batch.lengths);
  const auto leaves_a_rest = [&](std::int64_t size) { return size % turns != 0; };
  const std::vector<std::int64_t>& sizes = knobs.batch.sizes;
  return has_lengths(knobs) && (sizes.empty() ? leaves_a_rest(knobs.batch.size)
                                              : std::ranges::any_of(sizes, leaves_a_rest));
}

constexpr std::string_view unfinished_turn =
    "a batch ends in the middle of the turns of 'batch.lengths'";

bool has_no_whole_mean(const Knobs& knobs) {
  const std::vector<std::int64_t>& lengths = knobs.batch.lengths;
  return has_lengths(knobs) &&
         std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}) % std::ssize(lengths) !=
             0;
}

bool is_packed(const Knobs& knobs) {
  return has_lengths(knobs) && knobs.batch.packed;
}

bool has_gelu_for_gemms(const ModelKnobs& model) {
  return model.kind == ModelKind::transformer && model.mlp == ModelMlp::gelu && model.bias &&
         model.hidden % 8 == 0 && model.ffn.value_or(4 * model.hidden) % 8 == 0;
}

bool has_fp8(const Knobs& knobs) {
  return is_transformer(knobs) && knobs.model.fp8 != ModelFp8::none;
}

// A GEMM in fp8 takes rows of multiples of 16 bytes, and a weight's gradient is summed over rows of
// the batch.
constexpr std::int64_t fp8_multiple = 16;
bool has_odd_rows_for_fp8(const Knobs& knobs) {
  const auto odd = [&](std::int64_t size) {
    const std::vector<std::int64_t>& lengths = knobs.batch.lengths;
    const std::int64_t rows =
        is_packed(knobs) ? size / std::ssize(lengths) *
                               std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0})
                         : size / knobs.batch.accumulate * knobs.model.seq;
    return rows % fp8_multiple != 0;
  };
  const std::vector<std::int64_t>& sizes = knobs.batch.sizes;
  return has_fp8(knobs) &&
         (sizes.empty() ? odd(knobs.batch.size) : std::ranges::any_of(sizes, odd));
}

bool has_many_tensors(const Knobs& knobs) {
  return is_transformer(knobs) || has_images(knobs) || knobs.model.kind == ModelKind::recommender;
}

// A batch norm of one number has no variance. The stages halve a side of the image, rounded up, and
// the larger stem quarters it before.
bool norms_one_number(const Knobs& knobs) {
  if (!is_resnet(knobs)) return false;
  const std::int64_t smallest =
      knobs.batch.sizes.empty() ? knobs.batch.size : std::ranges::min(knobs.batch.sizes);
  const std::int64_t factor = knobs.model.stem == ModelStem::imagenet ? 32 : 8;
  return smallest == knobs.batch.accumulate && knobs.model.image <= factor;
}

constexpr std::string_view one_number =
    "a batch norm needs several numbers, and the last stage has one pixel";
constexpr std::string_view more_numbers =
    "take batches of 2 samples or more, in each part, or a larger 'model.image'";

bool launches_passes(const Knobs& knobs) {
  return knobs.optim.impl == OptimImpl::foreach || knobs.optim.impl == OptimImpl::operations;
}

bool offloads_the_optimizer(const Knobs& knobs) {
  return knobs.memory.offload == Offload::optimizer && knobs.model.kind == ModelKind::mlp;
}

bool offloads_weights(const Knobs& knobs) {
  return knobs.memory.offload == Offload::weights && knobs.model.kind == ModelKind::mlp;
}

bool has_ranks(const Knobs& knobs) {
  return knobs.ranks.count > 1;
}

bool shards_gradients(Shard shard) {
  return shard == Shard::gradients || shard == Shard::parameters;
}

bool shards(const Knobs& knobs) {
  return has_ranks(knobs) && knobs.ranks.shard != Shard::none;
}

constexpr std::array clashes{
    KnobRule{"loader.workers",
             [](const Knobs& knobs) { return knobs.loader.workers > 1 && knobs.loader.depth == 0; },
             "'loader.workers' have nowhere to put batches when 'loader.depth' is 0",
             "write loader.depth, at least as many as there are workers"},
    KnobRule{
        "loader.jitter",
        [](const Knobs& knobs) { return knobs.loader.jitter > 0 && knobs.loader.wait_us == 0; },
        "'loader.jitter' has nothing to vary when 'loader.wait_us' is 0", "write loader.wait_us"},
    KnobRule{"alloc.when",
             [](const Knobs& knobs) {
               return knobs.alloc.when != AllocWhen::never && is_fixed(knobs.alloc);
             },
             "a static allocator or an arena allocates before the first step, never later",
             "write alloc.with = \"cuda\" or \"cuda_async\""},
    KnobRule{"alloc.when",
             [](const Knobs& knobs) {
               return knobs.alloc.when == AllocWhen::resize && is_one_size(knobs.batch);
             },
             "batches of one size are never resized", "give 'batch.sizes' sizes that differ"},
    KnobRule{"alloc.cap",
             [](const Knobs& knobs) {
               return knobs.alloc.cap.of != CapOf::nothing &&
                      knobs.alloc.with == Allocator::cuda_async &&
                      knobs.alloc.when != AllocWhen::never && knobs.launch.via == LaunchVia::graph;
             },
             "the cap of a pool does not reach what a graph allocates",
             "write launch.via = \"stream\", or alloc.with = \"caching\""},
    KnobRule{"transfer.buffers",
             [](const Knobs& knobs) {
               return knobs.transfer.buffers > 1 &&
                      knobs.transfer.device_buffer == DeviceBuffer::per_step;
             },
             "a device buffer that is made anew every step cannot be one of several",
             "write transfer.buffers = 1, or transfer.device_buffer = \"resident\""},
    KnobRule{"transfer.device_buffer",
             [](const Knobs& knobs) {
               return knobs.transfer.device_buffer == DeviceBuffer::per_step &&
                      is_managed(knobs.transfer);
             },
             "a managed batch has no device buffer", "write transfer.device_buffer = \"resident\""},
    KnobRule{"transfer.device_buffer",
             [](const Knobs& knobs) {
               return knobs.transfer.device_buffer == DeviceBuffer::per_step &&
                      knobs.transfer.host == HostMemory::resident;
             },
             "a batch that is resident needs no device buffer", "write transfer.host = \"pinned\""},
    KnobRule{"transfer.back",
             [](const Knobs& knobs) {
               return knobs.transfer.back != CopyBack::none &&
                      (knobs.transfer.host == HostMemory::resident || is_managed(knobs.transfer));
             },
             "a batch that no call copies to the device is not copied back",
             "write transfer.host = \"pinned\""},
    KnobRule{"transfer.back",
             [](const Knobs& knobs) {
               return knobs.transfer.back == CopyBack::side &&
                      knobs.transfer.device_buffer == DeviceBuffer::per_step;
             },
             "a device buffer that is made anew every step is released behind its kernels",
             "write transfer.back = \"compute\", or transfer.device_buffer = \"resident\""},
    KnobRule{"transfer.back",
             [](const Knobs& knobs) {
               return knobs.transfer.back == CopyBack::side && knobs.eval.every > 0;
             },
             "an evaluation reads the batch again after it has been handed back",
             "write transfer.back = \"compute\", or remove 'eval.every'"},
    KnobRule{"sync.where", waits_for_a_phase_that_is_not_there,
             "kernels that only spin, move memory or follow a chain have no backward pass and no "
             "update to wait after",
             "write sync.where = \"step\""},
    KnobRule{"eval.every",
             [](const Knobs& knobs) { return knobs.eval.every > 1 && !knobs.batch.sizes.empty(); },
             "'batch.sizes' takes turns, and 'eval.every' would evaluate only some of them",
             "write eval.every = 1, or give batch.size one size"},
    KnobRule{"memory.offload",
             [](const Knobs& knobs) {
               return knobs.memory.offload != Offload::none && knobs.model.kind != ModelKind::mlp;
             },
             "only an mlp keeps what it does not need in host memory",
             "remove 'memory.offload', or write model.kind = \"mlp\""},
    KnobRule{"model.heads",
             [](const Knobs& knobs) {
               return is_transformer(knobs) && knobs.model.hidden % (8 * knobs.model.heads) != 0;
             },
             "'model.heads' must share 'model.hidden' in equal parts, each a multiple of 8",
             "choose fewer heads, or a hidden size that is a multiple of 8 times the heads"},
    KnobRule{"model.heads",
             [](const Knobs& knobs) {
               return is_transformer(knobs) && knobs.model.hidden > widest_head * knobs.model.heads;
             },
             "a head of attention is at most 256 wide",
             "give 'model.heads' at least a 256th of 'model.hidden'"},
    KnobRule{"model.kv_heads",
             [](const Knobs& knobs) {
               return is_transformer(knobs) && knobs.model.kv_heads &&
                      knobs.model.heads % *knobs.model.kv_heads != 0;
             },
             "'model.kv_heads' must divide 'model.heads': equal groups of queries share a head",
             "choose a divisor of 'model.heads', or remove it"},
    KnobRule{"model.fp8",
             [](const Knobs& knobs) { return has_fp8(knobs) && knobs.model.dtype != DType::bf16; },
             "numbers beside fp8 are in bf16", "write model.dtype = \"bf16\", or remove it"},
    KnobRule{"model.fp8",
             [](const Knobs& knobs) {
               return has_fp8(knobs) && (knobs.model.hidden % fp8_multiple != 0 ||
                                         knobs.model.ffn.value_or(0) % fp8_multiple != 0);
             },
             "a GEMM in fp8 takes rows of multiples of 16 bytes",
             "make 'model.hidden' and 'model.ffn' multiples of 16"},
    KnobRule{"model.fp8",
             [](const Knobs& knobs) { return !is_packed(knobs) && has_odd_rows_for_fp8(knobs); },
             "a weight's gradient in fp8 is summed over a multiple of 16 tokens",
             "make 'model.seq' a multiple of 16"},
    KnobRule{"model.fp8",
             [](const Knobs& knobs) { return is_packed(knobs) && has_odd_rows_for_fp8(knobs); },
             "a weight's gradient in fp8 is summed over a multiple of 16 tokens, which the packed "
             "samples of a batch are not",
             "choose another 'batch.size', or other 'batch.lengths'"},
    KnobRule{
        "model.fp8",
        [](const Knobs& knobs) { return has_fp8(knobs) && knobs.launch.fuse == Fuse::epilogue; },
        "a GEMM in fp8 has no gelu as its epilogue", "write launch.fuse = \"attention\""},
    KnobRule{"model.fp8",
             [](const Knobs& knobs) {
               return is_transformer(knobs) && knobs.model.fp8 == ModelFp8::delayed &&
                      has_ranks(knobs);
             },
             "ranks do not take the largest of their maxima yet",
             "write model.fp8 = \"current\", or ranks.count = 1"},
    KnobRule{"model.fp8",
             [](const Knobs& knobs) {
               return is_transformer(knobs) && knobs.model.fp8 == ModelFp8::delayed &&
                      knobs.save.every > 0 && knobs.save.via == SaveVia::beside;
             },
             "the next forward pass records maxima while they are copied beside it",
             "write save.via = \"waited\", or model.fp8 = \"current\""},
    KnobRule{"model.positions",
             [](const Knobs& knobs) {
               return is_transformer(knobs) &&
                      knobs.model.positions.value_or(knobs.model.seq) < knobs.model.seq;
             },
             "a sample has more tokens ('model.seq') than there are positions",
             "raise 'model.positions', or leave it out"},
    KnobRule{"model.positions",
             [](const Knobs& knobs) {
               return is_transformer(knobs) && knobs.model.positions &&
                      knobs.model.position == ModelPosition::rope;
             },
             "with model.position = \"rope\" there is no table of positions",
             "remove 'model.positions', or write model.position = \"learned\""},
    KnobRule{"model.layers",
             [](const Knobs& knobs) {
               return is_resnet(knobs) && resnet_blocks(knobs.model.layers).empty();
             },
             "a resnet has 14, 26, 50, 101 or 152 layers", "write model.layers = 50"},
    KnobRule{"model.image",
             [](const Knobs& knobs) {
               return is_unet(knobs) && knobs.model.image % unet_image_multiple != 0;
             },
             "a unet halves the sides of its images three times",
             "write a multiple of 8, such as model.image = 64"},
    KnobRule{"batch.size", with_one_size<norms_one_number>, one_number, more_numbers},
    KnobRule{"batch.sizes", with_several_sizes<norms_one_number>, one_number, more_numbers},
    KnobRule{"model.stride", leaves_elements_out,
             "'model.stride' must divide the elements of every batch, batch.size x model.hidden",
             "choose a divisor, such as a power of two up to 8"},
    KnobRule{"model.footprint",
             [](const Knobs& knobs) {
               return !std::has_single_bit(static_cast<std::uint64_t>(knobs.model.footprint_bytes));
             },
             "'model.footprint' must be a power of two, where its chain is one cycle",
             "round it, as in \"16 KiB\" or \"512 MiB\""},
    KnobRule{"model.dtype",
             [](const Knobs& knobs) {
               return learns(knobs.model.kind) && !is_transformer(knobs) &&
                      knobs.model.dtype == DType::fp16;
             },
             "gradients in fp16 vanish without a loss scale, which only a transformer has",
             "write model.dtype = \"bf16\", or model.kind = \"transformer\""},
    KnobRule{"batch.accumulate", with_one_size<cannot_be_split>,
             "'batch.accumulate' must split the batch into equal parts",
             "make 'batch.size' a multiple of it"},
    KnobRule{"batch.accumulate", with_several_sizes<cannot_be_split>,
             "'batch.accumulate' must split every batch into equal parts",
             "make each of 'batch.sizes' a multiple of it"},
    KnobRule{"batch.lengths", has_too_long_a_sample, "a sample is longer than 'model.seq'",
             "raise 'model.seq', or shorten it"},
    KnobRule{"batch.lengths", with_one_size<leaves_a_turn_unfinished>, unfinished_turn,
             "make 'batch.size' a multiple of how many lengths there are"},
    KnobRule{"batch.lengths", with_several_sizes<leaves_a_turn_unfinished>, unfinished_turn,
             "make each of 'batch.sizes' a multiple of how many lengths there are"},
    KnobRule{"batch.lengths", has_no_whole_mean,
             "samples must have a whole number of tokens on average",
             "change a length, so that how many there are divides their sum"},
    KnobRule{"batch.lengths",
             [](const Knobs& knobs) { return has_lengths(knobs) && knobs.batch.accumulate > 1; },
             "samples of several lengths are ordered over the whole batch, which then has no parts",
             "write batch.accumulate = 1"},
    KnobRule{"batch.packed",
             [](const Knobs& knobs) { return knobs.batch.packed && knobs.batch.lengths.empty(); },
             "there is nothing to pack where all samples are as long as 'model.seq'",
             "give 'batch.lengths' a list, or write batch.packed = false"},
    KnobRule{"batch.packed",
             [](const Knobs& knobs) { return is_packed(knobs) && knobs.batch.sample_bytes; },
             "packed samples are as large as they are long",
             "remove 'batch.sample_bytes', or write batch.packed = false"},
    KnobRule{
        "batch.packed",
        [](const Knobs& knobs) { return is_packed(knobs) && knobs.launch.fuse < Fuse::attention; },
        "scores in memory are those of samples of one length",
        "write launch.fuse = \"attention\", or batch.packed = false"},
    KnobRule{"launch.fuse",
             [](const Knobs& knobs) {
               return knobs.launch.fuse == Fuse::epilogue && !has_gelu_for_gemms(knobs.model);
             },
             "a gelu is the epilogue of a GEMM with a bias, of a transformer with model.mlp = "
             "\"gelu\" and with multiples of 8 as model.hidden and model.ffn",
             "write launch.fuse = \"attention\""},
    KnobRule{"model.inplace",
             [](const Knobs& knobs) {
               return is_resnet(knobs) && !knobs.model.inplace && knobs.launch.fuse != Fuse::none;
             },
             "a relu that is fused with its norm reads nothing that it could overwrite",
             "write launch.fuse = \"none\", or remove it"},
    KnobRule{"optim.master",
             [](const Knobs& knobs) { return knobs.optim.master && !is_16_bit(knobs.model.dtype); },
             "weights in 32 bits are their own master",
             "write model.dtype = \"bf16\", or remove it"},
    KnobRule{"optim.kind",
             [](const Knobs& knobs) {
               return is_transformer(knobs) && knobs.optim.kind == OptimKind::sgd;
             },
             "a transformer is trained by adamw, lion or momentum", "write optim.kind = \"adamw\""},
    KnobRule{"optim.kind",
             [](const Knobs& knobs) {
               return has_images(knobs) && knobs.optim.kind == OptimKind::sgd &&
                      (knobs.optim.master || knobs.optim.clip > 0);
             },
             "sgd without momentum neither clips gradients nor has a master of the weights",
             "write optim.kind = \"momentum\""},
    KnobRule{"optim.impl",
             [](const Knobs& knobs) { return !has_many_tensors(knobs) && launches_passes(knobs); },
             "'foreach' and 'operations' are only for transformer, recommender, resnet and unet",
             "write optim.impl = \"fused\" or \"per_tensor\""},
    KnobRule{"optim.impl",
             [](const Knobs& knobs) { return knobs.optim.master && launches_passes(knobs); },
             "'foreach' and 'operations' update the weights themselves, not a master of them",
             "write optim.impl = \"fused\", or remove 'optim.master'"},
    KnobRule{"optim.impl",
             [](const Knobs& knobs) {
               return knobs.optim.kind != OptimKind::adamw && launches_passes(knobs) &&
                      has_many_tensors(knobs);
             },
             "'foreach' and 'operations' are the passes of adamw", "write optim.impl = \"fused\""},
    KnobRule{"optim.average",
             [](const Knobs& knobs) { return offloads_weights(knobs) && knobs.optim.average > 0; },
             "an average stays on the device, where the weights are a few layers at a time",
             "remove 'optim.average', or write memory.offload = \"optimizer\""},
    KnobRule{"optim.cast",
             [](const Knobs& knobs) {
               return knobs.optim.master && knobs.optim.cast == MasterCast::forward &&
                      shards(knobs);
             },
             "a rank has the master of its own part alone, and gathers weights that are cast",
             "write ranks.shard = \"none\", or optim.cast = \"update\""},
    KnobRule{"save.via",
             [](const Knobs& knobs) {
               return knobs.optim.master && knobs.optim.cast == MasterCast::forward &&
                      knobs.save.every > 0 && knobs.save.via == SaveVia::beside;
             },
             "the next forward pass casts the weights while they are copied beside it",
             "write save.via = \"waited\", or optim.cast = \"update\""},
    KnobRule{"memory.checkpoint",
             [](const Knobs& knobs) {
               return is_transformer(knobs) &&
                      knobs.memory.checkpoint_every == MemoryKnobs::checkpoint_norms;
             },
             "norms alone are computed again in a resnet and a unet",
             "write memory.checkpoint = \"full\""},
    KnobRule{"memory.offload",
             [](const Knobs& knobs) {
               return offloads_the_optimizer(knobs) && knobs.optim.kind != OptimKind::adamw;
             },
             "only the two moments of adamw can lie in host memory",
             "write optim.kind = \"adamw\""},
    KnobRule{"memory.offload",
             [](const Knobs& knobs) {
               return offloads_the_optimizer(knobs) && knobs.optim.kind == OptimKind::adamw &&
                      knobs.optim.impl == OptimImpl::fused;
             },
             "one kernel that updates all parameters needs all their moments at once",
             "write optim.impl = \"per_tensor\""},
    KnobRule{"memory.offload",
             [](const Knobs& knobs) {
               return offloads_weights(knobs) && knobs.optim.impl == OptimImpl::fused;
             },
             "one kernel that updates all parameters needs all of them at once",
             "write optim.impl = \"per_tensor\""},
    KnobRule{
        "memory.offload",
        [](const Knobs& knobs) {
          return offloads_weights(knobs) && knobs.memory.zero_grad == ZeroGrad::memset;
        },
        "with the weights in host memory a gradient is used up by its layer's update, and none "
        "is left to fill with zeros",
        "remove 'memory.zero_grad'"},
    KnobRule{"memory.offload",
             [](const Knobs& knobs) { return offloads_weights(knobs) && knobs.eval.every > 0; },
             "an evaluation reads all weights where they stay on the device",
             "remove 'eval.every', or write memory.offload = \"optimizer\""},
    KnobRule{"save.every",
             [](const Knobs& knobs) {
               return knobs.save.every > 0 && knobs.memory.offload != Offload::none;
             },
             "what is offloaded lies in host memory already, or comes and goes within a step",
             "remove 'memory.offload' or 'save.every'"},
    KnobRule{"ranks.count",
             [](const Knobs& knobs) {
               return has_ranks(knobs) && (knobs.memory.offload != Offload::none ||
                                           !knobs.batch.sizes.empty() || knobs.eval.every > 0);
             },
             "several ranks neither offload, nor evaluate, nor take batches of several sizes",
             "write ranks.count = 1, or remove 'memory.offload', 'batch.sizes' and 'eval.every'"},
    KnobRule{"ranks.forward_reduces",
             [](const Knobs& knobs) {
               return has_ranks(knobs) && has_images(knobs) && knobs.ranks.forward_reduces > 0;
             },
             "'ranks.forward_reduces' reduces two numbers for each of 'model.hidden', which a "
             "model of images has not: its norms see the images of their own rank",
             "remove it, and give each rank a batch that is large enough for norms of its own, or "
             "write model.kind = \"mlp\" to time such reductions"},
    KnobRule{"ranks.check_each_bucket",
             [](const Knobs& knobs) {
               return has_ranks(knobs) && knobs.launch.via == LaunchVia::graph &&
                      knobs.ranks.check_each_bucket;
             },
             "the host looks at nothing in the middle of a graph",
             "write launch.via = \"stream\", or ranks.check_each_bucket = false"},
    KnobRule{"ranks.broadcast_calls",
             [](const Knobs& knobs) {
               return has_ranks(knobs) && knobs.ranks.broadcast_bytes > 0 &&
                      knobs.ranks.broadcast_bytes < 4 * knobs.ranks.broadcast_calls;
             },
             "a broadcast has a number of 4 bytes at least",
             "write fewer, or more bytes of 'ranks.broadcast'"},
    KnobRule{"ranks.slow_rank",
             [](const Knobs& knobs) {
               return has_ranks(knobs) && knobs.ranks.slow_rank >= knobs.ranks.count;
             },
             "there is no such rank; they are counted from 0",
             "write one that is below 'ranks.count'"},
    KnobRule{"ranks.gradient_dtype",
             [](const Knobs& knobs) {
               return has_ranks(knobs) && !is_16_bit(knobs.model.dtype) &&
                      knobs.ranks.gradient_dtype == GradientDtype::fp32;
             },
             "gradients in 32 bits are on the wire as they are",
             "remove it, or write model.dtype = \"bf16\""},
    KnobRule{"ranks.shard",
             [](const Knobs& knobs) { return shards(knobs) && !is_transformer(knobs); },
             "only a transformer's parameters lie so that every rank can have an equal part",
             "write ranks.shard = \"none\", or model.kind = \"transformer\""},
    KnobRule{"ranks.shard",
             [](const Knobs& knobs) {
               return shards(knobs) &&
                      !std::has_single_bit(static_cast<std::uint64_t>(knobs.ranks.count));
             },
             "equal parts of every bucket need a power of two of ranks",
             "write ranks.count = 2, 4, 8, 16, 32 or 64"},
    KnobRule{
        "ranks.shard",
        [](const Knobs& knobs) { return shards(knobs) && knobs.optim.impl != OptimImpl::fused; },
        "a rank updates its part of every bucket by one kernel", "write optim.impl = \"fused\""},
    KnobRule{"ranks.shard",
             [](const Knobs& knobs) {
               return shards(knobs) && shards_gradients(knobs.ranks.shard) &&
                      knobs.alloc.with == Allocator::fixed;
             },
             "what a rank has for a while only saves nothing where every buffer has memory of its "
             "own",
             "write alloc.with = \"arena\", or ranks.shard = \"optimizer\""},
    KnobRule{"ranks.shard",
             [](const Knobs& knobs) {
               return shards(knobs) && knobs.ranks.shard == Shard::parameters && knobs.model.tied;
             },
             "a head that is the token embedding would be gathered for all of the step",
             "write model.tied = false, or ranks.shard = \"gradients\""},
    KnobRule{"ranks.shard",
             [](const Knobs& knobs) {
               return shards(knobs) && knobs.batch.accumulate > 1 && knobs.ranks.sync_each_part &&
                      !shards_gradients(knobs.ranks.shard);
             },
             "the gradients that other ranks update stay unreduced after a part of the batch, and "
             "the next part would be added to them",
             "remove 'ranks.sync_each_part', or write ranks.shard = \"gradients\""},
    KnobRule{"batch.tensors",
             [](const Knobs& knobs) {
               return knobs.batch.sample_bytes &&
                      *knobs.batch.sample_bytes * knobs.batch.size < knobs.batch.tensors;
             },
             "more tensors than the batch has bytes", "make batch.sample_bytes larger"},
};

}  // namespace

std::span<const KnobRule> knobs_that_clash() {
  return clashes;
}

}  // namespace stepgate
