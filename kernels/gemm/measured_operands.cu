// SPDX-License-Identifier: MIT
#include "kernels/gemm/measured_operands.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>

#include "kernels/fp8/fp8_numbers.h"
#include "kernels/launch.cuh"
#include "kernels/stopwatch.h"

namespace stepgate {
namespace {

void check(cudaError_t status, std::string_view what) {
  if (status == cudaSuccess) return;
  throw std::runtime_error("operands to measure on: " + std::string(what) + ": " +
                           cudaGetErrorString(status));
}

constexpr unsigned blocks = 1024;
constexpr int threads = 256;

// A number in [-1, 1) from 16 bits, or one in fp8 between -2 and 2, which is never NaN.
template <class Number>
__device__ __forceinline__ Number number_of(std::uint32_t bits) {
  if constexpr (std::is_same_v<Number, std::uint8_t>)
    return static_cast<std::uint8_t>(bits & fp8_below_two);
  else
    return from_float<Number>(static_cast<float>(bits & 0xffffu) / 32768.0f - 1.0f);
}

// Fills with numbers computed from their index: zeros would draw less power and run faster.
template <class Number>
__global__ void __launch_bounds__(threads)
    write_noise(Number* numbers, std::int64_t count, std::uint32_t seed) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; i < count;
       i += step) {
    std::uint32_t bits = static_cast<std::uint32_t>(i) * 2654435761u + seed;
    bits = (bits ^ (bits >> 15)) * 2246822519u;
    bits ^= bits >> 13;
    numbers[i] = number_of<Number>(bits);
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

template <class Number>
void fill_with_noise(void* numbers, std::int64_t count, std::size_t operand) {
  write_noise<<<blocks, threads>>>(static_cast<Number*>(numbers), count,
                                   static_cast<std::uint32_t>(operand));
  check_launch("write_noise");
}

constexpr int rounds = 5;
constexpr double least_seconds = 500e-6;  // of a sample; its events cost some microseconds
constexpr int most_launches = 20;         // of a sample
constexpr double near = 1.02;             // as a multiple of the fastest time

struct Candidate {
  std::size_t index;
  std::vector<double> seconds;

  double median() const {
    std::vector<double> sorted = seconds;
    std::nth_element(sorted.begin(), sorted.begin() + rounds / 2, sorted.end());
    return sorted[rounds / 2];
  }
};

// Times the candidates in turns, so that they see the same GPU clocks.
void time_all(std::vector<Candidate>& candidates, const std::function<void(std::size_t)>& enqueue) {
  Stopwatch stopwatch;
  const auto run = [&](const Candidate& candidate, int times) {
    return stopwatch.seconds_each(times, [&] { enqueue(candidate.index); });
  };
  const double once = run(candidates.front(), 1);
  const int launches =
      std::clamp(static_cast<int>(std::ceil(least_seconds / once)), 1, most_launches);
  for (int round = 0; round < rounds; ++round) {
    for (Candidate& candidate : candidates) candidate.seconds.push_back(run(candidate, launches));
  }
}

}  // namespace

void MeasuredOperands::Free::operator()(void* memory) const noexcept {
  (void)cudaFree(memory);
}

MeasuredOperands::Memory MeasuredOperands::room_for(std::int64_t bytes) {
  void* memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, static_cast<std::size_t>(bytes));
  if (status == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();  // clears the error for the next launch
    return nullptr;
  }
  check(status, "allocate");
  return Memory(memory);
}

MeasuredOperands::MeasuredOperands(std::string_view kernel,
                                   const std::vector<MeasuredNumbers>& operands, DType dtype)
    : result_bytes_(operands.back().count * bytes_of(dtype)) {
  std::vector<std::int64_t> bytes;
  for (const MeasuredNumbers& each : operands)
    bytes.push_back(each.count * bytes_of(each.format, dtype));
  bytes.push_back(result_bytes_);
  bytes.push_back(sizeof(int));
  for (const std::int64_t each : bytes) {
    memory_.push_back(room_for(each));
    if (memory_.back() == nullptr)
      throw std::runtime_error(
          std::string(kernel) + ": the device has no room for " +
          std::to_string(std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0}) >> 20) +
          " MiB more, on which algorithms are measured; write launch.gemm = \"heuristic\"");
  }
  for (std::size_t operand = 0; operand < operands.size(); ++operand)
    pointers_.push_back(memory_[operand].get());
  for (std::size_t input = 0; input + 1 < operands.size(); ++input) {
    const auto fill = [&](auto zero) {
      fill_with_noise<decltype(zero)>(pointers_[input], operands[input].count, input);
    };
    if (operands[input].format == OperandFormat::byte)
      fill(std::uint8_t{});
    else
      with_storage(operands[input].format == OperandFormat::single ? DType::fp32 : dtype, fill);
  }
}

void MeasuredOperands::clear_result() const {
  check(cudaMemsetAsync(pointers_.back(), 0, result_size(), nullptr), "clear a result");
}

void MeasuredOperands::keep_result() const {
  check(cudaMemcpyAsync(memory_[pointers_.size()].get(), pointers_.back(), result_size(),
                        cudaMemcpyDeviceToDevice, nullptr),
        "keep a result");
}

bool MeasuredOperands::result_is_as_kept() const {
  auto* differ = static_cast<int*>(memory_.back().get());
  check(cudaMemsetAsync(differ, 0, sizeof(int), nullptr), "clear a flag");
  compare_bits<<<blocks, threads>>>(
      static_cast<const std::uint16_t*>(pointers_.back()),
      static_cast<const std::uint16_t*>(memory_[pointers_.size()].get()), result_bytes_ / 2,
      differ);
  check_launch("compare_bits");
  int found = 0;
  check(cudaMemcpy(&found, differ, sizeof found, cudaMemcpyDeviceToHost), "compare results");
  return found == 0;
}

MeasuredChoice choose_by_time(const MeasuredOperands& operands, std::size_t count,
                              const std::function<void(std::size_t)>& enqueue) {
  std::vector<Candidate> candidates;
  for (std::size_t index = 0; index < count; ++index) {
    operands.clear_result();
    enqueue(index);
    if (index == 0) {
      operands.keep_result();
    } else if (!operands.result_is_as_kept()) {
      continue;
    }
    candidates.push_back({index, {}});
  }
  time_all(candidates, enqueue);
  double fastest = candidates.front().median();
  for (const Candidate& candidate : candidates) fastest = std::min(fastest, candidate.median());
  const Candidate& chosen = *std::find_if(
      candidates.begin(), candidates.end(),
      [&](const Candidate& candidate) { return candidate.median() <= near * fastest; });
  return {.index = chosen.index, .speedup = candidates.front().median() / chosen.median()};
}

}  // namespace stepgate
