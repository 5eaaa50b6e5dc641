// SPDX-License-Identifier: MIT
#include "scenario/familiar_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text/ascii.h"
#include "base/text/nearest.h"

namespace stepgate {
namespace {

constexpr std::array rows{
    // Metrics.
    FamiliarWord{"throughput, samples per second, images per second, it/s, iterations per second",
                 "samples_per_s, tokens_per_s, steps_per_s"},
    FamiliarWord{"tokens per second, tok/s, tps", "tokens_per_s"},
    FamiliarWord{"latency, step time, step_us, step_ms, step_s, iteration time, duration, elapsed, "
                 "time per step, wall time",
                 "step_ms_mean, step_ms_p50, step_ms_p99"},
    FamiliarWord{"tail latency, jitter, hiccup, stall, outlier, spike",
                 "step_ms_p99, step_ms_max, slow_step_share"},
    FamiliarWord{"utilization, gpu util, sm util, occupancy, idle", "gpu_idle, kernel_idle, mfu"},
    FamiliarWord{"flops, tflops, hfu", "flops_per_step, mfu"},
    FamiliarWord{
        "memory usage, max_memory_allocated, memory_allocated, vram, peak memory, allocated",
        "peak_live, peak_reserved"},
    FamiliarWord{"max_memory_reserved, memory_reserved, reserved", "peak_reserved"},
    FamiliarWord{"fragmentation", "fragmentation_peak, reserve_overhead"},
    FamiliarWord{"oom, out of memory", "ooms, alloc_retries, alloc.cap"},
    FamiliarWord{"bandwidth, GB/s", "kernel_gbps, h2d_gbps, bus_gbps"},
    FamiliarWord{"bottleneck, bound by, data bound, cpu bound, gpu bound, input bound", "bound"},
    FamiliarWord{"scaling, scaling efficiency", "samples_per_s_per_rank",
                 "scaling efficiency is a ratio: compare samples_per_s_per_rank of two variants"},
    FamiliarWord{"straggler", "last_rank, skew_us, ranks.slow_us"},
    FamiliarWord{"overlap", "copy_overlap, comm_overlap, transfer.stream, ranks.overlap"},
    FamiliarWord{"kernel launches, launch count, cudaLaunchKernel, launch overhead",
                 "launches_per_step, host_us, host.launch_us"},
    // Where batches come from.
    FamiliarWord{"dataloader, data loading, input pipeline, dataset",
                 "loader.wait_us, loader.workers, loader.depth, data_wait_us, data_share"},
    FamiliarWord{
        "loader_wait, loader_wait_us, loader_wait_share, loader_share, data_time, data wait",
        "data_wait_us, data_share, loader.wait_us"},
    FamiliarWord{"num_workers, worker_processes", "loader.workers"},
    FamiliarWord{"prefetch_factor, prefetch, prefetcher, queue size",
                 "loader.depth, transfer.stream, transfer.buffers"},
    FamiliarWord{"persistent_workers", "loader.restart_every, loader.start_us"},
    FamiliarWord{"transforms, augmentation, decode, preprocessing", "loader.wait_us, batch.format"},
    FamiliarWord{"pin_memory, pinned memory, pinned", "transfer.host"},
    FamiliarWord{"non_blocking, async copy, cudaMemcpyAsync", "transfer.blocking, transfer.host"},
    FamiliarWord{"cuda stream, streams, side stream, torch.cuda.stream",
                 "transfer.stream, alloc.stream, streams"},
    FamiliarWord{"record_stream", "alloc.stream"},
    FamiliarWord{"h2d, host to device, to(device), .cuda(), pcie",
                 "transfer.host, copy_bytes_per_step, h2d_us, h2d_share, h2d_gbps"},
    FamiliarWord{"d2h, device to host", "transfer.back, save.via, log.via"},
    FamiliarWord{"copy engine, dma engine", "transfer.others, requires.copy_engines"},
    FamiliarWord{"unified memory, cudaMallocManaged, uvm", "transfer.host = \"managed\""},
    FamiliarWord{"cudaMemAdvise", "transfer.advise"},
    // Where the host waits.
    FamiliarWord{"synchronize, torch.cuda.synchronize, cudaDeviceSynchronize, barrier",
                 "sync.where, sync.how, host_waits_per_step, device_syncs_per_step"},
    FamiliarWord{"item, .item(), loss.item, print loss, logging, tensorboard, wandb, .cpu()",
                 "log.every, log.via, sync.how, host_waits_per_step"},
    FamiliarWord{"cudaStreamSynchronize", "sync.how = \"stream\", host_waits_per_step"},
    FamiliarWord{"cudaEventSynchronize", "sync.how = \"event\", host_waits_per_step"},
    FamiliarWord{"python overhead, framework overhead, cpu overhead, gil, eager",
                 "host.step_us, host.launch_us, host_us, host_share"},
    // Memory.
    FamiliarWord{"cudaMalloc, cudaFree", "alloc.with = \"cuda\", device_allocs_per_step"},
    FamiliarWord{"cudaMallocAsync, memory pool, mempool",
                 "alloc.with = \"cuda_async\", alloc.keep"},
    FamiliarWord{"caching allocator, PYTORCH_CUDA_ALLOC_CONF, PYTORCH_ALLOC_CONF",
                 "alloc.with = \"caching\", alloc.round, alloc.split_max, alloc.cap"},
    FamiliarWord{"expandable_segments", "alloc.with = \"expandable\""},
    FamiliarWord{"max_split_size_mb", "alloc.split_max"},
    FamiliarWord{"roundup_power2_divisions", "alloc.round"},
    FamiliarWord{"set_per_process_memory_fraction, memory fraction, memory limit", "alloc.cap"},
    FamiliarWord{"empty_cache, torch.cuda.empty_cache", "alloc.empty_cache_every"},
    FamiliarWord{"leak, memory leak", "alloc.leak_bytes, live_slope"},
    FamiliarWord{"set_to_none, zero_grad", "memory.zero_grad"},
    FamiliarWord{
        "gradient checkpointing, activation checkpointing, checkpointing, recompute, remat",
        "memory.checkpoint"},
    FamiliarWord{"torch.save, state_dict, save a checkpoint, save_checkpoint",
                 "save.every, save.via"},
    FamiliarWord{"garbage collection, gc.collect, gc pause", "host.pause_us, host.pause_every"},
    FamiliarWord{"cpu offload, zero offload, offloading", "memory.offload, memory.offload_via"},
    // The network and its numbers.
    FamiliarWord{"amp, autocast, mixed precision, precision, dtype",
                 "model.dtype, optim.master, optim.cast"},
    FamiliarWord{"bfloat16, torch.bfloat16", "model.dtype = \"bf16\""},
    FamiliarWord{"float16, half, torch.float16, fp16 training", "model.dtype = \"fp16\""},
    FamiliarWord{"float32, float, single, torch.float32", "model.dtype = \"fp32\""},
    FamiliarWord{"tensorfloat32, allow_tf32, set_float32_matmul_precision",
                 "model.dtype = \"tf32\""},
    FamiliarWord{"fp8, float8, e4m3, e5m2, amax, torchao, transformer engine, transformerengine",
                 "model.fp8"},
    FamiliarWord{"fp4, mxfp8, nvfp4", "",
                 "scales of blocks and numbers of 4 bits are not built yet; 'model.fp8' has one "
                 "scale a tensor"},
    FamiliarWord{"int8", "batch.format = \"uint8\"",
                 "steps are in fp32, tf32, bf16 or fp16; only images may come in 8 bits, with "
                 "batch.format = \"uint8\""},
    FamiliarWord{"GradScaler, loss scaling", "model.dtype = \"fp16\"",
                 "the loss is scaled wherever model.dtype is \"fp16\""},
    FamiliarWord{"gpt, gpt2, nanogpt, llama, mistral, bert, vit, llm, decoder",
                 "model.kind = \"transformer\""},
    FamiliarWord{"dlrm, embedding bag, recsys, recommendation", "model.kind = \"recommender\""},
    FamiliarWord{"linear, dense, feedforward, fully connected", "model.kind = \"mlp\""},
    FamiliarWord{
        "resnet, resnet50, cnn, conv, conv2d, convolution, batchnorm, batch norm, torchvision",
        "model.kind = \"resnet\""},
    FamiliarWord{"num_classes, classes", "model.classes"},
    FamiliarWord{"channels, num_channels, base_channels, block_out_channels", "model.width"},
    FamiliarWord{"in_channels, in_chans, rgb, image channels", "model.image_channels"},
    FamiliarWord{"resolution, image size, image_size, pixels", "model.image"},
    FamiliarWord{"uint8, images as bytes", "batch.format = \"uint8\""},
    FamiliarWord{"channels_last, memory_format, contiguous, NHWC, NCHW", "model.layout_copies",
                 "channels of a resnet and a unet always lie side by side, as in channels_last; "
                 "'model.layout_copies' copies what convolutions make to NCHW and back"},
    FamiliarWord{"unet, diffusion, ddpm, diffusers, groupnorm, group norm",
                 "model.kind = \"unet\""},
    FamiliarWord{"dropout, moe, mixture of experts, lora, pipeline parallel, tensor parallel", "",
                 "no step here has that yet; 'stepgate fields' lists what it can have"},
    FamiliarWord{"hidden_size, d_model, n_embd, embed_dim, width, dim, features", "model.hidden"},
    FamiliarWord{"n_layer, num_layers, num_hidden_layers, depth", "model.layers"},
    FamiliarWord{"n_head, num_heads, num_attention_heads", "model.heads"},
    FamiliarWord{"gqa, mqa, num_key_value_heads", "model.kv_heads"},
    FamiliarWord{"seq_len, sequence length, block_size, context, context length, max_length, n_ctx",
                 "model.seq, batch.lengths"},
    FamiliarWord{"vocab_size", "model.vocab"},
    FamiliarWord{"intermediate_size, ffn_dim, d_ff", "model.ffn"},
    FamiliarWord{"rmsnorm, layernorm", "model.norm"},
    FamiliarWord{"swiglu, silu, gelu, activation", "model.mlp"},
    FamiliarWord{"rotary, rope, positional encoding", "model.position"},
    FamiliarWord{"tie_word_embeddings, weight tying", "model.tied"},
    FamiliarWord{"batch_size, per_device_train_batch_size, bs", "batch.size"},
    FamiliarWord{"gradient accumulation, gradient_accumulation_steps, grad_accum, micro batch, "
                 "microbatch, accumulation",
                 "batch.accumulate"},
    FamiliarWord{"padding, packing, sequence packing, varlen, ragged",
                 "batch.lengths, batch.packed"},
    FamiliarWord{"dynamic shapes, last batch, drop_last", "batch.sizes"},
    FamiliarWord{"optimizer, optim, adam, torch.optim", "optim.kind, optim.impl"},
    FamiliarWord{"momentum, sgd_momentum", "optim.kind = \"momentum\""},
    FamiliarWord{"nesterov", "optim.kind = \"momentum\"",
                 "its step follows the moment itself, without Nesterov's look ahead"},
    FamiliarWord{"foreach, fused, fused adam, multi tensor, apex", "optim.impl"},
    FamiliarWord{"master weights", "optim.master"},
    FamiliarWord{"ema, moving average, swa, AveragedModel", "optim.average"},
    FamiliarWord{"clip_grad_norm, max_grad_norm, gradient clipping", "optim.clip"},
    FamiliarWord{"learning rate, lr, scheduler, weight_decay, beta", "",
                 "a step here has fixed rates, since they cost no time; leave it out"},
    // How kernels are launched.
    FamiliarWord{"epilogue, gelu_aux, fused gelu, fused mlp", "launch.fuse = \"epilogue\""},
    FamiliarWord{"torch.compile, compile, inductor, triton, jit, fusion, fuse",
                 "launch.fuse, launch.via"},
    FamiliarWord{"cuda graph, cudagraphs, CUDAGraph, reduce-overhead, make_graphed_callables",
                 "launch.via = \"graph\""},
    FamiliarWord{"flash attention, flashattention, sdpa, scaled_dot_product_attention, xformers",
                 "launch.fuse = \"attention\""},
    FamiliarWord{"torch.use_deterministic_algorithms, use_deterministic_algorithms, "
                 "deterministic, nondeterministic, reproducible",
                 "launch.attention_sums"},
    FamiliarWord{"cudnn.benchmark", "launch.gemm = \"autotune\"",
                 "engines of convolutions are then measured too, within 'model.workspace'"},
    FamiliarWord{"autotune, max-autotune, cublas workspace, gemm algorithm",
                 "launch.gemm, model.workspace"},
    FamiliarWord{"eval, validation, no_grad, inference_mode, model.eval",
                 "eval.every, eval.save_for_backward, eval.store"},
    // Several GPUs.
    FamiliarWord{"ddp, DistributedDataParallel, data parallel, world_size, nproc_per_node, "
                 "distributed, multi gpu",
                 "ranks.count, ranks.overlap, ranks.bucket"},
    FamiliarWord{"fsdp, FullyShardedDataParallel, zero3, deepspeed, zero",
                 "ranks.shard, ranks.gather_ahead"},
    FamiliarWord{"bucket_cap_mb, bucket", "ranks.bucket, ranks.first_bucket"},
    FamiliarWord{"no_sync", "ranks.sync_each_part, batch.accumulate"},
    FamiliarWord{"allreduce, nccl, collective, reduce_scatter, allgather",
                 "all_reduces_per_step, collectives_per_step, comm_us, exposed_comm_us"},
    FamiliarWord{"broadcast_buffers", "ranks.broadcast, ranks.broadcast_calls"},
    FamiliarWord{"SyncBatchNorm, sync_batchnorm", "ranks.forward_reduces"},
    FamiliarWord{"ethernet, infiniband, network, nodes", "ranks.link_gbps"},
    FamiliarWord{"nvlink, p2p", "ranks.link, requires.link"},
    // How it is measured.
    FamiliarWord{"warmup, warm up, burn in", "measure.warmup"},
    FamiliarWord{"iterations, repeats, runs, num_steps, max_steps, epochs",
                 "measure.steps, measure.rounds"},
    FamiliarWord{"time limit, timeout, budget", "measure.max_seconds"},
    FamiliarWord{"tolerance, threshold, noise threshold, margin", "gate.margin",
                 "a tolerance stands in the assertion: fix.step_ms_mean ~= baseline.step_ms_mean "
                 "within 3%"},
    FamiliarWord{
        "device, gpu, gpus", "",
        "'stepgate run --device' names the device, or stepgate.toml; a scenario may ask for "
        "one with 'requires'"},
    FamiliarWord{"train.py, script, python, my program, command", "program.command"},
};

// "DataLoader" and "data_loader" are one word: "dataloader".
std::string bare(std::string_view text) {
  std::string letters;
  for (const char c : text) {
    const char small = small_letter(c);
    if ((small >= 'a' && small <= 'z') || is_digit(c)) letters += small;
  }
  return letters;
}

std::vector<std::string_view> separated(std::string_view list) {
  std::vector<std::string_view> parts;
  while (!list.empty()) {
    const std::size_t length = std::min(list.find(", "), list.size());
    parts.push_back(list.substr(0, length));
    list.remove_prefix(std::min(length + 2, list.size()));
  }
  return parts;
}

std::string_view knob_of(std::string_view name) {
  return name.substr(0, name.find(" = "));
}

// The choice in `model.dtype = "bf16"`; empty where the name is none with a choice.
std::string_view choice_of(std::string_view name) {
  const std::size_t quote = name.find('"');
  return quote == std::string_view::npos ? "" : name.substr(quote + 1, name.size() - quote - 2);
}

bool is_of(FamiliarPlace place, std::string_view name) {
  return (name.find('.') != std::string_view::npos) == (place == FamiliarPlace::knob);
}

}  // namespace

std::span<const FamiliarWord> familiar_words() {
  return rows;
}

const FamiliarWord* familiar_word(std::string_view word) {
  const std::string asked = bare(word);
  const auto is_it = [&](std::string_view candidate) { return bare(candidate) == asked; };
  const auto row = std::ranges::find_if(rows, [&](const FamiliarWord& one) {
    return std::ranges::any_of(separated(one.words), is_it);
  });
  return row == rows.end() || asked.empty() ? nullptr : &*row;
}

std::vector<std::string_view> names_for(std::string_view word) {
  const FamiliarWord* row = familiar_word(word);
  return row == nullptr ? std::vector<std::string_view>() : separated(row->names);
}

std::string_view choice_for(std::string_view field, std::string_view word) {
  for (const std::string_view name : names_for(word)) {
    if (knob_of(name) == field && name != field) return choice_of(name);
  }
  return {};
}

std::string familiar_hint(std::string_view word, FamiliarPlace place) {
  const FamiliarWord* row = familiar_word(word);
  if (row == nullptr) return {};
  if (!row->remark.empty()) return std::string(row->remark);
  std::vector<std::string_view> names = separated(row->names);
  const auto others = std::stable_partition(
      names.begin(), names.end(), [&](std::string_view name) { return is_of(place, name); });
  if (others != names.begin()) names.erase(others, names.end());
  std::vector<std::string> quoted;
  for (const std::string_view name : names) quoted.push_back(fmt::format("'{}'", name));
  return fmt::format("did you mean {}?", either(quoted));
}

}  // namespace stepgate
