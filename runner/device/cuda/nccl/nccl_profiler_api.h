// SPDX-License-Identifier: MIT
// The part of NCCL's profiler interface, version 5, that stepgate implements. It is declared from
// NCCL's documentation (ext-profiler/README.md in its sources). NCCL looks for it from 2.28.3 on;
// versions with a later interface still accept this one. Only this folder and the tests' fake
// library include this.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stepgate::nccl_profiler_api {

// The symbol that NCCL looks for, and the variable that lets it look in the program itself.
inline constexpr const char* plugin_symbol = "ncclProfiler_v5";
inline constexpr const char* plugin_variable = "NCCL_PROFILER_PLUGIN";
inline constexpr const char* the_program_itself = "STATIC_PLUGIN";

// Kinds of events that a plugin can request. Events of kernels' channels are never requested, since
// they make collectives of up to 4 MiB slower.
inline constexpr std::uint64_t work_event = 2;    // ncclProfileColl
inline constexpr std::uint64_t call_event = 512;  // ncclProfileCollApi

// A collective as the program called it.
struct Call {
  const char* function;  // "AllReduce"
  std::size_t count;
  const char* type;  // "ncclBfloat16"
  int root;
  void* stream;
  bool captured;
};

// A collective as NCCL carries it out. For some kinds its count has other units than in the call.
struct Work {
  std::uint64_t number;
  const char* function;
  const void* from;
  void* to;
  std::size_t count;
  int root;
  const char* type;
  std::uint8_t channels;
  std::uint8_t warps;
  const char* algorithm;  // "RING"
  const char* protocol;   // "SIMPLE"
  void* group;
};

struct Event {
  std::uint64_t type;
  void* parent;  // of work the handle of its call
  int rank;
  union {
    Call call;
    Work work;
  };
};
static_assert(offsetof(Event, call) == 24 && offsetof(Event, work) == 24 && sizeof(Event) == 112);
static_assert(offsetof(Call, type) == 16 && offsetof(Call, captured) == 40);
static_assert(offsetof(Work, count) == 32 && offsetof(Work, type) == 48 &&
              offsetof(Work, channels) == 56 && offsetof(Work, algorithm) == 64);

// All functions return an ncclResult_t; 0 is success.
struct Plugin {
  const char* name;
  int (*init)(void** context, std::uint64_t communicator, int* chosen_events,
              const char* communicator_name, int nodes, int ranks, int rank, void (*log)());
  int (*start_event)(void* context, void** handle, Event*);
  int (*stop_event)(void* handle);
  int (*record_event_state)(void* handle, int state, void* arguments);
  int (*finalize)(void* context);
};

}  // namespace stepgate::nccl_profiler_api
