// SPDX-License-Identifier: MIT
// For tests only: an NCCL without communication that behaves as a test configures it.
#include "device/cuda/nccl/fake_nccl.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <string_view>
#include <thread>

#include "device/cuda/nccl/nccl_profiler_api.h"

namespace {

using namespace stepgate;
using namespace stepgate::nccl_api;

constexpr Result remote_error = 6;

FakeNccl told;

struct FakeCommunicator {
  const nccl_profiler_api::Plugin* plugin = nullptr;
  void* context = nullptr;
  int chosen_events = 0;
};
// There are more communicators than any test uses at a time.
std::array<FakeCommunicator, 8> communicators;
std::size_t made = 0;

// Loads the profiler plugin as NCCL does: from the program, if the variable says so.
FakeCommunicator profiled_communicator() {
  const char* const name = std::getenv(nccl_profiler_api::plugin_variable);
  if (!told.has_profilers || name == nullptr ||
      std::string_view(name) != nccl_profiler_api::the_program_itself)
    return {};
  FakeCommunicator made_now;
  made_now.plugin = static_cast<const nccl_profiler_api::Plugin*>(
      dlsym(dlopen(nullptr, RTLD_NOW | RTLD_LOCAL), nccl_profiler_api::plugin_symbol));
  if (made_now.plugin != nullptr)
    made_now.plugin->init(&made_now.context, 4711, &made_now.chosen_events, nullptr, 1, told.count,
                          told.rank, nullptr);
  return made_now;
}

const char* name_of_type(int type) {
  return type == float32 ? "ncclFloat32" : type == float16 ? "ncclFloat16" : "ncclBfloat16";
}

void tell_once(const FakeCommunicator& own, const char* function, std::size_t count, int type) {
  nccl_profiler_api::Event call{};
  call.type = nccl_profiler_api::call_event;
  call.call = {.function = function,
               .count = count,
               .type = name_of_type(type),
               .captured = told.is_captured};
  void* handle = nullptr;
  own.plugin->start_event(own.context, &handle, &call);
  // NCCL also reports a group event, which the plugin did not request.
  nccl_profiler_api::Event group{};
  group.type = 1;
  void* handle_of_group = &group;
  own.plugin->start_event(own.context, &handle_of_group, &group);
  nccl_profiler_api::Event work{};
  work.type = nccl_profiler_api::work_event;
  work.parent = handle;
  work.work = {.function = function,
               .count = count,
               .type = "ncclInt8",
               .channels = 16,
               .algorithm = "RING",
               .protocol = "SIMPLE"};
  void* handle_of_work = nullptr;
  own.plugin->start_event(own.context, &handle_of_work, &work);
  if (handle_of_work != nullptr) own.plugin->stop_event(handle_of_work);
  if (handle != nullptr) own.plugin->stop_event(handle);
}

void tell_profiler(const FakeCommunicator& own, const char* function, std::size_t count, int type) {
  const bool is_mistaken = told.collectives++ == told.mistaken_at;
  if (own.plugin == nullptr || own.chosen_events == 0) return;
  int times = 1;
  switch (is_mistaken ? told.mistake : Mistake::none) {
    case Mistake::none:
      break;
    case Mistake::forgets_it:
      times = 0;
      break;
    case Mistake::counts_other_elements:
      count /= 2;
      break;
    case Mistake::takes_another_kind:
      function = "Broadcast";
      break;
    case Mistake::repeats_it:
      times = 200'000;
      break;
  }
  for (; times > 0; --times) tell_once(own, function, count, type);
}

void finalize(FakeCommunicator& own) {
  if (own.plugin == nullptr) return;
  own.plugin->finalize(own.context);
  ++told.finalized;
  own = {};
}

Result answer(FakeAnswer how) {
  switch (how) {
    case FakeAnswer::success:
      return success;
    case FakeAnswer::failure:
      return remote_error;
    case FakeAnswer::later:
      told.async_state = in_progress;
      return in_progress;
    case FakeAnswer::never:
      ++told.waiting;
      while (!told.released) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      --told.waiting;
      return remote_error;
  }
  return success;
}

Result note(Handle communicator, const char* called, const char* function, const void* from,
            void* to, std::size_t elements, int type, int operation, Stream stream) {
  told.called = called;
  told.from = from;
  told.to = to;
  told.elements = elements;
  told.type = type;
  told.operation = operation;
  told.stream = stream;
  tell_profiler(*static_cast<const FakeCommunicator*>(communicator), function, elements, type);
  return answer(told.collective);
}

}  // namespace

extern "C" {

stepgate::FakeNccl* fake_nccl() {
  return &told;
}

Result ncclGetVersion(int* version) {
  *version = told.version;
  return success;
}

Result ncclGetUniqueId(UniqueId* id) {
  std::fill(std::begin(id->bytes), std::end(id->bytes), 'u');
  return success;
}

Result ncclCommInitRankConfig(Handle* communicator, int count, UniqueId id, int rank,
                              Config* config) {
  told.count = count;
  told.rank = rank;
  told.id = id;
  told.config = *config;
  const Result result = answer(told.init);
  if (result != success && result != in_progress) return result;
  FakeCommunicator& own = communicators[made++ % communicators.size()];
  own = profiled_communicator();
  *communicator = &own;
  return result;
}

Result ncclCommGetAsyncError(Handle, Result* state) {
  *state = told.async_state;
  if (told.async_state == in_progress && ++told.polls == 3) told.async_state = success;
  return success;
}

Result ncclCommDestroy(Handle communicator) {
  finalize(*static_cast<FakeCommunicator*>(communicator));
  ++told.destroyed;
  return success;
}

Result ncclCommAbort(Handle communicator) {
  finalize(*static_cast<FakeCommunicator*>(communicator));
  ++told.aborted;
  return answer(told.abort);
}

const char* ncclGetErrorString(Result result) {
  return result == remote_error ? "remote process exited" : "some error";
}

const char* ncclGetLastError(Handle) {
  return "socket closed\nby peer";
}

Result ncclAllReduce(const void* from, void* to, std::size_t count, int type, int operation,
                     Handle communicator, Stream stream) {
  return note(communicator, "all-reduce", "AllReduce", from, to, count, type, operation, stream);
}

Result ncclReduceScatter(const void* from, void* to, std::size_t count, int type, int operation,
                         Handle communicator, Stream stream) {
  return note(communicator, "reduce-scatter", "ReduceScatter", from, to, count, type, operation,
              stream);
}

Result ncclAllGather(const void* from, void* to, std::size_t count, int type, Handle communicator,
                     Stream stream) {
  return note(communicator, "all-gather", "AllGather", from, to, count, type, -1, stream);
}

Result ncclBroadcast(const void* from, void* to, std::size_t count, int type, int root,
                     Handle communicator, Stream stream) {
  return note(communicator, root == 0 ? "broadcast from rank 0" : "broadcast", "Broadcast", from,
              to, count, type, -1, stream);
}

}  // extern "C"
