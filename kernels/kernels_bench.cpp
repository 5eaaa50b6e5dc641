// SPDX-License-Identifier: MIT
// How fast the kernels are on the local GPU: each is verified against its reference, then timed by
// CUDA events. Counters: bytes and flops a second, by the kernel's own work formula.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "kernels/catalogue.h"
#include "kernels/cuda_trial.h"

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

// The first rows suffice to verify a product, the first sequence to verify attention: a host needs
// a minute for all of a large one.
constexpr std::int64_t verified_product_rows = 16;

bool is_attention(std::string_view kernel) {
  return kernel == "attention" || kernel == "attention_gradient";
}

Trial expected_of(Trial trial) {
  if (trial.recipe->kernel == "matmul") {
    trial.shape.rows = std::min(trial.shape.rows, verified_product_rows);
  }
  if (is_attention(trial.recipe->kernel)) trial.shape.rows = trial.shape.depth;
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

// The third size as the kernel means it: the inner dimension, or the words of a sample.
std::int64_t depth_for(std::string_view kernel, std::int64_t columns) {
  if (kernel == "matmul") return columns;
  return kernel == "ingest" ? columns + 1 : 1;
}

std::vector<KernelShape> shapes_for(std::string_view kernel) {
  // Tokens, columns, tokens of a sequence, heads: D is 64, 64 and 128.
  if (is_attention(kernel)) {
    return {{16 * 256, 512, 256, 8}, {32 * 1024, 768, 1024, 12}, {8 * 2048, 2048, 2048, 16}};
  }
  if (kernel == "split_heads" || kernel == "merge_heads") return {{32 * 1024, 768, 1024, 12}};
  if (kernel.starts_with("causal_softmax")) return {{48 * 1024, 1024, 1, 48}};
  std::vector<KernelShape> shapes;
  for (const auto& [rows, columns] :
       {std::pair<std::int64_t, std::int64_t>{64, 1024}, {1024, 1024}, {4096, 4096}}) {
    shapes.push_back({rows, columns, depth_for(kernel, columns)});
  }
  return shapes;
}

std::string name_of(std::string_view kernel, const char* dtype, const KernelShape& shape) {
  std::ostringstream name;
  name << kernel << '/' << dtype << '/' << shape.rows << 'x' << shape.columns;
  if (shape.groups > 1) name << '/' << shape.groups << 'x' << shape.depth;
  return name.str();
}

void register_benchmarks() {
  constexpr std::pair<DType, const char*> dtypes[] = {
      {DType::fp32, "fp32"}, {DType::tf32, "tf32"}, {DType::bf16, "bf16"}};
  for (const TrialRecipe& recipe : trial_recipes()) {
    if (recipe.shapes.size() == 1) continue;  // has no size
    for (const auto& [dtype, dtype_name] : dtypes) {
      if (dtype == DType::tf32 && recipe.kernel != "matmul") continue;  // differs in products only
      for (const KernelShape& shape : shapes_for(recipe.kernel)) {
        const std::string name = name_of(recipe.kernel, dtype_name, shape);
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
