// SPDX-License-Identifier: MIT
// For failing_device_cuda_test only: loaded into the real program by LD_PRELOAD, it makes the
// program's GPU fail permanently, as a broken kernel would. It launches a kernel that traps, in the
// context of the process, some time after an output file has a number of lines.
#include <cuda_runtime.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

namespace {

__global__ void trap() {
  asm volatile("trap;");
}

long lines_of(const char* file) {
  std::ifstream text(file);
  long lines = 0;
  for (std::string line; std::getline(text, line);) ++lines;
  return lines;
}

void wait_and_trap(const char* file, long lines, std::chrono::milliseconds after) {
  while (lines_of(file) < lines) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  std::this_thread::sleep_for(after);
  cudaStream_t beside_all_others = nullptr;  // the legacy stream would wait for queued work
  if (cudaSetDevice(0) != cudaSuccess ||
      cudaStreamCreateWithFlags(&beside_all_others, cudaStreamNonBlocking) != cudaSuccess)
    return;
  trap<<<1, 1, 0, beside_all_others>>>();
  (void)cudaStreamSynchronize(beside_all_others);
}

// Children inherit the variables, so this selects the process that runs scenarios.
bool is_meant() {
  std::ifstream words("/proc/self/cmdline");
  std::string word;
  for (bool is_stepgate = false; std::getline(words, word, '\0');) {
    is_stepgate = is_stepgate || word.ends_with("stepgate");
    if (is_stepgate && word == "run") return true;
  }
  return false;
}

struct WhenLoaded {
  WhenLoaded() {
    const char* file = std::getenv("TRAP_AFTER_LINES_OF");
    const char* lines = std::getenv("TRAP_AFTER_LINES");
    const char* after = std::getenv("TRAP_AFTER_MILLISECONDS");
    if (file == nullptr || lines == nullptr || after == nullptr || !is_meant()) return;
    std::thread(wait_and_trap, file, std::atol(lines), std::chrono::milliseconds(std::atol(after)))
        .detach();
  }
} when_loaded;

}  // namespace
