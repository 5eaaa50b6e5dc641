// SPDX-License-Identifier: MIT
// Linked into stepgate_portable, so that a program that is built with a later glibc starts
// with 2.28 as well. It has functions that later versions added or moved, under names that the
// linker finds before those of the C library. Nothing else may include or call this, and it
// includes no header that declares the same names with types of its own.
#include <link.h>
#include <sys/syscall.h>

#include <cstddef>
#include <cstdint>

#if defined(__x86_64__)
#define FIRST_GLIBC "GLIBC_2.2.5"
#define FIRST_TIMERS "GLIBC_2.3.3"
#define FIRST_DLMOPEN "GLIBC_2.3.4"
#define JUMP "jmp"
#elif defined(__aarch64__)
#define FIRST_GLIBC "GLIBC_2.17"
#define FIRST_TIMERS "GLIBC_2.17"
#define FIRST_DLMOPEN "GLIBC_2.17"
#define JUMP "b"
#else
#error "say which version of glibc was the first of this architecture"
#endif

// Defines `name` as a jump to its first version, whatever its parameters are.
#define OF_VERSION(version, name)                                                                  \
  __asm__(".symver first_" #name "," #name "@" version "\n.text\n.globl " #name "\n.hidden " #name \
          "\n.type " #name ",%function\n" #name ": " JUMP " first_" #name);
#define AS_AT_FIRST(name) OF_VERSION(FIRST_GLIBC, name)

namespace {
using Function = void (*)();
struct Time {
  long seconds, nanoseconds;
};
constexpr long billion = 1'000'000'000;
constexpr int in_working_directory = -100, to_the_link = 0x100, realtime = 0;
}  // namespace

// New algorithms, and domain errors that are reported in another way.
AS_AT_FIRST(exp)
AS_AT_FIRST(exp2)
AS_AT_FIRST(log)
AS_AT_FIRST(pow)
AS_AT_FIRST(hypot)

// Moved from libpthread, librt and libdl, which the program names for old machines. CUDA's static
// runtime calls many of them.
AS_AT_FIRST(dladdr)
AS_AT_FIRST(dlclose)
AS_AT_FIRST(dlerror)
AS_AT_FIRST(dlopen)
AS_AT_FIRST(dlsym)
AS_AT_FIRST(dlvsym)
AS_AT_FIRST(pthread_condattr_setpshared)
AS_AT_FIRST(pthread_create)
AS_AT_FIRST(pthread_detach)
AS_AT_FIRST(pthread_getspecific)
AS_AT_FIRST(pthread_join)
AS_AT_FIRST(__pthread_key_create)
AS_AT_FIRST(pthread_key_create)
AS_AT_FIRST(pthread_key_delete)
AS_AT_FIRST(pthread_kill)
AS_AT_FIRST(pthread_mutex_trylock)
AS_AT_FIRST(pthread_mutexattr_destroy)
AS_AT_FIRST(pthread_mutexattr_init)
AS_AT_FIRST(pthread_mutexattr_setpshared)
AS_AT_FIRST(pthread_mutexattr_settype)
AS_AT_FIRST(pthread_once)
AS_AT_FIRST(pthread_rwlock_destroy)
AS_AT_FIRST(pthread_rwlock_init)
AS_AT_FIRST(pthread_rwlock_rdlock)
AS_AT_FIRST(pthread_rwlock_timedrdlock)
AS_AT_FIRST(pthread_rwlock_timedwrlock)
AS_AT_FIRST(pthread_rwlock_tryrdlock)
AS_AT_FIRST(pthread_rwlock_trywrlock)
AS_AT_FIRST(pthread_rwlock_unlock)
AS_AT_FIRST(pthread_rwlock_wrlock)
AS_AT_FIRST(pthread_rwlockattr_destroy)
AS_AT_FIRST(pthread_rwlockattr_init)
AS_AT_FIRST(pthread_rwlockattr_setpshared)
AS_AT_FIRST(pthread_setspecific)
AS_AT_FIRST(pthread_sigmask)
AS_AT_FIRST(pthread_spin_destroy)
AS_AT_FIRST(pthread_spin_init)
AS_AT_FIRST(pthread_spin_lock)
AS_AT_FIRST(pthread_spin_trylock)
AS_AT_FIRST(pthread_spin_unlock)
AS_AT_FIRST(sem_destroy)
AS_AT_FIRST(sem_init)
AS_AT_FIRST(sem_post)
AS_AT_FIRST(sem_timedwait)
AS_AT_FIRST(sem_trywait)
AS_AT_FIRST(sem_wait)
AS_AT_FIRST(shm_open)
AS_AT_FIRST(shm_unlink)
OF_VERSION(FIRST_TIMERS, dlinfo)
OF_VERSION(FIRST_TIMERS, timer_create)
OF_VERSION(FIRST_TIMERS, timer_settime)
OF_VERSION(FIRST_DLMOPEN, dlmopen)

extern "C" {

long syscall(long number, ...);
int clock_gettime(int clock, Time* now);
int pthread_cond_timedwait(void* condition, void* mutex, const Time* until);

// New in 2.33; the kernel's structure is that of the C library.
int fstatat(int folder, const char* path, void* status, int flags) {
  return static_cast<int>(syscall(SYS_newfstatat, folder, path, status, flags));
}
int stat(const char* path, void* status) {
  return fstatat(in_working_directory, path, status, 0);
}
int lstat(const char* path, void* status) {
  return fstatat(in_working_directory, path, status, to_the_link);
}
int fstat(int file, void* status) {
  return static_cast<int>(syscall(SYS_fstat, file, status));
}
int fstat64(int file, void* status) {
  return fstat(file, status);
}

// New in 2.30. Every condition of the C++ library waits by the real-time clock.
int pthread_cond_clockwait(void* condition, void* mutex, int clock, const Time* until) {
  if (clock == realtime) return pthread_cond_timedwait(condition, mutex, until);
  Time there{}, here{};
  clock_gettime(clock, &there);
  clock_gettime(realtime, &here);
  const long nanoseconds = until->nanoseconds - there.nanoseconds + here.nanoseconds;
  const long carried = (nanoseconds + billion) / billion - 1;
  const Time converted{until->seconds - there.seconds + here.seconds + carried,
                       nanoseconds - carried * billion};
  return pthread_cond_timedwait(condition, mutex, &converted);
}

int close_range(unsigned first, unsigned last, int flags) {
  return static_cast<int>(syscall(SYS_close_range, first, last, flags));
}

// The random device of the C++ library.
unsigned arc4random() {
  unsigned number = 0;
  while (syscall(SYS_getrandom, &number, sizeof number, 0) != sizeof number) {
  }
  return number;
}

// The C++ library leaves out atomic operations where this is true.
char __libc_single_threaded = 0;

#ifdef DLFO_STRUCT_HAS_EH_DBASE
// Exceptions find the tables of a function by this since 2.35.
int _dl_find_object(void* place, dl_find_object* found) noexcept {
  struct Search {
    std::uintptr_t place;
    dl_find_object* found;
  } search{reinterpret_cast<std::uintptr_t>(place), found};
  const auto look_into = [](dl_phdr_info* object, std::size_t, void* given) {
    const Search& asked = *static_cast<Search*>(given);
    bool has_place = false;
    asked.found->dlfo_eh_frame = nullptr;
    for (int index = 0; index < object->dlpi_phnum; ++index) {
      const auto& part = object->dlpi_phdr[index];
      const std::uintptr_t begin = object->dlpi_addr + part.p_vaddr;
      if (part.p_type == PT_GNU_EH_FRAME)
        asked.found->dlfo_eh_frame = reinterpret_cast<void*>(begin);
      if (part.p_type == PT_LOAD && asked.place >= begin && asked.place - begin < part.p_memsz)
        has_place = true;
    }
    return static_cast<int>(has_place && asked.found->dlfo_eh_frame != nullptr);
  };
  return dl_iterate_phdr(look_into, &search) == 1 ? 0 : -1;
}
#endif

// Constructors are called by the C library since 2.34, and by the program before.
extern Function __preinit_array_start[], __preinit_array_end[];
extern void (*__init_array_start[])(int, char**, char**);
extern void (*__init_array_end[])(int, char**, char**);
void _init();
using Main = int (*)(int, char**, char**);
int first_start(Main main, int count, char** words, Main init, Function end, Function loader_end,
                void* stack);
__asm__(".symver first_start,__libc_start_main@" FIRST_GLIBC);

static int construct(int count, char** words, char** variables) {
  for (Function* call = __preinit_array_start; call != __preinit_array_end; ++call) (*call)();
  _init();
  for (auto* call = __init_array_start; call != __init_array_end; ++call)
    (*call)(count, words, variables);
  return 0;
}

int __libc_start_main(Main main, int count, char** words, Main, Function, Function loader_end,
                      void* stack) {
  return first_start(main, count, words, construct, nullptr, loader_end, stack);
}

}  // extern "C"
