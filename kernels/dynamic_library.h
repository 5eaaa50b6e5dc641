// SPDX-License-Identifier: MIT
// A library that is opened while the program runs, so that nothing needs it to build, to link or to
// start: where it is looked for, and which of its functions it has.
#pragma once

#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

namespace stepgate {

struct DynamicLibraryPlace {
  std::string file;             // as dlopen takes it
  bool only_if_loaded = false;  // the one that is in the process already
};

struct WantedLibrary {
  std::string name;                         // "cuDNN"
  const char* variable;                     // of the environment: names the only file that is tried
  std::vector<DynamicLibraryPlace> places;  // otherwise these are, in this order
  std::string way_out = {};                 // how else to get one, in words
  bool binds_lazily = false;  // functions that it calls itself are looked up at their first call
};

// An exported function, and the pointer to store its address in.
struct DynamicFunction {
  enum Need { required, optional };  // an optional one that is missing leaves null

  template <class Function>
  DynamicFunction(const char* exported, Function** pointer, Need needed = required)
      : name(exported), to(pointer), need(needed) {}

  const char* name;
  void* to;
  Need need;
};

class DynamicLibrary {
 public:
  // Does not throw; unavailable() says what failed. The library stays loaded until close(), or
  // until the process ends.
  explicit DynamicLibrary(WantedLibrary);

  // Why the library cannot be used, with the loader's message and a hint; empty where it can.
  const std::string& unavailable() const { return unavailable_; }
  // The file that the loader found.
  const std::string& file() const { return file_; }

  // nullptr where the library lacks the name or is not loaded.
  void* find(const char* name) const;
  // Fills the table. Returns false where the library is unavailable, or becomes so because required
  // functions are missing; unavailable() then names them all.
  bool bind(std::initializer_list<DynamicFunction>);

  void close();

 private:
  void refuse(const std::string& fact);

  WantedLibrary wanted_;
  void* handle_ = nullptr;
  std::string file_;
  std::string unavailable_;
};

}  // namespace stepgate
