// SPDX-License-Identifier: MIT
// Carries trials out on the GPU for tests and benchmarks: operands between guard zones, launches,
// read-back. Every failure of CUDA throws, so a machine without a GPU fails rather than skips.
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <vector>

#include "kernels/testing/kernel_trial.h"

namespace stepgate {

// A cuBLASLt handle and a workspace.
class CudaLibraries {
 public:
  // Without cuDNN, kernels are our own. With `shared_bytes` as on a device that gives a block no
  // more shared memory.
  explicit CudaLibraries(Cudnn* dnn = nullptr, std::int64_t shared_bytes = 0);
  ~CudaLibraries();
  CudaLibraries(const CudaLibraries&) = delete;
  CudaLibraries& operator=(const CudaLibraries&) = delete;

  const LaunchContext& context() const { return context_; }

 private:
  LaunchContext context_;
};

// Throws std::runtime_error with what was being done.
void check_cuda(cudaError_t status, std::string_view what);

// How the operands lie in device memory.
struct Placement {
  std::int64_t offset_bytes = 0;  // from an address that is aligned to 256 bytes
  enum class Output { apart, in_place } output = Output::apart;
};

// The trial's operands in device memory, as the trial holds them now.
class DeviceOperands {
 public:
  DeviceOperands(const KernelTrial&, Placement);

  void* const* pointers() const { return pointers_.data(); }

  // The contents of the operands now, as a trial. In place, the output is what the shared buffer
  // holds, and so is the input that it replaced.
  KernelTrial read_back() const;

  // Whether all bytes before and behind every operand are as they were.
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

// ||got - expected|| / ||expected|| of one operand; NaN when any number is NaN. The norm of the
// expected single-precision numbers (losses, moments) counts as 1 an element at least: a mean of
// numbers of size 1 may cancel to next to nothing.
double relative_error(const KernelTrial& got, const KernelTrial& expected, std::size_t operand);

// The largest relative error of an operand that rounding explains. GEMMs in tf32 take factors of
// 10 bits of mantissa, each off by 2^-10 at most; fp32 operands of a bf16 kernel stay fp32.
double error_bound(const KernelTrial&, std::size_t operand);

}  // namespace stepgate
