// SPDX-License-Identifier: MIT
#include "kernels/cudnn/cudnn_library.h"

#include <algorithm>
#include <array>

#include "kernels/cudnn/open_cudnn.h"
#include "kernels/cudnn/plans.h"
#include "kernels/dynamic_library.h"

namespace stepgate {
Cudnn::Cudnn(const CudnnFunctions& functions, cudnnHandle_t handle)
    : functions_(functions), handle_(handle), plans_(std::make_unique<CudnnPlans>()) {}

Cudnn::~Cudnn() {
  plans_.reset();  // before the handle, which the plans use
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

std::string version_text(std::int64_t version) {
  // The major version is multiplied by 1,000 up to cuDNN 8, by 10,000 since 9.
  const std::int64_t major = version < 90000 ? 1000 : 10000;
  return std::to_string(version / major) + '.' + std::to_string(version % major / 100) + '.' +
         std::to_string(version % 100);
}

std::string version_of(const Cudnn& cudnn) {
  return version_text(cudnn.version());
}

// The library stays loaded until the process ends: it starts threads and keeps kernels of its own.
std::shared_ptr<Cudnn> open_cudnn(std::string* reason) {
  DynamicLibrary library(
      {.name = "cuDNN", .variable = "STEPGATE_CUDNN", .places = {{"libcudnn.so.9"}}});
  CudnnFunctions functions{};
  library.bind({{"cudnnGetVersion", &functions.get_version},
                {"cudnnGetErrorString", &functions.error_string},
                {"cudnnGetLastErrorString", &functions.last_error_string},
                {"cudnnCreate", &functions.create},
                {"cudnnDestroy", &functions.destroy},
                {"cudnnSetStream", &functions.set_stream},
                {"cudnnBackendCreateDescriptor", &functions.create_descriptor},
                {"cudnnBackendDestroyDescriptor", &functions.destroy_descriptor},
                {"cudnnBackendSetAttribute", &functions.set_attribute},
                {"cudnnBackendGetAttribute", &functions.get_attribute},
                {"cudnnBackendFinalize", &functions.finalize},
                {"cudnnBackendExecute", &functions.execute}});
  if (!library.unavailable().empty()) {
    *reason = library.unavailable();
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
