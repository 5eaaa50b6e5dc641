// SPDX-License-Identifier: MIT
// Device memory with guard zones around operands, and the error measure. The tests choose the
// trials.
#include "kernels/trial/cuda_trial.h"

#include <cublasLt.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "kernels/catalogue.h"

namespace stepgate {
namespace {

constexpr std::int64_t guard_bytes = 512;
constexpr int guard_value = 0xa5;
constexpr std::int64_t workspace_bytes = 32 << 20;  // what cuBLAS recommends for Hopper

std::vector<std::byte> from_device(const void* memory, std::int64_t bytes) {
  std::vector<std::byte> content(static_cast<std::size_t>(bytes));
  check_cuda(cudaMemcpy(content.data(), memory, content.size(), cudaMemcpyDeviceToHost),
             "read an operand back");
  return content;
}

}  // namespace

void check_cuda(cudaError_t status, std::string_view what) {
  if (status == cudaSuccess) return;
  throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
}

CudaLibraries::CudaLibraries(Cudnn* dnn, std::int64_t shared_bytes) {
  context_.dnn = dnn;
  context_.shared_bytes = shared_bytes;
  check_cuda(cudaMalloc(&context_.workspace, workspace_bytes), "allocate the workspace");
  context_.workspace_bytes = workspace_bytes;
  cublasLtHandle_t handle = nullptr;
  if (cublasLtCreate(&handle) != CUBLAS_STATUS_SUCCESS) {
    (void)cudaFree(context_.workspace);
    throw std::runtime_error("create the cuBLASLt handle");
  }
  context_.blas = handle;
}

CudaLibraries::~CudaLibraries() {
  (void)cublasLtDestroy(static_cast<cublasLtHandle_t>(context_.blas));
  (void)cudaFree(context_.workspace);
}

DeviceOperands::DeviceOperands(const KernelTrial& trial, Placement placement)
    : trial_(&trial), placement_(placement) {
  for (std::size_t operand = 0; operand < trial.operands.size(); ++operand) {
    const std::vector<std::byte>& content = trial.operands[operand];
    const std::int64_t offset = placement.offset_of(operand);
    const std::size_t bytes = content.size() + 2 * guard_bytes + offset;
    void* memory = nullptr;
    check_cuda(cudaMalloc(&memory, bytes), "allocate an operand");
    allocations_.emplace_back(memory);
    check_cuda(cudaMemset(memory, guard_value, bytes), "fill the guard zones");
    void* start = static_cast<std::byte*>(memory) + guard_bytes + offset;
    check_cuda(cudaMemcpy(start, content.data(), content.size(), cudaMemcpyHostToDevice),
               "upload an operand");
    pointers_.push_back(start);
  }
  if (placement.output == Placement::Output::in_place) {
    const Kernel& row = kernel(trial.recipe->kernel);
    const std::size_t output = operand_in_place(row);
    pointers_[output] = pointers_[row.operands[output].may_replace];
  }
}

KernelTrial DeviceOperands::read_back() const {
  KernelTrial trial = *trial_;
  for (std::size_t operand = 0; operand < pointers_.size(); ++operand) {
    trial.operands[operand] = from_device(pointers_[operand], operand_bytes(trial, operand));
  }
  return trial;
}

bool DeviceOperands::guards_are_untouched() const {
  for (std::size_t operand = 0; operand < allocations_.size(); ++operand) {
    const std::int64_t before = guard_bytes + placement_.offset_of(operand);
    const std::int64_t bytes = operand_bytes(*trial_, operand);
    const auto all = from_device(allocations_[operand].get(), before + bytes + guard_bytes);
    const auto intact = [](std::byte value) { return value == std::byte{guard_value}; };
    if (!std::all_of(all.begin(), all.begin() + before, intact)) return false;
    if (!std::all_of(all.begin() + before + bytes, all.end(), intact)) return false;
  }
  return true;
}

void run_cuda(const KernelTrial& trial, const DeviceOperands& operands,
              const CudaLibraries& libraries) {
  const Launch launch =
      kernel(trial.recipe->kernel)
          .prepare(trial.shape, trial.dtype, trial.attributes, libraries.context());
  cudaStream_t stream = nullptr;
  launch(operands.pointers(), stream);
  check_cuda(cudaStreamSynchronize(stream), trial.recipe->kernel.name());
}

}  // namespace stepgate
