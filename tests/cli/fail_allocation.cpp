// SPDX-License-Identifier: MIT
// Loaded into the real program by LD_PRELOAD: one allocation fails, number N of process P, where
// STEPGATE_FAILS_AT is "P:N". Processes are counted from 0 in the order of their starts. Without
// that variable nothing fails, and "P N" is written to FILE.stacks for each allocation whose call
// stack is new among all processes. FILE, which is STEPGATE_FAILING_FILE, has what they share: how
// many processes there are, whether the allocation has failed, and how many each process made.
// Allocations count from `main` on: before it CUDA's own objects are made, which crash without
// memory.
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
}

namespace {

constexpr long most_processes = 254;

struct Shared {
  std::atomic<long> processes;
  std::atomic<long> has_failed;
  std::array<std::atomic<long>, most_processes> allocations;
  std::array<std::atomic<std::uint64_t>, 1 << 18> stacks;  // a hash table of hashes; 0 is no stack
};

Shared* shared = nullptr;
long process = -1;
long failing_process = -1;
long failing_number = -1;
int stacks_file = -1;
using Main = int (*)(int, char**, char**);
Main main_of_program = nullptr;
bool is_in_main = false;
thread_local bool is_inside [[gnu::tls_model("initial-exec")]] = false;

void count_this_process() {
  process = shared->processes++;
  if (process >= most_processes) std::abort();
}

// Priorities up to 100 are the implementation's: this comes before the program's own objects.
[[gnu::constructor(101)]] void begin() {
  const char* const file = std::getenv("STEPGATE_FAILING_FILE");
  if (file == nullptr || std::string_view(program_invocation_short_name) != "stepgate") return;
  const int descriptor = ::open(file, O_RDWR | O_CLOEXEC);
  void* const memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) std::abort();
  ::close(descriptor);
  if (const char* const place = std::getenv("STEPGATE_FAILS_AT")) {
    if (std::sscanf(place, "%ld:%ld", &failing_process, &failing_number) != 2) std::abort();
  } else {
    std::array<char, 4096> name{};
    std::snprintf(name.data(), name.size(), "%s.stacks", file);
    stacks_file =
        ::fcntl(::open(name.data(), O_WRONLY | O_APPEND | O_CLOEXEC), F_DUPFD_CLOEXEC, 900);
    std::array<void*, 1> any{};
    ::backtrace(any.data(), 1);  // loads a library, the first time
  }
  shared = static_cast<Shared*>(memory);
  count_this_process();
  ::pthread_atfork(nullptr, nullptr, count_this_process);
}

// A hash of the return addresses, each within its library: libraries lie elsewhere in every
// process.
std::uint64_t stack_of_this_call() {
  std::array<void*, 100> frames{};
  const int depth = ::backtrace(frames.data(), frames.size());
  std::uint64_t hash = 1469598103934665603U;
  for (int frame = 0; frame < depth; ++frame) {
    const auto address = reinterpret_cast<std::uintptr_t>(frames[frame]);
    dl_find_object found{};
    const bool is_found = ::_dl_find_object(frames[frame], &found) == 0;
    const auto begin = reinterpret_cast<std::uintptr_t>(is_found ? found.dlfo_map_start : nullptr);
    hash = (hash ^ (address - begin)) * 1099511628211U;
    hash ^= hash >> 29;
  }
  return hash | 1;
}

void note_stack(long number) {
  const std::uint64_t hash = stack_of_this_call();
  for (std::uint64_t at = hash;; ++at) {
    std::atomic<std::uint64_t>& entry = shared->stacks[at % shared->stacks.size()];
    std::uint64_t before = 0;
    if (entry.compare_exchange_strong(before, hash)) break;
    if (before == hash) return;
  }
  std::array<char, 64> line{};
  const int length = std::snprintf(line.data(), line.size(), "%ld %ld\n", process, number);
  if (::write(stacks_file, line.data(), static_cast<std::size_t>(length)) != length) std::abort();
}

int begin_main(int count, char** words, char** variables) {
  is_in_main = true;
  return main_of_program(count, words, variables);
}

bool fails() {
  if (shared == nullptr || !is_in_main || is_inside) return false;
  const int error = errno;
  is_inside = true;
  const long number = ++shared->allocations[process];
  const bool now = process == failing_process && number == failing_number;
  if (now) shared->has_failed = 1;
  if (stacks_file >= 0) note_stack(number);
  is_inside = false;
  errno = now ? ENOMEM : error;
  return now;
}

}  // namespace

extern "C" {

// The C library starts a program by this function.
int __libc_start_main(Main main, int count, char** words, void (*init)(), void (*end)(),
                      void (*end_of_loader)(), void* stack) {
  main_of_program = main;
  const auto start =
      reinterpret_cast<decltype(&__libc_start_main)>(::dlsym(RTLD_NEXT, "__libc_start_main"));
  return start(begin_main, count, words, init, end, end_of_loader, stack);
}

void* malloc(std::size_t bytes) noexcept {
  return fails() ? nullptr : __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) noexcept {
  return fails() ? nullptr : __libc_calloc(count, bytes);
}
void* realloc(void* memory, std::size_t bytes) noexcept {
  return fails() ? nullptr : __libc_realloc(memory, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  return fails() ? nullptr : __libc_memalign(alignment, bytes);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) noexcept {
  void* const found = aligned_alloc(alignment, bytes);
  if (found != nullptr) *memory = found;
  return found == nullptr ? ENOMEM : 0;
}

}  // extern "C"
