// SPDX-License-Identifier: MIT
#include <algorithm>

#include "device/cuda/calibrate/graph_of_kernels.h"
#include "device/cuda/calibrate/measure_costs.h"
#include "device/cuda/check.h"
#include "kernels/catalogue.h"
#include "kernels/gemm/gemm.h"

namespace stepgate {
namespace {

double gemm_rate(const CostBench& bench, DType dtype, std::int64_t size) {
  const kernels::Matmul::Shape shape{size, size, size};
  const Launch gemm = bench.prepare_gemm(shape, dtype);
  const std::int64_t time = bench.device_time([&] { bench.multiply(gemm); });
  const KernelWork work = work_of(kernel("matmul"), shape, dtype, {});
  return static_cast<double>(work.flops) / static_cast<double>(time) * 1e9;
}

}  // namespace

GraphExec graph_of_small_kernels(const CostBench& bench) {
  check(cudaStreamBeginCapture(bench.stream(), cudaStreamCaptureModeThreadLocal),
        "begin to capture");
  for (int node = 0; node < graph_nodes; ++node) bench.launch_small();
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(bench.stream(), &graph), "capture");
  const Graph owned(graph);
  cudaGraphExec_t executable = nullptr;
  check(cudaGraphInstantiate(&executable, graph, 0), "instantiate a graph");
  return GraphExec(executable);
}

DeviceCosts measure_device_costs(const CostBench& bench, const HostCosts& host) {
  DeviceCosts costs;
  ComputeCosts& compute = costs.compute;
  // The round trip minus launch, wait and kernel is the latency before the kernel and the wake-up
  // after it; each gets half.
  const std::int64_t round_trip = bench.host_time([&] {
    bench.launch_small();
    check(cudaStreamSynchronize(bench.stream()), "wait");
  });
  compute.kernel_floor_nanoseconds = bench.time_in_full_queue([&] { bench.launch_small(); }, 200);
  const std::int64_t rest = std::max<std::int64_t>(
      0, round_trip - host.launch_nanoseconds - compute.kernel_floor_nanoseconds);
  compute.launch_latency_nanoseconds = rest / 2;
  costs.wake_up_nanoseconds = rest / 2;
  const GraphExec graph = graph_of_small_kernels(bench);
  compute.graph_node_floor_nanoseconds = bench.device_time([&] {
    check(cudaGraphLaunch(graph.get(), bench.stream()), "launch a graph");
  }) / graph_nodes;
  const std::int64_t copy = bench.device_time([&] {
    check(cudaMemcpyAsync(bench.scratch(2), bench.scratch(0), CostBench::scratch_bytes,
                          cudaMemcpyDeviceToDevice, bench.stream()),
          "copy on the device");
  });
  compute.memory_bytes_per_second =
      2.0 * static_cast<double>(CostBench::scratch_bytes) / static_cast<double>(copy) * 1e9;
  compute.fp32_flops_per_second = gemm_rate(bench, DType::fp32, 4096);
  compute.tf32_flops_per_second = gemm_rate(bench, DType::tf32, 8192);
  bench.fill_factors(DType::bf16);
  compute.bf16_flops_per_second = gemm_rate(bench, DType::bf16, 8192);
  return costs;
}

}  // namespace stepgate
