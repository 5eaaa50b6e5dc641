// SPDX-License-Identifier: MIT
// Records what this process does in a library of kernels, so that it can say so where it crashes.
#pragma once

#include <string>
#include <string_view>

namespace stepgate {

// Zero-terminated words that outlive the call; null: nothing is under way.
struct LibraryCall {
  const char* function = nullptr;   // "'layer_norm' of 'build/libmine.so'"
  const char* operation = nullptr;  // of the step: "block 0: norm"
};

LibraryCall& library_call();

// Records, while it lives, that this function of a library runs.
class WithinLibrary {
 public:
  explicit WithinLibrary(const std::string& function) {
    library_call().function = function.c_str();
  }
  WithinLibrary(const WithinLibrary&) = delete;
  WithinLibrary& operator=(const WithinLibrary&) = delete;
  ~WithinLibrary() { library_call().function = nullptr; }
};

// From now on, a signal that ends this process during such a call first writes a line to the
// descriptor: `mark`, and "in 'block 0: norm', which is 'layer_norm' of 'build/libmine.so'".
void tell_of_crashes_in_libraries(int descriptor, char mark);

}  // namespace stepgate
