// SPDX-License-Identifier: MIT
// For tests only: stands in for libcuda.so.1 and libcupti.so. It loads the injected library as the
// driver does, and tells its callback of the calls that a fake program makes.
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "program/injected/cuda_interface.h"

using namespace stepgate::attached;

namespace {

struct Call {
  std::uint32_t domain;
  const char* name;
};
// The callback id of a call is its place here, counted from 1.
constexpr Call calls[] = {
    {runtime_domain, "cudaLaunchKernel_v7000"},
    {driver_domain, "cuLaunchKernel"},
    {driver_domain, "cuLaunchKernelEx"},
    {runtime_domain, "cudaMemcpyAsync_v3020"},
    {runtime_domain, "cudaMemcpy_v3020"},
    {driver_domain, "cuMemcpyDtoHAsync_v2"},
    {runtime_domain, "cudaStreamSynchronize_v3020"},
    {driver_domain, "cuStreamSynchronize"},
    {runtime_domain, "cudaDeviceSynchronize_v3020"},
    {runtime_domain, "cudaEventQuery_v3020"},
    {runtime_domain, "cudaMalloc_v3020"},
    {runtime_domain, "cudaFree_v3020"},
    {runtime_domain, "cudaHostAlloc_v3020"},
    {runtime_domain, "cudaStreamWaitEvent_v3020"},
    {runtime_domain, "cudaGraphLaunch_v10000"},
    {runtime_domain, "cudaMemsetAsync_v3020"},
    {driver_domain, "cuLaunchHostFunc"},
    {runtime_domain, "cudaMemcpy2DAsync_v3020"},
    {runtime_domain, "__cudaLaunchKernel"},
    {runtime_domain, "cudaMemcpy3DAsync_v3020"},
    {runtime_domain, "cudaMemcpyBatchAsync_v12080"},
};

CuptiCallback callback = nullptr;
bool is_on[4][std::size(calls) + 1];

const char* variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

extern "C" {

int cuInit(unsigned) {
  const char* path = std::getenv("CUDA_INJECTION64_PATH");
  void* library = path ? dlopen(path, RTLD_NOW) : nullptr;
  if (library == nullptr) return 0;
  reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection"))();
  return 0;
}
int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}
// Addresses from 0x7000 on are pinned, from 0x9000 on on the device, others pageable.
int cuPointerGetAttribute(void* out, int, std::uint64_t address) {
  if (address < 0x7000) return cuda_invalid_value;
  *static_cast<unsigned*>(out) = address < 0x9000 ? 1 : 2;
  return cuda_success;
}

// Stands in for Python too, with one line for each rank: see python_lines.cpp.
void* PyGILState_GetThisThreadState() {
  return *variable("FAKE_LINES") != '\0' ? &callback : nullptr;
}
void _Py_DumpTraceback(int file, void*) {
  dprintf(file, "  File \"/nowhere/rank%s.py\", line 1 in main\n", variable("RANK"));
}

int cuptiGetVersion(std::uint32_t* version) {
  *version = 130001;
  return 0;
}
int cuptiSubscribe(void** subscriber, CuptiCallback given, void*) {
  if (*variable("FAKE_CUPTI_RESULT") != '\0') return std::atoi(variable("FAKE_CUPTI_RESULT"));
  if (callback != nullptr) return 39;  // one subscriber alone
  callback = given;
  *subscriber = &callback;
  return 0;
}
int cuptiEnableCallback(std::uint32_t on, void*, std::uint32_t domain, std::uint32_t call) {
  if (domain < 4 && call <= std::size(calls)) is_on[domain][call] = on != 0;
  return 0;
}
int cuptiGetCallbackName(std::uint32_t domain, std::uint32_t call, const char** name) {
  if (call < 1 || call > std::size(calls) || calls[call - 1].domain != domain) return 1;
  *name = calls[call - 1].name;
  return 0;
}

// The kernel 0xccc is one of NCCL, which launches by cuLaunchKernelEx.
bool is_collective(std::string_view name, const std::uint64_t* parameters) {
  return name.ends_with("cuLaunchKernelEx") && parameters[1] == 0xccc;
}

// A call with these arguments. One that is named "a>b" calls b inside.
void fake_call(const char* name, const std::uint64_t* parameters, int result) {
  const std::string_view whole = name;
  const std::string_view outer = whole.substr(0, whole.find('>'));
  for (std::uint32_t id = 1; id <= std::size(calls); ++id) {
    if (calls[id - 1].name != outer) continue;
    const std::uint32_t domain = calls[id - 1].domain;
    CuptiCallbackData data{.site = 0,
                           .function_name = calls[id - 1].name,
                           .parameters = parameters,
                           .return_value = &result,
                           .symbol_name = is_collective(name, parameters)
                                              ? "_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LLv"
                                              : "_Z6kernelPf"};
    if (callback && is_on[domain][id]) callback(nullptr, domain, id, &data);
    if (outer.size() < whole.size()) fake_call(name + outer.size() + 1, parameters, 0);
    data.site = site_of_return;
    if (callback && is_on[domain][id]) callback(nullptr, domain, id, &data);
    return;
  }
  std::abort();  // a test names a call that is not faked
}

// An executable graph of as many kernels and copies.
void fake_graph(std::uint64_t executable, int kernels, int copies) {
  CuptiGraphData graph{};
  CuptiResourceData data{.context = nullptr, .handle = nullptr, .descriptor = &graph};
  const auto tell = [&](std::uint32_t event) {
    if (callback) callback(nullptr, resource_domain, event, &data);
  };
  graph.graph = reinterpret_cast<void*>(executable + 1);
  tell(graph_was_created);
  for (int node = 0; node < kernels + copies; ++node) {
    graph.node_type = node < kernels ? 0 : 1;
    tell(node_was_created);
  }
  graph.exec = reinterpret_cast<void*>(executable);
  tell(exec_was_created);
}
}
