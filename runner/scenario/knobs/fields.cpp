// SPDX-License-Identifier: MIT
// The field table. Rows without a member are of the format, but not built yet: refused by name.
#include "scenario/knobs/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/require.h"
#include "base/text/enumerators.h"
#include "scenario/knobs/field_row.h"
#include "scenario/knobs/knob_conditions.h"

namespace stepgate {
namespace {

using namespace field_row;
using namespace knob_conditions;

// Names of enum values in scenario files, for enums whose values are not simply written by their
// C++ names (choices<Enum>). Choices without a value are part of the format, but not implemented
// yet.

// Whether every value of the enum has a name.
template <class Enum, std::size_t count>
constexpr bool name_all_of(const std::array<Choice, count>& choices) {
  for (std::size_t value = 0; value < enumerators<Enum>.size(); ++value) {
    const auto means_it = [&](const Choice& one) {
      return one.value == static_cast<std::int64_t>(value);
    };
    if (std::ranges::none_of(choices, means_it)) return false;
  }
  return true;
}

constexpr std::array model_kinds{choice("mlp", ModelKind::mlp),
                                 choice("spin", ModelKind::spin),
                                 choice("transformer", ModelKind::transformer),
                                 choice("elementwise", ModelKind::elementwise),
                                 choice("chase", ModelKind::chase),
                                 choice("recommender", ModelKind::recommender),
                                 choice("resnet", ModelKind::resnet),
                                 choice("unet", ModelKind::unet)};
// The types of a step that a device can run; fp64 is beyond them.
constexpr auto dtypes = std::span(choices<DType>).first<static_cast<std::size_t>(DType::fp64)>();
constexpr std::array layouts{choice("soa", Layout::arrays), choice("aos", Layout::records)};
constexpr std::array host_memories{choice("resident", HostMemory::resident),
                                   choice("pageable", HostMemory::pageable),
                                   choice("pinned", HostMemory::pinned),
                                   choice("registered", HostMemory::registered),
                                   choice("pin_each_step", HostMemory::pin_each_step),
                                   choice("mapped"),
                                   choice("managed", HostMemory::managed),
                                   choice("managed_prefetch", HostMemory::managed_prefetch)};
constexpr std::array allocators{
    choice("static", Allocator::fixed),          choice("cuda", Allocator::cuda),
    choice("cuda_async", Allocator::cuda_async), choice("arena", Allocator::arena),
    choice("caching", Allocator::caching),       choice("expandable", Allocator::expandable),
    choice("first_fit", Allocator::first_fit)};
constexpr std::array alloc_rounds{choice("none", AllocRound::none),
                                  choice("pow2/4", AllocRound::quarters),
                                  choice("pow2/8", AllocRound::eighths)};
constexpr std::array fuses{choice("attention", Fuse::attention), choice("epilogue", Fuse::epilogue),
                           choice("pointwise", Fuse::pointwise), choice("none", Fuse::none)};
constexpr std::array gemm_choices{choice("heuristic", GemmChoice::heuristic),
                                  choice("autotune", GemmChoice::autotune)};
constexpr Choice every(std::string_view name, std::int64_t blocks) {
  return {name, blocks, "the input of one block in so many is kept"};
}
constexpr std::array checkpoints{Choice{"none", 0, "everything is kept"},
                                 Choice{"full", 1, "the input of every block is kept"},
                                 Choice{"norms", MemoryKnobs::checkpoint_norms,
                                        "all but results of norms is kept; of a resnet or a unet"},
                                 every("every 2", 2),
                                 every("every 3", 3),
                                 every("every 4", 4),
                                 every("every 6", 6),
                                 every("every 8", 8),
                                 every("every 12", 12),
                                 every("every 16", 16)};
constexpr std::array rank_links{choice("default", RankLinks::usual),
                                choice("no_p2p", RankLinks::no_p2p)};
constexpr std::array interleave_choices{choice("auto", Interleave::automatic),
                                        choice("segments", Interleave::segments)};

static_assert(name_all_of<ModelKind>(model_kinds) && name_all_of<Layout>(layouts) &&
              name_all_of<HostMemory>(host_memories) && name_all_of<Allocator>(allocators) &&
              name_all_of<AllocRound>(alloc_rounds) && name_all_of<Fuse>(fuses) &&
              name_all_of<GemmChoice>(gemm_choices) && name_all_of<RankLinks>(rank_links) &&
              name_all_of<Interleave>(interleave_choices));

constexpr std::array groups{
    FieldGroup{"model", "the network and its numbers"},
    FieldGroup{"batch", "what one step trains on"},
    FieldGroup{"loader", "where batches come from"},
    FieldGroup{"host", "busy host time that stands for a framework's work"},
    FieldGroup{"transfer", "the batch's way to the device"},
    FieldGroup{"sync", "where the host waits for the device"},
    FieldGroup{"alloc", "who allocates device memory, and when"},
    FieldGroup{"memory", "memory traded for time"},
    FieldGroup{"optim", "the optimizer"},
    FieldGroup{"launch", "how kernels are launched"},
    FieldGroup{"log", "how the loss is read"},
    FieldGroup{"eval", "evaluation of the model between steps"},
    FieldGroup{"save", "saving weights and the optimizer's state between steps"},
    FieldGroup{"ranks", "processes with a GPU each that train one model together"},
    FieldGroup{"kernels", "kernels that functions of a library of yours launch instead"},
    FieldGroup{"program", "a program of yours, a step of which is looked at in place of ours"},
    FieldGroup{"measure", "how the scenario is measured; the same for all variants"},
    FieldGroup{"gate", "what `stepgate gate` lets pass"},
    FieldGroup{"requires", "what the machine must have, or the scenario is skipped"},
};

constexpr std::array field_rows{
    field<&Knobs::model, &ModelKnobs::kind>(
        "model.kind", one_of(model_kinds),
        "layers of GEMMs, kernels that only spin, blocks of a transformer, kernels that only move "
        "memory, loads that wait for each other, tables of embeddings under layers of GEMMs, "
        "convolutions with batch norms, or convolutions that predict the noise of images"),
    field<&Knobs::model, &ModelKnobs::layers>(
        "model.layers", whole(1, 512),
        "how many layers or blocks, of a unet in each level; where it is left out, a resnet has 50 "
        "and a unet 2",
        &with_layers),
    field<&Knobs::model, &ModelKnobs::hidden>(
        "model.hidden", multiple_of(8, whole(8, 65536)),
        "width of a layer; elementwise: elements of a sample; recommender: of a table's row, whose "
        "layers are 'model.tables' times as wide",
        &without_images),
    field<&Knobs::model, &ModelKnobs::tables>(
        "model.tables", whole(1, 1024),
        "tables of 'model.vocab' rows, of each of which a sample reads one", &for_recommender),
    field<&Knobs::model, &ModelKnobs::kernels>("model.kernels", whole(1, 10000),
                                               "kernels in a step", &for_spin_and_elementwise),
    field<&Knobs::model, &ModelKnobs::kernel_us>("model.kernel_us", whole(1, 1000000),
                                                 "microseconds of each, by the device's clock",
                                                 &for_spin),
    field<&Knobs::model, &ModelKnobs::dtype>("model.dtype", one_of(dtypes),
                                             "how numbers are stored and multiplied"),
    field<&Knobs::model, &ModelKnobs::seq>("model.seq", whole(1, 1048576), "tokens of a sample",
                                           &for_transformer),
    field<&Knobs::model, &ModelKnobs::heads>("model.heads", whole(1, 1024),
                                             "of attention, which share 'model.hidden'",
                                             &for_transformer),
    field<&Knobs::model, &ModelKnobs::kv_heads>(
        "model.kv_heads", or_word("heads", whole(1, 1024)),
        "heads of keys and of values, of which 'model.heads' is a multiple: groups of queries "
        "share one",
        &for_transformer),
    field<&Knobs::model, &ModelKnobs::vocab>("model.vocab", whole(2, 1048576),
                                             "tokens there are, or rows of a table",
                                             &for_transformer_and_recommender),
    field<&Knobs::model, &ModelKnobs::vocab_multiple>(
        "model.vocab_multiple", whole(1, 4096),
        "rows of the token table and of the head, hence columns of the logits, are as many as "
        "'model.vocab' rounded up to a multiple of this; those beyond are no tokens",
        &for_transformer),
    field<&Knobs::model, &ModelKnobs::positions>(
        "model.positions", or_word("seq", whole(1, 1048576)), "positions that have an embedding",
        &for_transformer),
    field<&Knobs::model, &ModelKnobs::norm>("model.norm", one_of(choices<ModelNorm>),
                                            "LayerNorm or RMSNorm", &for_transformer),
    field<&Knobs::model, &ModelKnobs::mlp>(
        "model.mlp", one_of(choices<ModelMlp>),
        "the MLP's inside: gelu of up, or silu of a gate times up, both of one GEMM",
        &for_transformer),
    field<&Knobs::model, &ModelKnobs::ffn>(
        "model.ffn", or_word("auto", multiple_of(8, whole(8, 262144))),
        "width of the MLP; auto is 4 x 'model.hidden', of swiglu 8/3 of it, rounded up to a "
        "multiple of 64",
        &for_transformer),
    field<&Knobs::model, &ModelKnobs::position>(
        "model.position", one_of(choices<ModelPosition>),
        "a table of positions that is learned, or queries and keys turned by theirs (base 10000)",
        &for_transformer),
    field<&Knobs::model, &ModelKnobs::tied>("model.tied", yes_or_no(),
                                            "whether the head's weight is the token embedding",
                                            &for_transformer),
    field<&Knobs::model, &ModelKnobs::bias>(
        "model.bias", yes_or_no(),
        "whether a block's GEMMs have one, as GPT-2's have and Llama's have not", &for_transformer),
    field<&Knobs::model, &ModelKnobs::fp8>(
        "model.fp8", one_of(choices<ModelFp8>),
        "whether the blocks' GEMMs multiply in fp8, beside a model in bf16, and by which numbers a "
        "factor is scaled; head, embeddings, attention, norms and the update stay in bf16",
        &for_transformer),
    field<&Knobs::model, &ModelKnobs::attention_workspace_bytes>(
        "model.attention_workspace", bytes(0, tebibyte),
        "memory for cuDNN's gradient of attention; 0 is our own kernel, without scores",
        &for_transformer),
    field<&Knobs::model, &ModelKnobs::image>(
        "model.image", whole(1, 4096),
        "pixels of a sample's height and of its width; a unet has 64 where it is left out",
        &with_images),
    field<&Knobs::model, &ModelKnobs::image_channels>(
        "model.image_channels", whole(1, 8),
        "channels of a sample, and of the noise that a unet predicts; those beyond red, green and "
        "blue hold numbers like the others, and are not zero",
        &with_images),
    field<&Knobs::model, &ModelKnobs::classes>("model.classes", whole(2, 1048576),
                                               "classes that a sample may be of", &for_resnet),
    field<&Knobs::model, &ModelKnobs::width>(
        "model.width", multiple_of(8, whole(8, 1024)),
        "channels of a resnet's stem, which double from stage to stage, or of a unet's first "
        "level, of which the others have 2, 2 and 4 times as many; a unet has 128 where it is left "
        "out",
        &with_images),
    field<&Knobs::model, &ModelKnobs::layout_copies>(
        "model.layout_copies", yes_or_no(),
        "whether each convolution's result, and its gradient, are copied to NCHW and back: what a "
        "layer that calls .contiguous() does to a model in channels_last; the layers between still "
        "read NHWC",
        &with_images),
    field<&Knobs::model, &ModelKnobs::stem>("model.stem", one_of(choices<ModelStem>),
                                            "what comes before the blocks", &for_resnet),
    field<&Knobs::model, &ModelKnobs::layout>(
        "model.layout", one_of(layouts),
        "an array of the field in use, or an array of records of six fields", &for_elementwise),
    field<&Knobs::model, &ModelKnobs::stride>("model.stride", whole(1, 32),
                                              "elements from a thread's to its neighbour's",
                                              &for_elementwise),
    field<&Knobs::model, &ModelKnobs::inplace>("model.inplace", yes_or_no(),
                                               "mlp, recommender: whether activations overwrite "
                                               "the results of GEMMs; resnet: relus what they "
                                               "read, where they are not fused; elementwise: "
                                               "results what they are made of",
                                               &where_inplace),
    field<&Knobs::model, &ModelKnobs::extra_copies>(
        "model.extra_copies", whole(0, 8), "copies of the result within the device, in a step",
        &for_elementwise),
    field<&Knobs::model, &ModelKnobs::footprint_bytes>(
        "model.footprint", bytes(4 * kibibyte, 64 * gibibyte),
        "bytes that its loads are spread over, a power of two: by it they come from the first "
        "cache, the second or memory",
        &for_chase),
    field<&Knobs::model, &ModelKnobs::accesses>(
        "model.accesses", whole(1, 10000000),
        "loads a step by one thread, each of the line that the one before names", &for_chase),
    field<&Knobs::model, &ModelKnobs::workspace_bytes>(
        "model.workspace", bytes(0, gibibyte),
        "memory that a GEMM or a convolution may use besides", &with_workspace),

    field<&Knobs::batch, &BatchKnobs::size>("batch.size", whole(1, 1048576), "samples in a step",
                                            &without_sizes),
    field<&Knobs::batch, &BatchKnobs::sample_bytes>(
        "batch.sample_bytes", or_word("auto", bytes(1, gibibyte)),
        "size of a sample in words of 4 bytes, of which 'batch.format' may make bytes; auto is "
        "what the model reads"),
    field<&Knobs::batch, &BatchKnobs::tensors>("batch.tensors", whole(1, 1000),
                                               "host tensors, hence copies, in a batch"),
    field<&Knobs::batch, &BatchKnobs::sizes>("batch.sizes",
                                             or_word("none", list_of(whole(1, 1048576))),
                                             "sizes that the steps have in turns, instead of one"),
    field<&Knobs::batch, &BatchKnobs::largest_first>(
        "batch.largest_first", yes_or_no(), "whether the turns begin with the largest size",
        &with_sizes),
    field<&Knobs::batch, &BatchKnobs::accumulate>(
        "batch.accumulate", whole(1, 64),
        "parts of a batch, whose gradients add up before the update; a resnet's batch norms see a "
        "part at a time",
        &for_transformer_and_resnet),
    field<&Knobs::batch, &BatchKnobs::lengths>(
        "batch.lengths", or_word("none", list_of(whole(1, 1048576))),
        "tokens that samples have in turns, the longest of a batch first; padded to 'model.seq', "
        "where no loss counts",
        &for_transformer),
    field<&Knobs::batch, &BatchKnobs::packed>(
        "batch.packed", yes_or_no(),
        "whether samples lie one behind the other without padding, and attention is launched once "
        "for each length",
        &for_transformer),
    field<&Knobs::batch, &BatchKnobs::format>(
        "batch.format", one_of(choices<BatchFormat>),
        "what the loader hands over: fp32, or uint8, a quarter of the bytes, which the forward "
        "pass decodes on the device (x / 127.5 - 1)",
        &for_mlp_and_images),

    field<&Knobs::loader, &LoaderKnobs::wait_us>("loader.wait_us", number(0, 1e7),
                                                 "microseconds that a batch costs its worker"),
    field<&Knobs::loader, &LoaderKnobs::jitter>("loader.jitter", number(0, 1),
                                                "coefficient of variation of that, seeded"),
    field<&Knobs::loader, &LoaderKnobs::depth>(
        "loader.depth", whole(0, 64), "batches ready ahead; 0 loads on the step's own thread"),
    field<&Knobs::loader, &LoaderKnobs::workers>("loader.workers", whole(1, 64),
                                                 "threads that load; needs a depth"),
    field<&Knobs::loader, &LoaderKnobs::busy>(
        "loader.busy", yes_or_no(),
        "whether that is processor time, for which the threads compete, instead of a sleep",
        &with_loading),
    field<&Knobs::loader, &LoaderKnobs::restart_every>(
        "loader.restart_every", whole(0, 1000000),
        "batches after which these threads end and start anew, with nothing ahead; 0 never",
        &with_workers),
    field<&Knobs::loader, &LoaderKnobs::start_us>(
        "loader.start_us", number(0, 1e7),
        "microseconds from such a thread's start to its first batch", &with_workers),

    field<&Knobs::host, &HostKnobs::step_us>("host.step_us", number(0, 1e7),
                                             "microseconds once a step"),
    field<&Knobs::host, &HostKnobs::jitter>(
        "host.jitter", number(0, 1), "coefficient of variation of that, seeded", &with_host_work),
    field<&Knobs::host, &HostKnobs::launch_us>("host.launch_us", number(0, 1e5),
                                               "microseconds before every launch"),
    field<&Knobs::host, &HostKnobs::pause_us>(
        "host.pause_us", number(0, 1e7),
        "microseconds besides, in one of 'host.pause_every' steps: a garbage collection, say"),
    field<&Knobs::host, &HostKnobs::pause_every>("host.pause_every", whole(1, 1000000),
                                                 "steps from one pause to the next", &with_pauses),

    field<&Knobs::transfer, &TransferKnobs::host>(
        "transfer.host", one_of(host_memories), "where the batch starts; resident is never copied"),
    field<&Knobs::transfer, &TransferKnobs::stream>("transfer.stream", one_of(choices<CopyStream>),
                                                    "the stream that copies", &where_copied),
    field<&Knobs::transfer, &TransferKnobs::blocking>(
        "transfer.blocking", yes_or_no(), "whether the host waits for the copy", &where_copied),
    field<&Knobs::transfer, &TransferKnobs::buffers>("transfer.buffers", whole(1, 4),
                                                     "device buffers that the batches rotate over"),
    field<&Knobs::transfer, &TransferKnobs::device_buffer>("transfer.device_buffer",
                                                           one_of(choices<DeviceBuffer>),
                                                           "kept, or allocated anew every step"),
    field<&Knobs::transfer, &TransferKnobs::advise>(
        "transfer.advise", one_of(choices<ManagedAdvice>),
        "what the driver is told of a managed batch, about the device", &where_managed),
    field<&Knobs::transfer, &TransferKnobs::back>(
        "transfer.back", one_of(choices<CopyBack>),
        "the stream that copies the batch's buffer back to pinned memory, behind the step's "
        "kernels"),
    field<&Knobs::transfer, &TransferKnobs::others>(
        "transfer.others", whole(0, 8),
        "other copies to the device during a step, from pinned memory and on a stream of their "
        "own, each as large as the batch; the step's end waits for them"),

    field<&Knobs::sync, &SyncKnobs::where>("sync.where", one_of(choices<SyncWhere>),
                                           "after what the host waits"),
    field<&Knobs::sync, &SyncKnobs::how>("sync.how", one_of(choices<SyncHow>), "by which call"),
    field<&Knobs::sync, &SyncKnobs::every>("sync.every", whole(1, 1000000),
                                           "in every so many steps"),
    field<&Knobs::sync, &SyncKnobs::times>("sync.times", whole(1, 1000), "so many waits in a row"),
    field<&Knobs::sync, &SyncKnobs::wait>("sync.wait", one_of(choices<SyncWait>),
                                          "what the waiting host does with its processor"),

    field<&Knobs::alloc, &AllocKnobs::with>("alloc.with", one_of(allocators),
                                            "the allocator of what a step needs"),
    field<&Knobs::alloc, &AllocKnobs::when>("alloc.when", one_of(choices<AllocWhen>),
                                            "before the first step, or again and again"),
    field<&Knobs::alloc, &AllocKnobs::stream>(
        "alloc.stream", one_of(choices<AllocStream>),
        "the stream whose memory serves what 'alloc.when' allocates, and is kept for it alone",
        &from_a_cache),
    field<&Knobs::alloc, &AllocKnobs::keep_bytes>("alloc.keep", or_word("all", bytes(0, tebibyte)),
                                                  "what its pool keeps at a wait", &for_cuda_async),
    field<&Knobs::alloc, &AllocKnobs::cap>(
        "alloc.cap", or_word("none", capacity(1, tebibyte)),
        "device memory that a step may take; not with static and cuda", &where_capped),
    field<&Knobs::alloc, &AllocKnobs::round>("alloc.round", one_of(alloc_rounds),
                                             "blocks rounded up to so many parts of a power of two",
                                             &for_caching_and_expandable),
    field<&Knobs::alloc, &AllocKnobs::split_max_bytes>(
        "alloc.split_max", or_word("none", bytes(20.0 * kibibyte * kibibyte + 1, tebibyte)),
        "larger blocks are not split", &for_caching),
    field<&Knobs::alloc, &AllocKnobs::empty_cache_every>(
        "alloc.empty_cache_every", whole(0, 1000000),
        "steps after which the cache is given back; 0 never", &for_our_allocators),
    field<&Knobs::alloc, &AllocKnobs::leak_bytes>("alloc.leak_bytes", bytes(0, gibibyte),
                                                  "allocated a step and never released",
                                                  &where_allocated),
    field<&Knobs::alloc, &AllocKnobs::temps>(
        "alloc.temps", whole(0, 64), "short-lived tensors of a layer's size around every kernel",
        &where_allocated),
    field<&Knobs::alloc, &AllocKnobs::release>("alloc.release", yes_or_no(),
                                               "whether what 'alloc.when' allocates is released",
                                               &where_steps_allocate),

    field<&Knobs::memory, &MemoryKnobs::zero_grad>(
        "memory.zero_grad", one_of(choices<ZeroGrad>),
        "whether gradients are filled with zeros first; none with alloc.when = \"op\" and "
        "optim.impl = \"per_tensor\" gives their memory back after the update",
        &with_gradients),
    field<&Knobs::memory, &MemoryKnobs::checkpoint_every>(
        "memory.checkpoint", one_of(checkpoints),
        "blocks of which only the input is kept, and the rest computed again; of a resnet, whose "
        "stages begin anew, also the statistics of norms and the mask of the last relu, so that "
        "running statistics are updated once; of a unet also statistics and what the decoder reads",
        &for_transformer_and_images),
    field<&Knobs::memory, &MemoryKnobs::offload>(
        "memory.offload", one_of(choices<Offload>),
        "what lies in host memory between its uses: the inputs of mlp layers, four of which stay "
        "on the device, AdamW's moments, or weights and moments of mlp layers, at most three of "
        "which are on the device"),
    field<&Knobs::memory, &MemoryKnobs::offload_via>(
        "memory.offload_via", one_of(choices<OffloadVia>),
        "copied beside the kernels, between them, or by a waiting host", &where_offloaded),

    field<&Knobs::optim, &OptimKnobs::kind>(
        "optim.kind", one_of(choices<OptimKind>),
        "its rule; of a transformer or a unet adamw where it is left out, of a resnet momentum",
        &with_parameters),
    field<&Knobs::optim, &OptimKnobs::impl>(
        "optim.impl", one_of(choices<OptimImpl>),
        "one kernel for all tensors, one for each tensor, one for each operation of the rule, or "
        "one for each operation on each tensor",
        &with_parameters),
    field<&Knobs::optim, &OptimKnobs::master>(
        "optim.master", yes_or_no(), "fp32 weights besides those of 16 bits, which follow them",
        &for_transformer_and_images),
    field<&Knobs::optim, &OptimKnobs::cast>("optim.cast", one_of(choices<MasterCast>),
                                            "when the weights are copied from their master of fp32",
                                            &with_a_master),
    field<&Knobs::optim, &OptimKnobs::average>(
        "optim.average", number(0, 0.999999),
        "decay of a moving average of the weights, in fp32, of which every update takes in "
        "1 - decay of the new weights; 0 is none",
        &with_parameters),
    field<&Knobs::optim, &OptimKnobs::clip>("optim.clip", number(0, 1e6),
                                            "largest global norm of the gradients; 0 is any",
                                            &for_transformer_and_images),

    field<&Knobs::launch, &LaunchKnobs::via>("launch.via", one_of(choices<LaunchVia>),
                                             "one by one, or captured as a graph"),
    field<&Knobs::launch, &LaunchKnobs::fuse>(
        "launch.fuse", one_of(fuses),
        "kernels without scores in memory, and with them gelu in the epilogue of its GEMM, or only "
        "pointwise ones fused, or none; of a "
        "recommender, none looks up every table by itself, and the other two all at once; of a "
        "resnet, the other two fuse a norm with the addition and the relu behind it; of a unet, "
        "attention is fused in 16 bits with heads of 64 or 128",
        &where_fused),
    field<&Knobs::launch, &LaunchKnobs::gemm>(
        "launch.gemm", one_of(gemm_choices),
        "algorithms of GEMMs and convolutions as cuBLASLt and cuDNN rank them, or the fastest of "
        "those with the same bits",
        &with_gemms),
    field<&Knobs::launch, &LaunchKnobs::attention_sums>(
        "launch.attention_sums", one_of(choices<AttentionSums>),
        "order of the sums in cuDNN's gradient of attention: the same in every run, or any, which "
        "is faster and keeps no scores in memory; two runs then differ by rounding, and are "
        "compared within it; our own kernel, where cuDNN's is not used, always has the same",
        &with_attention_of_cudnn),

    field<&Knobs::log, &LogKnobs::every>("log.every", whole(0, 1000000),
                                         "in every so many steps; 0 never"),
    field<&Knobs::log, &LogKnobs::via>("log.via", one_of(choices<LogVia>),
                                       "how the value reaches the host"),

    field<&Knobs::eval, &EvalKnobs::every>(
        "eval.every", whole(0, 1000000), "evaluated after every so many steps; 0 never", &for_mlp),
    field<&Knobs::eval, &EvalKnobs::batches>("eval.batches", whole(1, 64),
                                             "validation batches an evaluation", &where_evaluated),
    field<&Knobs::eval, &EvalKnobs::store>(
        "eval.store", one_of(choices<EvalStore>),
        "what becomes of their outputs: dropped, copied to the host, or kept until the end",
        &where_evaluated),
    field<&Knobs::eval, &EvalKnobs::save_for_backward>(
        "eval.save_for_backward", yes_or_no(),
        "whether layers keep their outputs, as if a backward pass followed", &where_evaluated),

    field<&Knobs::save, &SaveKnobs::every>("save.every", whole(0, 1000000),
                                           "saved after every so many steps; 0 never",
                                           &with_parameters),
    field<&Knobs::save, &SaveKnobs::via>("save.via", one_of(choices<SaveVia>),
                                         "how the state reaches host memory", &where_saved),

    field<&Knobs::ranks, &RanksKnobs::count>(
        "ranks.count", whole(1, most_ranks),
        "how many there are; each has a batch of 'batch.size', and gradients are averaged",
        &with_gradients),
    field<&Knobs::ranks, &RanksKnobs::shard>("ranks.shard", one_of(choices<Shard>),
                                             "what a rank has only its part of: nothing, the "
                                             "optimizer's state, the gradients too, or the "
                                             "weights too, which are gathered block by block",
                                             &with_ranks),
    field<&Knobs::ranks, &RanksKnobs::bucket_bytes>(
        "ranks.bucket", bytes(0, tebibyte),
        "gradients that are reduced by one collective: parameter after parameter until they are as "
        "large; 0 is one for each",
        &with_buckets),
    field<&Knobs::ranks, &RanksKnobs::first_bucket_bytes>(
        "ranks.first_bucket", or_word("same", bytes(0, tebibyte)), "the same of the first bucket",
        &with_buckets),
    field<&Knobs::ranks, &RanksKnobs::bucket_order>(
        "ranks.bucket_order", one_of(choices<BucketOrder>),
        "buckets begin with the last parameters, whose gradients are there first, or with the "
        "first ones",
        &with_buckets),
    field<&Knobs::ranks, &RanksKnobs::overlap>(
        "ranks.overlap", one_of(choices<ReduceOverlap>),
        "buckets are reduced beside the backward pass, or it waits for each, or they are after it",
        &with_ranks),
    field<&Knobs::ranks, &RanksKnobs::gradient_dtype>(
        "ranks.gradient_dtype", one_of(choices<GradientDtype>),
        "gradients on the wire: as the model has them, or in fp32 between two conversions",
        &with_ranks),
    field<&Knobs::ranks, &RanksKnobs::average>(
        "ranks.average", one_of(choices<Averaging>),
        "gradients are averaged by the collective itself, or every rank divides its own by how "
        "many there are before, in a kernel for each bucket, and the collective adds them up",
        &with_ranks),
    field<&Knobs::ranks, &RanksKnobs::communicators>(
        "ranks.communicators", whole(1, 2),
        "1: weights are gathered in turns with the reduction of gradients; 2: beside it",
        &where_weights_are_gathered),
    field<&Knobs::ranks, &RanksKnobs::gather_ahead>(
        "ranks.gather_ahead", whole(0, 16),
        "blocks whose weights are gathered before the step comes to them, each in memory of its "
        "own; 0 gathers a block's when it is needed",
        &where_weights_are_gathered),
    field<&Knobs::ranks, &RanksKnobs::collectives, &CollectiveKnobs::max_ctas>(
        "ranks.max_ctas", or_word("auto", whole(1, 64)),
        "thread blocks of a collective, at most: fewer leave kernels beside it more of the device, "
        "and move fewer bytes a second; auto is NCCL's choice",
        &with_ranks),
    once_in_a_process(field<&Knobs::ranks, &RanksKnobs::collectives, &CollectiveKnobs::links>(
        "ranks.link", one_of(rank_links),
        "how GPUs reach each other: as NCCL finds best, or without peer access, through host "
        "memory; the same for all variants",
        &with_ranks)),
    field<&Knobs::ranks, &RanksKnobs::collectives, &CollectiveKnobs::link_gbps>(
        "ranks.link_gbps", number(0, 10000),
        "GB/s that simulated links between ranks move at most, as of a network between hosts; 0 is "
        "the device's own rate. GPUs skip such a scenario",
        &with_ranks),
    field<&Knobs::ranks, &RanksKnobs::spare_sms>(
        "ranks.spare_sms", whole(0, 64),
        "multiprocessors that GEMMs of the backward pass leave to the reductions beside them: one "
        "that finds some of those it was laid out for taken may run twice as long",
        &where_reductions_are_hidden),
    field<&Knobs::ranks, &RanksKnobs::sync_each_part>(
        "ranks.sync_each_part", yes_or_no(),
        "whether gradients are reduced after every part of a batch, not only the last",
        &with_ranks_and_parts),
    field<&Knobs::ranks, &RanksKnobs::check_each_bucket>(
        "ranks.check_each_bucket", yes_or_no(),
        "whether the host waits to see that the gradients of a bucket are finite before it is "
        "reduced",
        &with_ranks),
    field<&Knobs::ranks, &RanksKnobs::broadcast_bytes>(
        "ranks.broadcast", bytes(0, tebibyte),
        "bytes of buffers that rank 0 sends to all before a forward pass, which waits for them, as "
        "DistributedDataParallel does with broadcast_buffers; 0 none",
        &with_ranks),
    field<&Knobs::ranks, &RanksKnobs::broadcast_calls>("ranks.broadcast_calls", whole(1, 10000),
                                                       "broadcasts that these bytes come in",
                                                       &with_broadcasts),
    field<&Knobs::ranks, &RanksKnobs::forward_reduces>(
        "ranks.forward_reduces", whole(0, 10000),
        "all-reduces of statistics (two numbers for each of 'model.hidden') spread over a forward "
        "pass, which waits for each, as for those of SyncBatchNorm",
        &with_ranks),
    field<&Knobs::ranks, &RanksKnobs::slow_us>(
        "ranks.slow_us", number(0, 1e7),
        "microseconds of busy host time that one rank has besides, a step", &with_ranks),
    field<&Knobs::ranks, &RanksKnobs::slow_rank>("ranks.slow_rank", whole(0, most_ranks - 1),
                                                 "which one", &with_a_slow_rank),
    field<&Knobs::ranks, &RanksKnobs::slow_every>("ranks.slow_every", whole(1, 1000000),
                                                  "steps from one of these to the next",
                                                  &with_a_slow_rank),

    field<&Knobs::kernels>(
        "kernels", or_word("none", kernels()),
        "by name, such as kernels.layer_norm = \"build/libmine.so\" (docs/kernels.md); a path is "
        "relative to the folder that stepgate runs in"),

    field<&Knobs::program, &ProgramKnobs::command>(
        "program.command", or_word("none", words()),
        "the program and its arguments, word by word: no shell reads them"),
    field<&Knobs::program, &ProgramKnobs::arguments>("program.arguments", or_word("none", words()),
                                                     "further arguments, behind the command's",
                                                     &with_a_program),
    field<&Knobs::program, &ProgramKnobs::env>(
        "program.env", or_word("none", variables()),
        "environment variables beside those of stepgate; a variant's are added to the base's",
        &with_a_program),
    field<&Knobs::program, &ProgramKnobs::cwd>(
        "program.cwd", or_word("here", a_text()),
        "the folder that it runs in, relative to the one that stepgate runs in; `gate --program` "
        "takes each side's",
        &with_a_program),
    field<&Knobs::program, &ProgramKnobs::skip_steps>(
        "program.skip_steps", whole(0, 1000000), "steps before the counted ones", &with_a_program),
    field<&Knobs::program, &ProgramKnobs::steps>(
        "program.steps", whole(1, 100000),
        "steps that are counted: a multiple of what repeats, such as a log every 10th",
        &with_a_program),
    field<&Knobs::program, &ProgramKnobs::step_range>(
        "program.step_range", or_word("none", a_text()),
        "NVTX range with which a step begins, where it has no optimizer of PyTorch and no range "
        "'step'",
        &with_a_program),
    field<&Knobs::program, &ProgramKnobs::step_kernel>(
        "program.step_kernel", or_word("none", a_text()),
        "regular expression of a kernel with which a step ends", &with_a_program),
    field<&Knobs::program, &ProgramKnobs::step_call>(
        "program.step_call", or_word("none", a_text()),
        "CUDA call with which a step ends, such as cudaGraphLaunch", &with_a_program),
    unscored(field<&Knobs::program, &ProgramKnobs::timeout_s>(
        "program.timeout_s", number(0.1, 86400),
        "seconds after which a start of it is ended, and failed", &with_a_program)),

    unscored(field<&Settings::measure, &MeasureKnobs::warmup_steps>(
        "measure.warmup", or_word("auto", whole(0, 1000000)),
        "unscored steps at first; auto is until the step times are steady")),
    field<&Settings::measure, &MeasureKnobs::steps>(
        "measure.steps", whole(1, 1000000),
        "scored steps in a segment, at most; more where the file is silent and a percentile needs "
        "them"),
    unscored(field<&Settings::measure, &MeasureKnobs::rounds>(
        "measure.rounds", whole(1, 1000000), "at most; measuring stops as soon as all is decided")),
    unscored(field<&Settings::measure, &MeasureKnobs::max_seconds>(
        "measure.max_seconds", number(0.001, 86400),
        "at most; 300 where the file is silent and an assertion names p95 or p99")),
    field<&Settings::measure, &MeasureKnobs::interleave>(
        "measure.interleave", one_of(interleave_choices),
        "in turns of a few steps where variants do not disturb each other; or segments, long ones"),
    unscored(field<&Settings::measure, &MeasureKnobs::confidence>(
        "measure.confidence", number(0.5, 0.9999), "of the intervals in the report")),
    not_built("measure.flush_l2"),
    not_built("measure.clock"),

    unscored(of_variants(field<&Settings::gate, &GateKnobs::margin>(
        "gate.margin", or_word("auto", percent(0.0001, 1)),
        "HEAD's step may take this much longer, where that is more than the gate's --margin"))),

    unscored(field<&Settings::requirements, &Requirements::compute>(
        "requires.compute", or_word("any", version(1, 99)), "compute capability, at least")),
    unscored(field<&Settings::requirements, &Requirements::copy_engines>(
        "requires.copy_engines", or_word("any", whole(0, 64)), "at least")),
    unscored(field<&Settings::requirements, &Requirements::gpus>(
        "requires.gpus", or_word("any", whole(1, most_ranks)), "at least")),
    unscored(field<&Settings::requirements, &Requirements::processors>(
        "requires.processors", or_word("any", whole(1, 100'000)),
        "of the host, that this process may use, at least")),
    unscored(field<&Settings::requirements, &Requirements::link>(
        "requires.link", one_of(choices<RequiredLink>), "between each two of those GPUs")),
    unscored(field<&Settings::requirements, &Requirements::free_memory_bytes>(
        "requires.free_memory", or_word("any", bytes(0, tebibyte)), "device memory, at least")),
};

}  // namespace

std::span<const FieldGroup> field_groups() {
  return groups;
}

std::span<const Field> field_table() {
  return field_rows;
}

const Field* field_named(std::string_view name) {
  constexpr std::string_view of_kernels = "kernels.";
  if (name.starts_with(of_kernels)) name = name.substr(0, of_kernels.size() - 1);
  const auto row = std::ranges::find(field_rows, name, &Field::name);
  return row == field_rows.end() ? nullptr : &*row;
}

std::string_view group_of(const Field& field) {
  return field.name.substr(0, field.name.find('.'));
}

bool is_group(std::string_view name) {
  return std::ranges::find(groups, name, &FieldGroup::name) != groups.end();
}

std::string meaning_of(const Field& field) {
  if (field.condition == nullptr || field.condition->only_for.empty())
    return std::string(field.meaning);
  return fmt::format("{}: {}", field.condition->only_for, field.meaning);
}

FieldValue default_of(const Field& field) {
  require(is_built(field), "only built fields have defaults");
  return field.get(Settings{});
}

const Field* apart_in_a_process(const Knobs& one, const Knobs& other) {
  const auto settings = [](const Knobs& knobs) {
    return Settings{.knobs = knobs, .measure = {}, .requirements = {}, .gate = {}};
  };
  for (const Field& field : field_table()) {
    if (!field.once_in_a_process) continue;
    const KnobCondition* condition = field.condition;
    if (condition != nullptr && !(condition->holds(one) && condition->holds(other))) continue;
    if (field.get(settings(one)) != field.get(settings(other))) return &field;
  }
  return nullptr;
}

}  // namespace stepgate
