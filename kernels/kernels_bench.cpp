// SPDX-License-Identifier: MIT
// How fast the kernels are on the local GPU: each is verified against its reference, then timed by
// CUDA events. Counters: bytes and flops a second, by the kernel's own work formula.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <string>
#include <utility>

#include "kernels/catalogue.h"
#include "kernels/column_parts/column_parts.h"
#include "kernels/cuda_trial.h"
#include "kernels/norm.h"

namespace stepgate {
namespace {

constexpr int launches_per_iteration = 20;  // the cost of the two events fades

class Stopwatch {
 public:
  Stopwatch() {
    check_cuda(cudaEventCreate(&begin_), "create an event");
    check_cuda(cudaEventCreate(&end_), "create an event");
  }
  ~Stopwatch() {
    (void)cudaEventDestroy(begin_);
    (void)cudaEventDestroy(end_);
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  // Seconds of device time between the two records.
  template <class Work>
  double seconds(Work work) {
    check_cuda(cudaEventRecord(begin_), "record");
    work();
    check_cuda(cudaEventRecord(end_), "record");
    check_cuda(cudaEventSynchronize(end_), "wait for the kernels");
    float milliseconds = 0;
    check_cuda(cudaEventElapsedTime(&milliseconds, begin_, end_), "read the time");
    return milliseconds * 1e-3;
  }

 private:
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

// The first rows suffice to verify a product: a host needs a minute for a large one.
constexpr std::int64_t verified_product_rows = 16;

Trial expected_of(Trial trial) {
  if (trial.recipe->kernel == "matmul") {
    trial.shape.rows = std::min(trial.shape.rows, verified_product_rows);
  }
  run_reference(trial);
  return trial;
}

// The name of the first operand that is wrong; empty when none is.
std::string_view wrong_operand(const Trial& got, const Trial& expected) {
  const Kernel& row = kernel(expected.recipe->kernel);
  for (std::size_t i = 0; i < row.operands.size(); ++i) {
    const OperandFormat format = expected.recipe->operands[i].format;
    if (format != OperandFormat::storage && format != OperandFormat::single) continue;
    if (!(relative_error(got, expected, i) <= error_bound(expected, i)))
      return row.operands[i].name;
  }
  return {};
}

void run(benchmark::State& state, const TrialRecipe& recipe, KernelShape shape, DType dtype) {
  const CudaLibraries libraries;
  const Trial trial = make_trial(recipe, shape, dtype, recipe.scalars.front(), 1);
  const DeviceOperands operands(trial, {});
  run_cuda(trial, operands, libraries);
  const std::string_view wrong = wrong_operand(operands.read_back(), expected_of(trial));
  if (!wrong.empty()) {
    state.SkipWithError(("wrong: " + std::string(wrong)).c_str());
    return;
  }
  const Kernel& row = kernel(recipe.kernel);
  const Launch launch = row.prepare(shape, dtype, trial.scalars, libraries.context());
  Stopwatch stopwatch;
  for (auto _ : state) {
    const double seconds = stopwatch.seconds([&] {
      for (int i = 0; i < launches_per_iteration; ++i) launch(operands.pointers(), nullptr);
    });
    state.SetIterationTime(seconds / launches_per_iteration);
  }
  const KernelWork work = row.work(shape, dtype, trial.scalars);
  const auto iterations = static_cast<double>(state.iterations());
  state.counters["bytes/s"] =
      benchmark::Counter(static_cast<double>(work.bytes_read + work.bytes_written) * iterations,
                         benchmark::Counter::kIsRate);
  state.counters["flops/s"] =
      benchmark::Counter(static_cast<double>(work.flops) * iterations, benchmark::Counter::kIsRate);
}

// The sizes as the kernel means them, from those of its matrix.
KernelShape shape_for(std::string_view kernel, std::int64_t rows, std::int64_t columns) {
  if (kernel == "matmul") return {rows, columns, columns};
  if (kernel == "ingest" || kernel == "ingest_tokens") return {rows, columns, columns + 1};
  if (kernel == "embedding" || kernel == "embedding_gradient") {
    return {rows, columns, 2 * rows, std::min<std::int64_t>(rows, 1024)};
  }
  if (kernel == "layer_norm_gradient" || kernel == "rms_norm_gradient") {
    return {rows, columns, norm_parts(rows)};
  }
  if (kernel == "column_parts") return {rows, columns, column_parts(rows, columns)};
  if (kernel == "sum_parts") return {1, columns, rows};
  return {rows, columns};
}

void register_benchmarks() {
  constexpr std::pair<DType, const char*> dtypes[] = {
      {DType::fp32, "fp32"}, {DType::tf32, "tf32"}, {DType::bf16, "bf16"}};
  constexpr std::pair<std::int64_t, std::int64_t> sizes[] = {
      {64, 1024}, {1024, 1024}, {4096, 4096}, {32768, 768}};
  for (const TrialRecipe& recipe : trial_recipes()) {
    if (recipe.shapes.size() == 1) continue;  // has no size
    for (const auto& [dtype, dtype_name] : dtypes) {
      if (dtype == DType::tf32 && recipe.kernel != "matmul") continue;  // differs in products only
      for (const auto& [rows, columns] : sizes) {
        const KernelShape shape = shape_for(recipe.kernel, rows, columns);
        const std::string name = std::string(recipe.kernel) + "/" + dtype_name + "/" +
                                 std::to_string(rows) + "x" + std::to_string(columns);
        benchmark::RegisterBenchmark(
            name.c_str(),
            [&recipe, shape, dtype = dtype](auto& state) { run(state, recipe, shape, dtype); })
            ->UseManualTime()
            ->Unit(benchmark::kMicrosecond);
      }
    }
  }
}

}  // namespace
}  // namespace stepgate

int main(int count, char** arguments) {
  benchmark::Initialize(&count, arguments);
  if (benchmark::ReportUnrecognizedArguments(count, arguments)) return 2;
  stepgate::register_benchmarks();
  benchmark::RunSpecifiedBenchmarks();
}
