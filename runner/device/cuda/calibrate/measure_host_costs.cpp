// SPDX-License-Identifier: MIT
#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "device/cuda/calibrate/graph_of_kernels.h"
#include "device/cuda/calibrate/measure_costs.h"
#include "device/cuda/check.h"
#include "device/device.h"

namespace stepgate {
namespace {

using std::chrono::nanoseconds;
using std::chrono::steady_clock;

// Returns the time of one call among many in a row.
std::int64_t time_of_one(const CostBench& bench, int calls, const std::function<void()>& call) {
  return bench.host_time([&] {
    for (int made = 0; made < calls; ++made) call();
  }) / calls;
}

void measure_launches(const CostBench& bench, HostCosts& costs) {
  costs.launch_nanoseconds = time_of_one(bench, 200, [&] { bench.launch_small(); });
  const Launch gemm = bench.prepare_gemm({64, 64, 64}, DType::tf32);
  costs.gemm_nanoseconds = time_of_one(bench, 100, [&] { bench.multiply(gemm); });
  const GraphExec graph = graph_of_small_kernels(bench);
  costs.graph_launch_nanoseconds = bench.host_time(
      [&] { check(cudaGraphLaunch(graph.get(), bench.stream()), "launch a graph"); });
}

void measure_calls(const CostBench& bench, HostCosts& costs) {
  const PinnedMemory word = make_pinned_memory(kibibyte);
  costs.copy_call_nanoseconds = bench.host_time([&] {
    check(cudaMemcpyAsync(bench.scratch(2), word.get(), 4, cudaMemcpyHostToDevice, bench.stream()),
          "copy");
  });
  const CudaEvent untimed = make_event(cudaEventDisableTiming);
  costs.event_nanoseconds = time_of_one(bench, 100, [&] {
    check(cudaEventRecord(untimed.get(), bench.stream()), "record an event");
  });
}

void measure_allocations(HostCosts& costs) {
  std::vector<std::int64_t> mallocs;
  std::vector<std::int64_t> frees;
  for (int repeat = 0; repeat < cost_repeats; ++repeat) {
    check(cudaDeviceSynchronize(), "wait before a measurement");
    const auto begin = steady_clock::now();
    void* memory = nullptr;
    check(cudaMalloc(&memory, mebibyte), "allocate");
    const auto allocated = steady_clock::now();
    check(cudaFree(memory), "free");
    mallocs.push_back(nanoseconds(allocated - begin).count());
    frees.push_back(nanoseconds(steady_clock::now() - allocated).count());
  }
  costs.malloc_nanoseconds = median_of(std::move(mallocs));
  costs.free_nanoseconds = median_of(std::move(frees));
}

void measure_pool(const CostBench& bench, HostCosts& costs) {
  cudaMemPool_t pool = nullptr;
  check(cudaDeviceGetDefaultMemPool(&pool, 0), "ask for the default pool");
  const auto time_pair = [&](std::uint64_t keep) {
    check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep),
          "set what the pool keeps");
    return bench.host_time([&] {
      void* memory = nullptr;
      check(cudaMallocAsync(&memory, mebibyte, bench.stream()), "allocate from the pool");
      check(cudaFreeAsync(memory, bench.stream()), "free to the pool");
    });
  };
  const std::int64_t kept = time_pair(~0ULL);
  const std::int64_t grown = time_pair(0);
  costs.malloc_async_nanoseconds = kept / 2;
  costs.pool_grow_nanoseconds = std::max<std::int64_t>(grown - kept / 2, kept / 2);
}

void measure_host_registration(const CostBench& bench, HostCosts& costs) {
  constexpr std::int64_t bytes = 16 * mebibyte;
  HostMemoryBlock block(std::aligned_alloc(4096, static_cast<std::size_t>(bytes)));
  if (!block) throw DeviceError("cannot allocate host memory to measure pinning");
  std::memset(block.get(), 1, static_cast<std::size_t>(bytes));
  std::vector<std::int64_t> locks;
  std::vector<std::int64_t> unlocks;
  for (int repeat = 0; repeat < cost_repeats; ++repeat) {
    // Steps pin memory while the device works, which takes longer than on an idle device.
    bench.hold(hold_microseconds);
    const auto begin = steady_clock::now();
    check(cudaHostRegister(block.get(), static_cast<std::size_t>(bytes), cudaHostRegisterDefault),
          "pin");
    const auto locked = steady_clock::now();
    check(cudaDeviceSynchronize(), "wait before unlocking");
    const auto idle = steady_clock::now();
    check(cudaHostUnregister(block.get()), "unlock");
    locks.push_back(nanoseconds(locked - begin).count() * mebibyte / bytes);
    unlocks.push_back(nanoseconds(steady_clock::now() - idle).count() * mebibyte / bytes);
  }
  costs.register_nanoseconds_per_mib = median_of(std::move(locks));
  costs.unregister_nanoseconds_per_mib = median_of(std::move(unlocks));
}

}  // namespace

HostCosts measure_host_costs(const CostBench& bench) {
  HostCosts costs;
  costs.processors = std::max(1U, std::thread::hardware_concurrency());
  measure_launches(bench, costs);
  measure_calls(bench, costs);
  measure_allocations(costs);
  measure_pool(bench, costs);
  measure_host_registration(bench, costs);
  return costs;
}

}  // namespace stepgate
