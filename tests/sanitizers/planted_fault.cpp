// SPDX-License-Identifier: MIT
// planted_fault NAME does one thing that a sanitizer must report, and returns 0 if it did not. It
// shows that a build's sanitizer works.
#include <cstdint>
#include <cstring>
#include <limits>
#include <thread>

namespace {

// Hides the value from the compiler.
template <class Value>
Value hidden(Value value) {
  static volatile Value kept;
  kept = value;
  return kept;
}

int shared_number = 0;

void race() {
  std::thread other([] { ++shared_number; });
  ++shared_number;
  other.join();
}

void used_after_free() {
  int* const number = new int(1);
  delete hidden(number);
  hidden(*number);
}

void signed_overflow() {
  hidden(hidden(std::numeric_limits<int>::max()) + 1);
}

// Truncates 4 GiB plus one byte to one byte.
void truncation() {
  const std::int64_t bytes = hidden((std::int64_t{1} << 32) + 1);
  std::int32_t few = 0;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
  few = bytes;
#pragma GCC diagnostic pop
  hidden(few);
}

void wrapped_size() {
  hidden(hidden(std::size_t{1}) - hidden(std::size_t{2}));
}

}  // namespace

int main(int count, char** words) {
  const char* const name = count == 2 ? words[1] : "";
  if (std::strcmp(name, "race") == 0) {
    race();
  } else if (std::strcmp(name, "used_after_free") == 0) {
    used_after_free();
  } else if (std::strcmp(name, "signed_overflow") == 0) {
    signed_overflow();
  } else if (std::strcmp(name, "truncation") == 0) {
    truncation();
  } else if (std::strcmp(name, "wrapped_size") == 0) {
    wrapped_size();
  } else {
    return 1;
  }
  return 0;
}
