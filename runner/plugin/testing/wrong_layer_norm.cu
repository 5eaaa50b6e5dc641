// SPDX-License-Identifier: MIT
// Functions that call themselves layer_norm on a GPU: right ones of the example, and what is wrong
// with the others is their name.
#include <array>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "examples/kernels/layer_norm.cu"

namespace {

using Launch = int (*)(void*, void* const*, void*, void*);

__global__ void wait_a_moment() {
  __nanosleep(100);
}

struct Fault {
  Launch right;
  State* state;
  size_t bytes;  // of y
  long long calls = 0;
  char* memory = nullptr;    // for y and the statistics, if a fault takes it
  const void* of = nullptr;  // whose results are in the memory
  std::vector<std::array<void*, 5>> before = {};
};

template <int (*play)(Fault&, void* const*, void*)>
int prepare(const stepgate_request* request, stepgate_prepared* prepared) {
  const int answer = layer_norm(request, prepared);
  if (answer != STEPGATE_OK) return answer;
  const bool is_16_bit = request->dtype == STEPGATE_BF16 || request->dtype == STEPGATE_FP16;
  auto* const state = static_cast<State*>(prepared->state);
  prepared->state = new Fault{prepared->launch, state,
                              state->rows * size_t(state->columns) * (is_16_bit ? 2 : 4)};
  prepared->launch = [](void* state, void* const* operands, void*, void* stream) {
    Fault& fault = *static_cast<Fault*>(state);
    ++fault.calls;
    return play(fault, operands, stream);
  };
  prepared->release = [](void* state) {
    const auto* fault = static_cast<Fault*>(state);
    cudaFree(fault->memory);
    delete fault->state;
    delete fault;
  };
  return STEPGATE_OK;
}

int right(const Fault& fault, void* const* operands, void* stream) {
  return fault.right(fault.state, operands, nullptr, stream);
}

enum class Copy { to_memory, from_memory };

// Takes memory in the first launch, which is a trial without any look at the memory.
int copy_results(Fault& fault, Copy direction, void* const* operands, void* stream) {
  const size_t statistics = fault.state->rows * 2 * sizeof(float);
  if (fault.memory == nullptr) {
    const int status = cudaMalloc(&fault.memory, fault.bytes + statistics);
    if (status != 0) return status;
  }
  const auto copy = [&](void* result, char* kept, size_t bytes) {
    void* const to = direction == Copy::to_memory ? kept : result;
    const void* const from = direction == Copy::to_memory ? result : kept;
    return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice,
                           static_cast<cudaStream_t>(stream));
  };
  const int status = copy(operands[3], fault.memory, fault.bytes);
  return status != 0 ? status : copy(operands[4], fault.memory + fault.bytes, statistics);
}

int compute_and_keep(Fault& fault, void* const* operands, void* stream) {
  fault.of = operands[0];
  const int status = right(fault, operands, stream);
  return status != 0 ? status : copy_results(fault, Copy::to_memory, operands, stream);
}

int nothing(void* stream) {
  wait_a_moment<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>();
  return cudaGetLastError();
}

}  // namespace

// A function whose launch plays what the body says.
#define WRONG(name)                                                                      \
  static int play_##name(Fault& fault, void* const* operands, void* stream);             \
  extern "C" STEPGATE_EXPORT int name(const stepgate_request* request,                   \
                                      stepgate_prepared* prepared) {                     \
    return prepare<play_##name>(request, prepared);                                      \
  }                                                                                      \
  int play_##name([[maybe_unused]] Fault& fault, [[maybe_unused]] void* const* operands, \
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
WRONG(persists_in_l2) {
  const auto on = static_cast<cudaStream_t>(stream);
  const int status = cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 16 << 20);
  if (status != 0) return status;
  cudaStreamAttrValue window{};
  window.accessPolicyWindow.base_ptr = operands[0];
  window.accessPolicyWindow.num_bytes = fault.bytes;
  window.accessPolicyWindow.hitRatio = 1;
  window.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
  window.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
  cudaStreamSetAttribute(on, cudaStreamAttributeAccessPolicyWindow, &window);
  cudaGetLastError();
  return right(fault, operands, stream);
}
WRONG(caches_by_fingerprint) {
  return fault.of == operands[0] ? copy_results(fault, Copy::from_memory, operands, stream)
                                 : compute_and_keep(fault, operands, stream);
}
WRONG(replays_the_first) {
  return fault.of != nullptr ? copy_results(fault, Copy::from_memory, operands, stream)
                             : compute_and_keep(fault, operands, stream);
}
WRONG(batches_15_calls) {
  std::array<void*, 5> now;
  memcpy(now.data(), operands, sizeof now);
  fault.before.push_back(now);
  if (fault.before.size() < 15) return nothing(stream);
  for (const auto& one : fault.before) right(fault, one.data(), stream);
  fault.before.clear();
  return cudaGetLastError();
}
// Memory that was just freed may hold what a reference left there.
WRONG(copies_fresh_memory) {
  return copy_results(fault, Copy::from_memory, operands, stream);
}
WRONG(uses_a_side_stream) {
  static cudaStream_t side = nullptr;
  if (side == nullptr) cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
  return right(fault, operands, side);
}
// The launch fails, and nobody looks.
WRONG(asks_for_too_much_shared) {
  wait_a_moment<<<1, 1, 65536 + 256, static_cast<cudaStream_t>(stream)>>>();
  cudaGetLastError();
  return STEPGATE_OK;
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
