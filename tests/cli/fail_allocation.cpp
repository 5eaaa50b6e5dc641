// SPDX-License-Identifier: MIT
// Loaded into the real program by LD_PRELOAD: allocation number STEPGATE_FAILS_AT of C++ fails,
// once in every process. Says so on standard error, so that a test knows whether there were so
// many.
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <string_view>

namespace {

void* allocate(std::size_t bytes, std::size_t alignment) {
  static const char* const text = std::getenv("STEPGATE_FAILS_AT");
  static const long fails_at = text == nullptr ? 0 : std::atol(text);
  static std::atomic<long> count{0};
  if (++count == fails_at) {
    constexpr std::string_view words = "[an allocation fails]\n";
    (void)!::write(STDERR_FILENO, words.data(), words.size());
    throw std::bad_alloc();
  }
  if (bytes == 0) bytes = 1;
  void* memory = alignment == 0 ? std::malloc(bytes) : nullptr;
  if (alignment != 0 && ::posix_memalign(&memory, alignment, bytes) != 0) memory = nullptr;
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) {
  return allocate(bytes, 0);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
