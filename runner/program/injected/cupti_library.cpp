// SPDX-License-Identifier: MIT
// The order: STEPGATE_CUPTI alone where it is set; a copy that is loaded; the copies beside the
// CUDA libraries that are loaded, as in the wheels of PyTorch and JAX; the loader's search path;
// the toolkit's usual folder.
#include "program/injected/cupti_library.h"

#include <link.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "program/injected/old_glibc.h"

namespace stepgate::attached {
namespace {

constexpr int most_folders = 4;
constexpr std::size_t longest_path = 512;

struct Loaded {
  char cupti[longest_path] = {};
  char folders[most_folders][longest_path] = {};  // of CUDA libraries
  int folder_count = 0;
  int major = 0;  // of libcudart; 0: none is loaded
};

bool begins(const char* text, const char* beginning) {
  return std::strncmp(text, beginning, std::strlen(beginning)) == 0;
}

int look_at(dl_phdr_info* info, std::size_t, void* into) {
  Loaded& loaded = *static_cast<Loaded*>(into);
  const char* path = info->dlpi_name;
  const char* slash = path ? std::strrchr(path, '/') : nullptr;
  if (slash == nullptr) return 0;
  const char* file = slash + 1;
  if (begins(file, "libcupti.so") && loaded.cupti[0] == '\0')
    std::snprintf(loaded.cupti, longest_path, "%s", path);
  const bool is_runtime = begins(file, "libcudart.so.");
  if (is_runtime)
    loaded.major = file[std::strlen("libcudart.so.")] == '1'
                       ? 10 + (file[std::strlen("libcudart.so.") + 1] - '0')
                       : 0;
  if ((is_runtime || begins(file, "libcublas.so") || begins(file, "libnvrtc.so")) &&
      loaded.folder_count < most_folders) {
    std::snprintf(loaded.folders[loaded.folder_count++], longest_path, "%.*s",
                  static_cast<int>(slash - path), path);
  }
  return 0;
}

void* open_beside(const Loaded& loaded, int major) {
  char name[2 * longest_path];
  for (int folder = 0; folder < loaded.folder_count; ++folder) {
    for (const char* place : {"%s/libcupti.so.%d", "%s/../../cuda_cupti/lib/libcupti.so.%d",
                              "%s/../extras/CUPTI/lib64/libcupti.so.%d"}) {
      std::snprintf(name, sizeof name, place, loaded.folders[folder], major);
      if (void* found = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return found;
    }
  }
  return nullptr;
}

void* open_anywhere(int major) {
  char name[longest_path];
  for (const char* place : {"libcupti.so.%d", "/usr/local/cuda/lib64/libcupti.so.%d",
                            "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.%d"}) {
    std::snprintf(name, sizeof name, place, major);
    if (void* found = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return found;
  }
  return nullptr;
}

void* open_handle() {
  if (const char* given = std::getenv("STEPGATE_CUPTI"))
    return dlopen(given, RTLD_NOW | RTLD_LOCAL);
  Loaded loaded;
  dl_iterate_phdr(look_at, &loaded);
  if (loaded.cupti[0] != '\0') return dlopen(loaded.cupti, RTLD_NOW | RTLD_LOCAL);
  const int majors[] = {loaded.major != 0 ? loaded.major : 13, 13, 12};
  for (const int major : majors) {
    if (void* found = open_beside(loaded, major)) return found;
    if (void* found = open_anywhere(major)) return found;
  }
  return nullptr;
}

template <class Function>
bool find(void* handle, Function*& function, const char* name) {
  function = reinterpret_cast<Function*>(dlsym(handle, name));
  return function != nullptr;
}

}  // namespace

bool CuptiLibrary::open() {
  void* handle = open_handle();
  if (handle == nullptr) return false;
  find(handle, subscribe_v2, "cuptiSubscribe_v2");
  if (!find(handle, version, "cuptiGetVersion") || !find(handle, subscribe, "cuptiSubscribe") ||
      !find(handle, enable_callback, "cuptiEnableCallback") ||
      !find(handle, callback_name, "cuptiGetCallbackName")) {
    return false;
  }
  Dl_info where{};
  if (dladdr(reinterpret_cast<void*>(version), &where) != 0 && where.dli_fname != nullptr)
    std::snprintf(path, sizeof path, "%s", where.dli_fname);
  return true;
}

}  // namespace stepgate::attached
