// SPDX-License-Identifier: MIT
// Measures the host costs of reading the GPU's environment: a whole reading, and each NVML call in
// it.
#include <benchmark/benchmark.h>
#include <dlfcn.h>

#include <array>

#include "device/cuda/cuda_device.h"
#include "device/cuda/nvml/nvml_api.h"

namespace stepgate {
namespace {

using namespace nvml_api;

using AskNumber = Result (*)(Handle, unsigned*);
using AskWhich = Result (*)(Handle, unsigned, unsigned*);
using AskFields = Result (*)(Handle, int, FieldValue*);
using AskProcesses = Result (*)(Handle, unsigned*, ProcessInfo*);
using AskReasons = Result (*)(Handle, unsigned long long*);

// Uses NVML's first GPU, which need not be CUDA's first; calls cost the same.
class OpenLibrary {
 public:
  OpenLibrary() : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW)) {
    const auto init = find<Result (*)()>("nvmlInit_v2");
    const auto first = find<Result (*)(unsigned, Handle*)>("nvmlDeviceGetHandleByIndex_v2");
    usable_ = init && first && init() == success && first(0, &gpu) == success;
  }
  template <class Function>
  Function find(const char* name) const {
    return library_ ? reinterpret_cast<Function>(dlsym(library_, name)) : nullptr;
  }
  bool usable() const { return usable_; }

  Handle gpu = nullptr;

 private:
  void* library_;
  bool usable_ = false;
};

template <class Function, class Call>
void time_call(benchmark::State& state, const char* name, Call call) {
  const OpenLibrary library;
  const auto function = library.find<Function>(name);
  if (!library.usable() || !function) return state.SkipWithError("not there");
  for ([[maybe_unused]] auto turn : state) {
    if (call(function, library.gpu) != success) return state.SkipWithError("not supported");
  }
}

void number(benchmark::State& state, const char* name) {
  time_call<AskNumber>(state, name, [](AskNumber ask, Handle gpu) {
    unsigned value = 0;
    return ask(gpu, &value);
  });
}

void which(benchmark::State& state, const char* name, unsigned kind) {
  time_call<AskWhich>(state, name, [kind](AskWhich ask, Handle gpu) {
    unsigned value = 0;
    return ask(gpu, kind, &value);
  });
}

void reasons(benchmark::State& state) {
  time_call<AskReasons>(state, "nvmlDeviceGetCurrentClocksEventReasons",
                        [](AskReasons ask, Handle gpu) {
                          unsigned long long bits = 0;
                          return ask(gpu, &bits);
                        });
}

void fields(benchmark::State& state) {
  time_call<AskFields>(state, "nvmlDeviceGetFieldValues", [](AskFields ask, Handle gpu) {
    std::array<FieldValue, 5> values{};
    constexpr std::array names{field_software_power_cap, field_sync_boost, field_software_thermal,
                               field_hardware_thermal, field_hardware_power_brake};
    for (std::size_t index = 0; index < names.size(); ++index) values[index].field = names[index];
    return ask(gpu, static_cast<int>(values.size()), values.data());
  });
}

void processes(benchmark::State& state) {
  time_call<AskProcesses>(state, "nvmlDeviceGetComputeRunningProcesses_v3",
                          [](AskProcesses ask, Handle gpu) {
                            std::array<ProcessInfo, 64> found{};
                            auto count = static_cast<unsigned>(found.size());
                            return ask(gpu, &count, found.data());
                          });
}

void whole_reading(benchmark::State& state) {
  const auto device = make_cuda_device();
  const std::string unavailable = device->read_environment()->unavailable;
  if (!unavailable.empty()) return state.SkipWithError(unavailable.c_str());
  for ([[maybe_unused]] auto turn : state) benchmark::DoNotOptimize(device->read_environment());
}

BENCHMARK(whole_reading)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(which, sm_clock, "nvmlDeviceGetClockInfo", clock_sm)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(which, memory_clock, "nvmlDeviceGetClockInfo", clock_memory)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(which, temperature, "nvmlDeviceGetTemperature", temperature_gpu)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(number, power, "nvmlDeviceGetPowerUsage")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(number, power_limit, "nvmlDeviceGetEnforcedPowerLimit")
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(reasons)->Unit(benchmark::kMicrosecond);
BENCHMARK(fields)->Unit(benchmark::kMicrosecond);
BENCHMARK(processes)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace stepgate

BENCHMARK_MAIN();
