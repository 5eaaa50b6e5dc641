// SPDX-License-Identifier: MIT
#include "plugin/open_kernels.h"

#include <memory>
#include <utility>
#include <variant>

#include "plugin/tables/kernel_file.h"
#include "plugin/tables/tvm_ffi.h"

namespace stepgate {

const LoadedKernel& OpenKernels::at(const std::filesystem::path& file, const std::string& function,
                                    const Kernel& wanted) {
  std::array<std::string, 3> key{file.string(), function, std::string(wanted.name)};
  const auto found = kernels_.find(key);
  if (found != kernels_.end()) return found->second;
  return kernels_.emplace(std::move(key), opened(file, function, wanted)).first->second;
}

LoadedKernel OpenKernels::opened(const std::filesystem::path& file, const std::string& function,
                                 const Kernel& wanted) {
  // The bytes that were opened stay those of the library, whatever its file holds meanwhile.
  if (const auto open = libraries_.find(file.string()); open != libraries_.end())
    return open->second.loaded(function);
  KernelFile read = read_kernel(file, function, wanted);
  const std::string identity = identity_of(read);
  if (auto* library = std::get_if<LibraryFile>(&read))
    return libraries_.try_emplace(file.string(), std::move(*library))
        .first->second.loaded(function);
  if (auto* cubin = std::get_if<Cubin>(&read)) return {identity, load_cubin_(std::move(*cubin))};
  const auto opened = std::make_shared<TvmFfi>(std::get<TvmFfi>(std::move(read)));
  return {identity, [opened](const KernelRequest& asked, const DeviceFacts& device) {
            return opened->prepare(asked, device);
          }};
}

}  // namespace stepgate
