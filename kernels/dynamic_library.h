// SPDX-License-Identifier: MIT
// A library that is opened at run time, so that it is not needed to build, to link or to start. The
// declaration says where it is searched and which functions it has.
#pragma once

#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

namespace stepgate {

struct DynamicLibraryPlace {
  std::string file;             // name as dlopen takes it
  bool only_if_loaded = false;  // only if the process has loaded it already
};

struct WantedLibrary {
  std::string name;                         // "cuDNN"
  const char* variable;                     // environment variable that names the only file to try
  std::vector<DynamicLibraryPlace> places;  // tried in this order if the variable is not set
  std::string way_out = {};                 // other ways to get the library, in words
  bool binds_lazily =
      false;  // RTLD_LAZY: its own undefined functions are resolved at their first call
};

// An exported function, and the pointer to store its address in.
struct DynamicFunction {
  enum Need { required, optional };  // a missing optional function stays null

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

  // The reason why the library cannot be used, with the loader's message and a hint; empty where it
  // can.
  const std::string& unavailable() const { return unavailable_; }
  // The file that the loader found.
  const std::string& file() const { return file_; }

  // Returns nullptr where the library lacks the name or is not loaded.
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
