// SPDX-License-Identifier: MIT
// Benchmarks the kernels on the local GPU. Each kernel is verified against its reference on a few
// rows, then timed by CUDA events on sizes that exceed all caches. Counters are the bytes and flops
// per second by the kernel's own work formula, and two shares. One is the share of the roofline,
// whose ceilings are measured first: a copy of 1 GiB within device memory, and a large GEMM. The
// other is the share of a copy that moves as many bytes as the kernel, since launch costs weigh on
// short copies as on short kernels.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/catalogue.h"
#include "kernels/convolution/convolution.h"
#include "kernels/cudnn/open_cudnn.h"
#include "kernels/gemm/gemm.h"
#include "kernels/stopwatch.h"
#include "kernels/testing/bench_shapes.h"
#include "kernels/trial/cuda_trial.h"

namespace stepgate {
namespace {

struct Free {
  void operator()(void* memory) const noexcept { (void)cudaFree(memory); }
};
using DeviceBytes = std::unique_ptr<void, Free>;

DeviceBytes device_bytes(std::int64_t bytes) {
  void* memory = nullptr;
  check_cuda(cudaMalloc(&memory, static_cast<std::size_t>(bytes)), "allocate an operand");
  return DeviceBytes(memory);
}

// Fills device memory with copies of the numbers of a small operand.
DeviceBytes repeated(const std::vector<std::byte>& numbers, std::int64_t bytes) {
  DeviceBytes made = device_bytes(bytes);
  auto* start = static_cast<std::byte*>(made.get());
  auto filled = std::min<std::int64_t>(std::ssize(numbers), bytes);
  check_cuda(
      cudaMemcpy(start, numbers.data(), static_cast<std::size_t>(filled), cudaMemcpyHostToDevice),
      "upload an operand");
  while (filled < bytes) {
    const std::int64_t next = std::min(filled, bytes - filled);
    check_cuda(
        cudaMemcpy(start + filled, start, static_cast<std::size_t>(next), cudaMemcpyDeviceToDevice),
        "repeat an operand");
    filled += next;
  }
  return made;
}

struct Ceilings {
  double bytes_per_second = 0;
  std::map<DType, double> flops_per_second;
};

double copied_bytes_per_second() {
  constexpr std::int64_t bytes = 1LL << 30;
  const DeviceBytes from = device_bytes(bytes), to = device_bytes(bytes);
  const auto copy = [&] {
    check_cuda(cudaMemcpyAsync(to.get(), from.get(), bytes, cudaMemcpyDeviceToDevice), "copy");
  };
  Stopwatch stopwatch;
  double best = 0;
  for (int i = 0; i < 5; ++i) best = std::max(best, 2 * bytes / stopwatch.seconds_each(4, copy));
  return best;
}

// Time of a copy that reads and writes so many bytes in total.
double copy_seconds(std::int64_t bytes) {
  static std::map<std::int64_t, double> known;
  const auto [place, is_new] = known.try_emplace(bytes);
  if (!is_new) return place->second;
  const std::int64_t half = std::max<std::int64_t>(bytes / 2, 1);
  const DeviceBytes from = device_bytes(half), to = device_bytes(half);
  const auto copy = [&] {
    check_cuda(cudaMemcpyAsync(to.get(), from.get(), static_cast<std::size_t>(half),
                               cudaMemcpyDeviceToDevice),
               "copy");
  };
  Stopwatch stopwatch;
  place->second = stopwatch.seconds_each(10, copy);
  for (int i = 0; i < 4; ++i)
    place->second = std::min(place->second, stopwatch.seconds_each(10, copy));
  return place->second;
}

double gemm_flops_per_second(DType dtype, const CudaLibraries& libraries) {
  constexpr std::int64_t size = 8192;
  const kernels::Matmul::Shape shape{size, size, size};
  const KernelTrial trial = make_trial<kernels::Matmul>({64, 64, 64}, dtype, {}, 1);
  std::vector<DeviceBytes> operands;
  std::vector<void*> pointers;
  for (int i = 0; i < 3; ++i) {
    operands.push_back(repeated(trial.operands[0], size * size * bytes_of(dtype)));
    pointers.push_back(operands.back().get());
  }
  const Launch launch = kernel("matmul").prepare(shape, dtype, {}, libraries.context());
  const auto work = static_cast<double>(work_of(kernel("matmul"), shape, dtype, {}).flops);
  Stopwatch stopwatch;
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    const double seconds = stopwatch.seconds_each(3, [&] { launch(pointers.data(), nullptr); });
    best = std::max(best, work / seconds);
  }
  return best;
}

const Ceilings& ceilings(const CudaLibraries& libraries) {
  static const Ceilings measured = [&] {
    Ceilings made;
    made.bytes_per_second = copied_bytes_per_second();
    for (const DType dtype : {DType::fp32, DType::tf32, DType::bf16, DType::fp16})
      made.flops_per_second[dtype] = gemm_flops_per_second(dtype, libraries);
    return made;
  }();
  return measured;
}

// The name of the first operand whose result is wrong; empty if all are right.
std::string_view wrong_operand(const KernelTrial& got, const KernelTrial& expected) {
  const Kernel& row = kernel(expected.recipe->kernel);
  for (std::size_t i = 0; i < row.operands.size(); ++i) {
    const OperandFormat format = operand_of(expected, i).format;
    if (format != OperandFormat::storage && format != OperandFormat::single &&
        format != OperandFormat::control)
      continue;
    if (!(relative_error(got, expected, i) <= error_bound(expected, i)))
      return row.operands[i].name;
  }
  return {};
}

void count(benchmark::State& state, const BenchShape& bench, DType dtype, const Ceilings& top,
           double seconds) {
  const KernelWork work = work_of(kernel(bench.kernel), bench.shape, dtype, bench.attributes);
  const auto bytes = static_cast<double>(work.bytes_read + work.bytes_written);
  const auto flops = static_cast<double>(work.flops);
  // Only GEMMs and attention run on tensor cores; flops do not limit other kernels.
  const double math = uses_tensor_cores(bench) ? flops / top.flops_per_second.at(dtype) : 0;
  state.counters["bytes/s"] = bytes / seconds;
  state.counters["flops/s"] = flops / seconds;
  state.counters["roofline"] = std::max(bytes / top.bytes_per_second, math) / seconds;
  if (!uses_tensor_cores(bench))
    state.counters["copy"] = copy_seconds(work.bytes_read + work.bytes_written) / seconds;
}

void run(benchmark::State& state, const BenchShape& bench, DType dtype, Cudnn* dnn) {
  const CudaLibraries libraries(dnn);
  const Ceilings& top = ceilings(libraries);
  const TrialRecipe& recipe = trial_recipe(bench.kernel);
  const KernelTrial small = make_trial(recipe, bench.verified, dtype, bench.attributes, 1);
  {
    const DeviceOperands operands(small, {});
    run_cuda(small, operands, libraries);
    KernelTrial expected = small;
    run_reference(expected);
    const std::string_view wrong = wrong_operand(operands.read_back(), expected);
    if (!wrong.empty()) return state.SkipWithError(("wrong: " + std::string(wrong)).c_str());
  }
  const KernelTrial sizes{&recipe, bench.shape, dtype, bench.attributes, {}};
  std::vector<DeviceBytes> operands;
  std::vector<void*> pointers;
  for (std::size_t i = 0; i < small.operands.size(); ++i) {
    operands.push_back(repeated(small.operands[i], operand_bytes(sizes, i)));
    pointers.push_back(operands.back().get());
  }
  const Launch launch =
      kernel(bench.kernel).prepare(bench.shape, dtype, bench.attributes, libraries.context());
  constexpr int launches_per_iteration = 10;  // to amortise the cost of the two events
  Stopwatch stopwatch;
  std::vector<double> all;
  for (auto _ : state) {
    all.push_back(
        stopwatch.seconds_each(launches_per_iteration, [&] { launch(pointers.data(), nullptr); }));
    state.SetIterationTime(all.back());
  }
  std::nth_element(all.begin(), all.begin() + std::ssize(all) / 2, all.end());
  count(state, bench, dtype, top, all[all.size() / 2]);
}

void register_one(const std::string& name, const BenchShape& bench, DType dtype, Cudnn* dnn) {
  benchmark::RegisterBenchmark(name.c_str(),
                               [&bench, dtype, dnn](auto& state) { run(state, bench, dtype, dnn); })
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond)
      ->MinTime(0.05);
}

// Attention is registered twice if there is cuDNN: with the project's own kernels, and with
// cuDNN's. There are no convolutions without cuDNN.
void register_benchmarks(Cudnn* dnn) {
  constexpr std::pair<DType, const char*> dtypes[] = {
      {DType::bf16, "bf16"}, {DType::fp16, "fp16"}, {DType::tf32, "tf32"}, {DType::fp32, "fp32"}};
  for (const auto& [dtype, dtype_name] : dtypes) {
    for (const BenchShape& bench : bench_shapes()) {
      if (!std::ranges::count(trial_recipe(bench.kernel).dtypes, dtype)) continue;
      if (dtype == DType::tf32 && !uses_tensor_cores(bench)) continue;  // differs in GEMMs only
      const std::string name = std::string(dtype_name) + "/" + name_of(bench);
      const bool convolves = bench.shape.holds<ConvolutionShape>();
      if (convolves && dnn == nullptr) continue;
      register_one(name, bench, dtype, convolves ? dnn : nullptr);
      if (dnn != nullptr && is_16_bit(dtype) && kernel(bench.kernel).library.is_attention)
        register_one(name + "/cuDNN", bench, dtype, dnn);
    }
  }
}

}  // namespace
}  // namespace stepgate

int main(int count, char** arguments) {
  benchmark::Initialize(&count, arguments);
  if (benchmark::ReportUnrecognizedArguments(count, arguments)) return 2;
  std::string reason;
  const auto dnn = stepgate::open_cudnn(&reason);
  if (!dnn) std::fprintf(stderr, "without cuDNN: %s\n", reason.c_str());
  stepgate::register_benchmarks(dnn.get());
  benchmark::RunSpecifiedBenchmarks();
}
