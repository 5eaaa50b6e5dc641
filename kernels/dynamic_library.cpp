// SPDX-License-Identifier: MIT
#include "kernels/dynamic_library.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

namespace stepgate {
namespace {

std::string loader_error(const std::string& file) {
  const char* error = dlerror();
  return error != nullptr ? error : file + " cannot be opened";
}

// The file that a name refers to after its symbolic links; NVIDIA's files have the version in their
// name.
std::string versioned(const std::string& file) {
  std::error_code failed;
  const auto real = std::filesystem::canonical(file, failed);
  return failed ? file : real.string();
}

}  // namespace

DynamicLibrary::DynamicLibrary(WantedLibrary wanted) : wanted_(std::move(wanted)) {
  if (const char* named = std::getenv(wanted_.variable)) wanted_.places = {{.file = named}};
  std::string reasons;
  for (const DynamicLibraryPlace& place : wanted_.places) {
    handle_ = dlopen(place.file.c_str(), (wanted_.binds_lazily ? RTLD_LAZY : RTLD_NOW) |
                                             RTLD_LOCAL | (place.only_if_loaded ? RTLD_NOLOAD : 0));
    if (handle_ != nullptr) {
      link_map* loaded = nullptr;
      const bool known = dlinfo(handle_, RTLD_DI_LINKMAP, &loaded) == 0 && loaded != nullptr;
      file_ = known ? loaded->l_name : place.file;
      return;
    }
    const std::string reason = loader_error(place.file);
    if (!place.only_if_loaded) reasons += (reasons.empty() ? "" : "; ") + reason;
  }
  refuse(reasons);
}

void DynamicLibrary::refuse(const std::string& fact) {
  const char* named = std::getenv(wanted_.variable);
  unavailable_ = "no " + wanted_.name + " was found";
  if (named != nullptr)
    unavailable_ += std::string(" where ") + wanted_.variable + " names '" + named + "'";
  unavailable_ += " (" + fact + "); " + wanted_.variable + " may name another library";
  if (!wanted_.way_out.empty()) unavailable_ += ", and " + wanted_.way_out;
}

void* DynamicLibrary::find(const char* name) const {
  return handle_ == nullptr ? nullptr : dlsym(handle_, name);
}

bool DynamicLibrary::bind(std::initializer_list<DynamicFunction> table) {
  if (!unavailable_.empty()) return false;
  std::string lacks;
  for (const DynamicFunction& function : table) {
    void* const address = find(function.name);
    std::memcpy(function.to, &address, sizeof address);
    if (address == nullptr && function.need == DynamicFunction::required)
      lacks += (lacks.empty() ? "" : ", ") + std::string(function.name);
  }
  if (!lacks.empty()) refuse(versioned(file_) + " lacks " + lacks);
  return lacks.empty();
}

void DynamicLibrary::close() {
  if (handle_ != nullptr) (void)dlclose(handle_);
  handle_ = nullptr;
}

}  // namespace stepgate
