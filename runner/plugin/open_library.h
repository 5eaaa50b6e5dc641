// SPDX-License-Identifier: MIT
// Kernels of the catalogue that a user's library has instead: opens the library, asks it for a
// kernel of one shape, and makes a Launch of its answer. The interface is
// include/stepgate/kernel.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/kernel.h"
#include "plugin/library_file.h"

namespace stepgate {

// The library has no kernel for this shape, attributes or dtype, and says why.
class KernelUnsupported : public KernelLibraryError {
 public:
  using KernelLibraryError::KernelLibraryError;
};

// The facts of a device that a library is told.
struct DeviceFacts {
  int index = 0;                 // of CUDA
  std::uint32_t capability = 0;  // 90 is compute capability 9.0
  std::uint32_t multiprocessors = 0;
  std::uint32_t shared_bytes = 0;  // the most that a block may have
  // A positive status that a library returned, in the words of the device's runtime.
  std::string (*in_words)(int status, std::uint32_t capability) = nullptr;
};

struct KernelRequest {
  const Kernel& kernel;
  KernelShape shape;
  DType dtype;
  KernelAttributes attributes;
  void* workspace = nullptr;  // device memory for the launch
  std::int64_t workspace_bytes = 0;
};

// "layer_norm of 16384 x 520 in bf16"
std::string in_words(const KernelRequest&);

struct PreparedKernel {
  Launch launch;                     // throws KernelLibraryError where the library returns an error
  std::int64_t launches = 1;         // kernels, copies and fills a call, as the library says
  std::int64_t workspace_bytes = 0;  // of the request's, as the library says
};

using PrepareKernel = std::function<PreparedKernel(const KernelRequest&, const DeviceFacts&)>;

// A kernel that this process has loaded from a file.
struct LoadedKernel {
  std::string identity;   // of the file: identity_of
  PrepareKernel prepare;  // throws KernelLibraryError, KernelUnsupported
};

// Opens these bytes as a shared library, whatever the file holds meanwhile, and returns what dlsym
// takes. Its constructors have run. Throws KernelLibraryError.
void* open_bytes(const std::string& path, const std::vector<std::byte>& bytes);

// A library in this process. Its constructors have run, and it stays until the process ends, since
// graphs and modules of CUDA outlive steps. Opens the bytes that were read, whatever the file holds
// meanwhile.
class OpenLibrary {
 public:
  // Throws KernelLibraryError.
  explicit OpenLibrary(LibraryFile);

  const LibraryFile& file() const { return file_; }

  // Throws KernelLibraryError, KernelUnsupported.
  PreparedKernel prepare(const std::string& function, const KernelRequest&,
                         const DeviceFacts&) const;
  // The library must outlive it. Throws KernelLibraryError where there is no such function.
  LoadedKernel loaded(const std::string& function) const;

 private:
  LibraryFile file_;
  void* handle_ = nullptr;
};

}  // namespace stepgate
