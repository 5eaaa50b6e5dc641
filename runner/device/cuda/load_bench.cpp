// SPDX-License-Identifier: MIT
// Measures the cost of loading a step again into its slot, as every round of a measurement does
// with every variant. `load_again` is the total, with `first_ms` and `unload_ms` as counters.
// `buffers_again` is the cost of taking and filling memory alone (`device_MiB` and `host_MiB` are
// filled).
#include <benchmark/benchmark.h>
#include <cuda_runtime_api.h>

#include <chrono>
#include <memory>

#include "device/cuda/check.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/step/cuda_buffers.h"
#include "device/cuda/step/cuda_streams.h"
#include "plan/compose/build_step_plan.h"

namespace stepgate {
namespace {

StepPlan plan_of(const Knobs& knobs) {
  Scenario scenario;
  scenario.variants.push_back({"loaded", knobs, {}});
  return build_step_plans(scenario, 1).front();
}

// The model gets batches of 4 MiB from pinned memory.
Knobs mlp() {
  Knobs knobs;
  knobs.model.layers = 4;
  knobs.model.hidden = 1024;
  knobs.model.dtype = DType::tf32;
  knobs.batch.size = 1024;
  knobs.transfer = {.host = HostMemory::pinned, .stream = CopyStream::side, .buffers = 2};
  return knobs;
}

// The model has heads of 64 columns and samples of whole tiles, so that cuDNN computes its
// attention where it is installed.
Knobs transformer() {
  Knobs knobs;
  knobs.transfer.host = HostMemory::resident;
  knobs.model = {.kind = ModelKind::transformer, .layers = 2, .hidden = 768};
  knobs.model.heads = 12;
  knobs.model.seq = 1024;
  knobs.model.dtype = DType::bf16;
  knobs.batch.size = 8;
  knobs.optim.kind = OptimKind::adamw;
  knobs.optim.master = true;
  return knobs;
}

Knobs transformer_in_parts() {
  Knobs knobs = transformer();
  knobs.batch.accumulate = 4;
  return knobs;
}

Knobs transformer_as_graph() {
  Knobs knobs = transformer();
  knobs.launch.via = LaunchVia::graph;
  return knobs;
}

template <class Call>
double seconds_of(Call call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void load_again(benchmark::State& state, Knobs (*knobs)()) {
  const std::unique_ptr<Device> device = make_cuda_device();
  const StepPlan plan = plan_of(knobs());
  std::unique_ptr<LoadedStep> step;
  const auto load = [&] { step = device->load_into(only_slot, plan); };
  state.counters["first_ms"] = 1e3 * seconds_of(load);
  double unloading = 0;
  for ([[maybe_unused]] auto turn : state) {
    (void)step->run({.steps = 4});  // used memory, as that of a round is
    unloading += seconds_of([&] { step.reset(); });
    state.SetIterationTime(seconds_of(load));
  }
  state.counters["unload_ms"] =
      benchmark::Counter(1e3 * unloading, benchmark::Counter::kAvgIterations);
}

void buffers_again(benchmark::State& state, Knobs (*knobs)()) {
  const std::unique_ptr<Device> device = make_cuda_device();
  const StepPlan plan = plan_of(knobs());
  CudaStreams created;
  const StepStreams streams = created.of(plan);
  PersistentMemory kept;
  ContentsCache contents;
  std::unique_ptr<CudaBuffers> buffers;
  const auto take = [&] {
    buffers = std::make_unique<CudaBuffers>(plan, contents, kept, streams);
    check(cudaStreamSynchronize(streams[compute_stream]), "fill the buffers");
  };
  take();
  for ([[maybe_unused]] auto turn : state) {
    buffers.reset();
    state.SetIterationTime(seconds_of(take));
  }
  double device_bytes = 0;
  double host_bytes = 0;
  for (const Buffer& buffer : plan.buffers) {
    if (buffer.allocated_by != AllocatedBy::the_plan) continue;
    (buffer.memory == MemoryKind::device ? device_bytes : host_bytes) +=
        static_cast<double>(buffer.bytes * buffer.slots);
  }
  constexpr double mebibyte = 1024.0 * 1024.0;
  state.counters["device_MiB"] = device_bytes / mebibyte;
  state.counters["host_MiB"] = host_bytes / mebibyte;
}

void every_step(benchmark::internal::Benchmark* benchmark) {
  benchmark->UseManualTime()->Iterations(30)->Unit(benchmark::kMillisecond);
}

BENCHMARK_CAPTURE(load_again, mlp, mlp)->Apply(every_step);
BENCHMARK_CAPTURE(load_again, transformer, transformer)->Apply(every_step);
BENCHMARK_CAPTURE(load_again, transformer_in_parts, transformer_in_parts)->Apply(every_step);
BENCHMARK_CAPTURE(load_again, transformer_as_graph, transformer_as_graph)->Apply(every_step);
BENCHMARK_CAPTURE(buffers_again, mlp, mlp)->Apply(every_step);
BENCHMARK_CAPTURE(buffers_again, transformer, transformer)->Apply(every_step);
BENCHMARK_CAPTURE(buffers_again, transformer_in_parts, transformer_in_parts)->Apply(every_step);

}  // namespace
}  // namespace stepgate

BENCHMARK_MAIN();
