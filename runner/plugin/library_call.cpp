// SPDX-License-Identifier: MIT
#include "plugin/library_call.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstring>

namespace stepgate {
namespace {

int told_descriptor = -1;
char told_mark = 0;

// A line on the stack, since a handler must not allocate.
class Line {
 public:
  void add(const char* text) {
    for (; *text != 0 && size_ + 1 < text_.size(); ++text)
      text_[size_++] = *text < ' ' || *text > '~' ? '?' : *text;
  }
  void add(char one) { text_[size_++] = one; }
  void write_to(int descriptor) {
    text_[size_++] = '\n';
    (void)!::write(descriptor, text_.data(), size_);
  }

 private:
  std::array<char, 512> text_{};
  std::size_t size_ = 0;
};

// The handler is gone when this returns (SA_RESETHAND), so the signal then ends the process.
void tell(int number) {
  const LibraryCall call = library_call();
  if (call.function != nullptr) {
    Line line;
    line.add(told_mark);
    line.add("in ");
    if (call.operation != nullptr) {
      line.add("'");
      line.add(call.operation);
      line.add("', which is ");
    }
    line.add(call.function);
    line.write_to(told_descriptor);
  }
  (void)::raise(number);
}

}  // namespace

LibraryCall& library_call() {
  static LibraryCall call;
  return call;
}

void tell_of_crashes_in_libraries(int descriptor, char mark) {
  told_descriptor = descriptor;
  told_mark = mark;
  (void)library_call();
  struct sigaction action {};
  action.sa_handler = tell;
  action.sa_flags = SA_RESETHAND;
  for (const int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT})
    (void)::sigaction(number, &action, nullptr);
}

}  // namespace stepgate
