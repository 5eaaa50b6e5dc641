// SPDX-License-Identifier: MIT
#include "plugin/tables/kernel_file.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/text/diagnostic.h"
#include "base/toml/toml.h"

namespace stepgate {

bool is_table(const std::filesystem::path& file) {
  return file.extension() == ".toml";
}

LaunchOfTable read_launch(const std::filesystem::path& table) {
  const TomlTable read = read_toml(table, "a launch of a kernel");
  std::vector<Diagnostic> faults;
  const auto or_faults = [&](auto launch) -> LaunchOfTable {
    if (!launch) throw RequestError(std::move(faults));
    return std::move(*launch);
  };
  const Place place{.file = table.string()};
  if (find(read, "library") != nullptr) return or_faults(read_tvm_ffi_launch(read, place, faults));
  return or_faults(read_cubin_launch(read, place, faults));
}

std::vector<std::filesystem::path> files_of_kernel(const std::filesystem::path& file) {
  std::vector<std::filesystem::path> files{file};
  if (!is_table(file)) return files;
  const LaunchOfTable launch = read_launch(file);
  const auto add = [&](const std::string& name) {
    if (!name.empty()) files.push_back(file.parent_path() / name);
  };
  if (const auto* cubin = std::get_if<CubinLaunch>(&launch)) {
    add(cubin->cubin);
    add(cubin->metadata);
  } else {
    add(std::get<TvmFfiLaunch>(launch).library);
  }
  return files;
}

KernelFile read_kernel(const std::filesystem::path& file, const std::string& function,
                       const Kernel& wanted) {
  if (!is_table(file)) {
    LibraryFile library = read_library(file);
    require_function(library, function);
    return library;
  }
  if (function != wanted.name) {
    throw KernelLibraryError(
        fmt::format("'{}' is a table, which names its function itself", file.string()),
        fmt::format("leave '{}' out", function));
  }
  LaunchOfTable launch = read_launch(file);
  if (auto* cubin = std::get_if<CubinLaunch>(&launch))
    return read_cubin_of(std::move(*cubin), file.parent_path(), wanted);
  return TvmFfi(std::get<TvmFfiLaunch>(std::move(launch)), file.parent_path(), wanted);
}

void require_launchable(const KernelFile& file, const KernelRequest& asked) {
  if (const auto* cubin = std::get_if<Cubin>(&file)) cubin->require_launchable(asked);
  if (const auto* function = std::get_if<TvmFfi>(&file)) function->require_launchable(asked);
}

std::string identity_of(const KernelFile& file) {
  if (const auto* library = std::get_if<LibraryFile>(&file)) return identity_of(*library);
  if (const auto* cubin = std::get_if<Cubin>(&file)) return cubin->identity();
  return std::get<TvmFfi>(file).identity();
}

std::string identity_of_files(const std::filesystem::path& file) {
  if (!is_table(file)) return identity_of(read_library(file));
  std::string all;
  for (const std::filesystem::path& one : files_of_kernel(file)) {
    const std::vector<std::byte> bytes = bytes_of_file(one);
    all.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return identity_of(file, {}, all);
}

std::string digest_of_files(const std::filesystem::path& file) {
  const std::string identity = identity_of_files(file);
  return identity.substr(identity.rfind(' ') + 1);
}

}  // namespace stepgate
