// SPDX-License-Identifier: MIT
// For tests only: settings by which a test controls the fake NCCL of fake_nccl.cpp, and a record of
// the calls to it.
#pragma once

#include <dlfcn.h>

#include <atomic>
#include <cstddef>
#include <stdexcept>

#include "device/cuda/nccl/nccl_api.h"

namespace stepgate {

enum class FakeAnswer { success, failure, later, never };

// A wrong report to the profiler plugin about collective number `mistaken_at`, from 0.
enum class Mistake { none, forgets_it, counts_other_elements, takes_another_kind, repeats_it };

struct FakeNccl {
  int version = 22809;
  FakeAnswer init = FakeAnswer::success;
  FakeAnswer collective = FakeAnswer::success;
  FakeAnswer abort = FakeAnswer::success;
  nccl_api::Result async_state = nccl_api::success;
  bool has_profilers = true;  // as from 2.28.3 on
  bool is_captured = false;   // whether calls are captured; NCCL learns it from the stream
  Mistake mistake = Mistake::none;
  int mistaken_at = 0;
  std::atomic<bool> released{false};  // whether calls that never answer may return
  std::atomic<int> waiting{0};        // number of such calls

  int count = 0;  // number of ranks in the last call
  int rank = 0;
  nccl_api::UniqueId id{};
  nccl_api::Config config{};
  const void* from = nullptr;
  void* to = nullptr;
  std::size_t elements = 0;
  int type = -1;
  int operation = -1;  // -1: the call has none
  const char* called = "";
  nccl_api::Stream stream = nullptr;

  int collectives = 0;
  int finalized = 0;  // contexts of the plugin
  int polls = 0;
  int destroyed = 0;
  int aborted = 0;
};

// Returns the fake in the library file, which must be loaded. Throws std::runtime_error.
inline FakeNccl* loaded_fake_nccl(const char* file) {
  void* const library = dlopen(file, RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) throw std::runtime_error(dlerror());
  return reinterpret_cast<FakeNccl* (*)()>(dlsym(library, "fake_nccl"))();
}

}  // namespace stepgate
