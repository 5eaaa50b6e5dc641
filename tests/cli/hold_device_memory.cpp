// SPDX-License-Identifier: MIT
// For failing_device_cuda_test only: allocates all memory of the first GPU except for some MiB,
// prints "held" and keeps the memory until it is killed.
#include <cuda_runtime_api.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>

int main(int count, char** words) {
  const std::size_t left = static_cast<std::size_t>(count > 1 ? std::atol(words[1]) : 1024) << 20;
  constexpr std::size_t largest_piece = std::size_t{256} << 20;
  constexpr std::size_t smallest_piece = std::size_t{2} << 20;
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  void* memory = nullptr;
  for (std::size_t piece = largest_piece; piece >= smallest_piece; piece /= 2) {
    while (cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess && free_bytes >= left + piece &&
           cudaMalloc(&memory, piece) == cudaSuccess) {
    }
  }
  if (total_bytes == 0) return 1;
  std::printf("held; %zu of %zu MiB are free\n", free_bytes >> 20, total_bytes >> 20);
  std::fflush(stdout);
  ::pause();
}
