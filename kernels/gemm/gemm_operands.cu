// SPDX-License-Identifier: MIT
#include "kernels/gemm/gemm_operands.h"
#include "kernels/launch.cuh"

namespace stepgate {
namespace {

void check(cudaError_t status, std::string_view what) {
  if (status == cudaSuccess) return;
  throw std::runtime_error("operands of a GEMM: " + std::string(what) + ": " +
                           cudaGetErrorString(status));
}

constexpr unsigned blocks = 1024;
constexpr int threads = 256;

// Fills with numbers in [-1, 1) computed from their index: zeros would draw less power and run
// faster.
template <class Number>
__global__ void __launch_bounds__(threads)
    write_noise(Number* numbers, std::int64_t count, std::uint32_t seed) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; i < count;
       i += step) {
    std::uint32_t bits = static_cast<std::uint32_t>(i) * 2654435761u + seed;
    bits = (bits ^ (bits >> 15)) * 2246822519u;
    bits ^= bits >> 13;
    numbers[i] = from_float<Number>(static_cast<float>(bits & 0xffffu) / 32768.0f - 1.0f);
  }
}

// Sets *differ if two arrays of 16-bit words differ.
__global__ void __launch_bounds__(threads)
    compare_bits(const std::uint16_t* one, const std::uint16_t* other, std::int64_t count,
                 int* differ) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; i < count;
       i += step) {
    if (one[i] != other[i]) *differ = 1;
  }
}

}  // namespace

void GemmOperands::Free::operator()(void* memory) const noexcept {
  (void)cudaFree(memory);
}

GemmOperands::Memory GemmOperands::room_for(std::int64_t bytes) {
  void* memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, static_cast<std::size_t>(bytes));
  if (status == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();  // clears the error for the next launch
    return nullptr;
  }
  check(status, "allocate");
  return Memory(memory);
}

std::vector<std::int64_t> GemmOperands::elements_of(const GemmShape& gemm) {
  const auto [m, n, k, groups] = gemm.shape;
  return {groups * m * k, groups * k * n, n, groups * m * n, groups * m * n};
}

std::int64_t GemmOperands::bytes_of(const GemmShape& gemm) {
  std::int64_t bytes = sizeof(int);
  for (const std::int64_t count : elements_of(gemm))
    bytes += count * stepgate::bytes_of(gemm.dtype);
  return bytes;
}

std::optional<GemmOperands> GemmOperands::make(const GemmShape& gemm) {
  const std::int64_t size = stepgate::bytes_of(gemm.dtype);
  const std::vector<std::int64_t> elements = elements_of(gemm);
  GemmOperands made;
  made.result_bytes_ = elements[result] * size;
  for (const std::int64_t count : elements) made.memory_.push_back(room_for(count * size));
  made.memory_.push_back(room_for(sizeof(int)));
  for (const Memory& memory : made.memory_)
    if (!memory) return std::nullopt;
  for (const Index index : {a, b, bias}) made.fill_with_noise(index, elements[index], gemm.dtype);
  for (const Index index : {a, b, bias, result}) {
    if (index == bias && gemm.epilogue != Epilogue::bias) continue;
    made.pointers_.push_back(made.memory_[index].get());
  }
  return made;
}

void GemmOperands::fill_with_noise(Index index, std::int64_t count, DType dtype) const {
  with_storage(dtype, [&](auto zero) {
    using Number = decltype(zero);
    write_noise<<<blocks, threads>>>(static_cast<Number*>(memory_[index].get()), count,
                                     static_cast<std::uint32_t>(index));
  });
  check_launch("write_noise");
}

void GemmOperands::clear_result() const {
  check(cudaMemsetAsync(memory_[result].get(), 0, result_size(), nullptr), "clear a result");
}

void GemmOperands::keep_result() const {
  check(cudaMemcpyAsync(memory_[kept].get(), memory_[result].get(), result_size(),
                        cudaMemcpyDeviceToDevice, nullptr),
        "keep a result");
}

bool GemmOperands::result_is_as_kept() const {
  auto* differ = static_cast<int*>(memory_[flag].get());
  check(cudaMemsetAsync(differ, 0, sizeof(int), nullptr), "clear a flag");
  compare_bits<<<blocks, threads>>>(static_cast<const std::uint16_t*>(memory_[result].get()),
                                    static_cast<const std::uint16_t*>(memory_[kept].get()),
                                    result_bytes_ / 2, differ);
  check_launch("compare_bits");
  int found = 0;
  check(cudaMemcpy(&found, differ, sizeof found, cudaMemcpyDeviceToHost), "compare results");
  return found == 0;
}

}  // namespace stepgate
