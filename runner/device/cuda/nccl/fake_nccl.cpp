// SPDX-License-Identifier: MIT
// For nccl_communicator_test only: an NCCL that communicates with nobody and does as it is told.
#include "device/cuda/nccl/fake_nccl.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <thread>

namespace {

using namespace stepgate;
using namespace stepgate::nccl_api;

constexpr Result remote_error = 6;

FakeNccl told;
int the_communicator = 0;

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

Result note(const char* called, const void* from, void* to, std::size_t elements, int type,
            int operation, Stream stream) {
  told.called = called;
  told.from = from;
  told.to = to;
  told.elements = elements;
  told.type = type;
  told.operation = operation;
  told.stream = stream;
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
  if (result == success || result == in_progress) *communicator = &the_communicator;
  return result;
}

Result ncclCommGetAsyncError(Handle, Result* state) {
  *state = told.async_state;
  if (told.async_state == in_progress && ++told.polls == 3) told.async_state = success;
  return success;
}

Result ncclCommDestroy(Handle) {
  ++told.destroyed;
  return success;
}

Result ncclCommAbort(Handle) {
  ++told.aborted;
  return success;
}

const char* ncclGetErrorString(Result result) {
  return result == remote_error ? "remote process exited" : "some error";
}

const char* ncclGetLastError(Handle) {
  return "socket closed\nby peer";
}

Result ncclAllReduce(const void* from, void* to, std::size_t count, int type, int operation, Handle,
                     Stream stream) {
  return note("all-reduce", from, to, count, type, operation, stream);
}

Result ncclReduceScatter(const void* from, void* to, std::size_t count, int type, int operation,
                         Handle, Stream stream) {
  return note("reduce-scatter", from, to, count, type, operation, stream);
}

Result ncclAllGather(const void* from, void* to, std::size_t count, int type, Handle,
                     Stream stream) {
  return note("all-gather", from, to, count, type, -1, stream);
}

}  // extern "C"
