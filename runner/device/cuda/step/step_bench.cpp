// SPDX-License-Identifier: MIT
// Measures the cost of driving a step from a plan: the step of an MLP as stepgate runs it, against
// the same operations written as a plain loop. Both use the same launchers and numbers, in one
// process, and alternate (driven plain plain driven). The place of memory changes the speed of a
// step, so there are two of each, loaded in mirrored order. `ratio` is the median of driven / plain
// over both pairs. `plain_to_plain` is the ratio of the two plain steps, which shows the effect of
// placement alone.
#include <benchmark/benchmark.h>
#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

#include "base/seconds.h"
#include "device/cuda/check.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/handles.h"
#include "device/cuda/step/fill_on_device.h"
#include "kernels/catalogue.h"
#include "kernels/kernels.h"
#include "plan/compose/build_step_plan.h"

namespace stepgate {
namespace {

constexpr int layers = 4;
constexpr std::int64_t hidden = 1024;
constexpr std::int64_t wash_out_steps = 20;
constexpr std::int64_t steps = 200;
constexpr std::uint64_t seed = 1;

// The same step written as a loop without stepgate.
class PlainStep {
 public:
  explicit PlainStep(std::int64_t rows) : stream_(make_stream()), blas_(make_blas()) {
    const LaunchContext context{.blas = blas_.get(),
                                .workspace = take(workspace_bytes),
                                .workspace_bytes = workspace_bytes};
    const auto prepare = [&]<class Kernel>(Kernel, const typename Kernel::Shape& shape,
                                           const typename Kernel::Attributes& attributes = {}) {
      return kernel(Kernel::name).prepare(shape, DType::tf32, attributes, context);
    };
    using namespace kernels;
    ingest_ = prepare(Ingest(), {rows, hidden, hidden + 1});
    forward_ = prepare(Matmul(), {rows, hidden, hidden}, {.transpose_b = true});
    input_gradient_ = prepare(Matmul(), {rows, hidden, hidden});
    weight_gradient_ = prepare(Matmul(), {hidden, hidden, rows}, {.transpose_a = true});
    relu_ = prepare(BiasActivation(), {rows, hidden}, {true});
    no_relu_ = prepare(BiasActivation(), {rows, hidden});
    loss_ = prepare(CrossEntropy(), {rows, hidden});
    report_ = prepare(ReportLoss(), {rows}, {history});
    bias_gradient_ = prepare(BiasGradient(), {rows, hidden});
    relu_gradient_ = prepare(ReluGradient(), {rows, hidden});
    update_ = prepare(Sgd(), {.columns = layers * hidden * (hidden + 1)}, {0.01});
    for (int batch = 0; batch < 4; ++batch)
      batches_.push_back(take(rows * (hidden + 1) * 4, Content::payload));
    for (void*& activation : activations_) activation = take(rows * hidden * 4);
    for (void*& gradient : gradients_) gradient = take(rows * hidden * 4);
    weights_ = static_cast<char*>(take(layers * hidden * (hidden + 1) * 4, Content::weights));
    weight_gradients_ = static_cast<char*>(take(layers * hidden * (hidden + 1) * 4));
    labels_ = take(rows * 4);
    row_losses_ = take(rows * 4);
    for (void*& kept : kept_) kept = take(history * 16);
  }

  void step(std::int64_t index) {
    cudaStream_t stream = stream_.get();
    launch(ingest_, stream, batches_[static_cast<std::size_t>(index % 4)], activations_[0],
           labels_);
    for (int layer = 0; layer < layers; ++layer) {
      void* out = activations_[layer + 1];
      launch(forward_, stream, activations_[layer], weights_ + layer_bytes * layer, out);
      launch(layer + 1 < layers ? relu_ : no_relu_, stream, out,
             weights_ + layer_bytes * layer + weight_bytes, out);
    }
    launch(loss_, stream, activations_[layers], labels_, gradients_[0], row_losses_);
    launch(report_, stream, row_losses_, kept_[0], kept_[1], kept_[2], kept_[3], kept_[4]);
    for (int layer = layers - 1; layer >= 0; --layer) {
      void* gradient = gradients_[(layers - 1 - layer) % 2];
      if (layer + 1 < layers)
        launch(relu_gradient_, stream, activations_[layer + 1], gradient, gradient);
      char* slot = weight_gradients_ + layer_bytes * layer;
      launch(bias_gradient_, stream, gradient, slot + weight_bytes);
      launch(weight_gradient_, stream, gradient, activations_[layer], slot);
      if (layer > 0) {
        launch(input_gradient_, stream, gradient, weights_ + layer_bytes * layer,
               gradients_[(layers - layer) % 2]);
      }
    }
    launch(update_, stream, weights_, weight_gradients_);
  }

  double seconds_a_step(CudaEvent& begin, CudaEvent& end) {
    for (std::int64_t index = 0; index < wash_out_steps; ++index) step(index);
    check(cudaEventRecord(begin.get(), stream_.get()), "record an event");
    for (std::int64_t index = 0; index < steps; ++index) step(index);
    check(cudaEventRecord(end.get(), stream_.get()), "record an event");
    check(cudaStreamSynchronize(stream_.get()), "wait");
    return seconds(time_between(begin, end)) / static_cast<double>(steps);
  }

 private:
  static constexpr std::int64_t workspace_bytes = 32 * 1024 * 1024;
  static constexpr std::int64_t weight_bytes = hidden * hidden * 4;
  static constexpr std::int64_t layer_bytes = weight_bytes + hidden * 4;
  static constexpr std::int64_t history = 8192;

  template <class... Pointer>
  static void launch(const Launch& launched, cudaStream_t stream, Pointer*... pointers) {
    void* operands[] = {pointers...};
    launched(operands, stream);
  }

  // Allocates memory with the content of the driven step's buffer of that kind: the multiplied
  // numbers affect the speed of a GEMM.
  void* take(std::int64_t bytes, Content content = Content::zeros) {
    void* memory = memory_.emplace_back(make_device_memory(bytes)).get();
    const Buffer as{.name = "weights",
                    .bytes = bytes,
                    .content = content,
                    .dtype = DType::tf32,
                    .scale = 1.0 / std::sqrt(static_cast<double>(hidden))};
    check(fill_on_device(as, std::ssize(batches_), seed, memory, stream_.get()), "fill");
    return memory;
  }

  std::vector<DeviceMemoryBlock> memory_;
  CudaStream stream_;
  BlasHandle blas_;
  Launch ingest_, forward_, input_gradient_, weight_gradient_, relu_, no_relu_, loss_, report_,
      bias_gradient_, relu_gradient_, update_;
  std::vector<void*> batches_;
  void* activations_[layers + 1] = {};
  void* gradients_[2] = {};
  char* weights_ = nullptr;
  char* weight_gradients_ = nullptr;
  void* labels_ = nullptr;
  void* row_losses_ = nullptr;
  void* kept_[5] = {};
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + std::ssize(values) / 2, values.end());
  return values[values.size() / 2];
}

StepPlan driven_plan(std::int64_t rows) {
  Scenario scenario;
  Knobs knobs;
  knobs.transfer.host = HostMemory::resident;
  knobs.model.layers = layers;
  knobs.model.hidden = hidden;
  knobs.model.dtype = DType::tf32;
  knobs.batch.size = rows;
  scenario.variants.push_back({"driven", knobs, {}});
  return build_step_plans(scenario, seed).front();
}

void driven_against_plain(benchmark::State& state) {
  const std::int64_t rows = state.range(0);
  const std::unique_ptr<Device> device = make_cuda_device();
  const StepPlan plan = driven_plan(rows);
  std::unique_ptr<LoadedStep> driven[2];
  std::unique_ptr<PlainStep> plain[2];
  driven[0] = device->load(plan);
  for (auto& step : plain) step = std::make_unique<PlainStep>(rows);
  driven[1] = device->load(plan);
  CudaEvent begin = make_event();
  CudaEvent end = make_event();
  const auto run_driven = [&](std::size_t which) {
    const StepResult result =
        driven[which]->run({.wash_out_steps = wash_out_steps, .steps = steps, .tensors = false});
    return std::chrono::duration<double>(*result.elapsed).count() / static_cast<double>(steps);
  };
  const auto run_plain = [&](std::size_t which) {
    return plain[which]->seconds_a_step(begin, end);
  };
  for (const std::size_t which : {0u, 1u}) {
    (void)run_driven(which);
    (void)run_plain(which);
  }
  std::vector<double> ratios, same_ratios, driven_times, plain_times;
  for ([[maybe_unused]] auto pair_of_turns : state) {
    double log_ratio = 0;
    double plain_logs[2] = {};
    for (const std::size_t which : {0u, 1u}) {
      const double first = run_driven(which);
      const double second = run_plain(which);
      const double third = run_plain(which);
      const double fourth = run_driven(which);
      log_ratio += std::log(first * fourth / (second * third)) / 4;
      plain_logs[which] = std::log(second * third) / 2;
      driven_times.insert(driven_times.end(), {first, fourth});
      plain_times.insert(plain_times.end(), {second, third});
    }
    ratios.push_back(std::exp(log_ratio));
    same_ratios.push_back(std::exp(plain_logs[0] - plain_logs[1]));
    state.SetIterationTime(driven_times.back());
  }
  state.counters["driven_us"] = median(driven_times) * 1e6;
  state.counters["plain_us"] = median(plain_times) * 1e6;
  state.counters["ratio"] = median(ratios);
  state.counters["plain_to_plain"] = median(same_ratios);
}

BENCHMARK(driven_against_plain)
    ->Arg(64)
    ->Arg(1024)
    ->UseManualTime()
    ->Iterations(60)
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace stepgate

BENCHMARK_MAIN();
