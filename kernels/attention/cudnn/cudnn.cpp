// SPDX-License-Identifier: MIT
#include "kernels/attention/cudnn/cudnn.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "kernels/attention/cudnn/cudnn_attention.h"

namespace stepgate {
namespace {

// What went wrong in dlopen or dlsym.
std::string loader_error() {
  const char* error = dlerror();
  return error != nullptr ? error : "unknown error of the loader";
}

template <class Function>
bool find(void* library, const char* name, Function& function, std::string* reason) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) *reason = "cuDNN: " + loader_error();
  return function != nullptr;
}

bool find_all(void* library, CudnnFunctions& to, std::string* reason) {
  return find(library, "cudnnGetVersion", to.get_version, reason) &&
         find(library, "cudnnGetErrorString", to.error_string, reason) &&
         find(library, "cudnnGetLastErrorString", to.last_error_string, reason) &&
         find(library, "cudnnCreate", to.create, reason) &&
         find(library, "cudnnDestroy", to.destroy, reason) &&
         find(library, "cudnnSetStream", to.set_stream, reason) &&
         find(library, "cudnnBackendCreateDescriptor", to.create_descriptor, reason) &&
         find(library, "cudnnBackendDestroyDescriptor", to.destroy_descriptor, reason) &&
         find(library, "cudnnBackendSetAttribute", to.set_attribute, reason) &&
         find(library, "cudnnBackendGetAttribute", to.get_attribute, reason) &&
         find(library, "cudnnBackendFinalize", to.finalize, reason) &&
         find(library, "cudnnBackendExecute", to.execute, reason);
}

}  // namespace

std::string Cudnn::sentence(cudnnStatus_t status, std::string_view what) const {
  std::array<char, 512> words{};
  functions_.last_error_string(words.data(), words.size());
  std::string text = "cuDNN " + std::to_string(version()) + ": " + std::string(what) + ": " +
                     functions_.error_string(status);
  if (words[0] != '\0') text += std::string(": ") + words.data();
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

// The library stays loaded until the process ends: it starts threads and keeps kernels of its own.
std::shared_ptr<Cudnn> open_cudnn(std::string* reason) {
  const char* named = std::getenv("STEPGATE_CUDNN");
  const char* name = named != nullptr ? named : "libcudnn.so.9";
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    *reason = "cuDNN: " + loader_error();
    return nullptr;
  }
  CudnnFunctions functions{};
  if (!find_all(library, functions, reason)) return nullptr;
  cudnnHandle_t handle = nullptr;
  const cudnnStatus_t status = functions.create(&handle);
  if (status != CUDNN_STATUS_SUCCESS) {
    *reason = "cuDNN " + std::to_string(functions.get_version()) +
              ": create a handle: " + functions.error_string(status);
    return nullptr;
  }
  return std::make_shared<Cudnn>(functions, handle);
}

}  // namespace stepgate
