// SPDX-License-Identifier: MIT
// The stack is written by _Py_DumpTraceback, the function of the module faulthandler. It was made
// for signal handlers: it needs no GIL and allocates nothing. The frames of the calling thread
// do not change while it is in a CUDA call.
#include "program/injected/python_lines.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>

#include "program/injected/old_glibc.h"
#include "program/injected/recorder.h"

namespace stepgate::attached {
namespace {

constexpr std::uint64_t share_of_time = 50;  // one part in so many
constexpr std::uint64_t free_nanoseconds = 20'000'000;

std::atomic<std::uint64_t> window_begin{0};
std::atomic<std::uint64_t> spent{0};

struct Python {
  void* (*current_thread)() = nullptr;
  void (*dump)(int descriptor, void* thread_state) = nullptr;
};

const Python& python() {
  static const Python found = [] {
    Python functions;
    functions.current_thread = reinterpret_cast<decltype(functions.current_thread)>(
        dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState"));
    functions.dump =
        reinterpret_cast<decltype(functions.dump)>(dlsym(RTLD_DEFAULT, "_Py_DumpTraceback"));
    return functions;
  }();
  return found;
}

}  // namespace

void begin_lines() {
  spent.store(0);
  window_begin.store(nanoseconds_now());
}

bool has_time_for_line() {
  const std::uint64_t passed = nanoseconds_now() - window_begin.load(std::memory_order_relaxed);
  return spent.load(std::memory_order_relaxed) * share_of_time <=
         passed + free_nanoseconds * share_of_time;
}

void write_line(std::uint64_t sequence) {
  const Python& functions = python();
  if (lines_file() < 0 || !functions.current_thread || !functions.dump) return;
  void* state = functions.current_thread();
  if (state == nullptr) return;
  const std::uint64_t begin = nanoseconds_now();
  char text[32];
  const int length =
      std::snprintf(text, sizeof text, "#%llu\n", static_cast<unsigned long long>(sequence));
  if (write(lines_file(), text, static_cast<std::size_t>(length)) < 0) return;
  functions.dump(lines_file(), state);
  spent.fetch_add(nanoseconds_now() - begin, std::memory_order_relaxed);
}

}  // namespace stepgate::attached
