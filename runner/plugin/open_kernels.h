// SPDX-License-Identifier: MIT
// Kernels of a user that this process has opened, from whatever file: the one way by which a check
// and a step come to them.
#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "kernels/kernel.h"
#include "plugin/open_library.h"
#include "plugin/tables/cubin.h"

namespace stepgate {

class OpenKernels {
 public:
  // Only a device can load a cubin (open_cubin.h).
  explicit OpenKernels(std::function<PrepareKernel(Cubin)> load_cubin)
      : load_cubin_(std::move(load_cubin)) {}

  // Opens the file on first use, and a library once, whatever functions of it are asked for. The
  // kernel lives as long as this object. Throws as read_kernel (tables/kernel_file.h).
  const LoadedKernel& at(const std::filesystem::path&, const std::string& function, const Kernel&);

 private:
  LoadedKernel opened(const std::filesystem::path&, const std::string& function, const Kernel&);

  std::function<PrepareKernel(Cubin)> load_cubin_;
  std::map<std::string, OpenLibrary> libraries_;                // by path
  std::map<std::array<std::string, 3>, LoadedKernel> kernels_;  // by path, function and name
};

}  // namespace stepgate
