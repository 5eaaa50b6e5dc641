// SPDX-License-Identifier: MIT
// Functions that call themselves layer_norm on a GPU: right ones of the example, and what is wrong
// with the others is their name.
#include <cstdlib>
#include <cstring>

#include "examples/kernels/layer_norm.cu"

namespace {

using Launch = int (*)(void*, void* const*, void*, void*);

__global__ void wait_a_moment() {
  __nanosleep(100);
}

struct Fault {
  Launch right;
  State* state;
  long long calls;
};

template <int (*play)(const Fault&, void* const*, void*)>
int prepare(const stepgate_request* request, stepgate_prepared* prepared) {
  const int answer = layer_norm(request, prepared);
  if (answer != STEPGATE_OK) return answer;
  prepared->state = new Fault{prepared->launch, static_cast<State*>(prepared->state), 0};
  prepared->launch = [](void* state, void* const* operands, void*, void* stream) {
    Fault& fault = *static_cast<Fault*>(state);
    ++fault.calls;
    return play(fault, operands, stream);
  };
  prepared->release = [](void* state) {
    delete static_cast<Fault*>(state)->state;
    delete static_cast<Fault*>(state);
  };
  return STEPGATE_OK;
}

int right(const Fault& fault, void* const* operands, void* stream) {
  return fault.right(fault.state, operands, nullptr, stream);
}

int nothing(void* stream) {
  wait_a_moment<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>();
  return cudaGetLastError();
}

}  // namespace

// A function whose launch plays what the body says.
#define WRONG(name)                                                                            \
  static int play_##name(const Fault& fault, void* const* operands, void* stream);             \
  extern "C" STEPGATE_EXPORT int name(const stepgate_request* request,                         \
                                      stepgate_prepared* prepared) {                           \
    return prepare<play_##name>(request, prepared);                                            \
  }                                                                                            \
  int play_##name([[maybe_unused]] const Fault& fault, [[maybe_unused]] void* const* operands, \
                  [[maybe_unused]] void* stream)

WRONG(does_nothing) {
  return nothing(stream);
}
WRONG(half_of_the_rows) {
  State half = *fault.state;
  half.rows = half.rows > 64 ? half.rows / 2 : half.rows;
  return fault.right(&half, operands, nullptr, stream);
}
WRONG(waits) {
  const int status = right(fault, operands, stream);
  return status != 0 ? status : cudaStreamSynchronize(static_cast<cudaStream_t>(stream));
}
WRONG(allocates) {
  void* memory = nullptr;
  const int status = cudaMalloc(&memory, 1 << 20);
  return status != 0 ? status : right(fault, operands, stream);
}
WRONG(allocates_in_order) {
  void* memory = nullptr;
  const int status = cudaMallocAsync(&memory, 1 << 20, static_cast<cudaStream_t>(stream));
  return status != 0 ? status : right(fault, operands, stream);
}
WRONG(legacy_stream) {
  return right(fault, operands, nullptr);
}
WRONG(launches_twice) {
  const int status = right(fault, operands, stream);
  return status != 0 ? status : right(fault, operands, stream);
}
WRONG(honest_40_times) {
  return fault.calls <= 40 ? right(fault, operands, stream) : nothing(stream);
}
WRONG(needs_16_bytes) {
  void* moved[5];
  memcpy(moved, operands, sizeof moved);
  // Rounds an address down, as a kernel with wide loads that ignores the rest does.
  moved[0] = reinterpret_cast<void*>(reinterpret_cast<size_t>(moved[0]) & ~size_t{15});
  return right(fault, moved, stream);
}
WRONG(sets_a_limit) {
  const int status = cudaDeviceSetLimit(cudaLimitStackSize, 4096);
  return status != 0 ? status : right(fault, operands, stream);
}
WRONG(writes_beside) {
  State more = *fault.state;
  more.rows += 1;
  return fault.right(&more, operands, nullptr, stream);
}
WRONG(crashes) {
  abort();
}
