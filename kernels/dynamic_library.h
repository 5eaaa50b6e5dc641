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

// An exported name, and the pointer that its address is written to.
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
  // Does not throw: what fails is unavailable(). The library stays open until close(), or until the
  // process ends.
  explicit DynamicLibrary(WantedLibrary);

  // Why there is none that can be used, with the loader's words and a way out; empty where there is
  // one.
  const std::string& unavailable() const { return unavailable_; }
  // Where the loader found it.
  const std::string& file() const { return file_; }

  // Null where it has none of that name, or there is no library.
  void* find(const char* name) const;
  // Fills the table. False where the library is unavailable, or is now, since it lacks functions
  // that are required; unavailable() then names every one of them.
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
