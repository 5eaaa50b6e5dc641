// SPDX-License-Identifier: MIT
// For tests only: a program with steps of CUDA calls that are faked (fake_cuda.cpp). Arguments:
// the number of steps, then words. Each word is a call of every step: "wait", "copy.pageable", ...
// "word@N" is made every Nth step only. "end=..." says how the program ends, "mark=..." how steps
// are marked, "before=..." what happens before them.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "program/injected/cuda_interface.h"

namespace {

using namespace stepgate::attached;
using Words = std::vector<std::uint64_t>;

void* cuda = nullptr;
void (*fake_call)(const char*, const std::uint64_t*, int) = nullptr;
void (*mark)(std::uint64_t, std::uint64_t) = nullptr;
int (*push)(const char*) = nullptr;
int (*pop)() = nullptr;

constexpr std::uint64_t pageable = 0x1000, pinned = 0x7000, device = 0x9000;

struct FakeCall {
  const char* call;
  Words parameters;
  int result = 0;
};
const std::map<std::string, FakeCall>& all_calls() {
  static const Words struct_3d{0, 0, 0,      0, pageable, 0, 0, 0, 0, 0,
                               0, 0, device, 0, 0,        0, 4, 5, 6, 1};
  static const std::map<std::string, FakeCall> calls{
      {"launch", {"cudaLaunchKernel_v7000>cuLaunchKernel", {0xabc, 0, 0, 0, 0, 0, 0, 0, 0}}},
      {"launch.nvcc13", {"__cudaLaunchKernel", {0xabd, 0, 0, 0, 0, 0, 0, 0, 0}}},
      {"launch.driver", {"cuLaunchKernelEx", {0, 0xdef, 0, 0}}},
      {"launch.nccl", {"cuLaunchKernelEx", {0, 0xccc, 0, 0}}},
      {"launch.host", {"cuLaunchHostFunc", {0, 0, 0}}},
      {"copy.pageable", {"cudaMemcpyAsync_v3020", {device, pageable, 4096, 1, 0}}},
      {"copy.pinned", {"cudaMemcpyAsync_v3020", {device, pinned, 100, 1, 0}}},
      {"copy.absurd", {"cudaMemcpyAsync_v3020", {device, pinned, ~std::uint64_t{0}, 1, 0}}},
      {"copy.default", {"cudaMemcpyAsync_v3020", {pinned, device, 7, 4, 0}}},
      {"copy.on_device", {"cudaMemcpyAsync_v3020", {device, device, 8, 3, 0}}},
      {"copy.blocking", {"cudaMemcpy_v3020", {pinned, device, 16, 2}}},
      {"copy.driver", {"cuMemcpyDtoHAsync_v2", {pinned, device, 4, 0}}},
      {"copy.2d", {"cudaMemcpy2DAsync_v3020", {device, 64, pageable, 64, 32, 10, 1, 0}}},
      {"copy.3d", {"cudaMemcpy3DAsync_v3020", {reinterpret_cast<std::uint64_t>(struct_3d.data())}}},
      {"copy.unknown", {"cudaMemcpyBatchAsync_v12080", {0, 0, 0, 0}}},
      {"wait", {"cudaStreamSynchronize_v3020>cuStreamSynchronize", {0}}},
      {"wait.device", {"cudaDeviceSynchronize_v3020", {0}}},
      {"wait.event_on_device", {"cudaStreamWaitEvent_v3020", {0, 0, 0}}},
      {"poll", {"cudaEventQuery_v3020", {0}, 600}},
      {"malloc", {"cudaMalloc_v3020", {0, 1 << 20}}},
      {"malloc.fails", {"cudaMalloc_v3020", {0, 1 << 30}, 2}},
      {"free", {"cudaFree_v3020", {device}}},
      {"pin", {"cudaHostAlloc_v3020", {0, 4096, 0}}},
      {"graph", {"cudaGraphLaunch_v10000", {0xe0, 0}}},
      {"fill", {"cudaMemsetAsync_v3020", {device, 0, 64, 0}}},
  };
  return calls;
}

template <class Function>
void find(Function*& function, void* library, const char* name) {
  function = library ? reinterpret_cast<Function*>(dlsym(library, name)) : nullptr;
}

// The part of NVTX that hands its functions to a tool.
void* nvtx_functions[16];
void** nvtx_places[16];
int nvtx_table(int module, void**** table, unsigned* size) {
  if (module != nvtx_core) return 0;
  for (int index = 0; index < 16; ++index) nvtx_places[index] = &nvtx_functions[index];
  *table = nvtx_places;
  *size = 16;
  return 1;
}
const void* nvtx_export(std::uint32_t) {
  static const NvtxExportTable table{sizeof table, nvtx_table};
  return &table;
}

void start_cuda() {
  cuda = dlopen(FAKE_CUDA, RTLD_NOW | RTLD_GLOBAL);
  if (cuda == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::exit(99);
  }
  reinterpret_cast<int (*)(unsigned)>(dlsym(cuda, "cuInit"))(0);
  find(fake_call, cuda, "fake_call");
  const char* path = std::getenv("STEPGATE_ATTACH_LIBRARY");
  void* library = path ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : nullptr;
  find(mark, library, "stepgate_attach_mark");
  int (*nvtx)(const void* (*)(std::uint32_t)) = nullptr;
  find(nvtx, library, "InitializeInjectionNvtx2");
  if (nvtx == nullptr || nvtx(nvtx_export) == 0) return;
  push = reinterpret_cast<decltype(push)>(nvtx_functions[nvtx_range_push_a]);
  pop = reinterpret_cast<decltype(pop)>(nvtx_functions[nvtx_range_pop]);
}

void make_call(const std::string& word, int step) {
  const std::size_t at = word.find('@');
  if (at != std::string::npos && step % std::atoi(word.c_str() + at + 1) != 0) return;
  const FakeCall& fake = all_calls().at(word.substr(0, at));
  fake_call(fake.call, fake.parameters.data(), fake.result);
}

std::string option(const std::vector<std::string>& words, const std::string& name) {
  for (const std::string& word : words) {
    if (word.rfind(name + "=", 0) == 0) return word.substr(name.size() + 1);
  }
  return "";
}

void one_step(const std::vector<std::string>& words, int step) {
  for (const std::string& word : words) {
    if (word == "--") break;  // what follows is shown alone
    if (word.find('=') == std::string::npos) make_call(word, step);
  }
}

void begin_step(const std::string& marks, int step) {
  if (push == nullptr) return;
  if (marks == "range" || marks == "accumulating") push("step");
  if (marks == "optimizer_and_epochs" && step % 2 == 0) push("epoch");
}

void end_step(const std::string& marks, int step) {
  if (pop && (marks == "range" || marks == "accumulating")) pop();
  if (pop && marks == "optimizer_and_epochs" && step % 2 == 1) pop();
  if (mark == nullptr) return;
  if (marks == "accumulating" && step % 4 == 3) mark(2, 77);
  if (marks == "optimizer_and_epochs") mark(2, 77);
  if (marks == "optimizer") mark(2, 77);
  if (marks == "two_optimizers") {
    mark(2, 77);
    mark(2, 78);
  }
  if (marks == "program") mark(3, 0);
}

void end(const std::string& how) {
  if (how == "kill") ::raise(SIGKILL);
  if (how == "terminate") ::raise(SIGTERM);
  if (how == "_exit") ::_exit(0);
  if (how == "prints") (void)!::write(STDOUT_FILENO, "printed\n", 8);
  if (how == "fails") std::exit(5);
  if (how == "hangs") std::this_thread::sleep_for(std::chrono::hours(1));
}

}  // namespace

int main(int count, char** arguments) {
  const int steps = std::atoi(arguments[1]);
  const std::vector<std::string> words(arguments + 2, arguments + count);
  const std::string marks = option(words, "mark").empty() ? "optimizer" : option(words, "mark");
  const std::string before = option(words, "before"), range = option(words, "range");
  std::printf("the program's own output\n");
  std::fflush(stdout);
  if (before == "no_cuda") return 0;
  if (before == "other_tool") ::setenv("CUDA_INJECTION64_PATH", "/nowhere/tool.so", 1);
  if (before == "flood") {
    const std::string line(1 << 20, 'x');
    for (int lines = 0; lines < 9; ++lines) std::puts(line.c_str());
    std::fflush(stdout);
  }
  if (before == "exec") {
    std::vector<char*> again(arguments, arguments + count);
    std::string none = "before=";
    for (char*& word : again) {
      if (std::strcmp(word, "before=exec") == 0) word = none.data();
    }
    again.push_back(nullptr);
    start_cuda();
    one_step(words, 0);
    ::execv("/proc/self/exe", again.data());
  }
  start_cuda();
  if (before == "profiler") {
    void* subscriber = nullptr;
    if (reinterpret_cast<int (*)(void**, void*, void*)>(dlsym(cuda, "cuptiSubscribe"))(
            &subscriber, nullptr, nullptr) == 0) {
      return 98;
    }
  }
  if (before == "graph") {
    reinterpret_cast<void (*)(std::uint64_t, int, int)>(dlsym(cuda, "fake_graph"))(0xe0, 4, 2);
  }
  if (before == "thread") {  // as a loader's: it launches nothing
    std::thread([] { make_call("pin", 0); }).join();
  }
  for (int step = 0; step < steps; ++step) {
    begin_step(marks, step);
    if (before == "ranges" && push) push(range.empty() ? "forward" : range.c_str());
    one_step(words, step);
    if (before == "thread") std::thread([] { make_call("pin", 0); }).join();
    if (before == "again" && step + 1 == steps) start_cuda();
    if (before == "ranges" && pop) pop();
    end_step(marks, step);
    if (before == "fork" && step == steps / 2) {
      const pid_t child = ::fork();
      if (child == 0) {
        one_step(words, step);  // of the child, which the parent's file must not count
        ::_exit(0);
      }
      ::waitpid(child, nullptr, 0);
    }
  }
  end(option(words, "end"));
  return 0;
}
