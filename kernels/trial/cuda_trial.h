// SPDX-License-Identifier: MIT
// Runs trials on the GPU for tests and benchmarks: operands between guard zones, launches, and
// copies back. Every CUDA failure throws, so a machine without a GPU fails rather than skips.
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <vector>

#include "kernels/trial/kernel_trial.h"

namespace stepgate {

// A cuBLASLt handle and a workspace.
class CudaLibraries {
 public:
  // Without cuDNN, the project's own kernels are used. `shared_bytes` imitates a device with no
  // more shared memory per block; 0: the real limit.
  explicit CudaLibraries(Cudnn* dnn = nullptr, std::int64_t shared_bytes = 0);
  ~CudaLibraries();
  CudaLibraries(const CudaLibraries&) = delete;
  CudaLibraries& operator=(const CudaLibraries&) = delete;

  const LaunchContext& context() const { return context_; }

 private:
  LaunchContext context_;
};

// Throws std::runtime_error that says which operation failed.
void check_cuda(cudaError_t status, std::string_view what);

// The placement of the operands in device memory.
struct Placement {
  std::int64_t offset_of(std::size_t operand) const {
    return every_second && operand % 2 == 0 ? 0 : offset_bytes;
  }

  std::int64_t offset_bytes = 0;  // from an address that is aligned to 256 bytes
  bool every_second = false;      // offsets the second, fourth, ... operand alone
  enum class Output { apart, in_place } output = Output::apart;
};

// The trial's operands, copied to device memory.
class DeviceOperands {
 public:
  DeviceOperands(const KernelTrial&, Placement);

  void* const* pointers() const { return pointers_.data(); }

  // Copies the operands back into a trial. If an output shares a buffer with an input, both have
  // the content of that buffer.
  KernelTrial read_back() const;

  // Whether all bytes before and after every operand are unchanged.
  bool guards_are_untouched() const;

 private:
  struct Free {
    void operator()(void* memory) const noexcept { (void)cudaFree(memory); }
  };

  const KernelTrial* trial_;
  Placement placement_;
  std::vector<std::unique_ptr<void, Free>> allocations_;
  std::vector<void*> pointers_;
};

// Prepares and launches the trial's kernel once on these operands, and waits for it.
void run_cuda(const KernelTrial&, const DeviceOperands&, const CudaLibraries&);

}  // namespace stepgate
