// SPDX-License-Identifier: MIT
// For tests only: 40 steps of CUDA calls whose counts are known by construction. The ends of steps
// are the launches of graphs (--step-call cudaGraphLaunch). A step has 7 launches and a graph of 3
// kernels, 2 waits, a pageable, a pinned and a blocking copy, a fill, an allocation and its release
// on the stream. Ends with the status of the device.
#include <cuda_runtime.h>

#include <vector>

namespace {
__global__ void write_one(float* to) {
  if (threadIdx.x == 0) to[0] = 1;
}
}  // namespace

int main() {
  constexpr int steps = 40, launches = 7, kernels_in_graph = 3;
  constexpr std::size_t bytes = 64 << 10;
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  float* on_device = nullptr;
  cudaMalloc(&on_device, bytes);
  void* pinned = nullptr;
  cudaMallocHost(&pinned, bytes);
  std::vector<char> pageable(bytes);
  cudaEvent_t event;
  cudaEventCreate(&event);
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  for (int kernel = 0; kernel < kernels_in_graph; ++kernel)
    write_one<<<1, 32, 0, stream>>>(on_device);
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&executable, graph, 0);
  for (int step = 0; step < steps; ++step) {
    for (int launch = 0; launch < launches; ++launch) write_one<<<1, 32, 0, stream>>>(on_device);
    cudaMemcpyAsync(on_device, pageable.data(), 4096, cudaMemcpyHostToDevice, stream);
    cudaMemcpyAsync(on_device, pinned, 4096, cudaMemcpyDefault, stream);
    cudaMemcpy(on_device, pinned, 8192, cudaMemcpyHostToDevice);
    cudaMemsetAsync(on_device, 0, 4096, stream);
    void* temporary = nullptr;
    cudaMallocAsync(&temporary, 1024, stream);
    cudaFreeAsync(temporary, stream);
    cudaEventRecord(event, stream);
    cudaStreamWaitEvent(stream, event);
    cudaEventSynchronize(event);
    cudaStreamSynchronize(stream);
    cudaGraphLaunch(executable, stream);
  }
  return cudaDeviceSynchronize();
}
