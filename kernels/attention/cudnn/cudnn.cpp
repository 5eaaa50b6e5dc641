// SPDX-License-Identifier: MIT
#include "kernels/attention/cudnn/cudnn.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "kernels/attention/cudnn/cudnn_attention.h"
#include "kernels/attention/cudnn/plans.h"

namespace stepgate {
namespace {

// The error of the last dlopen or dlsym.
std::string loader_error() {
  const char* error = dlerror();
  return error != nullptr ? error : "unknown error of the loader";
}

template <class Function>
bool find(void* library, const char* name, Function& function, std::string* reason) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) *reason = loader_error();
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

Cudnn::Cudnn(const CudnnFunctions& functions, cudnnHandle_t handle)
    : functions_(functions), handle_(handle), plans_(std::make_unique<CudnnPlans>()) {}

Cudnn::~Cudnn() {
  plans_.reset();  // before the handle that they were made with
  (void)functions_.destroy(handle_);
}

std::string Cudnn::describe(cudnnStatus_t status, std::string_view what) const {
  std::array<char, 512> words{};
  functions_.last_error_string(words.data(), words.size());
  std::string text = "cuDNN " + version_text(version()) + ": " + std::string(what) + ": " +
                     functions_.error_string(status);
  if (words[0] != '\0') text += std::string(": ") + words.data();
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

std::string not_found_text(const char* named, const std::string& fact) {
  if (named == nullptr) {
    return "no cuDNN was found (" + fact + "; STEPGATE_CUDNN may name another library)";
  }
  return "no cuDNN was found where STEPGATE_CUDNN names '" + std::string(named) + "' (" + fact +
         ")";
}

std::string version_text(std::int64_t version) {
  // Up to 8 a thousand stood for a major version, since 9 ten thousand.
  const std::int64_t major = version < 90000 ? 1000 : 10000;
  return std::to_string(version / major) + '.' + std::to_string(version % major / 100) + '.' +
         std::to_string(version % 100);
}

std::string version_of(const Cudnn& cudnn) {
  return version_text(cudnn.version());
}

// The library stays loaded until the process ends: it starts threads and keeps kernels of its own.
std::shared_ptr<Cudnn> open_cudnn(std::string* reason) {
  const char* named = std::getenv("STEPGATE_CUDNN");
  void* library = dlopen(named != nullptr ? named : "libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    *reason = not_found_text(named, loader_error());
    return nullptr;
  }
  CudnnFunctions functions{};
  std::string missing;
  if (!find_all(library, functions, &missing)) {
    *reason = not_found_text(named, missing);
    return nullptr;
  }
  cudnnHandle_t handle = nullptr;
  const cudnnStatus_t status = functions.create(&handle);
  if (status != CUDNN_STATUS_SUCCESS) {
    *reason = "cuDNN " + version_text(static_cast<std::int64_t>(functions.get_version())) +
              " makes no handle: " + functions.error_string(status);
    return nullptr;
  }
  return std::make_shared<Cudnn>(functions, handle);
}

}  // namespace stepgate
