// SPDX-License-Identifier: MIT
#include "program/injected/recorder.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace stepgate::attached {
namespace {

constexpr std::uint64_t known_name_bits = 13;
constexpr std::uint64_t most_known_names = 1 << known_name_bits;
constexpr int most_name_tries = 64;

std::atomic<RecordFileHeader*> open_header{nullptr};
std::atomic<std::uint32_t> file_generation{1};
std::atomic<std::uint64_t> known_names[most_known_names];
int descriptor_of_lines = -1;
int descriptor_of_records = -1;

using Shared = std::atomic_ref<std::uint64_t>;

// The parent's mapping is shared: the child must not write there.
void in_child() {
  open_header.store(nullptr);
  file_generation.fetch_add(1);
  for (int* descriptor : {&descriptor_of_lines, &descriptor_of_records}) {
    if (*descriptor >= 0) close(*descriptor);
    *descriptor = -1;
  }
  for (auto& key : known_names) key.store(0, std::memory_order_relaxed);
  this_thread() = Thread{};
}

std::size_t read_proc(const char* path, char* into, std::size_t most) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t got = read(file, into, most);
  close(file);
  return got > 0 ? static_cast<std::size_t>(got) : 0;
}

// The descriptor, or a copy in its place that is no standard stream: a program that closed one of
// those would print into our file.
int above_standard_streams(int file) {
  if (file < 0 || file > STDERR_FILENO) return file;
  const int copy = fcntl(file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  close(file);
  return copy;
}

bool make_file(RecordFileHeader*& made, const char* folder) {
  char path[1024];
  int file = -1;
  // A program that another one becomes by exec keeps the process id.
  for (int again = 0; file < 0 && again < 16; ++again) {
    std::snprintf(path, sizeof path, "%s/%d-%d%s", folder, static_cast<int>(getpid()), again,
                  record_file_ending);
    file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  }
  file = above_standard_streams(file);
  if (file < 0) return false;
  // A page of a sparse file for which the disk has no room ends the program with SIGBUS, so
  // every page is allocated before it is touched.
  const auto size = static_cast<off_t>(largest_record_file_bytes);
  void* memory = MAP_FAILED;
  if (ftruncate(file, size) == 0 && posix_fallocate(file, 0, header_bytes + names_bytes) == 0) {
    memory = mmap(nullptr, largest_record_file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  if (memory == MAP_FAILED) {
    close(file);
    unlink(path);
    return false;
  }
  made = static_cast<RecordFileHeader*>(memory);
  descriptor_of_records = file;
  std::snprintf(path + std::strlen(path) - std::strlen(record_file_ending), 16, "%s",
                lines_file_ending);
  descriptor_of_lines = above_standard_streams(
      open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  return true;
}

bool next_chunk(Thread& thread, RecordFileHeader& file) {
  const std::uint64_t offset =
      header_bytes + names_bytes +
      Shared(file.chunks).fetch_add(1, std::memory_order_relaxed) * chunk_bytes;
  thread.next = thread.end = nullptr;
  if (offset + chunk_bytes > file.capacity_bytes ||
      posix_fallocate(descriptor_of_records, static_cast<off_t>(offset), chunk_bytes) != 0) {
    return false;
  }
  thread.next = reinterpret_cast<Record*>(reinterpret_cast<char*>(&file) + offset);
  thread.end = thread.next + records_per_chunk;
  return true;
}

// Whether nobody has named the key before; the table remembers it.
bool is_new_name(std::uint64_t key) {
  std::uint64_t at = (key * 0x9E37'79B9'7F4A'7C15ULL) >> (64 - known_name_bits);
  for (int tries = 0; tries < most_name_tries; ++tries) {
    std::uint64_t seen = known_names[at].load(std::memory_order_relaxed);
    if (seen == 0 && known_names[at].compare_exchange_strong(seen, key)) return true;
    if (seen == key) return false;
    at = (at + 1) % most_known_names;
  }
  return false;
}

}  // namespace

Thread& this_thread() {
  thread_local Thread thread;
  return thread;
}

RecordFileHeader* header() {
  return open_header.load(std::memory_order_relaxed);
}

int lines_file() {
  return descriptor_of_lines;
}

void watch_forks() {
  static std::atomic<bool> done{false};
  if (!done.exchange(true)) pthread_atfork(nullptr, nullptr, in_child);
}

bool open_record_file() {
  if (header() != nullptr) return true;
  const char* folder = std::getenv(folder_variable);
  RecordFileHeader* made = nullptr;
  if (folder == nullptr || !make_file(made, folder)) return false;
  made->capacity_bytes = largest_record_file_bytes;
  made->process = static_cast<std::uint64_t>(getpid());
  made->parent = static_cast<std::uint64_t>(getppid());
  made->subscribed = not_subscribed_yet;
  if (const char* rank = std::getenv("RANK"))
    std::snprintf(made->rank, sizeof made->rank, "%s", rank);
  read_proc("/proc/self/cmdline", made->command, sizeof made->command - 1);
  Shared(made->magic).store(record_file_magic, std::memory_order_release);
  open_header.store(made);
  return true;
}

void tell_marks(std::uint64_t marks) {
  if (RecordFileHeader* file = header())
    Shared(file->marks).store(marks, std::memory_order_relaxed);
}

void stop_recording() {
  if (RecordFileHeader* file = header()) Shared(file->window_over).store(1);
  open_header.store(nullptr);
}

std::uint64_t put(Thread& thread, RecordKind kind, std::uint16_t flags, std::uint64_t payload,
                  std::uint64_t detail, std::uint32_t call) {
  RecordFileHeader* file = header();
  if (file == nullptr) return 0;
  if (thread.generation != file_generation.load(std::memory_order_relaxed)) {
    thread.next = thread.end = nullptr;
    thread.generation = file_generation.load();
    thread.number = static_cast<std::uint32_t>(
        Shared(file->threads).fetch_add(1, std::memory_order_relaxed) + 1);
  }
  const std::uint64_t sequence = Shared(file->sequence).fetch_add(1, std::memory_order_relaxed) + 1;
  if (thread.next == thread.end && !next_chunk(thread, *file)) {
    std::uint64_t none = 0;
    Shared(file->first_dropped).compare_exchange_strong(none, sequence);
    Shared(file->dropped).fetch_add(1);
    return 0;
  }
  Record& record = *thread.next++;
  record.payload = payload;
  record.detail = detail;
  record.call = call;
  record.thread = thread.number;
  Shared(record.head)
      .store(sequence << 24 | static_cast<std::uint64_t>(kind) << 16 | flags,
             std::memory_order_release);
  return sequence;
}

void put_polls(Thread& thread) {
  if (thread.polls == 0) return;
  const std::uint64_t polls = thread.polls;
  thread.polls = 0;
  put(thread, record_kind(CallKind::poll), 0, polls, 0, 0);
}

void put_name(std::uint64_t key, const char* name, std::uint64_t length) {
  RecordFileHeader* file = header();
  if (file == nullptr || key == 0 || !is_new_name(key)) return;
  if (length > longest_name_bytes) length = longest_name_bytes;
  const std::uint64_t bytes = (2 * sizeof key + length + 7) / 8 * 8;
  const std::uint64_t offset = Shared(file->name_bytes).fetch_add(bytes);
  if (offset + bytes > names_bytes) return;
  char* into = reinterpret_cast<char*>(file) + header_bytes + offset;
  std::memcpy(into + sizeof key, &length, sizeof length);
  if (length > 0) std::memcpy(into + 2 * sizeof key, name, length);
  std::memcpy(into, &key, sizeof key);
}

void put_note(const char* key, const char* value) {
  RecordFileHeader* file = header();
  if (file == nullptr) return;
  const std::size_t length = std::strlen(key) + std::strlen(value) + 2;
  const std::uint64_t at = Shared(file->notes_bytes).fetch_add(length);
  if (at + length >= sizeof file->notes) return;
  char line[sizeof file->notes];
  std::snprintf(line, sizeof line, "%s %s\n", key, value);
  std::memcpy(file->notes + at, line, length);
}

std::uint64_t nanoseconds_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace stepgate::attached
